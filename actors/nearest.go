package actors

import (
	"encoding/binary"
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// leastPlaces is how many places there are for a few actors; a power of two.
const leastPlaces = 1 << 10

// nearest finds actors of a directory without a lock, and with as few waits for memory as can be: a table with a place for each
// token, which a token that hashes to the same place takes from another. What is not found may be in its shard, and what has been
// taken out of its shard is not found.
type nearest struct{ places []atomic.Pointer[limitActor] }

func newNearest(places int) *nearest {
	return &nearest{places: make([]atomic.Pointer[limitActor], places)}
}

func (n *nearest) place(hash *oauth.Hash) *atomic.Pointer[limitActor] {
	return &n.places[binary.LittleEndian.Uint64(hash[8:])&uint64(len(n.places)-1)]
}

func (n *nearest) find(hash *oauth.Hash) *limitActor {
	if a := n.place(hash).Load(); a != nil && a.hash == *hash {
		return a
	}
	return nil
}

// put is called under the lock of the actor's shard, like drop.
func (n *nearest) put(a *limitActor) { n.place(&a.hash).Store(a) }

func (n *nearest) drop(a *limitActor) { n.place(&a.hash).CompareAndSwap(a, nil) }

// fit sees to it that there are two to sixteen places an actor. A new table is empty: it fills as its actors are asked for.
func (d *directory) fit(actors int64) {
	old := d.nearest.Load()
	places := int64(len(old.places))
	switch {
	case places < 2*actors:
		places *= 4
	case places > max(16*actors, leastPlaces):
		places /= 4
	default:
		return
	}
	d.nearest.CompareAndSwap(old, newNearest(int(places)))
}
