package fair

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// ErrFull: too many wait for a turn, in all or of this payer. A payer that waits may get it as
// well, when another takes its place.
var ErrFull = errors.New("too many wait for a turn")

// remembered is how many payers Turns remembers to have been served.
const remembered = 10_000

// Payer is who a slot is charged to. Class is an index of Classes. The first class is trusted.
type Payer struct {
	Class   int
	Network netip.Prefix
	Key     string // within the network: a client, a user; "" = the network as such
}

// Class is how many of a class may wait and be served.
type Class struct {
	Waiting int // most that wait in the class, at least 1
	Own     int // most that wait of one payer; 0 = no limit
	AtOnce  int // most slots of one payer; 0 = no limit
}

// Turns shares slots among those who wait for them. Free slots go to the classes in turn. Within a
// class, networks have turns, and within a network its keys. If there are several slots, one is
// kept for the trusted class.
//
// In a full class, one of a network that has fewer waiting takes the place of the newest of the
// network that has most. If each has one, the network that was served last is dropped. Use
// NewTurns. The methods may be called by many goroutines.
type Turns struct {
	slots   int
	classes []Class

	mu      sync.Mutex
	waiting []lines // by class
	turn    int     // class to serve first
	running map[Payer]int
	busy    int                           // slots in use
	others  int                           // those in use by other classes than the trusted one
	count   uint64                        // slots given so far
	served  *simplelru.LRU[Payer, uint64] // count at the last one
}

// waiter waits for a slot.
type waiter struct {
	payer Payer
	start chan error // nil = it has a slot; holds one element
}

// NewTurns returns Turns with that many slots, at least 1.
func NewTurns(slots int, classes ...Class) *Turns {
	served, err := simplelru.NewLRU[Payer, uint64](remembered, nil)
	if err != nil {
		panic(err) // remembered is below 1
	}
	t := &Turns{slots: slots, classes: classes, running: map[Payer]int{}, served: served}
	for range classes {
		t.waiting = append(t.waiting, lines{networks: NewQueue[netip.Prefix, struct{}](),
			keys: map[netip.Prefix]*Queue[string, *waiter]{}})
	}
	return t
}

// Enter waits for a slot. The error is ErrFull or wraps ctx's.
func (t *Turns) Enter(ctx context.Context, p Payer) error {
	w, err := t.enqueue(p)
	if err != nil {
		return err
	}
	select {
	case err := <-w.start:
		return err
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case err := <-w.start:
		if err == nil {
			t.leave(p)
		}
	default:
		t.waiting[p.Class].remove(w)
	}
	return fmt.Errorf("wait for a turn: %w", ctx.Err())
}

// Leave gives back a slot that Enter has taken.
func (t *Turns) Leave(p Payer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(p)
}

// HasRoom reports whether Enter would let p wait now.
func (t *Turns) HasRoom(p Payer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.place(p)
	return ok
}

// Used returns the slots in use, and how many wait.
func (t *Turns) Used() (busy, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.waiting {
		waiting += t.waiting[i].networks.Len()
	}
	return t.busy, waiting
}

func (t *Turns) enqueue(p Payer) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	dropped, ok := t.place(p)
	if !ok {
		return nil, ErrFull
	}
	if dropped != nil {
		t.waiting[p.Class].remove(dropped)
		dropped.start <- ErrFull
	}
	w := &waiter{payer: p, start: make(chan error, 1)}
	t.waiting[p.Class].push(w)
	t.serve()
	return w, nil
}

// place reports whether p may wait, and returns who is dropped for that; nil = nobody.
func (t *Turns) place(p Payer) (dropped *waiter, ok bool) {
	class, waiting := t.classes[p.Class], &t.waiting[p.Class]
	switch {
	case class.Own > 0 && waiting.held(p) >= class.Own:
		return nil, false
	case waiting.networks.Len() < class.Waiting:
		return nil, true
	}
	held := waiting.networks.Held(p.Network)
	if network, ok := waiting.networks.Longest(held + 1); ok {
		return waiting.newest(network), true
	}
	if held > 0 {
		return nil, false
	}
	last := t.servedLast(waiting)
	return last, t.servedAt(p) < t.servedAt(last.payer)
}

// servedLast returns the one that waits whose payer was served last.
func (t *Turns) servedLast(waiting *lines) (last *waiter) {
	for _, keys := range waiting.keys {
		for w := range keys.All() {
			if last == nil || t.servedAt(w.payer) > t.servedAt(last.payer) {
				last = w
			}
		}
	}
	return last
}

func (t *Turns) servedAt(p Payer) uint64 {
	at, _ := t.served.Peek(p)
	return at
}

// serve gives the free slots to those who wait.
func (t *Turns) serve() {
	for t.busy < t.slots {
		w := t.next()
		if w == nil {
			return
		}
		t.busy++
		t.running[w.payer]++
		if w.payer.Class != 0 {
			t.others++
		}
		t.count++
		t.served.Add(w.payer, t.count)
		w.start <- nil
	}
}

// next dequeues who gets the next slot; nil = nobody may have one.
func (t *Turns) next() *waiter {
	for i := range t.classes {
		class := (t.turn + i) % len(t.classes)
		if class != 0 && t.others >= max(1, t.slots-1) {
			continue
		}
		if w := t.waiting[class].pop(t.mayServe); w != nil {
			t.turn = (class + 1) % len(t.classes)
			return w
		}
	}
	return nil
}

func (t *Turns) mayServe(p Payer) bool {
	most := t.classes[p.Class].AtOnce
	return most == 0 || t.running[p] < most
}

func (t *Turns) leave(p Payer) {
	t.busy--
	if p.Class != 0 {
		t.others--
	}
	if t.running[p]--; t.running[p] == 0 {
		delete(t.running, p)
	}
	t.serve()
}

// lines are those who wait in one class.
type lines struct {
	networks *Queue[netip.Prefix, struct{}] // one item for each that waits
	keys     map[netip.Prefix]*Queue[string, *waiter]
}

func (l *lines) push(w *waiter) {
	keys := l.keys[w.payer.Network]
	if keys == nil {
		keys = NewQueue[string, *waiter]()
		l.keys[w.payer.Network] = keys
	}
	keys.Push(w.payer.Key, w)
	l.networks.Push(w.payer.Network, struct{}{})
}

// held returns how many wait for one payer.
func (l *lines) held(p Payer) int {
	if keys := l.keys[p.Network]; keys != nil {
		return keys.Held(p.Key)
	}
	return 0
}

// newest returns the newest of the key of a network that has most.
func (l *lines) newest(network netip.Prefix) *waiter {
	keys := l.keys[network]
	key, _ := keys.Longest(0)
	return keys.Newest(key)
}

// pop dequeues the one whose turn it is among those that may be served; nil = there is none.
func (l *lines) pop(may func(Payer) bool) (w *waiter) {
	var network netip.Prefix
	l.networks.PopIf(func(n netip.Prefix) bool {
		network = n
		w, _ = l.keys[n].PopIf(func(key string) bool { return may(l.keys[n].Newest(key).payer) })
		return w != nil
	})
	if w != nil {
		l.clean(network)
	}
	return w
}

func (l *lines) remove(w *waiter) {
	l.keys[w.payer.Network].Filter(func(other *waiter) bool { return other != w })
	l.networks.DropNewest(w.payer.Network)
	l.clean(w.payer.Network)
}

func (l *lines) clean(network netip.Prefix) {
	if l.keys[network].Len() == 0 {
		delete(l.keys, network)
	}
}
