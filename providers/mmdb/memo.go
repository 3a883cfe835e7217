package mmdb

import (
	"slices"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"
)

// memoSize is how many objects of a file are kept decoded. It is a power of two.
const memoSize = 1 << 10

// memo keeps what a file's records have in common: those of one country point to the same object,
// which is decoded once. Its methods may be called by many goroutines.
type memo struct {
	slots [memoSize]struct {
		known  atomic.Pointer[decoded]
		missed atomic.Uint64 // key of the last object that was not known: only the second miss keeps it
	}
}

// decoded is what an object has at a node.
type decoded struct {
	key    uint64
	values []kept
}

// kept is a value that goes to a slot.
type kept struct {
	slot  slot
	value value
}

// isShared reports whether records usually point to the object at a path, instead of having one of
// their own.
func isShared(path string) bool {
	switch path {
	case "continent", "country", "registered_country", "subdivisions[0]":
		return true
	}
	return false
}

// recall is read for a node whose objects are shared.
func (v *values) recall(c mmdbdata.Cursor, n *node) (mmdbdata.Cursor, error) {
	offset, err := c.Offset()
	if err != nil {
		return c, err
	}
	key := uint64(offset)<<16 | uint64(n.id)
	at := &v.memo.slots[key*0x9e3779b97f4a7c15>>32%memoSize]
	if known := at.known.Load(); known != nil && known.key == key {
		for i := range known.values {
			v.keep(known.values[i].slot, &known.values[i].value)
		}
		return c.Skip()
	}
	m, again := v.memo, at.missed.Load() == key
	v.memo, v.notes, v.takesNotes = nil, v.notes[:0], again
	next, err := v.read(c, n)
	v.memo, v.takesNotes = m, false
	switch {
	case err != nil:
	case again:
		at.known.Store(&decoded{key, slices.Clone(v.notes)})
	default:
		at.missed.Store(key)
	}
	return next, err
}
