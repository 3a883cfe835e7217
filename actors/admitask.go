package actors

import (
	"sync/atomic"
	"time"
)

// admitAsk asks a limitActor about a request: the message and the place of the answer. It goes back to its pool when it
// has been answered, so that asking allocates nothing.
type admitAsk struct {
	endpoint Endpoint
	now      time.Time

	next  *admitAsk // in a mailbox
	reply askReply
	state atomic.Int32
	ready chan struct{} // holds one
	timer *time.Timer
}

// askReply is what a limitActor answers.
type askReply struct {
	outcome   askOutcome
	admission Admission // with askDecided
}

// askOutcome says what the answer is worth.
type askOutcome uint8

const (
	askFailed   askOutcome = iota // too much to do, or a panic
	askRejected                   // the actor has stopped: look for its successor
	askStale                      // the actor has to be told anew what the stores say
	askDecided
)

// The states of an admitAsk.
const (
	askOpen = iota
	askAwaited
	askAnswered
)

// askPatience bounds the wait for an actor that never blocks.
const askPatience = 2 * time.Second

func newAdmitAsk() *admitAsk {
	timer := time.NewTimer(askPatience)
	timer.Stop()
	return &admitAsk{ready: make(chan struct{}, 1), timer: timer}
}

// answer gives the answer. It is called once, and whoever asked may reuse the ask at once.
func (a *admitAsk) answer(reply askReply) {
	a.reply = reply
	if a.state.Swap(askAnswered) == askAwaited {
		a.ready <- struct{}{}
	}
}

// reject implements rejecter: the actor has stopped.
func (a *admitAsk) reject() { a.answer(askReply{outcome: askRejected}) }

// IgnoreDeadLetterLogging keeps the library from logging an ask that came too late.
func (a *admitAsk) IgnoreDeadLetterLogging() {}

// wait waits for the answer. After a false the ask must not be used again: the answer may still come.
func (a *admitAsk) wait() bool {
	if !a.state.CompareAndSwap(askOpen, askAwaited) {
		return true
	}
	a.timer.Reset(askPatience)
	defer a.timer.Stop()
	select {
	case <-a.ready:
		return true
	case <-a.timer.C:
		return false
	}
}
