package account

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrBusy says that too many passwords wait to be hashed.
var ErrBusy = errors.New("too many passwords wait to be hashed")

// Hasher hashes passwords, few at once, so that sign-ins leave processors and memory to everything else: at DefaultCost a
// hash takes tens of milliseconds and 19 MiB. Its methods may be called by many goroutines; the hashing itself cannot be interrupted.
type Hasher struct {
	cost   Cost
	slots  chan struct{} // taken while hashing
	room   chan struct{} // taken while hashing or waiting for it
	hashes atomic.Int64
}

// NewHasher returns a Hasher that runs slots hashes at once and lets queue more callers wait, both at least 1. New hashes
// have that cost.
func NewHasher(slots, queue int, cost Cost) *Hasher {
	return &Hasher{cost: cost, slots: make(chan struct{}, slots), room: make(chan struct{}, slots+queue)}
}

// Hashes returns how many hashes of cost have been computed so far, to hash a password or to verify one.
func (h *Hasher) Hashes() int64 { return h.hashes.Load() }

// Hash returns what is kept of a password. Its error is ErrBusy or that of ctx.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	h.hashes.Add(1)
	hash := newPasswordHash(password, h.cost)
	return hash.String(), nil
}

// Verify reports whether kept is the hash of password, and with true whether it should be hashed anew because the
// parameters have changed. An empty kept, of an account without a password or of none, costs the same time and is false. Its
// error is ErrBusy, that of ctx, or that kept cannot be read.
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
