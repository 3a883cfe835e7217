package actors

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// rejecter is a message somebody waits for: a mailbox that cannot deliver it says so at once.
type rejecter interface{ reject() }

// mailbox is a bounded mailbox of an actor. Messages that can be rejected are, when limit of any kind wait, when the
// actor has stopped and when it panics over them; so no asker waits for an answer that cannot come. All others, which the actors
// send each other in numbers that their design bounds, are always taken.
type queueMailbox struct {
	limit    int
	rejected *atomic.Uint64 // counts the messages rejected because the mailbox was full

	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher

	mu        sync.Mutex
	system    []any
	user      ring
	running   bool
	suspended bool
	stopped   bool
}

// bounded returns a producer of mailboxes that hold limit messages.
func bounded(limit int, rejected *atomic.Uint64) actor.MailboxProducer {
	return func() actor.Mailbox { return &queueMailbox{limit: limit, rejected: rejected} }
}

// PostUserMessage implements actor.Mailbox.
func (m *queueMailbox) PostUserMessage(message any) {
	m.mu.Lock()
	if r, ok := message.(rejecter); ok && (m.stopped || m.user.n >= m.limit) {
		if !m.stopped {
			m.rejected.Add(1)
		}
		m.mu.Unlock()
		r.reject()
		return
	}
	m.user.push(message)
	m.schedule()
}

// PostSystemMessage implements actor.Mailbox.
func (m *queueMailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.system = append(m.system, message)
	m.schedule()
}

// schedule starts the run that delivers what waits, unless one is under way. It unlocks the mailbox.
func (m *queueMailbox) schedule() {
	start := !m.running
	m.running = true
	m.mu.Unlock()
	if start {
		m.dispatcher.Schedule(m.run)
	}
}

// RegisterHandlers implements actor.Mailbox.
func (m *queueMailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
}

// Start implements actor.Mailbox.
func (m *queueMailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *queueMailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.user.n
}

// run delivers what waits, one message at a time, system messages first.
func (m *queueMailbox) run() {
	for {
		message, system := m.next()
		if message == nil {
			return
		}
		m.deliver(message, system)
	}
}

// next takes the next message out, or ends the run when there is none.
func (m *queueMailbox) next() (message any, system bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.system) > 0 {
		message = m.system[0]
		m.system = m.system[1:]
		return message, true
	}
	if !m.suspended && m.user.n > 0 {
		return m.user.pop(), false
	}
	m.running = false
	return nil, false
}

func (m *queueMailbox) deliver(message any, system bool) {
	defer func() {
		if reason := recover(); reason != nil {
			if r, ok := message.(rejecter); ok {
				r.reject()
			}
			m.invoker.EscalateFailure(reason, message)
		}
	}()
	if !system {
		m.invoker.InvokeUserMessage(message)
		return
	}
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.suspend(false)
	case *actor.Stop:
		m.close()
		m.invoker.InvokeSystemMessage(message)
	default:
		m.invoker.InvokeSystemMessage(message)
	}
}

func (m *queueMailbox) suspend(suspended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspended = suspended
}

// close rejects what waits and whatever comes from now on.
func (m *queueMailbox) close() {
	m.mu.Lock()
	m.stopped = true
	waiting := m.user
	m.user = ring{}
	m.mu.Unlock()
	for waiting.n > 0 {
		if r, ok := waiting.pop().(rejecter); ok {
			r.reject()
		}
	}
}

// ring is a queue of messages that grows as needed.
type ring struct {
	buffer []any
	head   int
	n      int
}

func (r *ring) push(message any) {
	if r.n == len(r.buffer) {
		r.grow()
	}
	r.buffer[(r.head+r.n)%len(r.buffer)] = message
	r.n++
}

func (r *ring) pop() any {
	message := r.buffer[r.head]
	r.buffer[r.head] = nil
	r.head = (r.head + 1) % len(r.buffer)
	r.n--
	return message
}

func (r *ring) grow() {
	grown := make([]any, max(8, 2*len(r.buffer)))
	n := copy(grown, r.buffer[r.head:])
	copy(grown[n:], r.buffer[:r.head])
	r.buffer, r.head = grown, 0
}
