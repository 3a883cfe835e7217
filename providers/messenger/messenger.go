// Package messenger sends codes and notices to people: by a signed webhook, which can connect any
// messaging service, by e-mail over SMTP, or for development to the log.
package messenger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"strings"

	"gatehouse/actors/account"
	"gatehouse/actors/brand"
	"gatehouse/actors/texts"
	"gatehouse/providers/messenger/webhook"
)

// Config configures a Messenger. It is printed without the Secret and the Targets.
type Config struct {
	Targets []Target // the first one that serves a channel gets its messages; optional
	// Secret is the key of the webhook signatures, at least webhook.MinSecret bytes; required with a
	// webhook.
	Secret string `json:"-"`
	// From is the sender of e-mails, such as "Atlas <no-reply@example.com>"; required with an SMTP
	// target.
	From  string
	Brand brand.Brand // whose messages these are, with Name and Host; required
	// Languages are those of messages; nil = texts.Default.
	Languages *texts.Set
	Logger    *slog.Logger // for the target log; required
}

// composer returns what writes the messages.
func (c Config) composer() composer {
	host, _, _ := strings.Cut(c.Brand.Host, ":")
	return composer{c.Brand.Name, host, cmp.Or(c.Languages, texts.Default())}
}

// Format prints c without secrets, for every verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "messenger.Config(%s)", c.Brand.Host) }

// Messenger is an account.CodeSender. It may be used by many goroutines.
type Messenger struct {
	senders map[account.Channel]account.CodeSender
	close   []func()
}

// New returns a Messenger; close it after use. The error says in one line what is wrong with
// config. It contains no secret.
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
		return &logSender{config.Logger}, nil
	case t.IsWebhook():
		if len(config.Secret) < webhook.MinSecret {
			return nil, fmt.Errorf("a webhook needs a secret of at least %d characters", webhook.MinSecret)
		}
		w := newWebhook(t.url.String(), config.Secret, config)
		m.close = append(m.close, w.Close)
		return w, nil
	case t.IsMail():
		from, err := ParseSender(config.From)
		if err != nil {
			return nil, fmt.Errorf("the sender of e-mails %w", err)
		}
		return newMailer(t, from, config), nil
	}
	return nil, errors.New("a messenger without a target")
}

// ParseSender parses the sender of e-mails. Its error continues a sentence that begins with the
// setting's name.
func ParseSender(text string) (*mail.Address, error) {
	address, err := mail.ParseAddress(text)
	if err != nil {
		return nil,
			errors.New("must be an e-mail address such as no-reply@example.com or Atlas <no-reply@example.com>")
	}
	return address, nil
}

// Channels returns the channels that have a target.
func (m *Messenger) Channels() account.Channels {
	_, sms := m.senders[account.SMS]
	_, email := m.senders[account.Email]
	return account.Channels{SMS: sms, Email: email}
}

// Send returns nil once the target has accepted the message. It retries until ctx ends. Its error
// contains no code, address or secret.
func (m *Messenger) Send(ctx context.Context, message account.Message) error {
	sender, ok := m.senders[message.Channel]
	if !ok {
		return fmt.Errorf("no messenger for %s", message.Channel)
	}
	return sender.Send(ctx, message)
}

// Close closes idle connections.
func (m *Messenger) Close() {
	for _, end := range m.close {
		end()
	}
}
