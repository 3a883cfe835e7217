// Package fair shares what is scarce: Turns gives slots to those who wait, Queue serves its callers
// in turn, and Slots counts slots of which one key leaves some to the others.
package fair

import (
	"iter"
	"slices"
)

// Queue is a fair queue: it has one line for each caller and serves the lines in turn. It has one
// owner. Use NewQueue; the zero value cannot be used.
type Queue[C comparable, T any] struct {
	lines map[C]*line[C, T]
	ring  []*line[C, T] // non-empty lines, in the order of their turns
	turn  int           // index in ring of the line to serve next
	n     int           // items in all lines
}

// line holds the items of one caller, oldest first.
type line[C comparable, T any] struct {
	caller C
	items  []T
}

// NewQueue returns an empty queue.
func NewQueue[C comparable, T any]() *Queue[C, T] {
	return &Queue[C, T]{lines: map[C]*line[C, T]{}}
}

// Len returns the number of items.
func (q *Queue[C, T]) Len() int { return q.n }

// Callers returns the number of callers who have items.
func (q *Queue[C, T]) Callers() int { return len(q.ring) }

// Held returns the number of caller's items.
func (q *Queue[C, T]) Held(caller C) int {
	if l := q.lines[caller]; l != nil {
		return len(l.items)
	}
	return 0
}

// Excess returns the number of items beyond the first keep of each line.
func (q *Queue[C, T]) Excess(keep int) int {
	excess := 0
	for _, l := range q.ring {
		excess += max(0, len(l.items)-keep)
	}
	return excess
}

// Push enqueues item at the end of caller's line.
func (q *Queue[C, T]) Push(caller C, item T) {
	l := q.lines[caller]
	if l == nil {
		l = &line[C, T]{caller: caller}
		q.lines[caller] = l
		q.ring = append(q.ring, l)
	}
	l.items = append(l.items, item)
	q.n++
}

// Pop dequeues the first item of the line whose turn it is. ok is false if the queue is empty.
func (q *Queue[C, T]) Pop() (item T, ok bool) {
	if q.n == 0 {
		return item, false
	}
	q.turn %= len(q.ring)
	l := q.ring[q.turn]
	item = l.items[0]
	var none T
	l.items[0] = none
	l.items = l.items[1:]
	q.n--
	if len(l.items) == 0 {
		q.leave(q.turn)
	} else {
		q.turn++
	}
	return item, true
}

// PopIf is Pop without the lines of callers for which may returns false.
func (q *Queue[C, T]) PopIf(may func(caller C) bool) (item T, ok bool) {
	for i := range q.ring {
		if at := (q.turn + i) % len(q.ring); may(q.ring[at].caller) {
			q.turn = at
			return q.Pop()
		}
	}
	return item, false
}

// EvictLongest removes and returns the newest item of the longest line. ok is false if no line has
// more than keep items.
func (q *Queue[C, T]) EvictLongest(keep int) (item T, ok bool) {
	caller, ok := q.Longest(keep)
	if !ok {
		return item, false
	}
	item = q.Newest(caller)
	q.DropNewest(caller)
	return item, true
}

// Longest returns the caller of the longest line. ok is false if no line has more than keep items.
func (q *Queue[C, T]) Longest(keep int) (caller C, ok bool) {
	most := keep
	for _, l := range q.ring {
		if len(l.items) > most {
			caller, most, ok = l.caller, len(l.items), true
		}
	}
	return caller, ok
}

// Newest returns the last item of a line that is not empty.
func (q *Queue[C, T]) Newest(caller C) T {
	items := q.lines[caller].items
	return items[len(items)-1]
}

// DropNewest removes the last item of a line that is not empty.
func (q *Queue[C, T]) DropNewest(caller C) {
	l := q.lines[caller]
	end := len(l.items) - 1
	var none T
	l.items[end] = none
	l.items = l.items[:end]
	q.n--
	if end == 0 {
		q.leave(slices.Index(q.ring, l))
	}
}

// All returns the items of all lines.
func (q *Queue[C, T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, l := range q.ring {
			for _, item := range l.items {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// Filter removes the items for which keep returns false. The order of the others stays.
func (q *Queue[C, T]) Filter(keep func(T) bool) {
	for at := 0; at < len(q.ring); {
		l := q.ring[at]
		kept := l.items[:0]
		for _, item := range l.items {
			if keep(item) {
				kept = append(kept, item)
			}
		}
		clear(l.items[len(kept):])
		q.n -= len(l.items) - len(kept)
		l.items = kept
		if len(kept) == 0 {
			q.leave(at)
			continue
		}
		at++
	}
}

// leave removes the empty line at index at of the ring.
func (q *Queue[C, T]) leave(at int) {
	delete(q.lines, q.ring[at].caller)
	q.ring = append(q.ring[:at], q.ring[at+1:]...)
	if at < q.turn {
		q.turn--
	}
}
