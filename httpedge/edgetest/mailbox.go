package edgetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack"
)

// Mailbox is the messenger of a test: it keeps what people are sent by either channel. Its methods may be called by many
// goroutines.
type Mailbox struct {
	mu   sync.Mutex
	all  []account.Message
	came chan struct{} // closed and replaced with each message
}

// NewMailbox returns an empty Mailbox.
func NewMailbox() *Mailbox { return &Mailbox{came: make(chan struct{})} }

// Deliver is an Option: the service sends its messages here.
func (m *Mailbox) Deliver(c *stack.Config) {
	c.Identity.Sender, c.Identity.Channels = m, account.Channels{SMS: true, Email: true}
}

// Send implements account.CodeSender.
func (m *Mailbox) Send(_ context.Context, message account.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, message)
	close(m.came)
	m.came = make(chan struct{})
	return nil
}

// Next returns the first message to an address that was not returned before. It
// waits for it, for five minutes at most.
func (m *Mailbox) Next(t testing.TB, to string) account.Message {
	t.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		message, came, ok := m.take(to)
		if ok {
			return message
		}
		select {
		case <-came:
		case <-timeout:
			t.Fatalf("got no message to %s", to)
		}
	}
}

func (m *Mailbox) take(to string) (account.Message, chan struct{}, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, message := range m.all {
		if message.To == to {
			m.all = append(m.all[:i:i], m.all[i+1:]...)
			return message, nil, true
		}
	}
	return account.Message{}, m.came, false
}

// Count returns how many messages are left that Next has not returned.
func (m *Mailbox) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}
