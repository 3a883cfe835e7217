package account

import (
	"context"
	"errors"
	"fmt"
)

// ErrBusy is returned when the queue of passwords to hash is full.
var ErrBusy = errors.New("too many passwords wait to be hashed")

// Hasher hashes passwords. It limits concurrent hashes, because one takes tens of milliseconds of
// CPU and 19 MiB, which other requests need too. Its methods may be called by many goroutines. A
// hash that has begun cannot be interrupted.
type Hasher struct {
	slots chan struct{} // one element a running hash
	room  chan struct{} // one element a running or waiting hash
}

// NewHasher returns a Hasher that runs at most slots hashes at once, at least 1, and lets at most
// queue more callers wait.
func NewHasher(slots, queue int) *Hasher {
	return &Hasher{slots: make(chan struct{}, slots), room: make(chan struct{}, slots+queue)}
}

// Hash returns the argon2id hash of password in PHC form. Its error is ErrBusy or wraps ctx's
// error.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	hash := newPasswordHash(password)
	return hash.String(), nil
}

// Verify reports whether kept is the hash of password and, if so, whether the password should be
// hashed again because the parameters have changed. An empty kept, for an unknown account or one
// without a password, takes the same time and never matches. The error is ErrBusy, wraps ctx's
// error, or says that kept cannot be parsed.
func (h *Hasher) Verify(ctx context.Context, kept, password string) (ok, outdated bool, err error) {
	hash := dummy
	if kept != "" {
		if hash, err = parsePasswordHash(kept); err != nil {
			return false, false, err
		}
	}
	if err := h.enter(ctx); err != nil {
		return false, false, err
	}
	defer h.leave()
	if !hash.matches(password) || kept == "" {
		return false, false, nil
	}
	return true, hash.outdated(), nil
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
