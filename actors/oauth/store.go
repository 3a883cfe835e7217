package oauth

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Errors that callers of a Store tell apart. A Store may return others.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrConflict: the record was changed since it was read; nothing was written.
	ErrConflict = errors.New("the record was changed since it was read")
	// ErrKeysInUse: what was made with a former key may still be valid.
	ErrKeysInUse = errors.New("a former key is still in use")
	// ErrBusy: the queue of writes is full; nothing was written.
	ErrBusy = errors.New("too much waits to be written")
	// ErrUnknownOutcome: a write was begun and not confirmed in time; it may or may not be durable.
	ErrUnknownOutcome = errors.New("the write was not confirmed in time")
	// ErrDeclared: the server's own files declare the record, and nothing else may change it.
	ErrDeclared = errors.New("the server's own files declare the record")
)

// Store keeps clients, codes, refresh tokens, keys, and what has ended. Its methods may be called
// by many goroutines. A read sees every operation that was acknowledged before the read began.
type Store interface {
	// Client returns the client with that ID, disabled or not, or ErrNotFound.
	Client(ctx context.Context, id string) (*Client, error)
	// AuthorizationCode returns the code, used or expired or not, or ErrNotFound.
	AuthorizationCode(ctx context.Context, hash Hash) (*AuthorizationCode, error)
	// RefreshToken returns the token with its family, revoked or expired or not, or ErrNotFound.
	RefreshToken(ctx context.Context, hash Hash) (*RefreshToken, error)
	// Clients returns up to limit clients whose ID is greater than after, sorted by ID.
	Clients(ctx context.Context, after string, limit int) ([]*Client, error)
	// FindClients returns up to limit clients with a text in their name or ID, in no order. It reads all
	// clients while there are fewer: ctx limits the time, and those that were found until its deadline
	// come with context.DeadlineExceeded.
	FindClients(ctx context.Context, text string, limit int) ([]*Client, error)
	// Exchangers returns all clients with rules for token exchange, sorted by ID.
	Exchangers(ctx context.Context) ([]*Client, error)
	// CreateClient inserts c with its ID and sets its Version and Epoch, which is above that of a
	// former client with the ID. It returns ErrClientIDTaken if there is one.
	CreateClient(ctx context.Context, c *Client) error
	// UpdateClient replaces the client with c's ID, its secrets and redirect URIs included, and
	// sets c's Version. It returns ErrNotFound, or ErrConflict if c's Version is not the stored
	// one.
	UpdateClient(ctx context.Context, c *Client) error
	// Declare makes clients and resources what the server's own files say, in one transaction, and
	// returns what it did for each set. What a set no longer has is disabled and Released; a resource
	// is deleted until it comes back. The error is a *DeclareError or a failure, and nothing was done
	// then.
	Declare(ctx context.Context, sets []*DeclaredSet, records DeclareRecords) ([]Declared, error)
	// DeleteClient deletes the client with all consents, codes and refresh tokens.
	DeleteClient(ctx context.Context, id string) error

	// Claims returns all declared claims, by name.
	Claims(ctx context.Context) ([]Claim, error)
	// PutClaim inserts c, or replaces the one with its name. It returns ErrNotFound if there is no such
	// attribute.
	PutClaim(ctx context.Context, c Claim) error
	// DeleteClaim deletes a claim, or returns ErrNotFound.
	DeleteClaim(ctx context.Context, name string) error

	RegistrationStore
	DeviceStore
	// UseAssertion keeps the Replay of an assertion until it expires. It returns ErrConflict if it
	// is kept already.
	UseAssertion(ctx context.Context, replay Hash, expires time.Time) error

	ResourceStore
	ProviderStore

	// Keys returns the keys of all purposes, in the order of Purposes, as they are at one moment.
	// The current one of each comes first, then the former ones that have not expired at now, the
	// newest first.
	Keys(ctx context.Context, now time.Time) ([]Key, error)
	// ListKeys describes all stored keys in the order of Keys, those that have expired included.
	ListKeys(ctx context.Context) ([]KeyInfo, error)
	// NeedKeys raises Needed of the current key of each purpose.
	NeedKeys(ctx context.Context, needed map[Purpose]time.Duration) error
	// RotateKeys makes a new current key. It returns ErrKeysInUse and changes nothing if Drop is not
	// set and a former key has not expired. There may be many former signing keys: it refuses a new
	// one before the current one is in use, and with First if there is one.
	RotateKeys(ctx context.Context, r KeyRotation) error

	// Ends returns the last change's number, and what was ended up to there, or later, and would
	// not have expired at now.
	Ends(ctx context.Context, now time.Time) (last int64, ends []End, err error)
	// Changes returns the last change's number, which is below after when the database has lost
	// changes, and the changes above after in their order, at most limit. A change is kept until
	// what it ends has expired, and for ChangesKept.
	Changes(ctx context.Context, after int64, limit int) (last int64, changes []Change, err error)

	// Submit enqueues op and returns at once. The Store executes the operations on one user's
	// tokens, and those on the tokens of a client without a user, in the order of submission; each
	// sees the effects of those before it. It decides op inside a transaction that
	// it may share with other operations, commits it, and then calls op.Done, in the same order.
	Submit(op Operation)
}

// Operation is a change that the Store decides: *SaveCode, *Redeem, *Rotate, *Revoke or *Record.
// Its result fields are valid once it has ended without an error. Write, which every operation
// embeds, has its methods.
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

// Redeem exchanges an authorization code for the first tokens of a family (RFC 6749 section 4.1.3),
// at most once. The caller has authenticated the client and checked what does not change: client,
// redirect URI, verifier.
type Redeem struct {
	Write
	Code    Hash
	Now     time.Time
	Family  Family // new; its Generation is 1
	Refresh *Hash  // of the first refresh token; nil = none is issued

	ExchangeResult
}

// MaxRepeats is how often a refresh token of the previous generation gets tokens.
const MaxRepeats = 3

// Rotate exchanges a refresh token for the next tokens of its family (RFC 6749 section 6, RFC 9700
// section 4.14). A token of the current generation advances the family. A token of the previous
// generation is accepted within Grace after the advance, MaxRepeats times, and gets tokens of the
// current generation. Any other token ends the family.
type Rotate struct {
	Write
	FamilyID   uuid.UUID
	Grant      Grant // whose family it is
	Generation int64 // generation of the presented token
	Now        time.Time
	Grace      time.Duration // 0 = none
	Expires    time.Time     // the family's new idle expiry
	// AccessExpires is when the new access token expires.
	AccessExpires time.Time
	Refresh       Hash

	ExchangeResult
}

// ExchangeResult is what the Store has decided about the exchange of a code or refresh token.
type ExchangeResult struct {
	Outcome Outcome
	Epochs  Epochs // with OutcomeDone: for the access token
	Ended   []End  // with OutcomeReused
}

// MaxUserEnds is how many ends of one user's tokens and families a Store keeps at a time. In
// place of a further one it raises the user's epoch, which ends all access tokens of the user.
const MaxUserEnds = 1000

// Revoke revokes tokens (RFC 7009). Exactly one of the fields up to Consent selects them.
type Revoke struct {
	Write
	Token    *TokenEnd // one access token; it may have been ended before
	FamilyID uuid.UUID // a family and its access tokens
	UserID   int64     // all families and codes of a user, and all access tokens by a new epoch
	ClientID string    // all families and codes of a client, and all access tokens by a new epoch
	Consent  *Grant    // a consent, and the user's families and codes at the client

	Grant   Grant // with FamilyID: whose family it is
	ByEpoch bool  // with Token: raise the epoch of its user in place of keeping the end

	Ended []End // what the database did not know as ended before; empty with UserID and ClientID
}

// Record changes nothing. It has the Store record the events of its Context (package audit).
type Record struct{ Write }

// Grant names a user's consent to a client.
type Grant struct {
	UserID   int64
	ClientID string
}

// Outcome is the Store's decision on a code or refresh token.
type Outcome int

// The outcomes.
const (
	OutcomeDone     Outcome = iota + 1 // the tokens were issued
	OutcomeReused                      // it was used before: its family was revoked
	OutcomeGone                        // it is expired or revoked, or its user is disabled or deleted
	OutcomeRepeated                    // it was repeated MaxRepeats times; nothing has ended
)
