package account

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestHasherIsBounded takes the only slot and the only place in the queue: the next caller is
// refused, and a caller in the queue can leave it.
func TestHasherIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(1, 1, CheapCost())
		if err := h.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := h.Hash(ctx, "some password")
			left <- err
		}()
		synctest.Wait() // until it waits for the slot
		if _, err := h.Hash(t.Context(), "some password"); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v with a full queue, want ErrBusy", err)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of its context", err)
		}
		h.leave()
		if _, err := h.Hash(t.Context(), "some password"); err != nil {
			t.Errorf("got %v afterwards, want the slot free", err)
		}
	})
}
