package token

import (
	"maps"
	"sync"
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// directory has the actor of each access token in use. Its methods may be called by many goroutines.
// None sends a message while it holds a lock, since the actor would run under it.
type directory struct {
	shards [256]directoryShard
	index  atomic.Pointer[index]
	size   atomic.Int64
}

type directoryShard struct {
	mu      sync.RWMutex
	actors  map[oauth.Hash]*tokenActor
	loading map[oauth.Hash]*tokenActor // being loaded; a revocation takes them out as well
	peak    int                        // actors since the map was made
}

func newDirectory() *directory {
	d := &directory{}
	d.index.Store(newIndex(leastBuckets))
	for i := range d.shards {
		d.shards[i].actors = make(map[oauth.Hash]*tokenActor)
		d.shards[i].loading = make(map[oauth.Hash]*tokenActor)
	}
	return d
}

func (d *directory) shard(hash *oauth.Hash) *directoryShard { return &d.shards[hash[0]] }

// find returns the actor of a token; nil when there is none.
func (d *directory) find(hash *oauth.Hash) *tokenActor {
	index := d.index.Load()
	if a := index.find(hash); a != nil {
		return a
	}
	shard := d.shard(hash)
	shard.mu.RLock()
	// The lock is held until the index is updated, so that a concurrent removal clears both.
	defer shard.mu.RUnlock()
	a := shard.actors[*hash]
	if a != nil {
		index.put(a)
	}
	return a
}

// reserve returns the actor of a token and true; or else a new one for insert. It is called before
// the token's row is read, so that a revocation during the read takes the actor out.
func (d *directory) reserve(hash oauth.Hash) (_ *tokenActor, found bool) {
	shard := d.shard(&hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if a := shard.actors[hash]; a != nil {
		return a, true
	}
	a := &tokenActor{hash: hash}
	shard.loading[hash] = a
	return a, false
}

// insert puts a reserved actor, which is ready now, in use. It returns false when the token was
// revoked since.
func (d *directory) insert(a *tokenActor) bool {
	shard := d.shard(&a.hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.loading[a.hash] != a {
		return false
	}
	delete(shard.loading, a.hash)
	shard.actors[a.hash] = a
	shard.peak = max(shard.peak, len(shard.actors))
	d.fit(d.size.Add(1))
	return true
}

// release drops a reserved actor. It does nothing to one in use.
func (d *directory) release(a *tokenActor) {
	shard := d.shard(&a.hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.loading[a.hash] == a {
		delete(shard.loading, a.hash)
	}
}

// remove takes an actor that stops out of use. It returns false when another did.
func (d *directory) remove(a *tokenActor) bool {
	shard := d.shard(&a.hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.actors[a.hash] != a {
		return false
	}
	d.drop(shard, a)
	return true
}

// drop takes an actor out of its shard, which is locked.
func (d *directory) drop(shard *directoryShard, a *tokenActor) {
	delete(shard.actors, a.hash)
	d.index.Load().drop(a)
	d.size.Add(-1)
}

// take takes the actors of revoked tokens out of use and returns those to be stopped.
func (d *directory) take(hashes []oauth.Hash) []*tokenActor {
	var taken []*tokenActor
	for i := range hashes {
		hash := &hashes[i]
		shard := d.shard(hash)
		shard.mu.Lock()
		delete(shard.loading, *hash)
		if a := shard.actors[*hash]; a != nil {
			d.drop(shard, a)
			taken = append(taken, a)
		}
		shard.mu.Unlock()
	}
	return taken
}

// members appends the actors of a shard to dst. It frees the memory of a map that was much larger.
func (d *directory) members(n int, dst []*tokenActor) []*tokenActor {
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
