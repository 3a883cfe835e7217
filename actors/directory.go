package actors

import (
	"maps"
	"sync"
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// directory knows the limitActor of each access token in use. Its methods may be called by many goroutines; none sends a
// message while it holds a lock, since the actor would run under it.
type directory struct {
	shards  [256]directoryShard
	nearest atomic.Pointer[nearest]
	size    atomic.Int64
}

type directoryShard struct {
	mu      sync.RWMutex
	epoch   uint64 // grows with each revocation in the shard
	actors  map[oauth.Hash]*limitActor
	loading map[oauth.Hash]chan struct{} // closed when the load has ended
	peak    int                          // entries since the map was made
}

func newDirectory() *directory {
	d := &directory{}
	d.nearest.Store(newNearest(leastBuckets))
	for i := range d.shards {
		d.shards[i].actors = make(map[oauth.Hash]*limitActor)
		d.shards[i].loading = make(map[oauth.Hash]chan struct{})
	}
	return d
}

func (d *directory) shard(hash *oauth.Hash) *directoryShard { return &d.shards[hash[0]] }

// find returns the actor of a token; nil when there is none.
func (d *directory) find(hash *oauth.Hash) *limitActor {
	near := d.nearest.Load()
	if a := near.find(hash); a != nil {
		return a
	}
	shard := d.shard(hash)
	shard.mu.RLock()
	defer shard.mu.RUnlock() // until it is near, so that whoever takes it out takes it out there as well
	a := shard.actors[*hash]
	if a != nil {
		near.put(a)
	}
	return a
}

// epoch returns the epoch of a token's shard, which insert wants to see again.
func (d *directory) epoch(hash *oauth.Hash) uint64 {
	shard := d.shard(hash)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.epoch
}

// insert makes a the actor of its token, whose row was read at epoch, or reports false when a token of the shard was revoked
// since: that might be the token.
func (d *directory) insert(a *limitActor, epoch uint64) bool {
	shard := d.shard(&a.hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.epoch != epoch {
		return false
	}
	shard.actors[a.hash] = a
	shard.peak = max(shard.peak, len(shard.actors))
	d.fit(d.size.Add(1))
	return true
}

// remove takes a out if it is the actor of its token, as that actor does when it leaves.
func (d *directory) remove(a *limitActor) bool {
	shard := d.shard(&a.hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.actors[a.hash] != a {
		return false
	}
	d.expel(shard, a)
	d.size.Add(-1)
	return true
}

// expel takes an actor out of its shard, which is locked.
func (d *directory) expel(shard *directoryShard, a *limitActor) {
	delete(shard.actors, a.hash)
	d.nearest.Load().drop(a)
}

// take takes the actors of revoked tokens out and makes sure that none comes in whose row was read before.
func (d *directory) take(hashes []oauth.Hash) []*limitActor {
	var byShard [len(d.shards)][]int
	for i := range hashes {
		n := hashes[i][0]
		byShard[n] = append(byShard[n], i)
	}
	var taken []*limitActor
	for n, indexes := range byShard {
		if indexes == nil {
			continue
		}
		shard := &d.shards[n]
		shard.mu.Lock()
		shard.epoch++
		for _, i := range indexes {
			if a := shard.actors[hashes[i]]; a != nil {
				d.expel(shard, a)
				taken = append(taken, a)
			}
		}
		shard.mu.Unlock()
	}
	d.size.Add(-int64(len(taken)))
	return taken
}

// join returns how to learn that the load of a token has ended, and true to the one who has to do it.
func (d *directory) join(hash *oauth.Hash) (done chan struct{}, first bool) {
	shard := d.shard(hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if done, ok := shard.loading[*hash]; ok {
		return done, false
	}
	done = make(chan struct{})
	shard.loading[*hash] = done
	return done, true
}

// part ends the load that join has begun.
func (d *directory) part(hash *oauth.Hash, done chan struct{}) {
	shard := d.shard(hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.loading, *hash)
	close(done)
}

// members appends the actors of a shard to dst. It gives the memory of maps that have become too large back.
func (d *directory) members(n int, dst []*limitActor) []*limitActor {
	d.fit(d.size.Load())
	shard := &d.shards[n]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.peak > 64 && len(shard.actors) < shard.peak/4 {
		shard.actors, shard.peak = maps.Collect(maps.All(shard.actors)), len(shard.actors)
	}
	for _, a := range shard.actors {
		dst = append(dst, a)
	}
	return dst
}
