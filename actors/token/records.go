package token

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"golang.org/x/sync/singleflight"

	"gatehouse/actors/oauth"
)

// records are the clients or users in use, as the store has them. All tokens of one client or user
// share a record, which lives as long as something refers to it. Set read before use.
//
// A record is there before its row is read. So a change that commits during the read finds the
// record, and the row that was read before the change is dropped.
type records[K comparable, V any] struct {
	read  func(context.Context, K) (V, error) // reads a row
	reads singleflight.Group                  // lets requests that wait for a row share one read

	mu    sync.RWMutex
	byKey map[K]weak.Pointer[record[K, V]]
}

// record is one client or user.
type record[K comparable, V any] struct {
	key     K
	current atomic.Pointer[V] // what the row said, which is never changed; nil = has to be read
	mu      sync.Mutex        // held while current is replaced
	changes uint64            // how often it was changed since it is in use
	active  atomic.Int64      // a user's tokens in use
}

type (
	clientRecord = record[string, oauth.Client]
	userRecord   = record[int64, user]
)

// user is what requests need to know of a user.
type user struct {
	disabled bool
	epoch    int64
	basic    []byte // the profile as JSON
	detailed []byte
	lazy     *lazyClaims
}

// readUser reads what requests need to know of a user, or account.ErrNotFound.
func (s *Service) readUser(ctx context.Context, id int64) (user, error) {
	u, err := s.config.Accounts.User(ctx, id)
	if err != nil {
		return user{}, err
	}
	return user{
		disabled: u.Disabled, epoch: u.Epoch,
		basic: u.AppendBasic(nil), detailed: u.AppendDetailed(nil),
		lazy: newLazyClaims(u),
	}, nil
}

// readClient reads a client, or oauth.ErrNotFound.
func (s *Service) readClient(ctx context.Context, id string) (oauth.Client, error) {
	c, err := s.config.Tokens.Client(ctx, id)
	if err != nil {
		return oauth.Client{}, err
	}
	return *c, nil
}

// UserChanged makes every request read a user again, on every node. It is called with the error of
// the write, before anybody is told of the change. It returns that error, or why it is not known
// that every node applies the change.
func (s *Service) UserChanged(id int64, err error) error {
	s.users.change(id) // also after an error, which may hide a commit
	if err != nil {
		return err
	}
	return s.confirm()
}

// FamiliesEnded makes every request refuse the access tokens of families that a write has ended, on
// this node from its return on, and on all others. err is that of the write. The ends are read from
// the database.
func (s *Service) FamiliesEnded(err error) error {
	if _, read := s.Follow(s.lifetime); err == nil && read != nil {
		return fmt.Errorf("read what has ended: %w", errors.Join(oauth.ErrUnknownOutcome, read))
	}
	if err != nil {
		return err
	}
	return s.confirm()
}

// find returns the record of key; nil when it is not in use.
func (r *records[K, V]) find(key K) *record[K, V] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byKey[key].Value()
}

// use returns the record of key, in use from now on.
func (r *records[K, V]) use(key K) *record[K, V] {
	if found := r.find(key); found != nil {
		return found
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.byKey[key].Value(); found != nil {
		return found
	}
	if r.byKey == nil {
		r.byKey = map[K]weak.Pointer[record[K, V]]{}
	}
	made := &record[K, V]{key: key}
	r.byKey[key] = weak.Make(made)
	// A cleanup that refers to r would keep the whole service in memory after its end.
	all := weak.Make(r)
	runtime.AddCleanup(made, func(key K) {
		if r := all.Value(); r != nil {
			r.drop(key)
		}
	}, key)
	return made
}

// drop forgets a record that nothing refers to.
func (r *records[K, V]) drop(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[key].Value() == nil {
		delete(r.byKey, key)
	}
}

// load returns the record of key with its value, read if needed. Its errors are those of read.
func (r *records[K, V]) load(ctx context.Context, key K) (*record[K, V], *V, error) {
	found := r.use(key)
	for {
		if value := found.current.Load(); value != nil {
			return found, value, nil
		}
		own := false
		_, err, _ := r.reads.Do(fmt.Sprint(key), func() (any, error) {
			own = true
			return nil, r.refresh(ctx, found)
		})
		ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		if err != nil && (own || !ended || ctx.Err() != nil) { // else read again
			return nil, nil, err
		}
	}
}

// refresh reads the row of a record, unless another request just did. It drops what it read if the
// row was changed meanwhile.
func (r *records[K, V]) refresh(ctx context.Context, found *record[K, V]) error {
	if found.current.Load() != nil {
		return nil
	}
	before := found.changed()
	value, err := r.read(ctx, found.key)
	if err != nil {
		return err
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.changes == before {
		found.current.Store(&value)
	}
	return nil
}

func (r *record[K, V]) changed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// outdate makes every request read the row again.
func (r *record[K, V]) outdate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.current.Store(nil)
}

// change makes every request read the row of key again. It is called when the store has
// acknowledged a change, before anybody is told of it.
func (r *records[K, V]) change(key K) {
	if found := r.find(key); found != nil {
		found.outdate()
	}
}

// changeAll makes every request read every row again.
func (r *records[K, V]) changeAll() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, pointer := range r.byKey {
		if found := pointer.Value(); found != nil {
			found.outdate()
		}
	}
}
