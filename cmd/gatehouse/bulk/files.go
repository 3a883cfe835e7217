package bulk

import (
	"cmp"
	"context"
	"hash/maphash"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
)

// Files is the Source that has database files.
type Files struct {
	files   *mmdb.Mapped
	plan    *Plan
	kept    []atomic.Pointer[keptRecord] // by the hash of their keys: a new one replaces another
	seed    maphash.Seed
	parsers fastjson.ParserPool
}

const (
	maxResolving = 32      // names at once
	maxKept      = 1 << 16 // records
)

// keptRecord is a record of the files that was rendered before.
type keptRecord struct {
	key    recordKey
	record *Record
}

// recordKey is what a record depends on.
type recordKey struct {
	at     mmdb.Offsets
	prefix netip.Prefix // only with details
}

// NewFiles returns the Source of files, which renders as plan says.
func NewFiles(files *mmdb.Mapped, plan *Plan) *Files {
	return &Files{files: files, plan: plan, kept: make([]atomic.Pointer[keptRecord], maxKept),
		seed: maphash.MakeSeed()}
}

// Answer looks up addresses, and resolves domains first.
func (s *Files) Answer(ctx context.Context, _ int64, queries []geo.Query,
	answers []Answer) (misses int, err error) {
	now := time.Now()
	defer func(was bool) {
		debug.SetPanicOnFault(was)
		err = cmp.Or(faultOf(recover()), err)
		err = cmp.Or(s.files.Check(), err) // names the file
	}(debug.SetPanicOnFault(true))
	resolved, err := s.resolve(ctx, queries)
	if err != nil {
		return 0, err
	}
	for i, q := range queries {
		addr := q.Addr()
		if q.IsDomain() {
			r := resolved[q]
			if r.err != nil {
				answers[i] = Answer{Record: s.plan.failure(problemOf(r.err))}
				continue
			}
			addr = r.addr
		}
		var known bool
		if answers[i], known = s.answer(addr, now); !known {
			misses++
		}
	}
	return misses, nil
}

// faultOf returns the error of a panic that was recovered: a file became shorter after it was
// mapped. It panics with any other value.
func faultOf(value any) error {
	if value == nil {
		return nil
	}
	if _, ok := value.(interface{ Addr() uintptr }); !ok {
		panic(value)
	}
	return mmdb.ErrRewritten
}

// answer returns the answer for addr. known says that it was rendered before.
func (s *Files) answer(addr netip.Addr, now time.Time) (a Answer, known bool) {
	at, prefix := s.files.Find(addr)
	key := recordKey{at: at}
	if s.plan.details {
		key.prefix = prefix
	}
	slot := &s.kept[maphash.Comparable(s.seed, key)%maxKept]
	kept := slot.Load()
	known = kept != nil && kept.key == key
	if !known {
		kept = &keptRecord{key, s.record(addr, key, now)}
		slot.Store(kept)
	}
	if kept.record.failed {
		addr = netip.Addr{}
	}
	return Answer{IP: addr, Record: kept.record}, known
}

// record renders the record of addr.
func (s *Files) record(addr netip.Addr, key recordKey, now time.Time) *Record {
	found := s.files.Answer(addr, key.at, key.prefix, now)
	if found.Err != nil {
		return s.plan.failure(problemOf(found.Err))
	}
	if s.plan.direct {
		return s.plan.recordOf(&found.Result)
	}
	var buf [1024]byte
	outcome := geo.NewRecord(found, geo.SourceMMDB, 0).For(addr, key.prefix.Bits())
	text := outcome.AppendDetails(buf[:0], "")
	parser := s.parsers.Get()
	defer s.parsers.Put(parser)
	v, err := parser.ParseBytes(text)
	if err != nil {
		return s.plan.failure(problem{code: string(geo.CodeProviderUnreachable)})
	}
	return s.plan.record(v)
}

// resolution is what became of a domain.
type resolution struct {
	addr netip.Addr
	err  *geo.Error
}

// resolve resolves the domains among queries, several at a time.
func (s *Files) resolve(ctx context.Context,
	queries []geo.Query) (map[geo.Query]resolution, error) {
	var g errgroup.Group
	g.SetLimit(maxResolving)
	var mu sync.Mutex
	var found map[geo.Query]resolution
	for _, q := range queries {
		if !q.IsDomain() {
			continue
		}
		mu.Lock()
		_, known := found[q]
		if found == nil {
			found = map[geo.Query]resolution{}
		}
		if !known {
			found[q] = resolution{}
		}
		mu.Unlock()
		if known {
			continue
		}
		g.Go(func() error {
			addr, err := s.files.Resolve(ctx, q.String())
			mu.Lock()
			defer mu.Unlock()
			found[q] = resolution{addr, err}
			return ctx.Err()
		})
	}
	return found, g.Wait()
}

// Data says what the answers come from: the type, the build time and the size of each file.
func (s *Files) Data() string { return s.files.Describe() }
