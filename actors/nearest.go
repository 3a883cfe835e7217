package actors

import (
	"encoding/binary"
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// leastPlaces is how many places there are for a few actors; a power of two.
const leastPlaces = 1 << 10

// nearest finds actors of a directory without a lock, and with as few waits for memory as can be: a table with a place for each
// token and the neighbour of that for a second one, which a third takes from it. What is not found may be in its shard, and what has
// been taken out of its shard is not found.
type nearest struct{ places []atomic.Pointer[limitActor] }

func newNearest(places int) *nearest {
	return &nearest{places: make([]atomic.Pointer[limitActor], places)}
}

func (n *nearest) place(hash *oauth.Hash) (own, neighbour *atomic.Pointer[limitActor]) {
	i := binary.LittleEndian.Uint64(hash[8:]) & uint64(len(n.places)-1)
	return &n.places[i], &n.places[i^1]
}

func (n *nearest) find(hash *oauth.Hash) *limitActor {
	own, neighbour := n.place(hash)
	if a := own.Load(); a != nil && a.hash == *hash {
		return a
	}
	if a := neighbour.Load(); a != nil && a.hash == *hash {
		return a
	}
	return nil
}

// put is called under the lock of the actor's shard, like drop.
func (n *nearest) put(a *limitActor) {
	own, neighbour := n.place(&a.hash)
	if !own.CompareAndSwap(nil, a) {
		neighbour.Store(a)
	}
}

func (n *nearest) drop(a *limitActor) {
	own, neighbour := n.place(&a.hash)
	own.CompareAndSwap(a, nil)
	neighbour.CompareAndSwap(a, nil)
}

// fit sees to it that there are two to eight places an actor. A new table is empty: it fills as its actors are asked for.
func (d *directory) fit(actors int64) {
	old := d.nearest.Load()
	places := int64(len(old.places))
	switch {
	case places < 2*actors:
		places *= 2
	case places > max(8*actors, leastPlaces):
		places /= 2
	default:
		return
	}
	d.nearest.CompareAndSwap(old, newNearest(int(places)))
}
