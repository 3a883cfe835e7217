package actors

import (
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
)

// scripted is an actor behind a callMailbox: it answers asks after doing what the test says.
type scripted struct {
	mailbox *callMailbox
	asked   []*admitAsk
	system  []any
	full    int
	panics  int
	during  func(*admitAsk)
}

func newScripted() *scripted {
	s := &scripted{}
	s.mailbox = &callMailbox{actor: &limitActor{}, calls: &callPolicy{full: func() { s.full++ }, panicked: func() { s.panics++ }}}
	s.mailbox.RegisterHandlers(s, nil)
	return s
}

func (s *scripted) InvokeUserMessage(message any) {
	ask := message.(*admitAsk)
	s.asked = append(s.asked, ask)
	if s.during != nil {
		s.during(ask)
	}
	ask.answer(askReply{outcome: askDecided})
}

func (s *scripted) InvokeSystemMessage(message any) { s.system = append(s.system, message) }
func (s *scripted) EscalateFailure(any, any)        {}

// post posts n asks and returns them.
func (s *scripted) post(n int) []*admitAsk {
	asks := make([]*admitAsk, n)
	for i := range asks {
		asks[i] = newAdmitAsk()
		s.mailbox.PostUserMessage(asks[i])
	}
	return asks
}

func wantOutcomes(t *testing.T, what string, asks []*admitAsk, want askOutcome) {
	t.Helper()
	for i, a := range asks {
		if a.state.Load() != askAnswered || a.reply.outcome != want || a.next != nil {
			t.Errorf("%s: ask %d: got state %d, outcome %d, want it answered with %d and out of the chain", what, i, a.state.Load(), a.reply.outcome, want)
			return
		}
	}
}

// TestTheCallerRuns delivers in order on the goroutine that posts, one at a time.
func TestTheCallerRuns(t *testing.T) {
	s := newScripted()
	var inside, others []*admitAsk
	s.during = func(*admitAsk) {
		s.during = func(a *admitAsk) { others = append(others, a) }
		inside = s.post(10)
		if len(s.asked) != 1 {
			t.Error("got the actor entered again")
		}
	}
	first := s.post(1)
	wantOutcomes(t, "the caller's own", first, askDecided)
	wantOutcomes(t, "those that came meanwhile", inside, askDecided)
	for i := range others {
		if others[i] != inside[i] {
			t.Fatalf("got ask %d out of order", i)
		}
	}
	if s.mailbox.actor.turn.running || s.mailbox.UserMessageCount() != 0 {
		t.Error("got a mailbox that runs without messages")
	}
}

// TestACallerIsNotCaptured leaves all but a few of a hundred asks to a goroutine.
func TestACallerIsNotCaptured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		var inside []*admitAsk
		hold := make(chan struct{})
		s.during = func(*admitAsk) {
			inside = s.post(100)
			s.during = func(a *admitAsk) {
				if a == inside[callsForeign] {
					<-hold
				}
			}
		}
		s.post(1) // returns though one of the others does not
		synctest.Wait()
		wantOutcomes(t, "before the one held", inside[:callsForeign], askDecided)
		close(hold)
		synctest.Wait()
		wantOutcomes(t, "all", inside, askDecided)
	})
}

func TestAStopRejectsWhatWaits(t *testing.T) {
	s := newScripted()
	var waiting, late []*admitAsk
	s.during = func(*admitAsk) {
		waiting = s.post(3)
		s.mailbox.PostSystemMessage(&actor.Stop{})
		late = s.post(2)
	}
	first := s.post(1)
	wantOutcomes(t, "the one looked at", first, askDecided)
	wantOutcomes(t, "those that waited", waiting, askRejected)
	wantOutcomes(t, "those that came later", late, askRejected)
	if len(s.asked) != 1 || len(s.system) != 1 {
		t.Errorf("got %d asks and %d system messages delivered, want 1 and 1", len(s.asked), len(s.system))
	}
}

func TestAFullMailboxRefuses(t *testing.T) {
	s := newScripted()
	var waiting, over []*admitAsk
	s.during = func(*admitAsk) {
		s.during = nil
		waiting = s.post(callsWaiting)
		over = s.post(2)
	}
	synctest.Test(t, func(*testing.T) { s.post(1) })
	wantOutcomes(t, "those that found room", waiting, askDecided)
	wantOutcomes(t, "those over the limit", over, askFailed)
	if s.full != 2 {
		t.Errorf("got %d counted, want 2", s.full)
	}
}

func TestAPanicRefusesItsAskAlone(t *testing.T) {
	s := newScripted()
	s.during = func(*admitAsk) { panic("planted") }
	wantOutcomes(t, "the one it panics over", s.post(1), askFailed)
	s.during = nil
	wantOutcomes(t, "the next", s.post(1), askDecided)
	if s.panics != 1 {
		t.Errorf("got %d panics told, want 1", s.panics)
	}
}
