package actors

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"gatehouse/actors/account"
)

// userState is what all sessions of one user share. It lives as long as one of them refers to it.
type userState struct {
	id      int64
	current atomic.Pointer[userSnapshot] // nil = has to be read again
}

// userSnapshot is what requests need to know of a user. It is never changed, but replaced.
type userSnapshot struct {
	disabled bool
	basic    []byte // the profile as JSON
	detailed []byte
	read     time.Time // it is no older than that
}

// userStates are the users whose tokens are in use.
type userStates struct {
	store  account.Store
	shards [64]userShard
}

type userShard struct {
	mu    sync.Mutex
	epoch uint64 // grows with each change of a user of the shard
	users map[int64]weak.Pointer[userState]
}

func newUserStates(store account.Store) *userStates {
	u := &userStates{store: store}
	for i := range u.shards {
		u.shards[i].users = make(map[int64]weak.Pointer[userState])
	}
	return u
}

func (u *userStates) shard(id int64) *userShard { return &u.shards[uint64(id)%uint64(len(u.shards))] }

// load returns the state of a user with a snapshot that is no older than since, or account.ErrNotFound.
func (u *userStates) load(ctx context.Context, id int64, since time.Time) (*userState, error) {
	shard := u.shard(id)
	for {
		state, epoch := shard.get(id)
		if state != nil {
			if s := state.current.Load(); s != nil && !s.read.Before(since) {
				return state, nil
			}
		}
		read := time.Now()
		user, err := u.store.User(ctx, id)
		if err != nil {
			return nil, err
		}
		snapshot := &userSnapshot{disabled: user.Disabled, basic: user.AppendBasic(nil), detailed: user.AppendDetailed(nil), read: read}
		if state := shard.set(id, snapshot, epoch); state != nil {
			return state, nil
		}
	}
}

// changed makes everybody read the user again, after a change that the store has acknowledged and before anybody is told of it.
func (u *userStates) changed(id int64) {
	shard := u.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.epoch++
	if state := shard.users[id].Value(); state != nil {
		state.current.Store(nil)
	}
}

func (s *userShard) get(id int64) (*userState, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users[id].Value(), s.epoch
}

// set shares a snapshot that was read at epoch and returns its user's state; nil when a user has changed since.
func (s *userShard) set(id int64, snapshot *userSnapshot, epoch uint64) *userState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch {
		return nil
	}
	state := s.users[id].Value()
	if state == nil {
		state = &userState{id: id}
		s.users[id] = weak.Make(state)
		runtime.AddCleanup(state, s.drop, id)
	}
	if old := state.current.Load(); old == nil || old.read.Before(snapshot.read) {
		state.current.Store(snapshot)
	}
	return state
}

// drop forgets a user whom nobody refers to.
func (s *userShard) drop(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[id].Value() == nil {
		delete(s.users, id)
	}
}
