package actors

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"gatehouse/actors/oauth"
)

// directory knows the limitActor of each access token in use. Its methods may be called by many goroutines; none sends a
// message while it holds a lock, since the actor would run under it.
type directory struct {
	shards [256]directoryShard
	size   atomic.Int64
}

type directoryShard struct {
	mu      sync.RWMutex
	epoch   uint64 // grows with each revocation in the shard
	actors  map[oauth.Hash]resident
	loading map[oauth.Hash]chan struct{} // closed when the load has ended
	peak    int                          // entries since the map was made
}

// resident is an actor and its mailbox, to which messages may be posted without the detour by way of the PID: each step of
// that is memory of the actor that a request has to wait for. The zero value is none.
type resident struct {
	pid     *actor.PID
	mailbox *callMailbox
}

func newDirectory() *directory {
	d := &directory{}
	for i := range d.shards {
		d.shards[i].actors = make(map[oauth.Hash]resident)
		d.shards[i].loading = make(map[oauth.Hash]chan struct{})
	}
	return d
}

func (d *directory) shard(hash *oauth.Hash) *directoryShard { return &d.shards[hash[0]] }

// find returns the actor of a token; nil when there is none.
func (d *directory) find(hash *oauth.Hash) *actor.PID { return d.resident(hash).pid }

// resident returns the actor of a token with its mailbox.
func (d *directory) resident(hash *oauth.Hash) resident {
	shard := d.shard(hash)
	shard.mu.RLock()
	r := shard.actors[*hash]
	shard.mu.RUnlock()
	return r
}

// epoch returns the epoch of a token's shard, which insert wants to see again.
func (d *directory) epoch(hash *oauth.Hash) uint64 {
	shard := d.shard(hash)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.epoch
}

// insert makes r the actor of a token whose row was read at epoch, or reports false when a token of the shard was revoked
// since: that might be the token.
func (d *directory) insert(hash *oauth.Hash, r resident, epoch uint64) bool {
	shard := d.shard(hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.epoch != epoch {
		return false
	}
	shard.actors[*hash] = r
	shard.peak = max(shard.peak, len(shard.actors))
	d.size.Add(1)
	return true
}

// remove takes the token's actor out if it is pid, as that actor does when it leaves.
func (d *directory) remove(hash *oauth.Hash, pid *actor.PID) bool {
	shard := d.shard(hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.actors[*hash].pid != pid {
		return false
	}
	delete(shard.actors, *hash)
	d.size.Add(-1)
	return true
}

// take takes the actors of revoked tokens out and makes sure that none comes in whose row was read before.
func (d *directory) take(hashes []oauth.Hash) []*actor.PID {
	var byShard [len(d.shards)][]int
	for i := range hashes {
		n := hashes[i][0]
		byShard[n] = append(byShard[n], i)
	}
	var taken []*actor.PID
	for n, indexes := range byShard {
		if indexes == nil {
			continue
		}
		shard := &d.shards[n]
		shard.mu.Lock()
		shard.epoch++
		for _, i := range indexes {
			if pid := shard.actors[hashes[i]].pid; pid != nil {
				delete(shard.actors, hashes[i])
				taken = append(taken, pid)
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

// member is a token in use and its actor.
type member struct {
	hash oauth.Hash
	pid  *actor.PID
}

// members appends those of a shard to dst. It gives the memory of a map that has become too large back.
func (d *directory) members(n int, dst []member) []member {
	shard := &d.shards[n]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.peak > 64 && len(shard.actors) < shard.peak/4 {
		shard.actors, shard.peak = maps.Collect(maps.All(shard.actors)), len(shard.actors)
	}
	for hash, r := range shard.actors {
		dst = append(dst, member{hash: hash, pid: r.pid})
	}
	return dst
}
