package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

const (
	callsWaiting = 1024 // asks that may wait for one actor
	callsForeign = 64   // messages of others that a caller delivers before it hands the rest to a goroutine
)

// callMailbox is the mailbox of an actor that never blocks: who sends a message runs the actor on the own goroutine, still one
// message at a time. Asks are rejected when too many wait, when the actor is told to stop and when it panics over them, which it
// survives with its state. Other messages are always taken. It is ready once calls is set and RegisterHandlers was called.
type callMailbox struct {
	calls   *callPolicy
	invoker actor.MessageInvoker
	actor   *limitActor // its turn guards what follows

	first   *admitAsk // those that wait, in a chain
	last    *admitAsk
	others  *otherMessage // delivered before them
	waiting int32
}

// callTurn says whether somebody runs an actor. It is the part of a mailbox that every request needs, and lies with the actor's state,
// which every request needs as well.
type callTurn struct {
	mu      sync.Mutex
	running bool
	stopped bool
}

// callPolicy is what the mailboxes of many actors share.
type callPolicy struct {
	full     func() // called when an ask is refused because too many wait
	panicked func() // called on the goroutine that panicked, before its stack is gone
}

// introduction asks a mailbox for its actor. It is answered when the sender goes on, and the actor does not hear of it.
type introduction struct{ actor *limitActor }

// otherMessage is a message that is no ask, in a chain.
type otherMessage struct {
	next    *otherMessage
	message any
	system  bool
}

// PostUserMessage implements actor.Mailbox.
func (m *callMailbox) PostUserMessage(message any) {
	switch message := message.(type) {
	case *admitAsk:
		m.postAsk(message)
	case *introduction:
		message.actor = m.actor
	default:
		m.post(&otherMessage{message: message})
	}
}

// postAsk has an ask answered, possibly after it returns.
func (m *callMailbox) postAsk(ask *admitAsk) {
	turn := &m.actor.turn
	turn.mu.Lock()
	switch {
	case turn.stopped:
		turn.mu.Unlock()
		ask.reject()
	case m.waiting >= callsWaiting:
		turn.mu.Unlock()
		m.calls.full()
		ask.answer(askReply{outcome: askFailed})
	case turn.running:
		m.push(ask)
		turn.mu.Unlock()
	default:
		turn.running = true
		turn.mu.Unlock()
		m.deliver(ask)
		m.run()
	}
}

// PostSystemMessage implements actor.Mailbox. From a stop message on, no ask is answered but the one being looked at.
func (m *callMailbox) PostSystemMessage(message any) {
	if _, ok := message.(*actor.Stop); ok {
		m.close()
	}
	m.post(&otherMessage{message: message, system: true})
}

// post queues a message behind the others and delivers it, unless somebody else does.
func (m *callMailbox) post(o *otherMessage) {
	turn := &m.actor.turn
	turn.mu.Lock()
	end := &m.others
	for *end != nil {
		end = &(*end).next
	}
	*end = o
	start := !turn.running
	turn.running = true
	turn.mu.Unlock()
	if start {
		m.run()
	}
}

// push queues an ask. The mailbox is locked.
func (m *callMailbox) push(ask *admitAsk) {
	if m.last == nil {
		m.first = ask
	} else {
		m.last.next = ask
	}
	m.last = ask
	m.waiting++
}

// run delivers what waits, up to callsForeign messages, and then leaves the rest to a goroutine.
func (m *callMailbox) run() {
	for range callsForeign {
		if !m.step() {
			return
		}
	}
	go func() {
		for m.step() {
		}
	}()
}

// step delivers one message and reports false when none waits.
func (m *callMailbox) step() bool {
	other, ask := m.next()
	switch {
	case other != nil:
		m.deliverOther(other)
	case ask != nil:
		m.deliver(ask)
	default:
		return false
	}
	return true
}

// next takes the next message out, or ends the run when there is none.
func (m *callMailbox) next() (*otherMessage, *admitAsk) {
	turn := &m.actor.turn
	turn.mu.Lock()
	defer turn.mu.Unlock()
	if other := m.others; other != nil {
		m.others = other.next
		return other, nil
	}
	ask := m.first
	if ask == nil {
		turn.running = false
		return nil, nil
	}
	if m.first = ask.next; m.first == nil {
		m.last = nil
	}
	m.waiting--
	ask.next = nil
	return nil, ask
}

// deliver runs the actor with an ask. The actor answers as its last act, so that one it panics over has no answer yet.
func (m *callMailbox) deliver(ask *admitAsk) {
	defer func() {
		if reason := recover(); reason != nil {
			m.calls.panicked()
			ask.answer(askReply{outcome: askFailed})
		}
	}()
	m.invoker.InvokeUserMessage(ask)
}

func (m *callMailbox) deliverOther(o *otherMessage) {
	defer func() {
		if reason := recover(); reason != nil {
			m.calls.panicked()
		}
	}()
	if o.system {
		m.invoker.InvokeSystemMessage(o.message)
		return
	}
	m.invoker.InvokeUserMessage(o.message)
}

// close rejects the asks that wait and all that come from now on.
func (m *callMailbox) close() {
	turn := &m.actor.turn
	turn.mu.Lock()
	turn.stopped = true
	ask := m.first
	m.first, m.last, m.waiting = nil, nil, 0
	turn.mu.Unlock()
	for ask != nil {
		next := ask.next
		ask.next = nil // it may be asked again as soon as it is rejected
		ask.reject()
		ask = next
	}
}

// RegisterHandlers implements actor.Mailbox. The dispatcher has nothing to do: it is the caller who runs.
func (m *callMailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
	if ctx, ok := invoker.(actor.Context); ok {
		m.actor = ctx.Actor().(*limitActor)
		m.actor.mailbox = m
	}
}

// self returns the PID of the actor.
func (m *callMailbox) self() *actor.PID { return m.invoker.(actor.Context).Self() }

// Start implements actor.Mailbox.
func (m *callMailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *callMailbox) UserMessageCount() int {
	m.actor.turn.mu.Lock()
	defer m.actor.turn.mu.Unlock()
	return int(m.waiting)
}
