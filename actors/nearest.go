package actors

import (
	"encoding/binary"
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// leastBuckets is how many buckets there are for a few actors; a power of two.
const leastBuckets = 1 << 8

// lateEach says that each eighth actor that finds no room takes another's. One that is often asked for gets a place soon, and several of
// the same kind do not take it from each other all the time.
const lateEach = 8

// nearest finds actors of a directory without a lock, and with two waits for memory: one for the bucket of the token and one for its
// actor. What is not found may be in its shard, and what has been taken out of its shard is not found.
type nearest struct{ buckets []bucket }

// bucket holds some of the actors whose tokens meet here. It fills a cache line.
type bucket struct {
	actors [5]atomic.Pointer[limitActor]
	tags   [5]atomic.Uint32 // a part of each actor's hash, so that no foreign actor is looked at; may be that of an earlier one
	late   atomic.Uint32    // how often somebody found no room
}

func newNearest(buckets int) *nearest { return &nearest{buckets: make([]bucket, buckets)} }

func (n *nearest) bucket(hash *oauth.Hash) (_ *bucket, tag uint32) {
	bits := binary.LittleEndian.Uint64(hash[8:])
	return &n.buckets[(bits>>32)&uint64(len(n.buckets)-1)], uint32(bits)
}

func (n *nearest) find(hash *oauth.Hash) *limitActor {
	b, tag := n.bucket(hash)
	for i := range b.tags {
		if b.tags[i].Load() != tag {
			continue
		}
		if a := b.actors[i].Load(); a != nil && a.hash == *hash {
			return a
		}
	}
	return nil
}

// put is called under the lock of the actor's shard, like drop. Those of other shards may put theirs into the same bucket meanwhile: an
// actor beside another's tag is not found.
func (n *nearest) put(a *limitActor) {
	b, tag := n.bucket(&a.hash)
	for i := range b.actors {
		if b.actors[i].Load() == nil && b.actors[i].CompareAndSwap(nil, a) {
			b.tags[i].Store(tag)
			return
		}
	}
	if late := b.late.Add(1); late%lateEach == 0 {
		i := late / lateEach % uint32(len(b.actors))
		b.actors[i].Store(a)
		b.tags[i].Store(tag)
	}
}

func (n *nearest) drop(a *limitActor) {
	b, _ := n.bucket(&a.hash)
	for i := range b.actors {
		b.actors[i].CompareAndSwap(a, nil)
	}
}

// fit sees to it that there are one to three and a half actors a bucket: with four, many would not find a place. A new table is empty: it fills as its actors are asked for.
func (d *directory) fit(actors int64) {
	old := d.nearest.Load()
	buckets := int64(len(old.buckets))
	switch {
	case 2*actors > 7*buckets:
		buckets *= 2
	case actors < buckets && buckets > leastBuckets:
		buckets /= 2
	default:
		return
	}
	d.nearest.CompareAndSwap(old, newNearest(int(buckets)))
}
