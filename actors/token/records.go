package token

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"golang.org/x/sync/singleflight"
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
	current atomic.Pointer[snapshot[V]] // nil = has to be read
	mu      sync.Mutex                  // held while current is replaced
	changes uint64                      // how often it was changed since it is in use
}

// snapshot is what a row said. It is never changed.
type snapshot[V any] struct {
	value V
	read  time.Time // the row is no older than that
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
	runtime.AddCleanup(made, r.drop, key)
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

// load returns the record of key with a snapshot no older than since, read if needed. Its errors are
// those of read.
func (r *records[K, V]) load(
	ctx context.Context, key K, since time.Time,
) (*record[K, V], *snapshot[V], error) {
	found := r.use(key)
	for {
		if s := found.current.Load(); s != nil && !s.read.Before(since) {
			return found, s, nil
		}
		own := false
		_, err, _ := r.reads.Do(fmt.Sprint(key), func() (any, error) {
			own = true
			return nil, r.refresh(ctx, found)
		})
		ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		if err != nil && (own || !ended || ctx.Err() != nil) { // else another's deadline: read again
			return nil, nil, err
		}
	}
}

// refresh reads the row of a record.
func (r *records[K, V]) refresh(ctx context.Context, found *record[K, V]) error {
	before := found.changed()
	read := time.Now()
	value, err := r.read(ctx, found.key)
	if err != nil {
		return err
	}
	found.set(&snapshot[V]{value: value, read: read}, before)
	return nil
}

// change makes every request read the row of key again. It is called when the store has acknowledged
// a change, before anybody is told of it.
func (r *records[K, V]) change(key K) {
	found := r.find(key)
	if found == nil {
		return
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	found.changes++
	found.current.Store(nil)
}

func (r *record[K, V]) changed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// set makes s the snapshot, unless a change came after before or a later read was faster.
func (r *record[K, V]) set(s *snapshot[V], before uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.current.Load(); r.changes == before && (old == nil || old.read.Before(s.read)) {
		r.current.Store(s)
	}
}
