package account

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrBusy is returned when the queue of passwords to hash is full.
var ErrBusy = errors.New("too many passwords wait to be hashed")

// Hasher hashes passwords. It limits concurrent hashes, because one at DefaultCost takes tens of
// milliseconds of CPU and 19 MiB, which other requests need too. Its methods may be called by many
// goroutines. A hash that has begun cannot be interrupted.
type Hasher struct {
	cost   Cost
	slots  chan struct{} // one element a running hash
	room   chan struct{} // one element a running or waiting hash
	hashes atomic.Int64
}

// NewHasher returns a Hasher that runs at most slots hashes at once, at least 1, and lets at most
// queue more callers wait. New hashes have that cost.
func NewHasher(slots, queue int, cost Cost) *Hasher {
	return &Hasher{
		cost: cost, slots: make(chan struct{}, slots), room: make(chan struct{}, slots+queue),
	}
}

// Hashes returns how many hashes have been computed, for Hash and for Verify.
func (h *Hasher) Hashes() int64 { return h.hashes.Load() }

// Hash returns the argon2id hash of password in PHC form. Its error is ErrBusy or wraps ctx's
// error.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	h.hashes.Add(1)
	hash := newPasswordHash(password, h.cost)
	return hash.String(), nil
}

// Verify reports whether kept is the hash of password and, if so, whether the password should be
// hashed again because the parameters have changed. An empty kept, for an unknown account or one
// without a password, takes the same time and never matches. The error is ErrBusy, wraps ctx's
// error, or says that kept cannot be parsed.
func (h *Hasher) Verify(ctx context.Context, kept, password string) (ok, outdated bool, err error) {
	hash := dummyHash(h.cost)
	if kept != "" {
		if hash, err = parsePasswordHash(kept); err != nil {
			return false, false, err
		}
	}
	if err := h.enter(ctx); err != nil {
		return false, false, err
	}
	defer h.leave()
	h.hashes.Add(1)
	if !hash.matches(password) || kept == "" {
		return false, false, nil
	}
	return true, hash.outdated(h.cost), nil
}

// enter waits for a slot.
func (h *Hasher) enter(ctx context.Context) error {
	select {
	case h.room <- struct{}{}:
	default:
		return ErrBusy
	}
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		<-h.room
		return fmt.Errorf("wait to hash: %w", ctx.Err())
	}
}

func (h *Hasher) leave() {
	<-h.slots
	<-h.room
}
