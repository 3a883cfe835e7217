// Package account holds the rules about people: users and their profiles, passwords, sessions and consents. It does no
// I/O and reads no clock.
package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// User is a person with an account. Optional strings are "" when unset, which profiles show as null.
type User struct {
	ID             int64  // 1 to 2^53-1
	ServiceID      string // UUID
	Name           string // 1 to 200 characters
	Email          string // verified; "" = none
	Phone          string // verified, E.164; "" = none
	Username       string
	Gender         string
	Bio            string
	PlaceOfBirth   string
	DateOfBirth    string // YYYY-MM-DD
	Address        string
	ProfilePicture string // URL
	PasswordHash   string // argon2id in PHC form; "" = no password
	Disabled       bool
	Created        time.Time
	Updated        time.Time
	Version        int64 // how often it was changed; set by the Store
}

// Session is a browser's sign-in as it is kept.
type Session struct {
	Hash     [32]byte // SHA-256 of the cookie's value
	UserID   int64
	Created  time.Time
	SignedIn time.Time // when the password or code was last entered
	Seen     time.Time // last used, to the minute
	Expires  time.Time
	Device   string // browser and system in a few words; never an address
}

// ID names a session to its user. Nothing can be learned from it about the cookie's value or its hash.
func (s *Session) ID() string {
	sum := sha256.Sum256(append([]byte("gatehouse: name of a session "), s.Hash[:]...))
	return hex.EncodeToString(sum[:12])
}

// Consent is what a user has granted a client.
type Consent struct {
	UserID   int64
	ClientID string
	Scopes   uint8 // as oauth.Scopes
	Granted  time.Time
	Used     time.Time // when the client last got a code by it, to the minute; zero = never
}

// What a Store may answer beside other errors.
var (
	ErrNotFound = errors.New("no such record")
	// ErrTaken says that the e-mail address, phone number or username belongs to another user.
	ErrTaken = errors.New("already taken")
	// ErrConflict says that the record was changed since it was read; nothing was written.
	ErrConflict = errors.New("the record was changed since it was read")
)

// Store keeps users, sessions, consents and challenges. Its methods may be called by many goroutines; a write has lasted when its
// method returns nil, and every read that begins later sees it. E-mail addresses and usernames are compared without
// regard to case.
type Store interface {
	User(ctx context.Context, id int64) (*User, error)
	UserByEmail(ctx context.Context, email string) (*User, error)
	UserByPhone(ctx context.Context, phone string) (*User, error)
	// Users returns up to limit users with an id above after, by id.
	Users(ctx context.Context, after int64, limit int) ([]*User, error)
	// CreateUser keeps u and sets its ID, ServiceID and Version, or returns ErrTaken.
	CreateUser(ctx context.Context, u *User) error
	// UpdateUser replaces the user with u's ID by u and sets u's Version, or returns ErrTaken, ErrNotFound or, unless u's Version is
	// the present one, ErrConflict.
	UpdateUser(ctx context.Context, u *User) error
	// DeleteUser ends everything of the user: profile, sessions, consents, challenges, codes and tokens. It returns the hashes of the
	// access tokens that ended.
	DeleteUser(ctx context.Context, id int64) (tokens [][32]byte, err error)

	CreateSession(ctx context.Context, s *Session) error
	Session(ctx context.Context, hash [32]byte) (*Session, error)
	Sessions(ctx context.Context, userID int64) ([]*Session, error)
	// UpdateSession replaces SignedIn, Seen and Expires.
	UpdateSession(ctx context.Context, s *Session) error
	DeleteSession(ctx context.Context, hash [32]byte) error
	// DeleteSessions ends all sessions of the user but the one with hash keep.
	DeleteSessions(ctx context.Context, userID int64, keep [32]byte) error

	Consent(ctx context.Context, userID int64, clientID string) (*Consent, error)
	// Consents returns all consents of a user. Used takes account also of the refresh tokens that the client has exchanged.
	Consents(ctx context.Context, userID int64) ([]*Consent, error)
	SaveConsent(ctx context.Context, c *Consent) error
	// UseConsent replaces Used, unless the kept one is later, or returns ErrNotFound.
	UseConsent(ctx context.Context, c *Consent) error

	ChallengeStore
}
