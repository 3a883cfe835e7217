package stacktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack"
)

// Mailbox is a messenger for tests. It holds the messages of both channels. It is safe for
// concurrent use.
type Mailbox struct {
	mu   sync.Mutex
	all  []account.Message
	sent chan struct{} // closed and replaced with each message
}

// NewMailbox returns an empty Mailbox.
func NewMailbox() *Mailbox { return &Mailbox{sent: make(chan struct{})} }

// Deliver is an Option: the service sends its messages here.
func (m *Mailbox) Deliver(c *stack.Config) {
	c.Identity.Sender, c.Identity.Channels = m, account.Channels{SMS: true, Email: true}
}

// Send implements account.CodeSender.
func (m *Mailbox) Send(_ context.Context, message account.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, message)
	close(m.sent)
	m.sent = make(chan struct{})
	return nil
}

// Next returns the first message to an address that it has not returned before. It waits for up to
// five minutes.
func (m *Mailbox) Next(t testing.TB, to string) account.Message {
	t.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		message, sent, ok := m.take(to)
		if ok {
			return message
		}
		select {
		case <-sent:
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
	return account.Message{}, m.sent, false
}

// Count returns the number of messages that Next has not returned.
func (m *Mailbox) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}
