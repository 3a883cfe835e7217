// Package account holds the rules about people: users and their profiles, passwords, sessions,
// consents and the challenges that ask for a code. It does no I/O and reads no clock.
package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"
)

// User is a person with an account. An optional string that is unset is "", and null in a profile.
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
	Language       string // that the person chose (BCP 47); "" = none yet
	PasswordHash   string // argon2id in PHC form; "" = no password
	PhoneSignIn    bool   // a code to Phone may replace the password
	Attributes     Attributes
	// Groups are all groups of the user. The Store sets them. CreateUser and ImportUsers take those that
	// operators give; UpdateUser takes none.
	Groups Groups
	// Given are those of Groups that operators gave, and Mapped those that providers' groups stand for,
	// by issuer. A group may be among both. Set by the Store.
	Given  Groups
	Mapped map[string]Groups
	// PasswordSince, EmailSince, PhoneSince and PhoneSignInSince are when they were added or last
	// changed; zero = when the account was made.
	PasswordSince, EmailSince, PhoneSince, PhoneSignInSince time.Time
	Credentials                                             Credentials

	Disabled bool
	Created  time.Time
	Updated  time.Time
	Version  int64 // grows with each change; set by the Store
	Epoch    int64 // as in oauth.Epochs; set by the Store
}

// MustUsePassword reports whether the password alone signs in to u, and not a code to the phone.
// Without an e-mail address, the phone is the only way in. allowed says whether the operators leave
// the choice to people.
func (u *User) MustUsePassword(allowed bool) bool {
	return u.PasswordHash != "" && u.Email != "" && !(allowed && u.PhoneSignIn)
}

// MaxSessions is how many sessions a user may have.
const MaxSessions = 100

// Session is a browser's sign-in as the Store keeps it.
type Session struct {
	Hash     [32]byte // SHA-256 of the cookie's value
	UserID   int64
	Created  time.Time
	SignedIn time.Time // when the password or code was last entered
	Seen     time.Time // last use, to the minute
	Expires  time.Time
	Used     time.Time // the SignedIn that UseSignIn has used; zero = none
	Device   string    // short name of the browser and system; never an IP address
	Way      Way       // the way in that began it; "" = older sessions, of which AMR tells
	AMR      []string  // how the user signed in (RFC 8176)
	Proved   time.Time // when a code proved that the person is the user; zero = never since SignedIn
	ProvedBy Way       // the way in that got the code
	// Factored is when a second factor was last used in the session, after a way in; zero = never.
	Factored time.Time
	// NewBrowser says that the browser was not known to the account for WayAge when the session began.
	NewBrowser bool
}

// FactorUsed returns when the person last used a second factor in the session; zero = never. A way in
// that counts as two factors, such as a passkey, was used when the person signed in.
func (s *Session) FactorUsed() time.Time {
	used := s.Factored
	if used.IsZero() && s.HasTwoFactors() {
		used = s.SignedIn
	}
	if s.ProvedBy.IsPasskey() && s.Proved.After(used) {
		used = s.Proved
	}
	return used
}

// UsedFactor reports whether a second factor was used in the session within age before now.
func (s *Session) UsedFactor(age time.Duration, now time.Time) bool {
	used := s.FactorUsed()
	return !used.IsZero() && now.Sub(used) < age
}

// HasTwoFactors reports whether the person has used two factors in the session.
func (s *Session) HasTwoFactors() bool { return slices.Contains(s.AMR, MultipleFactors) }

// MultipleFactors is the authentication method that stands for two factors (RFC 8176 section 2).
const MultipleFactors = "mfa"

// ID returns the name by which a user refers to a session. It reveals neither the cookie's value
// nor its hash.
func (s *Session) ID() string {
	sum := sha256.Sum256(append([]byte("gatehouse: name of a session "), s.Hash[:]...))
	return hex.EncodeToString(sum[:12])
}

// Consent is the set of scopes that a user has granted a client.
type Consent struct {
	UserID   int64
	ClientID string
	Scopes   uint16 // as oauth.Scopes
	// Resources are the resources that were granted as well, as the text of oauth.Targets. In
	// GrantConsent "" leaves those that were granted before.
	Resources string
	Devices   uint16 // scopes granted to devices, which are asked for each time
	Granted   time.Time
	Used      time.Time // when the client last got a code with it, to the minute; zero = never
}

// Errors that callers of a Store tell apart. A Store may return others.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrTaken: the e-mail address, phone number or username belongs to another user.
	ErrTaken = errors.New("already taken")
	// ErrConflict: the record was changed since it was read; nothing was written.
	ErrConflict = errors.New("the record was changed since it was read")
	// ErrTooManyClients: the user has consented to too many clients that registered themselves.
	ErrTooManyClients = errors.New("too many clients that registered themselves")
)

// Store keeps users, sessions, consents and challenges. Its methods may be called by many
// goroutines. A write is durable when its method returns nil, and every read that begins later sees
// it. E-mail addresses and usernames are compared case-insensitively.
type Store interface {
	// CheckWritable returns why nothing can be written, or nil. It may know that from a write of
	// the last second.
	CheckWritable(ctx context.Context) error

	User(ctx context.Context, id int64) (*User, error)
	UserByEmail(ctx context.Context, email string) (*User, error)
	UserByPhone(ctx context.Context, phone string) (*User, error)
	// UserByHandle returns the user with that Credentials.Handle.
	UserByHandle(ctx context.Context, handle []byte) (*User, error)
	// UserByConnection returns the user with a Connection of that Issuer and Subject.
	UserByConnection(ctx context.Context, issuer, subject string) (*User, error)
	// Users returns up to limit users whose ID is greater than after, sorted by ID.
	Users(ctx context.Context, after int64, limit int) ([]*User, error)
	// FindUsers returns up to limit users with a text in their name, e-mail address or username, in no
	// order. It reads all users while there are fewer: ctx limits the time, and those who were found
	// until its deadline come with context.DeadlineExceeded.
	FindUsers(ctx context.Context, text string, limit int) ([]*User, error)
	// CreateUser inserts u and sets its ID, ServiceID and Version, or returns ErrTaken, or ErrNoGroup.
	CreateUser(ctx context.Context, u *User) error
	// ImportUsers inserts the users of p in one transaction, and sets Created and Refused: who has the
	// ID, ServiceID, e-mail address, phone number or username of another user is refused. IDs that are
	// given later are above those that were chosen, unless these are above 2^52. A part that was done
	// before has no effect, and the same result. The error is ErrConflict if a later one was done, or the same
	// one with another Digest.
	ImportUsers(ctx context.Context, p *ImportPart) error
	// UpdateUser replaces the user with u's ID and sets u's Version. For a disabled user, it adds a
	// Logout for each session and client that wants one. It returns ErrTaken,
	// ErrNotFound, or ErrConflict if u's Version is not the stored one.
	UpdateUser(ctx context.Context, u *User) error
	// UseCredential replaces the Credentials, but for the Handle, of a user who has used one of them,
	// such as a step of the authenticator app, and sends the notices. It keeps Updated, and returns
	// ErrNotFound or ErrConflict as UpdateUser does: so each use counts once in all processes.
	//
	// All methods that write Credentials make the user a member of the groups of the Connections that
	// were added, used or removed, and of no others that those gave before. Groups that do not exist,
	// or would be more than MostGroups, are left out. Leaving has the effects of RemoveMember.
	UseCredential(ctx context.Context, u *User, notices ...Notice) error
	// SetLanguage sets the Language of a user, if there is one.
	SetLanguage(ctx context.Context, userID int64, tag string) error
	// DeleteUser deletes the user with all sessions, consents, challenges, links, codes and refresh
	// tokens. It keeps the notices, in place of those that were not sent. It returns ErrNotFound, also
	// if the session with that hash has ended; zero = none.
	DeleteUser(ctx context.Context, id int64, session [32]byte, notices ...Notice) error

	// CreateSession inserts s. Beyond MaxSessions of its user, it ends those whose last use is the
	// longest ago. Each end of a session deletes the codes that were issued in it, revokes the
	// families that end with it, and adds a Logout for each client that wants one. tokens reports
	// whether a family has ended: its access tokens have to be refused from now on. The notices are
	// sent.
	CreateSession(ctx context.Context, s *Session, notices ...Notice) (tokens bool, err error)
	Session(ctx context.Context, hash [32]byte) (*Session, error)
	Sessions(ctx context.Context, userID int64) ([]*Session, error)
	// UpdateSession replaces SignedIn, Seen and Expires.
	UpdateSession(ctx context.Context, s *Session) error
	// ProveSession replaces Proved, ProvedBy, Factored and AMR, or returns ErrNotFound.
	ProveSession(ctx context.Context, s *Session) error
	// UseSignIn marks the sign-in at s.SignedIn as used. It returns ErrConflict if it was used
	// before, or if the session has another sign-in or has ended.
	UseSignIn(ctx context.Context, s *Session) error
	// DeleteSession ends a session. tokens is that of CreateSession.
	DeleteSession(ctx context.Context, hash [32]byte) (tokens bool, err error)
	// DeleteSessions ends all sessions of the user except the one whose hash is keep.
	DeleteSessions(ctx context.Context, userID int64, keep [32]byte) (tokens bool, err error)
	// ClientSession returns the ID by which a client knows a session, or ErrNotFound.
	ClientSession(ctx context.Context, hash [32]byte, clientID string) (sid string, err error)
	// AddClientSession notes that a client gets a code in a session. It returns the ID by which the
	// client knows the session: sid for a client that is new to it. The error is ErrNotFound if the
	// session has ended.
	AddClientSession(ctx context.Context, hash [32]byte, clientID, sid string) (string, error)
	// FindClientSession returns ErrNotFound unless the user has a session at now which the client
	// knows by sid.
	FindClientSession(ctx context.Context, userID int64, clientID, sid string, now time.Time) error

	Consent(ctx context.Context, userID int64, clientID string) (*Consent, error)
	// Consents returns all consents of a user. Their Used includes the client's last use of a
	// refresh token.
	Consents(ctx context.Context, userID int64) ([]*Consent, error)
	// GrantConsent adds c's Scopes to those granted before, and replaces Granted and Used. It
	// returns ErrConflict unless the stored Granted is before, zero for no consent. The stored
	// Granted always grows. It returns ErrTooManyClients for the first consent to a self-registered
	// client if the user has consented to oauth.MostSelfRegistered others, and ErrNotFound if there
	// is no such user or client.
	GrantConsent(ctx context.Context, c *Consent, before time.Time) error
	// UseConsent replaces Used unless the stored time is later, or returns ErrNotFound.
	UseConsent(ctx context.Context, c *Consent) error

	PasskeyStore
	GroupStore
	InvitationStore
	NoticeStore
	LogoutStore
	ChallengeStore
	GuessStore
	FactorStore
}
