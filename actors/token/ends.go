package token

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/fair"
	"gatehouse/actors/oauth"
)

// endLimit is how many access tokens of one client may be revoked one by one and not yet expired.
// A client could otherwise fill the memory of all processes.
const endLimit = 10_000

// endedTokens are the access tokens and families that ended before they expired. Its methods may be
// called by many goroutines. The zero value is empty, and clients has no limit.
//
// An end is added before the response to its request leaves. A token actor looks again when the
// version has grown, so it needs no message.
type endedTokens struct {
	version atomic.Uint64 // grows after each end
	size    atomic.Int64
	shards  [256]endShard
	clients fair.Slots[string] // tokens that ended, and those whose end is being written
}

type endShard struct {
	mu       sync.RWMutex
	tokens   map[oauth.TokenID]clientEnd
	families map[uuid.UUID]int64 // until when it is kept, in Unix seconds
}

type clientEnd struct {
	client string
	until  int64 // Unix seconds
}

// tokenShard and familyShard return where an end is kept. The last bytes of a family are random.
func (e *endedTokens) tokenShard(id *oauth.TokenID) *endShard { return &e.shards[id[0]] }
func (e *endedTokens) familyShard(id *uuid.UUID) *endShard    { return &e.shards[id[len(id)-1]] }

// add adds an end, once. The version grows for a new one only, since all token actors look again
// then, and a process that follows others finds its own ends too. It grows under the shard's lock:
// who finds an end there may respond at once.
func (e *endedTokens) add(end *oauth.End) {
	until := end.Expires.Add(oauth.EndKept).Unix()
	if end.FamilyID != uuid.Nil {
		e.addFamily(end.FamilyID, until)
	} else {
		e.addToken(end.Token, end.ClientID, until)
	}
}

func (e *endedTokens) addFamily(id uuid.UUID, until int64) {
	shard := e.familyShard(&id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.families == nil {
		shard.families = map[uuid.UUID]int64{}
	}
	before, found := shard.families[id]
	shard.families[id] = max(before, until)
	if !found {
		e.size.Add(1)
		e.version.Add(1)
	}
}

func (e *endedTokens) addToken(id oauth.TokenID, client string, until int64) {
	shard := e.tokenShard(&id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, found := shard.tokens[id]; found {
		return
	}
	if shard.tokens == nil {
		shard.tokens = map[oauth.TokenID]clientEnd{}
	}
	shard.tokens[id] = clientEnd{client, until}
	e.clients.Add(1, client)
	e.size.Add(1)
	e.version.Add(1)
}

// reserve takes room for one more end of a client's token. It returns false when the client has
// endLimit of them. release gives the room back, after add.
func (e *endedTokens) reserve(client string) (release func(), ok bool) {
	if !e.clients.Take(1, client) {
		return nil, false
	}
	return func() { e.clients.Give(1, client) }, true
}

// has reports whether a token or its family has ended.
func (e *endedTokens) has(token *oauth.TokenID, family *uuid.UUID) bool {
	if e.size.Load() == 0 {
		return false
	}
	shard := e.tokenShard(token)
	shard.mu.RLock()
	_, ended := shard.tokens[*token]
	shard.mu.RUnlock()
	if ended || *family == uuid.Nil {
		return ended
	}
	shard = e.familyShard(family)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	_, ended = shard.families[*family]
	return ended
}

// drop forgets the ends of shard n whose tokens have expired.
func (e *endedTokens) drop(n int, now time.Time) {
	shard := &e.shards[n]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for id, end := range shard.tokens {
		if end.until <= now.Unix() {
			delete(shard.tokens, id)
			e.clients.Give(1, end.client)
			e.size.Add(-1)
		}
	}
	for id, until := range shard.families {
		if until <= now.Unix() {
			delete(shard.families, id)
			e.size.Add(-1)
		}
	}
}
