package geo

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// How long answers are kept, from the moment they were fetched.
const (
	ResultTTL   = 10 * time.Minute // a result (interface document, section 8)
	NotFoundTTL = time.Minute      // "the upstream knows nothing of it"
	FallbackTTL = time.Minute      // an answer from the offline files in the place of an online one
)

// Entry is an answer as the cache holds it: rendered once, sent many times. What can be seen of it never changes. It
// fills one cache line: the hot path waits for memory more than for anything else.
type Entry struct {
	Body []byte // the JSON of a result for the query in its canonical form; nil beside Err
	Err  *Error // what the upstream found wrong with the query; nil with a result

	fetched int64        // nanoseconds since 1970
	used    atomic.Int64 // Cache.put when the cache last counted it as the most recently used; written under the cache's mutex
	ttl     uint16       // seconds
	tail    uint16       // where Body goes on behind the value of "query"
	source  uint8        // in sources
}

var sources = [...]Source{SourceUpstream, SourceMMDB, SourceSim}

// bodyHead is how the JSON of a result begins, up to the value of "query".
const bodyHead = `{"ok":true,"query":`

// NewEntry renders what source answered to q at now. An answer whose error says anything else than CodeInvalidQuery
// must not be cached.
func NewEntry(q Query, a Answer, source Source, now time.Time) *Entry {
	ttl := ResultTTL
	if a.Err != nil {
		ttl = NotFoundTTL
	}
	return newEntry(q, a, source, now, ttl)
}

// NewFallbackEntry is NewEntry for a result of the offline files in the place of an online one.
func NewFallbackEntry(q Query, a Answer, source Source, now time.Time) *Entry {
	return newEntry(q, a, source, now, FallbackTTL)
}

func newEntry(q Query, a Answer, source Source, now time.Time, ttl time.Duration) *Entry {
	e := &Entry{
		Err: a.Err, fetched: now.UnixNano(), ttl: uint16(ttl / time.Second),
		source: uint8(slices.Index(sources[:], source)),
	}
	if a.Err == nil {
		var buf [1024]byte
		body := AppendQuoted(append(buf[:0], bodyHead...), q.String())
		e.tail = uint16(len(body))
		e.Body = bytes.Clone(a.Result.AppendJSON(body))
	}
	return e
}

// Source returns what answered.
func (e *Entry) Source() Source { return sources[e.source] }

// Fetched returns when the answer came.
func (e *Entry) Fetched() time.Time { return time.Unix(0, e.fetched) }

// TTL returns how long the answer is kept, from Fetched.
func (e *Entry) TTL() time.Duration { return time.Duration(e.ttl) * time.Second }

// IsFor reports whether Body answers the query as it was written in text, which it does when that is the canonical form.
func (e *Entry) IsFor(text string) bool {
	return string(e.text()) == text
}

// text returns the canonical form of the query that Body answers.
func (e *Entry) text() []byte { return e.Body[len(bodyHead)+1 : e.tail-1] }

// AppendFor appends Body with the query as it was written in text.
func (e *Entry) AppendFor(dst []byte, text string) []byte {
	if e.IsFor(text) {
		return append(dst, e.Body...)
	}
	dst = AppendQuoted(append(dst, bodyHead...), text)
	return append(dst, e.Body[e.tail:]...)
}

// Age returns how long ago the entry was fetched, in whole seconds as the header Age counts them (RFC 9111 section 5.1).
func (e *Entry) Age(now time.Time) int {
	return max(0, int((now.UnixNano()-e.fetched)/int64(time.Second)))
}

func (e *Entry) live(now int64) bool { return now-e.fetched < int64(e.TTL()) }

// Outcome is what a look-up came to.
type Outcome struct {
	Entry  *Entry // the answer; nil when there is none
	Err    *Error // why there is no result: Entry.Err, or a failure that no cache holds; nil with a result
	Cached bool   // the answer was in the cache when it was asked for
}

// Cache holds the most recently used answers by their query. It may be used by many goroutines.
type Cache struct {
	front front
	puts  atomic.Int64 // entries that were put in; written under the mutex
	grain int64        // how many puts later an entry has to be counted anew as the most recently used

	_     [64]byte      // what every hit writes lies apart from what every hit reads
	found atomic.Uint64 // hits of the front
	_     [64]byte

	mu      sync.Mutex
	locked  uint64 // live entries that were found under the mutex
	entries *simplelru.LRU[Query, *Entry]
	stats   CacheStats
}

// CacheStats is a reading of a cache's counters.
type CacheStats struct {
	Entries                 int
	Bytes                   int64 // an estimate of the memory held
	Hits, Misses, Evictions uint64
}

// NewCache returns a cache for size entries, at least 1.
func NewCache(size int) (*Cache, error) {
	c := &Cache{grain: max(1, int64(size/grainsOfCache))}
	entries, err := simplelru.NewLRU(size, c.dropped)
	if err != nil {
		return nil, fmt.Errorf("cache of %d entries: %w", size, err)
	}
	c.entries, c.front = entries, newFront(size)
	return c, nil
}

// Get returns the live entry for q, or nil, and counts a hit or a miss.
func (c *Cache) Get(q Query, now time.Time) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.live(q, now)
	if e != nil {
		c.stats.Hits++
	} else {
		c.stats.Misses++
	}
	return e
}

// Peek is Get without the count.
func (c *Cache) Peek(q Query, now time.Time) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live(q, now)
}

// Put keeps e as the answer to q.
func (c *Cache) Put(q Query, e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(q, e)
}

// PutFallback keeps e, an answer from the offline files, unless a live answer is there, and returns the one that
// then counts.
func (c *Cache) PutFallback(q Query, e *Entry, now time.Time) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if live := c.live(q, now); live != nil {
		return live
	}
	c.put(q, e)
	return e
}

// Replace puts e in the place of old and reports whether old was still the answer to q.
func (c *Cache) Replace(q Query, old, e *Entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held, ok := c.entries.Peek(q); !ok || held != old {
		return false
	}
	c.put(q, e)
	return true
}

// Stats reads the counters.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Entries, s.Hits = c.entries.Len(), s.Hits+c.found.Load()
	return s
}

// grainsOfCache says how exactly the cache knows which entries were used least recently: an entry in use is counted anew when an eighth
// of the cache has come in since. To count it writes to its neighbours in the list, which no processor has at hand, and as long as
// nothing comes in, nobody has to go.
const grainsOfCache = 8

// resting reports whether the cache has to be told that e is used.
func (c *Cache) resting(e *Entry) bool { return c.puts.Load()-e.used.Load() >= c.grain }

// frontEach says that each 64th live entry that is found under the mutex takes a place in the front, beside those that are counted anew: of
// two whose texts meet in one place, the one that is asked for more often has it most of the time.
const frontEach = 64

func (c *Cache) live(q Query, now time.Time) *Entry {
	e, ok := c.entries.Peek(q)
	at := now.UnixNano()
	if !ok || !e.live(at) {
		return nil
	}
	resting := c.resting(e)
	if resting {
		e.used.Store(c.puts.Load())
		c.entries.Get(q)
	}
	if c.locked++; resting || c.locked%frontEach == 0 {
		c.front.put(e)
	}
	return e
}

func (c *Cache) put(q Query, e *Entry) {
	if held, ok := c.entries.Peek(q); ok {
		c.stats.Bytes -= cost(q, held)
		c.front.drop(held)
	}
	c.stats.Bytes += cost(q, e)
	e.used.Store(c.puts.Add(1))
	c.front.put(e)
	if c.entries.Add(q, e) {
		c.stats.Evictions++
	}
}

// dropped is called by the LRU for what it evicts.
func (c *Cache) dropped(q Query, e *Entry) {
	c.stats.Bytes -= cost(q, e)
	c.front.drop(e)
}

// entryOverhead estimates what an entry costs beside its body and its domain, in bytes: key, list element, map slot, places in
// the front.
const entryOverhead = 340

func cost(q Query, e *Entry) int64 { return int64(entryOverhead + len(q.domain) + cap(e.Body)) }
