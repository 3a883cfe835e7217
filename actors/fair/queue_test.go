package fair_test

import (
	"slices"
	"testing"

	"gatehouse/actors/fair"
)

func drain(q *fair.Queue[string, int]) []int {
	var items []int
	for item, ok := q.Pop(); ok; item, ok = q.Pop() {
		items = append(items, item)
	}
	return items
}

func TestQueueServesCallersInTurn(t *testing.T) {
	q := fair.NewQueue[string, int]()
	for i := range 4 {
		q.Push("a", 10+i)
	}
	q.Push("b", 20)
	q.Push("c", 30)
	q.Push("c", 31)
	if got, want := drain(q), []int{10, 20, 30, 11, 31, 12, 13}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if q.Len() != 0 || q.Held("a") != 0 || q.Callers() != 0 {
		t.Errorf("got %d items, want none", q.Len())
	}
}

func TestQueueEvictsFromLongestLine(t *testing.T) {
	q := fair.NewQueue[string, int]()
	for i := range 5 {
		q.Push("flood", i)
	}
	q.Push("calm", 100)
	if got := q.Callers(); got != 2 {
		t.Errorf("got %d callers, want 2", got)
	}
	if got := q.Excess(2); got != 3 {
		t.Errorf("got an excess of %d over 2, want 3", got)
	}
	var evicted []int
	for item, ok := q.EvictLongest(2); ok; item, ok = q.EvictLongest(2) {
		evicted = append(evicted, item)
	}
	if want := []int{4, 3, 2}; !slices.Equal(evicted, want) {
		t.Errorf("got %v evicted, want the newest %v", evicted, want)
	}
	if got, want := drain(q), []int{0, 100, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v left, want %v", got, want)
	}
}

func TestQueueEvictsLineToTheEnd(t *testing.T) {
	q := fair.NewQueue[string, int]()
	q.Push("a", 1)
	q.Push("b", 2)
	if _, ok := q.EvictLongest(0); !ok {
		t.Fatal("got no item, want the first")
	}
	if _, ok := q.EvictLongest(0); !ok {
		t.Fatal("got no item, want the second")
	}
	if _, ok := q.EvictLongest(0); ok || q.Len() != 0 {
		t.Error("got an item out of an empty queue")
	}
}

func TestQueueFilterKeepsOrderAndTurn(t *testing.T) {
	q := fair.NewQueue[string, int]()
	for i := range 3 {
		q.Push("a", 10+i)
		q.Push("b", 20+i)
		q.Push("c", 30+i)
	}
	q.Pop() // a's first item: b is next
	q.Filter(func(i int) bool { return i/10 != 1 && i != 31 })
	if got, want := drain(q), []int{20, 30, 21, 32, 22}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
