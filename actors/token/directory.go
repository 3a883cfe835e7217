package token

import (
	"maps"
	"sync"
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// directory has the actor of each access token in use. Its methods may be called by many
// goroutines. None sends a message while it holds a lock, since the actor would run under it.
type directory struct {
	shards [256]directoryShard
	index  atomic.Pointer[index]
	size   atomic.Int64
	max    int64 // actors in all
}

type directoryShard struct {
	mu     sync.RWMutex
	actors map[oauth.TokenID]*tokenActor
	peak   int // actors since the map was made
	handed handedWindows
}

func newDirectory(limit int) *directory {
	d := &directory{max: int64(limit)}
	d.index.Store(newIndex(leastBuckets))
	for i := range d.shards {
		d.shards[i].actors = make(map[oauth.TokenID]*tokenActor)
	}
	return d
}

func (d *directory) shard(id *oauth.TokenID) *directoryShard { return &d.shards[id[0]] }

// find returns the actor of a token; nil when there is none.
func (d *directory) find(id *oauth.TokenID) *tokenActor {
	index := d.index.Load()
	if a := index.find(id); a != nil {
		return a
	}
	shard := d.shard(id)
	shard.mu.RLock()
	// The lock is held until the index is updated, so that a concurrent removal clears both.
	defer shard.mu.RUnlock()
	a := shard.actors[*id]
	if a != nil {
		index.put(a)
	}
	return a
}

// insert puts an actor in use and returns it, or the one that the token has already. It returns nil
// when there is no room: max actors are in use, or the part of the actor's client or user.
func (d *directory) insert(a *tokenActor) *tokenActor {
	shard := d.shard(&a.id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if found := shard.actors[a.id]; found != nil {
		return found
	}
	if !d.count(a, 1) {
		return nil
	}
	shard.actors[a.id] = a
	shard.peak = max(shard.peak, len(shard.actors))
	d.fit(d.size.Load())
	return a
}

// ofClient and ofUser are the parts of one client and one user, who may use many clients. A user
// who keeps many tokens in use must not keep the others of a client from theirs.
func (d *directory) ofClient() int64 { return max(1, d.max/8) }
func (d *directory) ofUser() int64   { return max(100, d.max/64) }

// hasRoom reports whether insert would take another actor with that session.
func (d *directory) hasRoom(x *session) bool {
	return d.size.Load() < d.max && x.client.active.Load() < d.ofClient() &&
		(x.user == nil || x.user.active.Load() < d.ofUser())
}

// count counts an actor in (1) or out (-1). It returns false and counts nothing when there is no
// room.
func (d *directory) count(a *tokenActor, n int64) bool {
	x, users := &a.session, int64(0)
	all, own := d.size.Add(n), x.client.active.Add(n)
	if x.user != nil {
		users = x.user.active.Add(n)
	}
	if n > 0 && (all > d.max || own > d.ofClient() || users > d.ofUser()) {
		d.count(a, -1)
		return false
	}
	return true
}

// remove takes an actor that stops out of use. It returns false when another did.
func (d *directory) remove(a *tokenActor) bool {
	shard := d.shard(&a.id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.actors[a.id] != a {
		return false
	}
	delete(shard.actors, a.id)
	d.index.Load().drop(a)
	d.count(a, -1)
	return true
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
