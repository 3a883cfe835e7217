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

// What a code sent to a person is good for.
const (
	CodeLifetime      = 5 * time.Minute
	CodeTries         = 5              // entries, until another code is needed
	ChallengeLifetime = time.Hour      // in which further codes may be asked for
	SendsRemembered   = 24 * time.Hour // how long a code counts against the limits of its recipient
)

// Limits of the codes for one e-mail address or phone number, whatever they are for.
const (
	SendInterval = 30 * time.Second // between a code and the next, unless the first was entered
	SendsPerHour = 5
	SendsPerDay  = 10
)

// Purpose is what a person wants to do by entering a code.
type Purpose string

// The purposes.
const (
	ForRegistration Purpose = "registration" // make an account with an e-mail address and a password
	ForPhone        Purpose = "phone"        // sign in by phone number, or make an account
	ForReset        Purpose = "reset"        // choose a new password
	ForChange       Purpose = "change"       // give an account another e-mail address or phone number
)

// Challenge is a question for a code as it is kept. One that nobody may pass, because there is nothing to do at its address, looks
// the same: its code is known to no one.
type Challenge struct {
	Hash         [32]byte // SHA-256 of the cookie's value
	Purpose      Purpose
	Channel      Channel
	Address      string // the e-mail address or E.164 number that the code was sent to
	UserID       int64  // whose password or address is changed; 0 = nobody's
	Name         string // of who registers; "" = not asked yet
	PasswordHash string // of who registers
	Message      Kind   // what is sent
	CodeHash     string // argon2id in PHC form
	Tries        int    // entries so far, at most CodeTries
	Sent         time.Time
	Expires      time.Time // when the code is no longer accepted
	Ends         time.Time // when the challenge is gone

	Again time.Time // when another code may be sent; the Store finds it out
}

// Recipient stands for the channel and address of c in what is counted against limits.
func (c *Challenge) Recipient() [32]byte {
	return sha256.Sum256([]byte(string(c.Channel) + "\x00" + strings.ToLower(c.Address)))
}

// Renew prepares c for another code that is sent at now. It does not outlive Ends.
func (c *Challenge) Renew(codeHash string, now time.Time) {
	c.CodeHash, c.Tries, c.Sent, c.Expires = codeHash, 0, now, now.Add(CodeLifetime)
	if c.Expires.After(c.Ends) {
		c.Expires = c.Ends
	}
}

// CodeSend is a code that was sent to a recipient, or that would have been.
type CodeSend struct {
	At      time.Time
	Entered bool // by its recipient
}

// NextSend returns when another code may be sent to who was sent those before, in any order; the zero time = at once.
func NextSend(before []CodeSend) time.Time {
	var next time.Time
	later := func(t time.Time) {
		if t.After(next) {
			next = t
		}
	}
	for _, send := range before {
		younger := 0 // or as old
		for _, other := range before {
			if !other.At.Before(send.At) {
				younger++
			}
		}
		if younger == 1 && !send.Entered {
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

// SendLimitError says that no code may be sent to a recipient yet.
type SendLimitError struct{ Next time.Time }

// Error implements error.
func (e *SendLimitError) Error() string { return "too many codes for one recipient" }

// ChallengeStore keeps challenges, and which codes were sent. What it counts and decides it does so once, however many ask at
// the same time.
type ChallengeStore interface {
	// CreateChallenge keeps c and counts its code, or returns a *SendLimitError.
	CreateChallenge(ctx context.Context, c *Challenge) error
	// Challenge returns a challenge, which may have ended, or ErrNotFound.
	Challenge(ctx context.Context, hash [32]byte) (*Challenge, error)
	// RenewChallenge replaces CodeHash, Tries, Sent and Expires of a challenge that has not ended at c.Sent and counts the
	// code, or returns ErrNotFound or a *SendLimitError.
	RenewChallenge(ctx context.Context, c *Challenge) error
	// CountTry counts an entry before it is checked, or returns ErrNotFound: the challenge is gone, or has another code by now,
	// or its code has expired at now or has been tried CodeTries times.
	CountTry(ctx context.Context, c *Challenge, now time.Time) error
	// UndoTry takes back what CountTry counted, if the challenge still has that code.
	UndoTry(ctx context.Context, c *Challenge) error
	// TakeChallenge ends a challenge whose code was entered at now, once, and with it the interval until the next code. In
	// the same step it creates a user, unless that is nil, as CreateUser does. Its error is ErrNotFound (the challenge is gone, or has
	// another code by now, or its code has expired), ErrTaken, after which the challenge may have ended, or another.
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

// TidyCode removes what people put between the digits of a code.
func TidyCode(code string) string {
	return strings.NewReplacer(" ", "", "-", "", "\u00a0", "", "\t", "").Replace(code)
}
