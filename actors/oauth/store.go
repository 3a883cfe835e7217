package oauth

import (
	"context"
	"errors"
	"time"
)

// Errors that callers of a Store tell apart. A Store may return others.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrConflict: the record was changed since it was read; nothing was written.
	ErrConflict = errors.New("the record was changed since it was read")
	// ErrKeysInUse: tokens signed with the previous key may still be valid.
	ErrKeysInUse = errors.New("the previous key is still in use")
	// ErrBusy: the queue of writes is full; nothing was written.
	ErrBusy = errors.New("too much waits to be written")
	// ErrUnknownOutcome: a write was begun and not confirmed in time; it may or may not be durable.
	ErrUnknownOutcome = errors.New("the write was not confirmed in time")
)

// Store keeps clients, codes and tokens. Its methods may be called by many goroutines. A read sees
// every operation that was acknowledged before the read began.
type Store interface {
	// Client returns the client with that ID, disabled or not, or ErrNotFound.
	Client(ctx context.Context, id string) (*Client, error)
	// AuthorizationCode returns the code, used or expired or not, or ErrNotFound.
	AuthorizationCode(ctx context.Context, hash Hash) (*AuthorizationCode, error)
	// RefreshToken returns the token with its family, revoked or expired or not, or ErrNotFound.
	RefreshToken(ctx context.Context, hash Hash) (*RefreshToken, error)
	// AccessToken returns the token, or ErrNotFound when there is none or it was revoked.
	AccessToken(ctx context.Context, hash Hash) (*AccessToken, error)
	// Clients returns up to limit clients whose ID is greater than after, sorted by ID.
	Clients(ctx context.Context, after string, limit int) ([]*Client, error)
	// CreateClient inserts c with its ID and sets its Version.
	CreateClient(ctx context.Context, c *Client) error
	// UpdateClient replaces the client with c's ID, its secrets and redirect URIs included, and
	// sets c's Version. It returns ErrNotFound, or ErrConflict if c's Version is not the stored
	// one.
	UpdateClient(ctx context.Context, c *Client) error
	// DeleteClient deletes the client with all consents, codes and tokens. It returns the hashes of
	// the access tokens that it deleted.
	DeleteClient(ctx context.Context, id string) (tokens []Hash, err error)
	// AccessTokenKeys returns the keys that sign access tokens. It creates one if there is none.
	AccessTokenKeys(ctx context.Context) (Keys, error)
	// RotateKeys creates a new current key at now. The current key becomes the previous one, and
	// the previous one is deleted. It returns the new keys. If there is a previous key and the
	// current one was made after settled, it changes nothing and returns ErrKeysInUse.
	RotateKeys(ctx context.Context, now, settled time.Time) (Keys, error)
	// Submit enqueues op and returns at once. The Store executes operations in the order of
	// submission; each sees the effects of those before it. It decides op inside a transaction that
	// it may share with other operations, commits it, and then calls op.Done.
	Submit(op Operation)
}

// Operation is a change that the Store decides: *SaveCode, *Issue, *Redeem, *Rotate or *Revoke. Its
// result fields are valid once it has ended without an error. Write, which every operation embeds,
// has its methods.
type Operation interface {
	Take() bool
	Cancel() bool
	OnDone(done func(error))
	Done(err error)
}

// SaveCode inserts a new authorization code.
type SaveCode struct {
	Write
	Code AuthorizationCode
}

// Issue inserts a new access token without a family (RFC 6749 section 4.4).
type Issue struct {
	Write
	Token AccessToken
}

// Redeem exchanges an authorization code for the first tokens of a family (RFC 6749 section 4.1.3),
// at most once. The caller has authenticated the client and checked what does not change: client,
// redirect URI, verifier.
type Redeem struct {
	Write
	Code    Hash
	Now     time.Time
	Family  Family // new; its Generation is 1
	Access  AccessToken
	Refresh *Hash // of the first refresh token; nil = none is issued

	Outcome Outcome
	Revoked []Hash // with OutcomeReused: the revoked access tokens
}

// Rotate exchanges a refresh token for the next tokens of its family (RFC 6749 section 6, RFC 9700
// section 4.14). A token of the current generation advances the family. A token of the previous
// generation is accepted within Grace after the advance and gets tokens of the current generation.
// Any other token ends the family.
type Rotate struct {
	Write
	FamilyID   string
	Generation int64 // generation of the presented token
	Now        time.Time
	Grace      time.Duration // 0 = none
	Expires    time.Time     // the family's new idle expiry
	Access     AccessToken
	Refresh    Hash

	Outcome Outcome
	Revoked []Hash // with OutcomeReused: the revoked access tokens
}

// Revoke revokes tokens (RFC 7009). Exactly one field selects them; KeepFamily is an option of
// UserID.
type Revoke struct {
	Write
	Access     *Hash  // one access token
	FamilyID   string // a family and its access tokens
	UserID     int64  // all families, access tokens and codes of a user, except KeepFamily
	ClientID   string // all families, access tokens and codes of a client
	Consent    *Grant // a consent, and the user's families, access tokens and codes at the client
	KeepFamily string // family to keep; "" = none

	Revoked []Hash // the revoked access tokens
}

// Grant names a user's consent to a client.
type Grant struct {
	UserID   int64
	ClientID string
}

// Outcome is the Store's decision on a code or refresh token.
type Outcome int

// The outcomes.
const (
	OutcomeDone   Outcome = iota + 1 // the tokens were issued
	OutcomeReused                    // it was used before: its family was revoked
	OutcomeGone                      // it is expired or revoked, or its user is disabled or deleted
)
