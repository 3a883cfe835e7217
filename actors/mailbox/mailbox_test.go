package mailbox_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"gatehouse/actors/mailbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is an actor that does what each message says, and keeps what it was sent.
type script struct {
	mailbox.Mailbox
	handled []*step
	stopped bool
	full    int
	panics  int
}

// step is a message: do runs inside the actor; nil does nothing.
type step struct{ do func() }

func (s *script) Receive(ctx actor.Context) {
	s.Handle(ctx.Message())
}

func (s *script) Handle(message any) {
	switch m := message.(type) {
	case *step:
		s.handled = append(s.handled, m)
		if m.do != nil {
			m.do()
		}
	case *actor.Stopped:
		s.stopped = true
	}
}

// spawn starts a script in an actor system that ends with the test.
func spawn(t testing.TB) *script {
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	s := &script{}
	mailbox.NewSpawner(system, func() { s.full++ }, func() { s.panics++ }).Spawn(s)
	return s
}

// askAll asks n times, each on a goroutine, and returns where the errors arrive once all of them
// wait.
func (s *script) askAll(n int, do func()) chan error {
	errs := make(chan error, n)
	for range n {
		go func() { errs <- s.Ask(&step{do: do}) }()
	}
	return errs
}

func wantErrors(t *testing.T, what string, errs chan error, n int, want error) {
	t.Helper()
	for range n {
		if err := <-errs; !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
}

func TestSenderRunsActorOneMessageAtATime(t *testing.T) {
	s := spawn(t)
	inside := []*step{{}, {}, {}}
	first := &step{do: func() {
		for _, m := range inside {
			s.Tell(m)
		}
		if len(s.handled) != 1 {
			t.Error("got the actor entered while it runs")
		}
	}}
	if err := s.Ask(first); err != nil {
		t.Fatal(err)
	}
	if len(s.handled) != 4 {
		t.Fatalf("got %d messages handled when Ask returns, want 4", len(s.handled))
	}
	for i, m := range inside {
		if s.handled[i+1] != m {
			t.Errorf("got message %d out of order", i)
		}
	}
}

func TestAskWaitsForSenderThatRunsActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spawn(t)
		release := make(chan struct{})
		go s.Tell(&step{do: func() { <-release }})
		synctest.Wait()
		errs := s.askAll(10, nil)
		synctest.Wait()
		if len(errs) != 0 || s.UserMessageCount() != 10 {
			t.Errorf("got %d asks that wait, want 10", s.UserMessageCount())
		}
		close(release)
		wantErrors(t, "asks", errs, 10, nil)
		if s.UserMessageCount() != 0 {
			t.Errorf("got %d asks that wait, want 0", s.UserMessageCount())
		}
	})
}

// TestSenderIsReleased has one sender find 100 messages behind its own, of which the 65th blocks.
func TestSenderIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spawn(t)
		release := make(chan struct{})
		err := s.Ask(&step{do: func() {
			for i := range 100 {
				m := &step{}
				if i == 64 {
					m.do = func() { <-release }
				}
				s.Tell(m)
			}
		}})
		synctest.Wait()
		if err != nil || len(s.handled) != 1+65 {
			t.Errorf("got %v and %d messages begun, want 66", err, len(s.handled))
		}
		close(release)
		synctest.Wait()
		if len(s.handled) != 101 {
			t.Errorf("got %d messages handled, want 101", len(s.handled))
		}
	})
}

func TestStopEndsAsksThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spawn(t)
		release := make(chan struct{})
		under := s.askAll(1, func() { <-release })
		synctest.Wait()
		waiting := s.askAll(3, nil)
		told := &step{}
		s.Tell(told)
		synctest.Wait()
		s.Stop()
		wantErrors(t, "asks that waited", waiting, 3, mailbox.ErrStopped)
		if err := s.Ask(&step{}); !errors.Is(err, mailbox.ErrStopped) {
			t.Errorf("ask after the stop: got %v, want %v", err, mailbox.ErrStopped)
		}
		close(release)
		wantErrors(t, "ask under way", under, 1, nil)
		synctest.Wait()
		if !s.stopped || len(s.handled) != 2 || s.handled[1] != told {
			t.Errorf("got stopped %v after %d messages, want true after 2", s.stopped, len(s.handled))
		}
		s.Tell(&step{})
		if len(s.handled) != 2 {
			t.Error("got a message delivered after the stop")
		}
	})
}

func TestFullMailboxRefusesAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spawn(t)
		release := make(chan struct{})
		go s.Tell(&step{do: func() { <-release }})
		synctest.Wait()
		fit := s.askAll(mailbox.Limit, nil)
		synctest.Wait()
		if err := s.Ask(&step{}); !errors.Is(err, mailbox.ErrFull) || s.full != 1 {
			t.Errorf("got %v and %d counted, want %v and 1", err, s.full, mailbox.ErrFull)
		}
		s.Tell(&step{}) // is taken all the same
		close(release)
		wantErrors(t, "asks that fit", fit, mailbox.Limit, nil)
		synctest.Wait()
		if len(s.handled) != mailbox.Limit+2 {
			t.Errorf("got %d messages handled, want %d", len(s.handled), mailbox.Limit+2)
		}
	})
}

func TestActorSurvivesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spawn(t)
		boom := func() { panic("planted") }
		if err := s.Ask(&step{do: boom}); !errors.Is(err, mailbox.ErrPanicked) {
			t.Errorf("got %v, want %v", err, mailbox.ErrPanicked)
		}
		release := make(chan struct{})
		go s.Tell(&step{do: func() { <-release }})
		synctest.Wait()
		waiting := s.askAll(1, boom)
		synctest.Wait()
		s.Tell(&step{do: boom})
		close(release)
		wantErrors(t, "ask that waited", waiting, 1, mailbox.ErrPanicked)
		synctest.Wait()
		if err := s.Ask(&step{}); err != nil || s.panics != 3 || len(s.handled) != 5 {
			t.Errorf("got %v, %d panics and %d messages, want 3 and 5", err, s.panics, len(s.handled))
		}
	})
}

func TestAskFromManyGoroutines(t *testing.T) {
	s := spawn(t)
	n := 0 // the race detector sees it if two run the actor
	errs := make(chan error)
	for range 8 {
		go func() {
			var err error
			for range 2000 {
				err = errors.Join(err, s.Ask(&step{do: func() { n++ }}))
			}
			errs <- err
		}()
	}
	wantErrors(t, "asks", errs, 8, nil)
	if err := s.Ask(&step{do: func() {
		if n != 16_000 {
			t.Errorf("got %d messages handled, want 16000", n)
		}
	}}); err != nil {
		t.Error(err)
	}
}

// reply is a message with its reply, as hot paths pool them.
type reply struct{ n int }

type counter struct {
	mailbox.Mailbox
	n int
}

func (*counter) Receive(actor.Context) {}

func (c *counter) Handle(message any) {
	c.n++
	message.(*reply).n = c.n
}

func BenchmarkAsk(b *testing.B) {
	system := mailbox.NewSystem()
	defer system.Shutdown()
	m := &counter{}
	mailbox.NewSpawner(system, func() {}, func() {}).Spawn(m)
	message := &reply{}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Ask(message); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAskContended(b *testing.B) {
	system := mailbox.NewSystem()
	defer system.Shutdown()
	m := &counter{}
	mailbox.NewSpawner(system, func() {}, func() {}).Spawn(m)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		message := &reply{}
		for pb.Next() {
			if err := m.Ask(message); err != nil {
				b.Error(err)
			}
		}
	})
}
