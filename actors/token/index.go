package token

import (
	"encoding/binary"
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// leastBuckets is how many buckets there are for a few actors; a power of two.
const leastBuckets = 1 << 8

// replaceEvery is how many actors find a bucket full until one replaces another. So an actor that
// is asked often is in the index soon, and actors do not replace each other all the time.
const replaceEvery = 8

// index finds actors of the directory without a lock, and with two waits for memory: for the
// token's bucket and for its actor. What it does not find may be in the directory. It never finds
// what the directory has dropped.
//
// It is our own because a profile request waits for memory most: a lock and a map are more of it.
type index struct{ buckets []bucket }

// bucket holds some of the actors whose IDs lead to it. It fills a cache line.
type bucket struct {
	actors [5]atomic.Pointer[tokenActor]
	tags   [5]atomic.Uint32 // a part of each actor's ID, to read no other actor; may be outdated
	full   atomic.Uint32    // how often an actor found no room
}

func newIndex(buckets int) *index { return &index{buckets: make([]bucket, buckets)} }

func (x *index) bucket(id *oauth.TokenID) (_ *bucket, tag uint32) {
	bits := binary.LittleEndian.Uint64(id[8:])
	return &x.buckets[(bits>>32)&uint64(len(x.buckets)-1)], uint32(bits)
}

func (x *index) find(id *oauth.TokenID) *tokenActor {
	b, tag := x.bucket(id)
	for i := range b.tags {
		if b.tags[i].Load() != tag {
			continue
		}
		if a := b.actors[i].Load(); a != nil && a.id == *id {
			return a
		}
	}
	return nil
}

// put is called under the lock of the actor's shard, like drop. Actors of other shards may enter
// the same bucket meanwhile. An actor with the tag of another is not found.
func (x *index) put(a *tokenActor) {
	b, tag := x.bucket(&a.id)
	for i := range b.actors {
		if b.actors[i].Load() == nil && b.actors[i].CompareAndSwap(nil, a) {
			b.tags[i].Store(tag)
			return
		}
	}
	if full := b.full.Add(1); full%replaceEvery == 0 {
		i := full / replaceEvery % uint32(len(b.actors))
		b.actors[i].Store(a)
		b.tags[i].Store(tag)
	}
}

func (x *index) drop(a *tokenActor) {
	b, _ := x.bucket(&a.id)
	for i := range b.actors {
		b.actors[i].CompareAndSwap(a, nil)
	}
}

// fit keeps the index at one to three and a half actors a bucket. With four, many would not fit. A
// new index is empty and fills as its actors are asked.
func (d *directory) fit(actors int64) {
	old := d.index.Load()
	buckets := int64(len(old.buckets))
	switch {
	case 2*actors > 7*buckets:
		buckets *= 2
	case actors < buckets && buckets > leastBuckets:
		buckets /= 2
	default:
		return
	}
	d.index.CompareAndSwap(old, newIndex(int(buckets)))
}
