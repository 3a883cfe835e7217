package account

import (
	"encoding/base64"
	"time"
)

// Limits on credentials of a person.
const (
	MaxPasskeys    = 20
	MaxConnections = 20
	// MaxConnectionName is the length of a Connection's Name in characters.
	MaxConnectionName = 200
)

// Credentials are the ways in and factors of a user beside password, address and number. The zero
// value is none.
type Credentials struct {
	// Handle is the user handle of WebAuthn: 32 random bytes, unique; nil = there was no passkey yet.
	Handle   []byte    `json:"handle,omitempty"`
	Passkeys []Passkey `json:"passkeys,omitempty"`
	// PasskeyOffered is when the person was last offered to add a passkey; zero = never.
	PasskeyOffered time.Time `json:"passkey_offered,omitzero"`

	Authenticator *Authenticator `json:"authenticator,omitempty"`
	RecoveryCodes [][]byte       `json:"recovery_codes,omitempty"` // SHA-256 of each unused one
	Connections   []Connection   `json:"connections,omitempty"`
}

// Passkey is a WebAuthn credential.
type Passkey struct {
	ID             []byte    `json:"id"`
	PublicKey      []byte    `json:"public_key"` // COSE
	Counter        uint32    `json:"counter,omitempty"`
	Transports     []string  `json:"transports,omitempty"`
	BackupEligible bool      `json:"backup_eligible,omitempty"` // it may be copied to other devices
	BackedUp       bool      `json:"backed_up,omitempty"`
	AAGUID         []byte    `json:"aaguid,omitempty"` // the model of the authenticator
	SignsIn        bool      `json:"signs_in"`         // false = without user verification: a second factor only
	Name           string    `json:"name"`             // 1 to 60 characters
	Created        time.Time `json:"created"`
	Used           time.Time `json:"used,omitzero"`
}

// Authenticator is an authenticator app (RFC 6238).
type Authenticator struct {
	Secret  []byte    `json:"secret"` // sealed
	Created time.Time `json:"created"`
	Step    int64     `json:"step"` // the last one that was used, in units of 30 s since 1970
}

// Connection is an account at another provider that signs in to this one.
type Connection struct {
	Issuer  string `json:"issuer"`  // URL of the provider
	Subject string `json:"subject"` // the provider's ID of the person
	Name    string `json:"name"`    // by which the person knows the account there, such as its address
	// Groups are those here that the provider's groups stood for at the last sign-in with it, sorted. The
	// person is a member of those that exist, until the provider maps to others: see User.Mapped.
	Groups  []string  `json:"groups,omitempty"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
}

// Way returns the way in that a passkey is.
func (p *Passkey) Way() Way {
	return Way(passkeyPrefix + base64.RawURLEncoding.EncodeToString(p.ID))
}

// Way returns the way in that a connection is.
func (c *Connection) Way() Way { return Way("connection " + c.Issuer + " " + c.Subject) }
