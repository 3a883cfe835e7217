package geo

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// textIndex finds results of a cache by the canonical text of their query, without a lock and
// without parsing. It is a hash table with one slot for each hash: a new entry replaces another one
// in its slot. So an entry that it does not find may still be in the cache. Writes need the cache's
// mutex.
type textIndex struct {
	seed  maphash.Seed
	slots []atomic.Pointer[Entry] // their number is a power of two
}

// newTextIndex returns an index for size entries, with at least twice as many slots.
func newTextIndex(size int) textIndex {
	return textIndex{
		seed:  maphash.MakeSeed(),
		slots: make([]atomic.Pointer[Entry], 2<<bits.Len(uint(size-1))),
	}
}

func (x *textIndex) slot(hash uint64) *atomic.Pointer[Entry] {
	return &x.slots[hash&uint64(len(x.slots)-1)]
}

func (x *textIndex) slotOf(e *Entry) *atomic.Pointer[Entry] {
	return x.slot(maphash.Bytes(x.seed, e.text()))
}

// find returns the entry whose query has the canonical form text, or nil.
func (x *textIndex) find(text string) *Entry {
	if e := x.slot(maphash.String(x.seed, text)).Load(); e != nil && e.IsFor(text) {
		return e
	}
	return nil
}

// put stores e in its slot if it is a result.
func (x *textIndex) put(e *Entry) {
	if e.Body != nil {
		x.slotOf(e).Store(e)
	}
}

// drop removes e from its slot if it is there.
func (x *textIndex) drop(e *Entry) {
	if e.Body != nil {
		x.slotOf(e).CompareAndSwap(e, nil)
	}
}

// Find returns the live result for the query whose canonical form is text, and counts a hit. If it
// returns nil, call Get: the cache may still have an answer.
func (c *Cache) Find(text string, now time.Time) *Entry {
	e, at := c.index.find(text), now.UnixNano()
	if e == nil || !e.live(at) || c.isStale(e) {
		return nil
	}
	c.found.Add(1)
	return e
}
