package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"
)

// Limits of second factors.
const (
	// NewRecoveryCodes is how many recovery codes a person gets at a time.
	NewRecoveryCodes = 10
	// FactorLifetime is how long a person has for the second step of a sign-in.
	FactorLifetime = 10 * time.Minute
	// TrustLifetime is how long a browser is trusted that a person chose to trust.
	TrustLifetime = 30 * 24 * time.Hour
	// FactorWindow is how long wrong codes of a second factor count.
	FactorWindow = 24 * time.Hour
	// FactorsNoticed is after how many of them the owner gets a notice, and unknown browsers need a
	// code to a channel of the account first.
	FactorsNoticed = 10
	// FactorsPerDay is how many codes the owner's browsers may try, and all others together.
	FactorsPerDay = 50
)

// HasSecondFactor reports whether u has a factor that is asked for after a password or a code: an
// authenticator app, or a security key.
func (u *User) HasSecondFactor() bool {
	return u.Credentials.Authenticator != nil || u.SecurityKeys() > 0
}

// SecurityKeys returns how many security keys u has that only are a second factor.
func (u *User) SecurityKeys() (n int) {
	for i := range u.Credentials.Passkeys {
		if !u.Credentials.Passkeys[i].SignsIn {
			n++
		}
	}
	return n
}

// FactorIsSettled reports whether u has had one of its second factors for WayAge.
func (u *User) FactorIsSettled(now time.Time) bool {
	a := u.Credentials.Authenticator
	return a != nil && now.Sub(a.Created) >= WayAge ||
		slices.ContainsFunc(u.Credentials.Passkeys, func(p Passkey) bool {
			return !p.SignsIn && now.Sub(p.Created) >= WayAge
		})
}

// EndRecovery removes the recovery codes of u if it has no second factor left that they replace.
func (u *User) EndRecovery() {
	if !u.HasSecondFactor() {
		u.Credentials.RecoveryCodes = nil
	}
}

// recoveryLength is the number of random bytes in a recovery code.
const recoveryLength = 10

// NewRecoveryCode returns 80 random bits as 16 letters and digits in groups of 4.
func NewRecoveryCode() string {
	var bits [recoveryLength]byte
	rand.Read(bits[:]) // never fails
	text := strings.ToLower(base32.StdEncoding.EncodeToString(bits[:]))
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
}

// RecoveryCodeHash returns the SHA-256 of a recovery code as a person typed it. ok is false if it does
// not look like one. The digits 0, 1 and 8, which recovery codes do not have, count as the letters
// that they resemble.
func RecoveryCodeHash(code string) (hash [32]byte, ok bool) {
	code = strings.NewReplacer("0", "o", "1", "l", "8", "b").Replace(strings.ToLower(TidyCode(code)))
	bits, err := base32.StdEncoding.DecodeString(strings.ToUpper(code))
	if err != nil || len(bits) != recoveryLength {
		return hash, false
	}
	return sha256.Sum256([]byte(code)), true
}

// PendingSignIn is a sign-in that waits for a second factor, as the Store keeps it. There is no
// session before.
type PendingSignIn struct {
	Hash    [32]byte // SHA-256 of the cookie's value
	Browser [32]byte // SHA-256 of the secret of the browser that it is for
	UserID  int64
	State   [32]byte // as User.SignInState when the first factor was used
	Way     Way      // that was used
	Means   string   // of the sign-in, as in the audit trail
	Known   bool     // the browser was known to the account
	// PasswordHash is what the password is replaced by; "" = it is not.
	PasswordHash string
	Confirmed    bool // a code to a channel of the account was entered
	Ends         time.Time
}

// SignInState returns a hash of what a first factor is about: when it has changed, the factor has to
// be used again.
func (u *User) SignInState() [32]byte {
	return sha256.Sum256([]byte(strings.Join([]string{
		u.PasswordHash, u.Email, u.Phone, time.Unix(u.Epoch, 0).UTC().String(),
	}, "\x00")))
}

// TrustedBrowser is a browser that a person chose to trust, as the Store keeps it.
type TrustedBrowser struct {
	Hash   [32]byte // SHA-256 of the cookie's value
	UserID int64
	Ends   time.Time
}

// FactorGuess is an attempt at a second factor.
type FactorGuess struct {
	ID     int64 // random, so that it can be taken back
	UserID int64
	Own    bool // by a browser that has used a second factor of the account before
	// Confirmed says that the person has entered a code to a channel of the account.
	Confirmed bool
	At        time.Time
}

// FactorGuesses are the attempts at second factors of an account that count at a time.
type FactorGuesses struct {
	Own, Others             int // as FactorGuess.Own
	OldestOwn, OldestOthers time.Time
}

// All returns how many there are.
func (c FactorGuesses) All() int { return c.Own + c.Others }

// NeedsCode reports whether g needs a code to a channel of the account first.
func (c FactorGuesses) NeedsCode(g FactorGuess) bool {
	return !g.Own && !g.Confirmed && c.All() >= FactorsNoticed
}

// Check returns a *GuessLimitError if g is not allowed after c. There is room for browsers of the
// owner that others cannot use up, and for browsers that a code to a channel has confirmed.
func (c FactorGuesses) Check(g FactorGuess) error {
	n, oldest := c.Others, c.OldestOthers
	if g.Own {
		n, oldest = c.Own, c.OldestOwn
	}
	if n < FactorsPerDay && !c.NeedsCode(g) {
		return nil
	}
	if oldest.IsZero() {
		oldest = c.OldestOwn
	}
	return &GuessLimitError{Next: oldest.Add(FactorWindow)}
}

// FactorStore keeps what second factors need besides the Credentials of users. Its methods may be
// called by many goroutines. They are atomic, so that limits hold over all processes.
// ChangeCredentials of the Store ends the trust in all browsers if CredentialChange says so.
type FactorStore interface {
	CreatePendingSignIn(ctx context.Context, p *PendingSignIn) error
	// PendingSignIn returns what waits, ended or not, or ErrNotFound.
	PendingSignIn(ctx context.Context, hash [32]byte) (*PendingSignIn, error)
	// ConfirmPendingSignIn sets Confirmed, or returns ErrNotFound.
	ConfirmPendingSignIn(ctx context.Context, hash [32]byte) error
	// TakePendingSignIn deletes it, or returns ErrNotFound: so it is used once.
	TakePendingSignIn(ctx context.Context, hash [32]byte) error

	TrustBrowser(ctx context.Context, b *TrustedBrowser) error
	// TrustedBrowser returns a trusted browser, or ErrNotFound.
	TrustedBrowser(ctx context.Context, hash [32]byte) (*TrustedBrowser, error)

	// CountFactor counts g as wrong before it is checked, and returns what counts then, g included. If
	// FactorGuesses.Check refuses g, it counts nothing, and returns that *GuessLimitError.
	CountFactor(ctx context.Context, g FactorGuess) (FactorGuesses, error)
	// FactorGuesses returns what counts at a time.
	FactorGuesses(ctx context.Context, userID int64, at time.Time) (FactorGuesses, error)
	// SealFactor seals the secret of an authenticator app for a file, under the key file of the Store.
	SealFactor(secret []byte) []byte
	// OpenFactor is the inverse of SealFactor, under any of its key files.
	OpenFactor(sealed []byte) (secret []byte, ok bool)

	// UndoFactor takes back what CountFactor has counted.
	UndoFactor(ctx context.Context, g FactorGuess) error
}
