package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/actors/geo"
)

// Default numbers of keys, and the sizes of bulk requests and streams.
const (
	hotKeys    = 4096
	zipfKeys   = 100_000
	bulkSize   = 50 // the maximum (interface document)
	streamSize = 1024
)

// address returns number i of 2^24 public IPv4 addresses in a pseudo-random order.
func address(i uint64) string {
	i = (i*2654435761 + 97) % (1 << 24) // an odd factor, so that no two are equal
	return netip.AddrFrom4([4]byte{20 + byte(i>>22), byte(i >> 14), byte(i >> 6),
		byte(i<<2) | 1}).String()
}

// unseen returns a function that returns another address at each call. The first one is random, so
// that a second run is cold too.
func unseen() func() string {
	first := rand.Uint64N(1 << 24)
	var next atomic.Uint64
	return func() string { return address(first + next.Add(1)) }
}

// queries returns the queries of the setup. own is the default number of keys.
func (s *Setup) queries(own int) []string {
	if s.Queries != nil {
		return s.Queries
	}
	n := number(s.Keys, own)
	s.keysUsed = max(s.keysUsed, n)
	all := make([]string, n)
	for i := range all {
		all[i] = address(uint64(i))
	}
	return all
}

func lookup(query string) string { return "/api/lookup?q=" + url.QueryEscape(query) }

func lookups(queries []string) []string {
	paths := make([]string, len(queries))
	for i, q := range queries {
		paths[i] = lookup(q)
	}
	return paths
}

// warm looks up all queries once, in bulk requests.
func (s *Setup) warm(ctx context.Context, queries []string) error {
	bodies, err := bulks(queries)
	if err != nil {
		return err
	}
	return s.provisioner.each(ctx, len(bodies), "bulk requests that fill the cache",
		func(i int) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost,
				strings.TrimSuffix(s.Target.Base, "/")+"/api/bulk",
				strings.NewReader(string(bodies[i])))
			if err != nil {
				return fmt.Errorf("fill the cache: %w", err)
			}
			request.Header.Set("Content-Type", "application/json")
			s.Target.dress(request)
			return s.operator.do(request, "the bulk endpoint", nil)
		})
}

// bulks returns the bodies of bulk requests for queries.
func bulks(queries []string) ([][]byte, error) {
	var bodies [][]byte
	for from := 0; from < len(queries); from += bulkSize {
		body, err := json.Marshal(map[string][]string{"queries": queries[from:min(len(queries),
			from+bulkSize)]})
		if err != nil {
			return nil, fmt.Errorf("create a bulk request: %w", err)
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

func prepareHot(ctx context.Context, s *Setup) (*workload, error) {
	queries := s.queries(hotKeys)
	if err := s.warm(ctx, queries); err != nil {
		return nil, err
	}
	paths := lookups(queries)
	return &workload{hit: func(h *Hit) error {
		_, err := h.Do("lookup", Request{Path: paths[h.Number%uint64(len(paths))],
			Want: Status(http.StatusOK)})
		return err
	}}, nil
}

func prepareCold(_ context.Context, s *Setup) (*workload, error) {
	if s.Queries != nil {
		return lookUpOnce(lookups(partOf(s.part, distinct(s.Queries)))), nil
	}
	next := unseen()
	return &workload{hit: func(h *Hit) error {
		_, err := h.Do("cold-lookup", Request{Path: lookup(next()),
			Want: Status(http.StatusOK)})
		return err
	}}, nil
}

// lookUpOnce looks up each query once, and ends the run after the last.
func lookUpOnce(paths []string) *workload {
	var next atomic.Int64
	var missed atomic.Bool
	return &workload{
		hit: func(h *Hit) error {
			n := next.Add(1) - 1
			if n >= int64(len(paths)) {
				missed.Store(true)
				return errUsedUp
			}
			_, err := h.Do("cold-lookup", Request{Path: paths[n], Want: Status(http.StatusOK)})
			return err
		},
		checks: func(r *Result) []Check {
			if !missed.Load() {
				return nil
			}
			return []Check{{What: "the queries last for the whole run",
				Seen: fmt.Sprintf("all %s were looked up after %s of %s",
					grouped(int64(len(paths))), shortTime(r.Took), r.Planned)}}
		},
	}
}

// distinct returns queries without duplicates.
func distinct(queries []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(queries), func(text string) bool {
		name := text
		if q, err := geo.ParseQuery(text); err == nil {
			name = q.String()
		}
		again := seen[name]
		seen[name] = true
		return again
	})
}

// prepareZipf draws queries from a Zipf distribution: the second most frequent has about half the
// frequency of the first, and so on.
func prepareZipf(_ context.Context, s *Setup) (*workload, error) {
	paths := lookups(s.queries(zipfKeys))
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, uint64(len(paths)-1))
	if zipf == nil {
		return nil, errors.New("it needs at least two queries")
	}
	drawn := make([]string, 1<<18)
	for i := range drawn {
		drawn[i] = paths[zipf.Uint64()]
	}
	return &workload{hit: func(h *Hit) error {
		_, err := h.Do("zipf-lookup", Request{Path: drawn[h.Rand.IntN(len(drawn))],
			Want: Status(http.StatusOK)})
		return err
	}}, nil
}

func prepareBulk(ctx context.Context, s *Setup) (*workload, error) {
	queries := s.queries(hotKeys)
	if err := s.warm(ctx, queries); err != nil {
		return nil, err
	}
	bodies, err := bulks(queries)
	if err != nil {
		return nil, err
	}
	return &workload{hit: func(h *Hit) error {
		_, err := h.Do("bulk", Request{Path: "/api/bulk",
			JSON: bodies[h.Number%uint64(len(bodies))], Want: Status(http.StatusOK)})
		return err
	}}, nil
}

// prepareBulkCold sends addresses that the cache does not have. Each of them must have a result.
func prepareBulkCold(context.Context, *Setup) (*workload, error) {
	next := unseen()
	return &workload{hit: func(h *Hit) error {
		queries := make([]string, bulkSize)
		for i := range queries {
			queries[i] = next()
		}
		bodies, err := bulks(queries)
		if err != nil {
			return err
		}
		_, err = h.Do("cold-bulk", Request{Path: "/api/bulk", JSON: bodies[0], Want: allFound})
		return err
	}}, nil
}

// allFound returns what is wrong with a bulk response, each of whose elements must be a result.
func allFound(r *Response) string {
	switch {
	case r.Status != http.StatusOK:
		return wrongStatus(r)
	case !bytes.Contains(r.Body[:min(len(r.Body), 64)], []byte(`,"failed":0,`)):
		return "an element is an error"
	}
	return ""
}

func prepareStream(ctx context.Context, s *Setup) (*workload, error) {
	queries := s.queries(hotKeys)
	if err := s.warm(ctx, queries); err != nil {
		return nil, err
	}
	var bodies [][]byte
	for lines := range slices.Chunk(queries, streamSize) {
		bodies = append(bodies, []byte(strings.Join(lines, "\n")))
	}
	return &workload{hit: func(h *Hit) error {
		_, err := h.Do("stream", Request{Path: "/api/stream",
			Text: bodies[h.Number%uint64(len(bodies))], Want: wholeStream})
		return err
	}}, nil
}

// wholeStream returns what is wrong with the response to a stream. It must have its last line, and
// each line before it must be a result.
func wholeStream(r *Response) string {
	end := r.Body[bytes.LastIndexByte(bytes.TrimSuffix(r.Body, []byte("\n")), '\n')+1:]
	switch {
	case r.Status != http.StatusOK:
		return wrongStatus(r)
	case !bytes.HasPrefix(end, []byte(`{"done":true,`)):
		return "the last line is missing"
	case !bytes.HasSuffix(end, []byte(`,"failed":0}`+"\n")):
		return "a line is an error"
	}
	return ""
}

// prepareMyIP sends X-Forwarded-For with many addresses. It fails if the target does not trust this
// machine as a proxy.
func prepareMyIP(ctx context.Context, s *Setup) (*workload, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(s.Target.Base, "/")+"/api/my-ip", nil)
	if err != nil {
		return nil, fmt.Errorf("look up the own address: %w", err)
	}
	request.Header.Set("X-Forwarded-For", address(0))
	s.Target.dress(request)
	if err := s.operator.do(request, "my-ip", nil); err != nil {
		return nil,
			fmt.Errorf("%w (the target has to trust this machine as a proxy: GATEHOUSE_TRUSTED_PROXIES)", err)
	}
	callers := s.queries(hotKeys)
	if err := s.warm(ctx, callers); err != nil {
		return nil, err
	}
	return &workload{hit: func(h *Hit) error {
		_, err := h.Do("my-ip", Request{Path: "/api/my-ip",
			Header: [][2]string{{"X-Forwarded-For",
				callers[h.Number%uint64(len(callers))]}}, Want: Status(http.StatusOK)})
		return err
	}}, nil
}

// The phases of an outage.
const (
	healthy int32 = iota
	failing
	recovering // the upstream works, but gatehouse's breaker may still be open
	recovered
)

func prepareOutage(ctx context.Context, s *Setup) (*workload, error) {
	upstream := newSimulator(s.Target.Simulator)
	before, err := upstream.faults(ctx)
	if err != nil {
		return nil, err
	}
	hot, err := prepareHot(ctx, s)
	if err != nil {
		return nil, err
	}
	var phase atomic.Int32
	var refused, served atomic.Int64 // misses during the outage and after it
	first := rand.Uint64N(1 << 24)
	cold := func(h *Hit) error {
		now := phase.Load()
		_, err := h.Do("cold-lookup", Request{Path: lookup(address(first + h.Number)),
			Want: func(r *Response) string {
				switch {
				case r.Status == http.StatusOK && (now == recovering || now == recovered):
					served.Add(1)
				case r.Status == http.StatusOK || now == recovered || now == healthy &&
					phase.Load() == healthy:
					return Status(http.StatusOK)(r)
				case r.Status == http.StatusBadGateway &&
					r.Header("Content-Type") == "application/json":
					refused.Add(1)
				default:
					return wrongStatus(r)
				}
				return ""
			}})
		return err
	}
	return &workload{
		hit: func(h *Hit) error {
			if h.Number%4 == 0 {
				return cold(h)
			}
			return hot.hit(h)
		},
		during: func(ctx context.Context, planned time.Duration, note func(Period)) error {
			return upstream.outage(ctx, before, planned, s.Target.recovery(), &phase, note)
		},
		checks: func(r *Result) []Check {
			hot, _ := r.step("lookup")
			return []Check{
				{What: "cached lookups are always served", OK: hot.Failed == 0,
					Seen: fmt.Sprintf("%d of %d failed", hot.Failed, hot.Attempts)},
				{What: "misses are refused at once while the upstream is down",
					OK: refused.Load() > 0, Seen: fmt.Sprintf("%d refused with 502", refused.Load())},
				{What: "misses are served again after it", OK: served.Load() > 0,
					Seen: fmt.Sprintf("%d served", served.Load())},
			}
		},
	}, nil
}
