package account

import (
	"context"
	"crypto/sha256"
	"strings"
	"time"
)

// GuessRate limits the wrong passwords of one account: Burst at once, then one each Every.
type GuessRate struct {
	Burst int
	Every time.Duration
}

// The limits on wrong passwords. Each allows at most 100 in any hour.
var (
	// GuessesPerAccount counts unknown browsers together, and known browsers together.
	GuessesPerAccount = GuessRate{Burst: 50, Every: 72 * time.Second}
	// GuessesWithoutCode is for unknown browsers when nobody can be sent a code, so that a person has
	// to wait for the next attempt.
	GuessesWithoutCode = GuessRate{Burst: 10, Every: 40 * time.Second}
)

// GuessesTold is how long the owner of an account is not told again that a limit is reached.
const GuessesTold = 24 * time.Hour

// Guess is an attempt at the password of an account, which may not exist.
type Guess struct {
	Account [32]byte // as GuessedAccount
	Known   bool     // the browser has signed in to the account before
	At      time.Time
	Rate    GuessRate
}

// GuessedAccount returns the key by which attempts at an account are counted: a hash of its e-mail
// address, folded as for UserByEmail. Else each spelling that finds the account had a limit of its
// own.
func GuessedAccount(email string) [32]byte { return sha256.Sum256([]byte(Fold(email))) }

// Fold returns the form of an e-mail address or username for case-insensitive comparison. Upper
// case comes first: letters such as the long s are then the same as the usual one.
func Fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// GuessLimitError is returned when no attempt is allowed before Next.
type GuessLimitError struct {
	Next time.Time
	Told bool // the owner was told within GuessesTold
}

// Error implements error.
func (e *GuessLimitError) Error() string { return "too many wrong passwords of one account" }

// GuessStore counts wrong passwords. Its methods are atomic, so the limits hold over all processes.
// ChangeCredentials of the Store forgets the attempts at the user's account.
type GuessStore interface {
	// CountGuess counts g as failed, before its password is checked. It returns a *GuessLimitError,
	// and counts nothing, if g's Rate allows no attempt at g.At.
	CountGuess(ctx context.Context, g Guess) error
	// UndoGuess takes back an attempt that CountGuess has counted and that did not fail.
	UndoGuess(ctx context.Context, g Guess) error
	// TellGuesses notes that the owner is told at g.At that the limit is reached. It returns
	// ErrNotFound if the owner was told within GuessesTold, or if no attempts are remembered.
	TellGuesses(ctx context.Context, g Guess) error
}
