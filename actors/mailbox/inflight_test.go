package mailbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/mailbox"
)

func TestCloseWaitsForRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f mailbox.InFlight
		if !f.Enter() {
			t.Fatal("got the first request refused")
		}
		closed := make(chan error)
		go func() { closed <- f.Close(t.Context()) }()
		synctest.Wait()
		if f.Enter() {
			t.Error("got a request let in after Close")
		}
		select {
		case err := <-closed:
			t.Fatalf("got %v with a request in flight, want Close to wait", err)
		default:
		}
		f.Leave()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f mailbox.InFlight
		f.Enter()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
