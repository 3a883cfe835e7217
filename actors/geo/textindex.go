package geo

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// front finds the results of a cache by the text of their query, as most requests write it, without a lock and without parsing: a
// table with a place for each text, which a text that hashes to the same place takes from another. What it does not find may
// still be in the cache. The cache's mutex guards the writing to it.
type front struct {
	seed   maphash.Seed
	places []atomic.Pointer[Entry] // a power of two of them
}

// newFront returns a table for size entries, with at least twice as many places.
func newFront(size int) front {
	return front{seed: maphash.MakeSeed(), places: make([]atomic.Pointer[Entry], 2<<bits.Len(uint(size-1)))}
}

func (f *front) place(hash uint64) *atomic.Pointer[Entry] {
	return &f.places[hash&uint64(len(f.places)-1)]
}

func (f *front) placeOf(e *Entry) *atomic.Pointer[Entry] {
	return f.place(maphash.Bytes(f.seed, e.text()))
}

// find returns the entry for the query that is written like text, or nil.
func (f *front) find(text string) *Entry {
	if e := f.place(maphash.String(f.seed, text)).Load(); e != nil && e.IsFor(text) {
		return e
	}
	return nil
}

// put makes e findable if it is a result.
func (f *front) put(e *Entry) {
	if e.Body != nil {
		f.placeOf(e).Store(e)
	}
}

// drop makes sure that e is not found any more.
func (f *front) drop(e *Entry) {
	if e.Body != nil {
		f.placeOf(e).CompareAndSwap(e, nil)
	}
}

// Find returns the live result for the query whose canonical form is text, and counts a hit. nil says nothing: Get knows.
func (c *Cache) Find(text string, now time.Time) *Entry {
	e, at := c.front.find(text), now.UnixNano()
	if e == nil || !e.live(at) || c.resting(e) {
		return nil
	}
	c.found.Add(1)
	return e
}
