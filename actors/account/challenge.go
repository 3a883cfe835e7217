package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Lifetimes and limits of a code that is sent to a person.
const (
	CodeLifetime      = 5 * time.Minute
	CodeTries         = 5              // attempts before another code is needed
	ChallengeLifetime = time.Hour      // during which another code may be requested
	LongCodeLifetime  = 24 * time.Hour // in any browser
	SendsRemembered   = 24 * time.Hour // how long a message counts against the limits
)

// Limits on the messages to one e-mail address or phone number, regardless of their purpose.
const (
	SendInterval    = 30 * time.Second // between two of one requester, unless the first was entered
	StrangerPerHour = 3                // messages that one unknown caller may cause
	StrangerPerDay  = 5
	StrangersPerDay = 10 // messages that all unknown callers may cause together
	KnownPerHour    = 5  // messages that the account's known browsers may cause together
	KnownPerDay     = 10
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
	ForProof        Purpose = "proof"        // prove to be the user, before a change of credentials
	ForConnection   Purpose = "connection"   // verify the address of a person who comes from a provider
	ForResetProof   Purpose = "reset_proof"  // prove it by an older channel, for a new password
	ForFactor       Purpose = "factor"       // be allowed to enter the second factor
)

// Requester is who requests codes for a recipient: a keyed hash of an unknown caller's network, or
// KnownBrowsers.
type Requester [16]byte

// KnownBrowsers is the requester of all browsers that are known to the recipient's account.
// Strangers cannot use up its limits.
var KnownBrowsers Requester

// Challenge asks a person for a code, as the Store keeps it. A request about an account that does
// not exist gets one too, with a code that nobody knows, so that the response does not reveal it.
type Challenge struct {
	Hash         [32]byte // SHA-256 of the cookie's value
	Purpose      Purpose
	Channel      Channel
	Address      string // the e-mail address or E.164 number that the code was sent to
	UserID       int64  // whose password or address is changed; 0 = no user
	Name         string // the new user's name; "" = not asked yet
	PasswordHash string // the new user's, or the new one
	ProvedBy     Way    // that allowed to request the code, ProofLifetime before Ends
	Message      Kind   // kind of the message that is sent
	CodeHash     string // argon2id in PHC form; "" = no code of 6 digits was sent
	Long         bool   // no code of 6 digits was sent; not stored, for those who do not see CodeHash
	Tries        int    // attempts so far, at most CodeTries
	Requester    Requester
	Sent         time.Time // when the last code was requested
	Expires      time.Time // when the code expires
	Ends         time.Time // when the challenge ends

	Again    time.Time // when another code may be requested; set by the Store
	LongCode [32]byte  // SHA-256 of the long code that was entered in place of the code; zero = none
}

// Recipient returns a hash of the channel and address of c. Messages are counted by it.
func (c *Challenge) Recipient() [32]byte {
	address := strings.ToLower(c.Address)
	if c.Channel == SMS {
		address = PhoneKey(c.Address)
	}
	return sha256.Sum256([]byte(string(c.Channel) + "\x00" + address))
}

// Renew prepares c for another code that is requested at now. The code expires at Ends at the
// latest.
func (c *Challenge) Renew(codeHash string, now time.Time) {
	c.CodeHash, c.Tries, c.Sent, c.Expires = codeHash, 0, now, now.Add(CodeLifetime)
	if c.Expires.After(c.Ends) {
		c.Expires = c.Ends
	}
}

// CodeSend records a message to a recipient. One without a code counts like one with a code.
type CodeSend struct {
	Requester Requester
	At        time.Time
	Entered   bool // the recipient entered a code since
	Free      bool // it no longer counts for the day: its long code was entered or not delivered
}

// Plan says what a request for a code may send.
type Plan int

// The plans.
const (
	SendCode     Plan = iota // a message with a code of 6 digits, or one without a code
	SendLongCode             // the last message of the day, whose code is valid in any browser
	SendNothing              // the messages of the day are used up; the last had a long code
)

// PlanSend decides about a request for a code at now. before are the messages to the recipient that
// are not older than SendsRemembered, in any order. again is when the requester may request another
// one: if it is later than now, the request is refused, unless the plan is SendNothing.
//
// Nobody can use up a person's way in. Whenever strangers have used up the day's messages, the last
// one had a long code, which lasts as long as that message counts.
func PlanSend(before []CodeSend, by Requester, now time.Time) (plan Plan, again time.Time) {
	perHour, perDay := KnownPerHour, KnownPerDay
	if by != KnownBrowsers {
		perHour, perDay = StrangerPerHour, StrangerPerDay
	}
	var own []CodeSend
	ofDay, strangers := 0, 0
	for _, send := range before {
		if send.Requester == by {
			own = append(own, send)
		}
		if send.Requester == by && !send.Free {
			ofDay++
		}
		if send.Requester != KnownBrowsers && !send.Free {
			strangers++
		}
	}
	left := perDay - ofDay
	if by != KnownBrowsers {
		left = min(left, StrangersPerDay-strangers)
	}
	switch {
	case left <= 0:
		plan = SendNothing
	case left == 1:
		plan = SendLongCode
	}
	return plan, nextRequest(own, perHour)
}

// nextRequest returns when a requester with these messages may request another one. The zero time
// means now.
func nextRequest(own []CodeSend, perHour int) (next time.Time) {
	slices.SortFunc(own, func(a, b CodeSend) int { return b.At.Compare(a.At) }) // the newest first
	if len(own) > 0 && !own[0].Entered {
		next = own[0].At.Add(SendInterval)
	}
	if len(own) >= perHour {
		if end := own[perHour-1].At.Add(time.Hour); end.After(next) {
			next = end
		}
	}
	return next
}

// SendLimitError is returned when a requester may not request a code for a recipient before Next.
type SendLimitError struct{ Next time.Time }

// Error implements error.
func (e *SendLimitError) Error() string { return "too many codes for one recipient" }

// ChallengeStore keeps challenges and the messages that were sent. Each method is atomic:
// concurrent calls cannot exceed a limit or take a challenge twice.
type ChallengeStore interface {
	// CreateChallenge inserts c and counts its message as PlanSend says, or returns a
	// *SendLimitError. longCode is the SHA-256 of the code that a message of SendLongCode carries.
	// Unless the plan is SendCode, it clears c's CodeHash.
	CreateChallenge(ctx context.Context, c *Challenge, longCode [32]byte) (Plan, error)
	// Challenge returns a challenge, ended or not, or ErrNotFound.
	Challenge(ctx context.Context, hash [32]byte) (*Challenge, error)
	// RenewChallenge replaces Requester and Sent and counts the message as CreateChallenge does. If
	// the plan is SendCode, it replaces CodeHash, Tries and Expires as well; else the code before
	// stays valid. It returns ErrNotFound if the challenge is gone or has ended at c.Sent, or a
	// *SendLimitError.
	RenewChallenge(ctx context.Context, c *Challenge, longCode [32]byte) (Plan, error)
	// FreeSend makes a message with a long code that was not sent no longer count for the day.
	FreeSend(ctx context.Context, recipient, longCode [32]byte) error
	// HasLongCode reports whether a message to the recipient had that long code, which has neither
	// expired at now nor been used.
	HasLongCode(ctx context.Context, recipient, longCode [32]byte, now time.Time) (bool, error)
	// CountTry counts an attempt before the code is checked. It returns ErrNotFound if the
	// challenge is gone or has a newer code, or if its code has expired at now or had CodeTries
	// attempts.
	CountTry(ctx context.Context, c *Challenge, now time.Time) error
	// UndoTry takes back the attempt that CountTry counted, unless the challenge has a newer code.
	UndoTry(ctx context.Context, c *Challenge) error
	// TakeChallenge ends a challenge whose code was entered at now, and allows the next code to be
	// requested at once. A long code is used up, and its message no longer counts for the day: the
	// next one carries another. In the same transaction it creates a user, unless create is nil, as
	// CreateUser does. It returns ErrNotFound if the challenge is gone or has a newer code, or if
	// the code has expired or was used, or ErrTaken, after which the challenge may have ended.
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

// A long code has 25 digits in groups of 5: 83 bits, of which nobody can try a noticeable part in a
// day. It has digits only, so that people can type it on the keyboard for digits.
const (
	longCodeLength = 25
	longCodeGroup  = 5
)

// NewLongCode returns 25 random digits in groups of 5, with hyphens between them.
func NewLongCode() string {
	end := new(big.Int).Exp(big.NewInt(10), big.NewInt(longCodeLength), nil)
	n, err := rand.Int(rand.Reader, end)
	if err != nil {
		panic(err) // never: rand.Reader does not fail
	}
	digits := fmt.Sprintf("%0*d", longCodeLength, n)
	var groups []string
	for i := 0; i < longCodeLength; i += longCodeGroup {
		groups = append(groups, digits[i:i+longCodeGroup])
	}
	return strings.Join(groups, "-")
}

// LongCodeHash returns the SHA-256 of a long code as a person typed it. ok is false if it does not
// look like one.
func LongCodeHash(code string) (hash [32]byte, ok bool) {
	code = TidyCode(code)
	if len(code) != longCodeLength || strings.Trim(code, "0123456789") != "" {
		return hash, false
	}
	return sha256.Sum256([]byte(code)), true
}
