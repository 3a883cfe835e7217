package account

import (
	"context"
	"strings"
	"time"
)

// Channel is a way to reach a person.
type Channel string

// The channels.
const (
	SMS   Channel = "sms"
	Email Channel = "email"
)

// Channels is a set of channels. The zero value is the empty set.
type Channels struct {
	SMS   bool
	Email bool
}

// Has reports whether channel is in the set.
func (c Channels) Has(channel Channel) bool {
	return channel == SMS && c.SMS || channel == Email && c.Email
}

// String returns the names of the channels, separated by commas.
func (c Channels) String() string {
	var names []string
	for _, channel := range []Channel{SMS, Email} {
		if c.Has(channel) {
			names = append(names, string(channel))
		}
	}
	return strings.Join(names, ",")
}

// Kind is the kind of a message.
type Kind string

// The kinds of messages that carry a code.
const (
	RegisterCode Kind = "register_code" // creates an account
	PhoneCode    Kind = "phone_code"    // signs in by phone number, or creates an account
	ResetCode    Kind = "reset_code"    // allows a new password
	ChangeCode   Kind = "change_code"   // confirms an account's new address or number
	BrowserCode  Kind = "browser_code"  // makes a browser known to an account
	// LongCode is the last message of a day, in place of another. Its code serves every purpose.
	LongCode Kind = "long_code"
)

// The kinds of messages without a code.
const (
	// AccountExists: somebody tried to register, or to use, the address or number of an account.
	AccountExists Kind = "account_exists"
	// NoAccount: somebody requested a new password, or tried to sign in often, at an address that has
	// no account.
	NoAccount Kind = "no_account"
	// AddressLeft: the account of this address or number was changed to another one.
	AddressLeft Kind = "address_left"
	// ManyAttempts: somebody entered many wrong passwords of the account.
	ManyAttempts Kind = "many_attempts"
)

// HasCode reports whether messages of the kind carry a code.
func (k Kind) HasCode() bool {
	switch k {
	case AccountExists, NoAccount, AddressLeft, ManyAttempts:
		return false
	}
	return true
}

// Lifetime returns how long the code of a message is valid; 0 = it has none.
func (k Kind) Lifetime() time.Duration {
	switch {
	case k == LongCode:
		return LongCodeLifetime
	case k.HasCode():
		return CodeLifetime
	}
	return 0
}

// Message is sent to a person by e-mail or SMS.
type Message struct {
	Channel Channel
	To      string // e-mail address, or E.164 number
	Kind    Kind
	Code    string // 6 digits, or what NewLongCode returns; "" unless Kind.HasCode
}

// CodeSender sends messages to people. Its methods may be called by many goroutines.
type CodeSender interface {
	// Send returns nil once the next system has accepted the message for delivery. Its error
	// contains neither the code nor the address.
	Send(ctx context.Context, m Message) error
}
