package stacktest

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
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

// Next returns the first message to an address that it has not returned before, and that is no
// notice. It waits for up to five minutes.
func (m *Mailbox) Next(t testing.TB, to string) account.Message {
	t.Helper()
	return m.next(t, to, func(kind account.Kind) bool { return !slices.Contains(account.Notices, kind) })
}

// Notice is Next for a notice of that kind.
func (m *Mailbox) Notice(t testing.TB, to string, kind account.Kind) account.Message {
	t.Helper()
	return m.next(t, to, func(k account.Kind) bool { return k == kind })
}

func (m *Mailbox) next(t testing.TB, to string, fits func(account.Kind) bool) account.Message {
	t.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		message, sent, ok := m.take(to, fits)
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

func (m *Mailbox) take(to string, fits func(account.Kind) bool) (
	account.Message, chan struct{}, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, message := range m.all {
		if message.To == to && fits(message.Kind) {
			m.all = append(m.all[:i:i], m.all[i+1:]...)
			return message, nil, true
		}
	}
	return account.Message{}, m.sent, false
}

// Count returns the number of messages that Next has not returned, without notices.
func (m *Mailbox) Count() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range m.all {
		if !slices.Contains(account.Notices, message.Kind) {
			n++
		}
	}
	return n
}

// Noticed returns the notices that Notice has not returned, by their recipients.
func (m *Mailbox) Noticed() map[string][]account.Kind {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string][]account.Kind{}
	for _, message := range m.all {
		if slices.Contains(account.Notices, message.Kind) {
			all[message.To] = append(all[message.To], message.Kind)
		}
	}
	return all
}

// Reachable is a service whose messages go to a Mailbox.
type Reachable struct {
	*IdentityStack
	Mail *Mailbox
}

// NewReachable is NewIdentity with a Mailbox.
func NewReachable(t *testing.T, options ...Option) Reachable {
	t.Helper()
	mail := NewMailbox()
	return Reachable{NewIdentity(t, append([]Option{mail.Deliver}, options...)...), mail}
}

// PlantChallenge stores a challenge of the code 246810 as if it had been begun a minute ago, and
// gives the browser its token. change may change it.
func (st Reachable) PlantChallenge(t *testing.T, b *Browser,
	change func(*account.Challenge)) string {
	t.Helper()
	hash := st.Hasher.Hash("246810")
	token, at := account.NewSecret(), time.Now().Add(-time.Minute)
	c := &account.Challenge{Hash: oauth.HashOf(token), Purpose: account.ForRegistration,
		Channel: account.Email, Address: "Ida@example.com", Name: "Ida",
		PasswordHash: hash, Message: account.RegisterCode, Ends: at.Add(account.ChallengeLifetime)}
	c.Renew(hash, at)
	change(c)
	if _, err := st.Store.CreateChallenge(t.Context(), c, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	b.Client.Jar.SetCookies(nil, []*http.Cookie{{Name: "gatehouse-code", Value: token}})
	return token
}

// WrongCode returns 6 digits that are not the code.
func WrongCode(code string) string {
	if code == "123456" {
		return "654321"
	}
	return "123456"
}
