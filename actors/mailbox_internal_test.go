package actors

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
)

// question is a message with an asker; panics and blocks are what it does to the actor.
type question struct {
	rejected atomic.Int64
	do       func()
}

func (q *question) reject() { q.rejected.Add(1) }

type echo struct{}

func (echo) Receive(ctx actor.Context) {
	if q, ok := ctx.Message().(*question); ok {
		q.do()
	}
}

func TestMailboxRejectsWhatItCannotDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		}))
		var full atomic.Uint64
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return echo{} }, actor.WithMailbox(bounded(2, &full))))
		wake := make(chan struct{})
		busy := &question{do: func() { <-wake }}
		system.Root.Send(pid, busy)
		synctest.Wait()
		waiting, delivered := make([]*question, 5), atomic.Int64{}
		for i := range waiting {
			waiting[i] = &question{do: func() { delivered.Add(1) }}
			system.Root.Send(pid, waiting[i])
		}
		if waiting[1].rejected.Load() != 0 || waiting[2].rejected.Load() != 1 || full.Load() != 3 {
			t.Errorf("got %d rejected of five, want the three that do not fit", full.Load())
		}
		close(wake)
		synctest.Wait()
		if delivered.Load() != 2 {
			t.Errorf("got %d delivered, want 2", delivered.Load())
		}
		panicking := &question{do: func() { panic("planted") }}
		system.Root.Send(pid, panicking)
		synctest.Wait()
		if panicking.rejected.Load() != 1 {
			t.Error("got no rejection of the message that the actor panicked over")
		}
		held := make(chan struct{})
		system.Root.Send(pid, &question{do: func() { <-held }})
		synctest.Wait()
		behind := &question{do: func() { t.Error("delivered after the stop") }}
		system.Root.Send(pid, behind)
		stopped := system.Root.StopFuture(pid)
		close(held)
		if err := stopped.Wait(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if behind.rejected.Load() != 1 {
			t.Error("got no rejection of the message behind the stop")
		}
		system.Shutdown()
	})
}

func TestRingKeepsTheOrder(t *testing.T) {
	var r ring
	next := 0
	for i := range 1000 {
		r.push(i)
		if i%3 == 0 {
			if got := r.pop(); got != next {
				t.Fatalf("got %v, want %d", got, next)
			}
			next++
		}
	}
	for r.n > 0 {
		if got := r.pop(); got != next {
			t.Fatalf("got %v, want %d", got, next)
		}
		next++
	}
	if next != 1000 {
		t.Errorf("got %d messages back, want 1000", next)
	}
}
