package account

import (
	"context"
	"strings"
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

// String returns the names of the channels, divided by a comma.
func (c Channels) String() string {
	var names []string
	for _, channel := range []Channel{SMS, Email} {
		if c.Has(channel) {
			names = append(names, string(channel))
		}
	}
	return strings.Join(names, ",")
}

// Kind says what a message tells.
type Kind string

// The kinds of messages.
const (
	RegisterCode  Kind = "register_code"  // the code that makes an account
	PhoneCode     Kind = "phone_code"     // the code that signs in by phone number, or makes an account
	ResetCode     Kind = "reset_code"     // the code that allows a new password
	ChangeCode    Kind = "change_code"    // the code that makes an address or number that of an account
	AccountExists Kind = "account_exists" // somebody wanted to register or use an address or number that has an account; no code
	NoAccount     Kind = "no_account"     // somebody wanted a new password for an address that has no account; no code
	AddressLeft   Kind = "address_left"   // an account has another address or number in the place of this one; no code
)

// HasCode reports whether messages of the kind carry a code.
func (k Kind) HasCode() bool { return k != AccountExists && k != NoAccount && k != AddressLeft }

// Message is what a person is told outside of the browser.
type Message struct {
	Channel Channel
	To      string // e-mail address, or E.164 number
	Kind    Kind
	Code    string // 6 digits; "" unless Kind.HasCode
}

// CodeSender brings messages to people. Its methods may be called by many goroutines.
type CodeSender interface {
	// Send returns nil when a message was taken over by whoever delivers it. Its error holds neither the code nor the address.
	Send(ctx context.Context, m Message) error
}
