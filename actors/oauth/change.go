package oauth

import (
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
	UserID   int64 // 0 = none
	Expires  time.Time
}

// End is what ended before it expired: an access token, a family with its access tokens, or all
// access tokens of a user by a new epoch.
type End struct {
	Token    TokenID   // zero = none
	ClientID string    // of Token
	FamilyID uuid.UUID // uuid.Nil = none
	UserID   int64     // whose epoch is a later one; 0 = none
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
	Claims   bool    // claims, or attributes of people, were changed, or a resource was deleted
}

// Epochs are those of a token's client and user when it was issued. A token is refused when one of
// them has a later epoch since. Epochs are Unix microseconds or greater: each is at least one above
// the one before it.
type Epochs struct {
	Client int64
	User   int64 // 0 = no user
}
