package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"

	"gatehouse/actors/geo"
)

const (
	maxBatch    = 50              // queries of a request to /api/bulk
	maxResponse = 4 << 20         // bytes
	windowSize  = 1 << 14         // distinct queries that are remembered
	maxStrikes  = 3               // tries of a domain that fails while others do not
	domainTime  = 5 * time.Minute // for a domain that fails, and nothing else is asked
)

// Server is the Source that asks a server.
type Server struct {
	config ServerConfig
	gate   *gate
	window window
}

// ServerConfig configures a Server. Fields are required unless they say otherwise.
type ServerConfig struct {
	URL      string // without a slash at the end
	Key      string // optional: sent as X-Api-Key
	Client   *http.Client
	Plan     *Plan
	Patience time.Duration // without any success, after which the Source gives up
}

// NewServer returns a Source that asks a server.
func NewServer(c ServerConfig) *Server {
	return &Server{config: c, gate: newGate(),
		window: window{known: map[geo.Query]*question{}}}
}

// question is a query that is or was asked.
type question struct {
	query   geo.Query
	answer  Answer        // valid when done is closed
	done    chan struct{} // closed when answered
	first   time.Time     // of a response without an answer
	strikes int           // such responses that had other answers
}

// window remembers the last questions, so that duplicates are asked once.
type window struct {
	mu    sync.Mutex
	known map[geo.Query]*question
	order []geo.Query // a ring
	next  int         // index in order of the oldest
}

// take returns the question for a query. isNew says that the caller has to ask it.
func (w *window) take(q geo.Query) (found *question, isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.known[q]; found != nil {
		return found, false
	}
	q = q.Clone()
	found = &question{query: q, done: make(chan struct{})}
	w.known[q] = found
	if len(w.order) < windowSize {
		w.order = append(w.order, q)
		return found, true
	}
	delete(w.known, w.order[w.next])
	w.order[w.next] = q
	w.next = (w.next + 1) % windowSize
	return found, true
}

// Answer asks the queries that are not in the window. It repeats what fails for now.
func (s *Server) Answer(ctx context.Context, queries []geo.Query, answers []Answer) (asked int,
	err error) {
	all := make([]*question, len(queries))
	var mine []*question
	for i, q := range queries {
		var isNew bool
		if all[i], isNew = s.window.take(q); isNew {
			mine = append(mine, all[i])
		}
	}
	asked = len(mine)
	g, asking := errgroup.WithContext(ctx)
	for len(mine) > 0 {
		n := min(maxBatch, len(mine))
		batch := mine[:n:n]
		mine = mine[n:]
		g.Go(func() error { return s.ask(asking, batch) })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	for i, q := range all {
		select {
		case <-q.done:
			answers[i] = q.answer
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return asked, nil
}

// ask asks a batch until all of it is answered.
func (s *Server) ask(ctx context.Context, batch []*question) error {
	for len(batch) > 0 {
		if err := s.gate.enter(ctx); err != nil {
			return err
		}
		began := time.Now()
		r := s.post(ctx, batch)
		batch = r.rest
		var refused *refusedError
		switch {
		case errors.As(r.err, &refused):
			s.gate.succeed()
			return r.err
		case ctx.Err() != nil:
			s.gate.succeed()
			return ctx.Err()
		case r.err == nil && !r.busy:
			s.gate.succeed()
			if err := sleep(ctx, r.wait, len(batch) > 0); err != nil {
				return err
			}
		default:
			without := s.gate.fail(began, r.wait, r.some)
			if without > s.config.Patience {
				return fmt.Errorf("no answer in %s: %w", s.config.Patience, cause(r.err))
			}
		}
	}
	return nil
}

// sleep waits for at least a second, if there is a reason to.
func sleep(ctx context.Context, wait time.Duration, reason bool) error {
	if !reason {
		return nil
	}
	timer := time.NewTimer(max(time.Second, min(wait, maxWait)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cause returns err, or what the items of a response without results said.
func cause(err error) error {
	if err == nil {
		return errors.New("the server has no capacity")
	}
	return err
}

// A refusedError says that a server does not take the requests of this program.
type refusedError struct {
	status  int
	message string
}

func (e *refusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server refuses: status %d %s", e.status, e.message))
}

// reply is what became of a request.
type reply struct {
	rest []*question   // to repeat
	wait time.Duration // the server's word for when; 0 = none
	busy bool          // the server has no capacity for more
	some bool          // it has answered some
	err  error
}

// post sends a batch.
func (s *Server) post(ctx context.Context, batch []*question) reply {
	body := []byte(`{"queries":[`)
	for i, q := range batch {
		if i > 0 {
			body = append(body, ',')
		}
		body = geo.AppendQuoted(body, q.query.String())
	}
	path := s.config.URL + "/api/bulk"
	if s.config.Plan.Details() {
		path += "?details=1"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path,
		bytes.NewReader(append(body, ']', '}')))
	if err != nil {
		return reply{err: &refusedError{message: "the address of the server is wrong"}}
	}
	request.Header.Set("Content-Type", "application/json")
	if s.config.Key != "" {
		request.Header.Set("X-Api-Key", s.config.Key)
	}
	response, err := s.config.Client.Do(request)
	if err != nil {
		return reply{rest: batch, err: err}
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return reply{rest: batch, err: err}
	}
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		return s.read(batch, text)
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return reply{rest: batch, wait: retryAfter(response.Header.Get("Retry-After")),
			err: fmt.Errorf("status %d", status)}
	default:
		return reply{err: &refusedError{status, fastjson.GetString(text, "message")}}
	}
}

// retryAfter returns the time that a header names; 0 = none.
func retryAfter(value string) time.Duration {
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

var errGarbled = errors.New("the response does not fit the request")

// read reads the response to a batch. It believes all of it or nothing.
func (s *Server) read(batch []*question, text []byte) reply {
	garbled := reply{rest: batch, err: errGarbled}
	v, err := fastjson.ParseBytes(text)
	if err != nil {
		return garbled
	}
	items := v.GetArray("results")
	if len(items) != len(batch) {
		return garbled
	}
	var r reply
	for i, item := range items {
		if !fits(batch[i].query, item) {
			return garbled
		}
		r.some = r.some || item.GetBool("ok")
	}
	for i, item := range items {
		q := batch[i]
		if !s.isTemporary(q, item, &r) {
			q.answer = Answer{Record: s.config.Plan.record(item)}
			if !q.answer.Record.failed {
				q.answer.IP, _ = netip.ParseAddr(string(item.GetStringBytes("ip")))
			}
			close(q.done)
			continue
		}
		r.rest = append(r.rest, q)
		after := time.Duration(max(0, min(item.GetInt("retry_after"), 3600))) * time.Second
		if r.wait == 0 || after > 0 && after < r.wait {
			r.wait = after
		}
	}
	return r
}

// isTemporary reports whether a question is to be repeated, and whether all others have to wait as
// well. A domain may fail alone, for as long as its name servers are down.
func (s *Server) isTemporary(q *question, item *fastjson.Value, r *reply) bool {
	switch geo.Code(item.GetStringBytes("error")) {
	case geo.CodeRateLimited, geo.CodeOverloaded:
		r.busy = true
		return true
	case geo.CodeProviderUnreachable:
	default:
		return false
	}
	if q.first.IsZero() {
		q.first = time.Now()
	}
	if !q.query.IsDomain() {
		r.busy = true
		return true
	}
	if r.some || q.strikes > 0 {
		q.strikes++
	}
	r.busy = r.busy || q.strikes == 0
	return q.strikes < maxStrikes && time.Since(q.first) < min(domainTime, s.config.Patience)
}

// fits reports whether item answers a query.
func fits(q geo.Query, item *fastjson.Value) bool {
	if string(item.GetStringBytes("query")) != q.String() {
		return false
	}
	if !item.GetBool("ok") {
		return len(item.GetStringBytes("error")) > 0
	}
	ip, err := netip.ParseAddr(string(item.GetStringBytes("ip")))
	return err == nil && (q.IsDomain() || ip == q.Addr())
}
