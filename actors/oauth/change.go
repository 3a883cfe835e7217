package oauth

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// ChangesKept is how long a Store keeps a change that ends no token before its expiry.
const ChangesKept = 10 * time.Minute

// EndKept is how long a Store keeps an end after what it ends has expired, since clocks differ.
const EndKept = time.Minute

// TokenEnd says that an access token has ended before it expires.
type TokenEnd struct {
	ID       TokenID
	ClientID string
	Expires  time.Time
}

// End is what ended before it expired: an access token, or a family with its access tokens.
type End struct {
	Token    TokenID   // zero = none
	ClientID string    // of Token
	FamilyID uuid.UUID // uuid.Nil = none
	Expires  time.Time // when the last access token that it ends expires
}

// Change is what processes that share a database tell each other. Exactly one field besides Number
// says what changed.
type Change struct {
	Number   int64 // grows in the order of the commits
	End      *End
	UserID   int64   // the user was changed or deleted, or has a new epoch
	ClientID string  // the client was changed or deleted, or has a new epoch
	Keys     Purpose // the keys were rotated
}

// Epochs are those of a token's client and user when it was issued. A token is refused when one of
// them has a later epoch since. Epochs are Unix microseconds or greater: each is at least one above
// the one before it.
type Epochs struct {
	Client int64
	User   int64 // 0 = no user
}

// Purpose is what keys are for. The keys of each purpose rotate apart.
type Purpose string

// The purposes.
const (
	TokenKeys   Purpose = "tokens"   // seal access tokens
	FormKeys    Purpose = "forms"    // seal the forms of pages
	BrowserKeys Purpose = "browsers" // mark browsers as known to an account
)

// Purposes has all purposes in the order of all lists.
var Purposes = []Purpose{TokenKeys, FormKeys, BrowserKeys}

// Key is a secret key that a Store keeps. It prints without its value.
type Key struct {
	Purpose Purpose
	Number  uint16 // counts from 1 for each purpose
	Secret  [32]byte
	Made    time.Time
	Expires time.Time // zero = it is the current one
}

// String returns purpose and number.
func (k Key) String() string { return fmt.Sprintf("%s key %d", k.Purpose, k.Number) }

// KeyRotation asks for a new key.
type KeyRotation struct {
	Purpose Purpose
	Now     time.Time
	Expires time.Time // when the key before it is no longer needed
	Drop    bool      // drop all former keys at once, also when they are in use
}
