package oauth

import (
	"context"
	"errors"
	"time"
)

// What a Store may answer beside other errors.
var (
	// ErrNotFound says that there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrConflict says that the record was changed since it was read; nothing was written.
	ErrConflict = errors.New("the record was changed since it was read")
	// ErrKeysInUse says that tokens signed with the previous key may still be good.
	ErrKeysInUse = errors.New("the previous key is still in use")
	// ErrBusy says that too much waits to be written; nothing was written.
	ErrBusy = errors.New("too much waits to be written")
	// ErrUnknownOutcome says that a write was begun and not confirmed in time: it may or may not last.
	ErrUnknownOutcome = errors.New("the write was not confirmed in time")
)

// Store keeps clients, codes and tokens. Its methods may be called by many goroutines. A read sees every operation
// that was acknowledged before it began.
type Store interface {
	// Client returns the client with that id, disabled or not, or ErrNotFound.
	Client(ctx context.Context, id string) (*Client, error)
	// AuthorizationCode returns the code, used or expired or not, or ErrNotFound.
	AuthorizationCode(ctx context.Context, hash Hash) (*AuthorizationCode, error)
	// RefreshToken returns the token with its family, revoked or expired or not, or ErrNotFound.
	RefreshToken(ctx context.Context, hash Hash) (*RefreshToken, error)
	// AccessToken returns the token, or ErrNotFound when there is none or it was revoked.
	AccessToken(ctx context.Context, hash Hash) (*AccessToken, error)
	// Clients returns up to limit clients with an id above after, by id.
	Clients(ctx context.Context, after string, limit int) ([]*Client, error)
	// CreateClient keeps c with its ID and sets its Version.
	CreateClient(ctx context.Context, c *Client) error
	// UpdateClient replaces the client with c's ID by c, secrets and redirect URIs included, and sets c's Version, or returns
	// ErrNotFound or, unless c's Version is the present one, ErrConflict.
	UpdateClient(ctx context.Context, c *Client) error
	// DeleteClient ends everything of the client: record, consents, codes and tokens. It returns the hashes of the
	// access tokens that ended.
	DeleteClient(ctx context.Context, id string) (tokens []Hash, err error)
	// AccessTokenKeys returns the keys that sign access tokens; the first call ever makes one.
	AccessTokenKeys(ctx context.Context) (Keys, error)
	// RotateKeys makes a new key at now and forgets the previous one, whose place the current one takes, and returns what is kept
	// then. While there is a previous key and the current one was made after settled it changes nothing and returns ErrKeysInUse.
	RotateKeys(ctx context.Context, now, settled time.Time) (Keys, error)
	// Submit queues op behind all that were submitted before and returns at once. The store decides op inside its
	// transaction, makes it durable together with its neighbours, and then ends it with Done. Operations are executed in the order
	// of submission; each sees the effects of those before it.
	Submit(op Operation)
}

// Operation is a change that the Store decides: *SaveCode, *Issue, *Redeem, *Rotate or *Revoke. Its result fields are
// valid when it has ended without an error. Its methods are those of Write, which every operation embeds.
type Operation interface {
	Take() bool
	Cancel() bool
	OnDone(done func(error))
	Done(err error)
}

// SaveCode keeps a new authorization code.
type SaveCode struct {
	Write
	Code AuthorizationCode
}

// Issue keeps a new access token that belongs to no family (RFC 6749 section 4.4).
type Issue struct {
	Write
	Token AccessToken
}

// Redeem exchanges an authorization code for the first tokens of a family (RFC 6749 section 4.1.3), at most once. The
// caller has authenticated the client and checked what does not change: client, redirect URI, verifier.
type Redeem struct {
	Write
	Code    Hash
	Now     time.Time
	Family  Family // new; its Generation is 1
	Access  AccessToken
	Refresh *Hash // of the first refresh token; nil = none is issued

	Outcome Outcome
	Revoked []Hash // the access tokens that ended, with OutcomeReused
}

// Rotate exchanges a refresh token for the next tokens of its family (RFC 6749 section 6, RFC 9700 section 4.14).
// The current generation advances the family. The one before is accepted within Grace of the advance and gets tokens of the
// current generation. Any other ends the family.
type Rotate struct {
	Write
	FamilyID   string
	Generation int64 // of the token that was presented
	Now        time.Time
	Grace      time.Duration // 0 = none
	Expires    time.Time     // the family's new idle expiry
	Access     AccessToken
	Refresh    Hash

	Outcome Outcome
	Revoked []Hash // the access tokens that ended, with OutcomeReused
}

// Revoke ends tokens (RFC 7009). Exactly one of the fields before the result says which.
type Revoke struct {
	Write
	Access     *Hash  // one access token
	FamilyID   string // a family and its access tokens
	UserID     int64  // all families, access tokens and codes of a user; KeepFamily apart
	ClientID   string // all families, access tokens and codes of a client
	Consent    *Grant // all families, access tokens and codes of a user at a client, and the remembered consent
	KeepFamily string // with UserID: the family that stays; "" = none

	Revoked []Hash // the access tokens that ended
}

// Grant names a user's consent to a client.
type Grant struct {
	UserID   int64
	ClientID string
}

// Outcome is what the Store decided.
type Outcome int

// The outcomes.
const (
	OutcomeDone   Outcome = iota + 1 // the tokens were issued
	OutcomeReused                    // used before: the family and all its access tokens have ended
	OutcomeGone                      // expired, revoked, its user disabled or gone: nothing was issued
)
