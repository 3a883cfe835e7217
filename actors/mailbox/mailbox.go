// Package mailbox runs protoactor-go actors on the goroutines of those who send to them.
//
// It is the one kernel of the services: a mailbox that bounds the asks that wait, ask and tell,
// recovery from panics, and a count of the requests in flight. It knows nothing of what the
// messages mean.
//
// An actor here never blocks. So its messages need no goroutine of their own: the sender that finds
// the actor idle runs it, one message at a time, and the messages that others send meanwhile wait
// in a queue. Actors that wait for I/O use the library's own mailbox instead.
package mailbox

import (
	"errors"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Limit is how many asks may wait for one actor.
const Limit = 4096

// foreignLimit is how many messages of others a sender delivers before it leaves the rest to a
// goroutine, so that no sender is held for long.
const foreignLimit = 64

// Why an ask was not handled.
var (
	// ErrFull says that Limit asks wait for the actor already.
	ErrFull = errors.New("too many requests wait for the actor")
	// ErrStopped says that the actor, or the service, has stopped.
	ErrStopped = errors.New("stopped")
	// ErrPanicked says that the actor panicked. It goes on with the next message and keeps its
	// state.
	ErrPanicked = errors.New("the actor panicked")
)

// Actor is an actor with a Mailbox, which it embeds.
//
// Asks are handled by Handle, all other messages by Receive. Both are called one at a time. An ask
// does not pass through the library's context: with many actors, a request waits for memory more
// than for anything else, and the context would be two cache lines more.
type Actor interface {
	actor.Actor
	// Handle handles the message of an Ask. It must not block.
	Handle(message any)
	// Self returns the embedded Mailbox, which implements it.
	Self() *Mailbox
}

// Mailbox is the queue of one actor, which embeds it. Its methods may be called by many goroutines,
// also by the actor itself, but an actor that asks itself waits for ever.
//
// The lock guards the queue and is never held while the actor runs.
type Mailbox struct {
	mu      sync.Mutex
	running bool // a goroutine runs the actor
	stopped bool
	asks    int32 // that wait
	actor   Actor
	spawner *Spawner
	invoker actor.MessageInvoker
	first   *envelope // those that wait, in their order
	last    *envelope
}

// envelope is a message that waits.
type envelope struct {
	next    *envelope
	message any
	kind    kind
	handled chan error // receives the end of an ask; holds one
}

// kind is how a message is delivered.
type kind uint8

const (
	ask    kind = iota // somebody waits until it is handled
	tell               // nobody waits
	system             // of the library, and nobody waits
)

// Ask returns once the actor has handled message, with its reply in the message's own fields.
// Afterwards nobody but the caller holds message. The error is ErrFull, ErrStopped or ErrPanicked.
func (m *Mailbox) Ask(message any) error {
	m.mu.Lock()
	switch {
	case m.stopped:
		m.mu.Unlock()
		return ErrStopped
	case !m.running:
		m.running = true
		m.mu.Unlock()
		err := m.deliver(message, ask)
		m.drain()
		return err
	case m.asks >= Limit:
		m.mu.Unlock()
		m.spawner.full()
		return ErrFull
	}
	e := m.enqueue(message, ask)
	m.asks++
	m.mu.Unlock()
	err := <-e.handled
	m.spawner.envelopes.Put(e)
	return err
}

// Tell delivers message, possibly after it returns. Messages of one sender keep their order. An
// actor that has stopped drops them.
func (m *Mailbox) Tell(message any) { m.post(message, tell) }

func (m *Mailbox) post(message any, kind kind) {
	m.mu.Lock()
	if m.running {
		m.enqueue(message, kind)
		m.mu.Unlock()
		return
	}
	m.running = true
	m.mu.Unlock()
	m.deliver(message, kind) // a panic is reported, and nobody waits
	m.drain()
}

// enqueue puts a message into the queue. The mailbox is locked.
func (m *Mailbox) enqueue(message any, kind kind) *envelope {
	e := m.spawner.envelopes.Get().(*envelope)
	e.message, e.kind = message, kind
	m.push(e)
	return e
}

// push appends e to the queue. The mailbox is locked.
func (m *Mailbox) push(e *envelope) {
	e.next = nil
	if m.last == nil {
		m.first = e
	} else {
		m.last.next = e
	}
	m.last = e
}

// drain delivers what waits, up to foreignLimit messages, and leaves the rest to a goroutine. The
// caller runs the actor.
func (m *Mailbox) drain() {
	for range foreignLimit {
		if !m.step() {
			return
		}
	}
	go func() {
		for m.step() {
		}
	}()
}

// step delivers the message that waits for longest, or ends the run and returns false.
func (m *Mailbox) step() bool {
	m.mu.Lock()
	e := m.first
	if e == nil {
		m.running = false
		m.mu.Unlock()
		return false
	}
	if m.first = e.next; m.first == nil {
		m.last = nil
	}
	if e.kind == ask {
		m.asks--
	}
	m.mu.Unlock()
	message, kind := e.message, e.kind
	e.message = nil
	err := m.deliver(message, kind)
	if kind == ask {
		e.handled <- err
	} else {
		m.spawner.envelopes.Put(e)
	}
	return true
}

// deliver runs the actor with one message.
func (m *Mailbox) deliver(message any, kind kind) (err error) {
	defer func() {
		if recover() != nil {
			m.spawner.panicked()
			err = ErrPanicked
		}
	}()
	switch kind {
	case ask:
		m.actor.Handle(message)
	case tell:
		m.invoker.InvokeUserMessage(message)
	default:
		m.invoker.InvokeSystemMessage(message)
	}
	return nil
}

// Self implements Actor.
func (m *Mailbox) Self() *Mailbox { return m }

// Stop ends the actor. No ask is handled after it but the one under way; those that wait get
// ErrStopped.
func (m *Mailbox) Stop() { m.spawner.root.Stop(m.PID()) }

// PID returns the actor's address in the library.
func (m *Mailbox) PID() *actor.PID { return m.invoker.(actor.Context).Self() }

// refuse ends the asks that wait, and all to come, with ErrStopped.
func (m *Mailbox) refuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	waiting := m.first
	m.first, m.last, m.asks = nil, nil, 0
	for waiting != nil {
		e := waiting
		waiting = e.next
		if e.kind == ask {
			e.message = nil
			e.handled <- ErrStopped
		} else {
			m.push(e)
		}
	}
}

// PostUserMessage implements actor.Mailbox.
func (m *Mailbox) PostUserMessage(message any) { m.post(message, tell) }

// PostSystemMessage implements actor.Mailbox.
func (m *Mailbox) PostSystemMessage(message any) {
	if _, ok := message.(*actor.Stop); ok {
		m.refuse()
	}
	m.post(message, system)
}

// RegisterHandlers implements actor.Mailbox. The dispatcher has nothing to do: senders run the
// actor.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start implements actor.Mailbox.
func (m *Mailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *Mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.asks)
}
