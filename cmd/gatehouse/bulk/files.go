package bulk

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb"
)

// Files is the Source that has database files.
type Files struct {
	files  *mmdb.Mapped
	plan   *Plan
	caches sync.Pool // of *recordCache
}

const (
	maxResolving = 32      // names at once
	maxCached    = 6 << 20 // bytes of the records that one goroutine keeps
)

// recordCache keeps the records of the files that were rendered before.
type recordCache struct {
	records  map[mmdb.Places]*Record
	size     int // bytes, about
	rendered int
	parser   fastjson.Parser
	text     []byte
}

// NewFiles returns the Source of files, which renders as plan says.
func NewFiles(files *mmdb.Mapped, plan *Plan) *Files {
	return &Files{files: files, plan: plan, caches: sync.Pool{
		New: func() any { return &recordCache{records: map[mmdb.Places]*Record{}} },
	}}
}

// Answer looks up addresses, and resolves domains first.
func (s *Files) Answer(ctx context.Context, queries []geo.Query, answers []Answer) (asked int,
	err error) {
	cache := s.caches.Get().(*recordCache)
	defer s.caches.Put(cache)
	now := time.Now()
	resolved, err := s.resolve(ctx, queries)
	if err != nil {
		return 0, err
	}
	before := cache.rendered
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
		answers[i] = s.answer(cache, addr, now)
	}
	return cache.rendered - before, nil
}

func (s *Files) answer(c *recordCache, addr netip.Addr, now time.Time) Answer {
	at := s.files.Find(addr)
	r := c.records[at]
	if r == nil {
		r = s.record(c, addr, now)
		c.rendered++
		if c.size > maxCached {
			clear(c.records)
			c.size = 0
		}
		c.records[at] = r
		c.size += r.size()
	}
	if r.failed {
		return Answer{Record: r}
	}
	return Answer{IP: addr, Record: r}
}

// record renders the record of addr.
func (s *Files) record(c *recordCache, addr netip.Addr, now time.Time) *Record {
	found := s.files.Answer(addr, now)
	if found.Err != nil {
		return s.plan.failure(problemOf(found.Err))
	}
	c.text = found.Result.AppendJSON(append(c.text[:0], `{"ok":true`...))
	v, err := c.parser.ParseBytes(c.text)
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
func (s *Files) resolve(ctx context.Context, queries []geo.Query) (map[geo.Query]resolution, error) {
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
