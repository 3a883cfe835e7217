package partition_test

import "time"

// event is a function that runs at a time. Events of the same time run in the order in which they
// were made.
type event struct {
	at  time.Duration
	seq int
	do  func()
}

// queue is a heap of events, the next one first.
type queue struct {
	events []event
	made   int
}

func (q *queue) before(i, j int) bool {
	a, b := &q.events[i], &q.events[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *queue) push(at time.Duration, do func()) {
	q.made++
	q.events = append(q.events, event{at, q.made, do})
	for i := len(q.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.before(i, up) {
			return
		}
		q.events[i], q.events[up] = q.events[up], q.events[i]
		i = up
	}
}

func (q *queue) pop() event {
	first := q.events[0]
	last := len(q.events) - 1
	q.events[0] = q.events[last]
	q.events[last] = event{}
	q.events = q.events[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next >= last {
			return first
		}
		if next+1 < last && q.before(next+1, next) {
			next++
		}
		if !q.before(next, i) {
			return first
		}
		q.events[i], q.events[next] = q.events[next], q.events[i]
		i = next
	}
}
