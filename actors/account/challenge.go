package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Lifetimes and limits of a code that is sent to a person.
const (
	CodeLifetime      = 5 * time.Minute
	CodeTries         = 5              // attempts before another code is needed
	ChallengeLifetime = time.Hour      // during which another code may be requested
	SendsRemembered   = 24 * time.Hour // how long a code counts against its recipient's limits
)

// Limits on the codes sent to one e-mail address or phone number, regardless of their purpose.
const (
	SendInterval = 30 * time.Second // between two codes, unless the first was entered
	SendsPerHour = 5
	SendsPerDay  = 10
)

// Purpose is what a person does by entering a code.
type Purpose string

// The purposes.
const (
	ForRegistration Purpose = "registration" // create an account with e-mail address and password
	ForPhone        Purpose = "phone"        // sign in by phone number, or create an account
	ForReset        Purpose = "reset"        // choose a new password
	ForChange       Purpose = "change"       // change an account's e-mail address or phone number
	ForBrowser      Purpose = "browser"      // make a browser known to an account
)

// Challenge asks a person for a code, as the Store keeps it. A request about an account that does
// not exist gets one too, with a code that nobody knows, so that the response does not reveal it.
type Challenge struct {
	Hash         [32]byte // SHA-256 of the cookie's value
	Purpose      Purpose
	Channel      Channel
	Address      string // the e-mail address or E.164 number that the code was sent to
	UserID       int64  // whose password or address is changed; 0 = no user
	Name         string // the new user's name; "" = not asked yet
	PasswordHash string // the new user's
	Message      Kind   // kind of the message that is sent
	CodeHash     string // argon2id in PHC form
	Tries        int    // attempts so far, at most CodeTries
	Sent         time.Time
	Expires      time.Time // when the code expires
	Ends         time.Time // when the challenge ends

	Again time.Time // when another code may be sent; set by the Store
}

// Recipient returns a hash of the channel and address of c. Codes are counted by it.
func (c *Challenge) Recipient() [32]byte {
	return sha256.Sum256([]byte(string(c.Channel) + "\x00" + strings.ToLower(c.Address)))
}

// Renew prepares c for another code that is sent at now. The code expires at Ends at the latest.
func (c *Challenge) Renew(codeHash string, now time.Time) {
	c.CodeHash, c.Tries, c.Sent, c.Expires = codeHash, 0, now, now.Add(CodeLifetime)
	if c.Expires.After(c.Ends) {
		c.Expires = c.Ends
	}
}

// CodeSend records a code that was sent to a recipient, or a pretended one: they count alike.
type CodeSend struct {
	At      time.Time
	Entered bool // the recipient entered it
}

// NextSend returns when another code may be sent to a recipient of the codes in before, which may
// be in any order. The zero time means now.
func NextSend(before []CodeSend) time.Time {
	var next time.Time
	later := func(t time.Time) {
		if t.After(next) {
			next = t
		}
	}
	for _, send := range before {
		younger := 0 // sent at the same time or later, itself included
		last := true
		for _, other := range before {
			if !other.At.Before(send.At) {
				younger++
			}
			last = last && !other.At.After(send.At)
		}
		if last && !send.Entered {
			later(send.At.Add(SendInterval))
		}
		if younger >= SendsPerHour {
			later(send.At.Add(time.Hour))
		}
		if younger >= SendsPerDay {
			later(send.At.Add(SendsRemembered))
		}
	}
	return next
}

// SendLimitError is returned when no code may be sent to a recipient before Next.
type SendLimitError struct{ Next time.Time }

// Error implements error.
func (e *SendLimitError) Error() string { return "too many codes for one recipient" }

// ChallengeStore keeps challenges and the codes that were sent. Each method is atomic: concurrent
// calls cannot exceed a limit or take a challenge twice.
type ChallengeStore interface {
	// CreateChallenge inserts c and counts its code, or returns a *SendLimitError.
	CreateChallenge(ctx context.Context, c *Challenge) error
	// Challenge returns a challenge, ended or not, or ErrNotFound.
	Challenge(ctx context.Context, hash [32]byte) (*Challenge, error)
	// RenewChallenge replaces CodeHash, Tries, Sent and Expires and counts the code. It returns
	// ErrNotFound if the challenge is gone or has ended at c.Sent, or a *SendLimitError.
	RenewChallenge(ctx context.Context, c *Challenge) error
	// CountTry counts an attempt before the code is checked. It returns ErrNotFound if the
	// challenge is gone or has a newer code, or if its code has expired at now or had CodeTries
	// attempts.
	CountTry(ctx context.Context, c *Challenge, now time.Time) error
	// UndoTry takes back the attempt that CountTry counted, unless the challenge has a newer code.
	UndoTry(ctx context.Context, c *Challenge) error
	// TakeChallenge ends a challenge whose code was entered at now, and allows the next code to be
	// sent at once. In the same transaction it creates a user, unless create is nil, as CreateUser
	// does. It returns ErrNotFound if the challenge is gone or has a newer code, or if its code has
	// expired, or ErrTaken, after which the challenge may have ended.
	TakeChallenge(ctx context.Context, c *Challenge, create *User, now time.Time) error
}

// NewCode returns 6 random digits.
func NewCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // never: rand.Reader does not fail
	}
	return fmt.Sprintf("%06d", n)
}

// TidyCode removes spaces, tabs and hyphens from a code as a person typed it.
func TidyCode(code string) string {
	return strings.NewReplacer(" ", "", "-", "", "\u00a0", "", "\t", "").Replace(code)
}
