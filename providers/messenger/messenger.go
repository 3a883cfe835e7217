// Package messenger brings codes and notices to people: by a signed webhook behind which any messaging service can sit, by
// e-mail over SMTP, or, for trying things out, by the log.
package messenger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"

	"gatehouse/actors/account"
)

// MinSecret is how long the secret of webhooks must be, in bytes.
const MinSecret = 32

// Config says where messages go. The Secret and what is in the Targets are left out wherever it is printed.
type Config struct {
	Targets []Target     // the first that serves a channel gets its messages; none = nobody can be reached
	Secret  string       `json:"-"` // key of the signatures of webhooks, MinSecret bytes at least; required with one
	From    string       // e-mail address, with a name if wanted ("Atlas <no-reply@example.com>"); required with an SMTP target
	Service string       // what people know the service by: its host, which may have a port; required
	Logger  *slog.Logger // for the target log; required
}

// Format prints c without secrets, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "messenger.Config(%s)", c.Service) }

// Messenger is an account.CodeSender. It may be used by many goroutines.
type Messenger struct {
	senders map[account.Channel]account.CodeSender
	close   []func()
}

// New returns a Messenger. Close ends it. The error says in one line what is wrong with config, without a secret.
func New(config Config) (*Messenger, error) {
	m := &Messenger{senders: map[account.Channel]account.CodeSender{}}
	for _, t := range config.Targets {
		sender, err := m.open(t, config)
		if err != nil {
			m.Close()
			return nil, err
		}
		for _, channel := range []account.Channel{account.SMS, account.Email} {
			if _, taken := m.senders[channel]; t.serves.Has(channel) && !taken {
				m.senders[channel] = sender
			}
		}
	}
	return m, nil
}

func (m *Messenger) open(t Target, config Config) (account.CodeSender, error) {
	switch {
	case t.IsLog():
		return &journal{config.Logger}, nil
	case t.IsWebhook():
		if len(config.Secret) < MinSecret {
			return nil, fmt.Errorf("a webhook needs a secret of at least %d characters", MinSecret)
		}
		w := newWebhook(t.url.String(), config.Secret, config.Service)
		m.close = append(m.close, w.close)
		return w, nil
	case t.IsMail():
		from, err := ParseSender(config.From)
		if err != nil {
			return nil, fmt.Errorf("the sender of e-mails %w", err)
		}
		return newPost(t, from, config.Service), nil
	}
	return nil, errors.New("a messenger without a target")
}

// ParseSender reads the address that e-mails are from. Its error is one sentence that goes on after the setting's name.
func ParseSender(text string) (*mail.Address, error) {
	address, err := mail.ParseAddress(text)
	if err != nil {
		return nil, errors.New("must be an e-mail address such as no-reply@example.com or Atlas <no-reply@example.com>")
	}
	return address, nil
}

// Channels returns the channels by which people can be reached.
func (m *Messenger) Channels() account.Channels {
	_, sms := m.senders[account.SMS]
	_, email := m.senders[account.Email]
	return account.Channels{SMS: sms, Email: email}
}

// Send returns nil when whoever delivers the message has taken it over. Its error holds neither the code nor the address nor
// a secret. It tries as long as ctx lasts, and not longer.
func (m *Messenger) Send(ctx context.Context, message account.Message) error {
	sender, ok := m.senders[message.Channel]
	if !ok {
		return fmt.Errorf("no messenger for %s", message.Channel)
	}
	return sender.Send(ctx, message)
}

// Close closes the connections that are idle.
func (m *Messenger) Close() {
	for _, end := range m.close {
		end()
	}
}
