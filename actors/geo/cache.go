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

// Lifetimes of cached answers, from the moment they were fetched.
const (
	ResultTTL   = 10 * time.Minute // a result (interface document, section 8)
	NotFoundTTL = time.Minute      // ReasonNotFound
	FallbackTTL = time.Minute      // a result of the offline files in place of an online one
	MaxTTL      = 18 * time.Hour   // the longest that an entry can have
)

// Entry is a cached answer: rendered once, sent many times. Its exported fields and methods never
// change their values. It fits one cache line of the CPU, because cache hits mostly wait for
// memory.
type Entry struct {
	Body []byte // JSON of the result for the canonical form of the query; nil with Err
	Err  *Error // the upstream's error about the query; nil with a result

	fetched int64        // nanoseconds since 1970
	used    atomic.Int64 // Cache.puts at its last move in the LRU
	data    *string      // JSON of the member "data"; nil = only the source is known
	ttl     uint16       // seconds
	tail    uint16       // offset in Body after the value of "query"
	source  uint8        // index in sources
}

// bodyHead is the JSON of a result before the value of "query".
const bodyHead = `{"ok":true,"query":`

// NewEntry renders the answer of source to q, fetched at now. A result has the lifetime ttl, at
// most MaxTTL. An answer with an error other than CodeInvalidQuery must not be cached.
func NewEntry(ttl time.Duration, q Query, a Answer, source Source, now time.Time) *Entry {
	if a.Err != nil {
		ttl = NotFoundTTL
	}
	e := &Entry{
		Err: a.Err, fetched: now.UnixNano(), ttl: uint16(ttl / time.Second),
		source: uint8(slices.Index(sources[:], source)),
	}
	if a.Err == nil {
		var buf [1024]byte
		body := AppendQuoted(append(buf[:0], bodyHead...), q.String())
		e.tail = uint16(len(body))
		e.Body = bytes.Clone(a.Result.AppendJSON(body))
		if a.Result.Data != (Data{}) {
			data := string(a.Result.Data.appendJSON(nil, source))
			e.data = &data
		}
	}
	return e
}

// Source returns where the answer comes from.
func (e *Entry) Source() Source { return sources[e.source] }

// Fetched returns when the answer was fetched.
func (e *Entry) Fetched() time.Time { return time.Unix(0, e.fetched) }

// TTL returns the entry's lifetime, from Fetched.
func (e *Entry) TTL() time.Duration { return time.Duration(e.ttl) * time.Second }

// IsFor reports whether text is the canonical form of the query, so that Body can be sent
// unchanged.
func (e *Entry) IsFor(text string) bool {
	return string(e.text()) == text
}

// text returns the canonical form of the query.
func (e *Entry) text() []byte { return e.Body[len(bodyHead)+1 : e.tail-1] }

// AppendFor appends Body with text as the value of "query".
func (e *Entry) AppendFor(dst []byte, text string) []byte {
	if e.IsFor(text) {
		return append(dst, e.Body...)
	}
	dst = AppendQuoted(append(dst, bodyHead...), text)
	return append(dst, e.Body[e.tail:]...)
}

// Age returns the whole seconds since the entry was fetched, for the header Age (RFC 9111 section
// 5.1).
func (e *Entry) Age(now time.Time) int {
	return max(0, int((now.UnixNano()-e.fetched)/int64(time.Second)))
}

func (e *Entry) live(now int64) bool { return now-e.fetched < int64(e.TTL()) }

// Cache is an LRU cache of answers by query. It may be used by many goroutines.
type Cache struct {
	index textIndex
	puts  atomic.Int64 // entries put in so far; written under the mutex
	grain int64        // puts after which a used entry moves to the front of the LRU again

	// The padding keeps the counter that every hit writes off the cache line that every hit reads.
	_     [64]byte
	found atomic.Uint64 // hits of the index
	_     [64]byte

	mu      sync.Mutex
	locked  uint64 // live entries found under the mutex
	entries *simplelru.LRU[Query, *Entry]
	stats   CacheStats
}

// CacheStats holds the values of a cache's counters.
type CacheStats struct {
	Entries                 int
	Bytes                   int64 // estimate of the memory held
	Hits, Misses, Evictions uint64
}

// NewCache returns a cache for size entries, at least 1.
func NewCache(size int) (*Cache, error) {
	c := &Cache{grain: max(1, int64(size/grainsOfCache))}
	entries, err := simplelru.NewLRU(size, c.dropped)
	if err != nil {
		return nil, fmt.Errorf("cache of %d entries: %w", size, err)
	}
	c.entries, c.index = entries, newTextIndex(size)
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

// Peek is Get, but counts neither a hit nor a miss.
func (c *Cache) Peek(q Query, now time.Time) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live(q, now)
}

// Put stores e as the answer to q.
func (c *Cache) Put(q Query, e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(q, e)
}

// PutFallback stores e, an answer of the offline files, unless the cache has a live answer to q. It
// returns the answer that the cache then holds.
func (c *Cache) PutFallback(q Query, e *Entry, now time.Time) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if live := c.live(q, now); live != nil {
		return live
	}
	c.put(q, e)
	return e
}

// Replace stores e if the cache still holds old as the answer to q, and reports whether it did.
func (c *Cache) Replace(q Query, old, e *Entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held, ok := c.entries.Peek(q); !ok || held != old {
		return false
	}
	c.put(q, e)
	return true
}

// Stats returns the values of the counters.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Entries, s.Hits = c.entries.Len(), s.Hits+c.found.Load()
	return s
}

// Puts returns how many entries were put in so far.
func (c *Cache) Puts() int64 { return c.puts.Load() }

// grainsOfCache sets the precision of the LRU order: a used entry moves to the front of the LRU
// only if puts of an eighth of the cache's size followed its last move. A move writes to list
// neighbours that are not in the CPU's cache, and the order matters only when entries come in.
const grainsOfCache = 8

// isStale reports whether e, which is used now, has to move to the front of the LRU.
func (c *Cache) isStale(e *Entry) bool { return c.puts.Load()-e.used.Load() >= c.grain }

// indexEach is how often an entry found under the mutex takes its slot of the index: every 64th
// time, besides each move in the LRU. Of two texts with the same slot, the one that is looked up
// more often has it most of the time.
const indexEach = 64

// live returns the live entry for q, or nil. The caller holds the mutex.
func (c *Cache) live(q Query, now time.Time) *Entry {
	e, ok := c.entries.Peek(q)
	at := now.UnixNano()
	if !ok || !e.live(at) {
		return nil
	}
	stale := c.isStale(e)
	if stale {
		e.used.Store(c.puts.Load())
		c.entries.Get(q)
	}
	if c.locked++; stale || c.locked%indexEach == 0 {
		c.index.put(e)
	}
	return e
}

func (c *Cache) put(q Query, e *Entry) {
	if held, ok := c.entries.Peek(q); ok {
		c.stats.Bytes -= cost(q, held)
		c.index.drop(held)
	}
	c.stats.Bytes += cost(q, e)
	e.used.Store(c.puts.Add(1))
	c.index.put(e)
	if c.entries.Add(q, e) {
		c.stats.Evictions++
	}
}

// dropped is called by the LRU for each entry that it evicts.
func (c *Cache) dropped(q Query, e *Entry) {
	c.stats.Bytes -= cost(q, e)
	c.index.drop(e)
}

// entryOverhead estimates the memory of an entry without its body and domain, in bytes: key, list
// element, map slot and slots of the index.
const entryOverhead = 340

func cost(q Query, e *Entry) int64 {
	n := entryOverhead + len(q.domain) + cap(e.Body)
	if e.data != nil {
		n += len(*e.data)
	}
	return int64(n)
}
