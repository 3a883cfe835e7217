package account

import (
	"context"
	"slices"
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
	ProofCode    Kind = "proof_code"    // proves to be the user, before a change of credentials
	FactorCode   Kind = "factor_code"   // allows to enter the second factor in an unknown browser
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
	// ManyAttempts: somebody entered many wrong passwords of the account.
	ManyAttempts Kind = "many_attempts"
	// ManyFactorAttempts: somebody who knows the password entered many wrong codes of the second
	// factor.
	ManyFactorAttempts Kind = "many_factor_attempts"
)

// Notices: messages about a change of an account, with the link of the Message. They go to all its
// channels, old and new ones.
const (
	// AddressLeft: the account of this address or number has left it. Its link restores it.
	AddressLeft           Kind = "address_left"
	PasswordChanged       Kind = "password_changed"
	PasswordSet           Kind = "password_set" // the first one
	PasswordRecovered     Kind = "password_recovered"
	EmailAdded            Kind = "email_added"
	EmailChanged          Kind = "email_changed"
	EmailRemoved          Kind = "email_removed"
	PhoneAdded            Kind = "phone_added"
	PhoneChanged          Kind = "phone_changed"
	PhoneRemoved          Kind = "phone_removed"
	PhoneSignInAllowed    Kind = "phone_sign_in_allowed"
	PhoneSignInEnded      Kind = "phone_sign_in_ended"
	AuthenticatorAdded    Kind = "authenticator_added"
	AuthenticatorRemoved  Kind = "authenticator_removed"
	RecoveryCodesReplaced Kind = "recovery_codes_replaced"
	SecurityKeyAdded      Kind = "security_key_added" // it only is a second factor
	SecurityKeyRemoved    Kind = "security_key_removed"
	ChangeUndone          Kind = "change_undone"
	ConnectionAdded       Kind = "connection_added" // to an account at another provider
	ConnectionRemoved     Kind = "connection_removed"
	NewBrowser            Kind = "new_browser" // a sign-in from a browser that is not known
	PasskeyAdded          Kind = "passkey_added"
	PasskeyRemoved        Kind = "passkey_removed"
	PasskeyRefused        Kind = "passkey_refused" // its counter has fallen back
	AccountDeleted        Kind = "account_deleted"
)

// InvitationSent is the kind of a message with the link of an invitation.
const InvitationSent Kind = "invitation"

// Notices are the kinds of notices.
var Notices = []Kind{
	AddressLeft, PasswordChanged, PasswordSet, PasswordRecovered, EmailAdded, EmailChanged,
	EmailRemoved, PhoneAdded, PhoneChanged, PhoneRemoved, PhoneSignInAllowed, PhoneSignInEnded,
	AuthenticatorAdded, AuthenticatorRemoved, RecoveryCodesReplaced, ChangeUndone, NewBrowser,
	AccountDeleted, PasskeyAdded, PasskeyRemoved, PasskeyRefused,
	ConnectionAdded, ConnectionRemoved, SecurityKeyAdded, SecurityKeyRemoved,
}

// HasCode reports whether messages of the kind carry a code.
func (k Kind) HasCode() bool {
	return k != AccountExists && k != NoAccount && k != ManyAttempts && k != ManyFactorAttempts &&
		k != InvitationSent && !slices.Contains(Notices, k)
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
	// Language is that of the recipient (BCP 47); "" = the service's.
	Language string
	Trace    string // of the request that caused it (package trace); "" = none
	// Browser is where the message was caused: browser, system and place (texts.DeviceNear); "" =
	// unknown.
	Browser string
	App     string // what pages call the app that the code is for; "" = none

	// The fields below are those of notices and invitations.
	Link       string    // URL; "" = none
	At         time.Time // of the last change that it is about
	Count      int       // changes that it is about
	ByOperator bool      // an operator made it
}

// CodeSender sends messages to people. Its methods may be called by many goroutines.
type CodeSender interface {
	// Send returns nil once the next system has accepted the message for delivery. Its error
	// contains neither the code nor the address.
	Send(ctx context.Context, m Message) error
}
