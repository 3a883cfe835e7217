package account

import (
	"context"
	"slices"
	"time"
)

// Way is a way in to an account: one of the constants, or Passkey.Way or Connection.Way.
type Way string

// The ways in.
const (
	PasswordWay Way = "password"
	EmailWay    Way = "email" // a code to the e-mail address
	PhoneWay    Way = "phone" // a code to the phone number
)

// WayOf returns the way in of a channel.
func WayOf(c Channel) Way {
	if c == SMS {
		return PhoneWay
	}
	return EmailWay
}

// Limits on changes of credentials.
const (
	// ProofLifetime is how long a proof that the person is the user allows changes.
	ProofLifetime = 10 * time.Minute
	// WayAge is how long a way in has to be there before it proves that.
	WayAge = 24 * time.Hour
	// LinkLifetime is how long the link of a notice works.
	LinkLifetime = 72 * time.Hour
)

// Limits on notices.
const (
	NoticeLifetime = 24 * time.Hour // how long a notice is tried
	NoticeInterval = time.Hour      // between two notices of one kind to one recipient
)

// Ways returns the ways in of u.
func (u *User) Ways() (ways []Way) {
	if u.PasswordHash != "" && u.Email != "" {
		ways = append(ways, PasswordWay)
	}
	if u.Phone != "" {
		ways = append(ways, PhoneWay)
	}
	if u.Email != "" {
		ways = append(ways, EmailWay)
	}
	for i := range u.Credentials.Passkeys {
		if p := &u.Credentials.Passkeys[i]; p.SignsIn {
			ways = append(ways, p.Way())
		}
	}
	for i := range u.Credentials.Connections {
		ways = append(ways, u.Credentials.Connections[i].Way())
	}
	return ways
}

// Since returns when u got a way in; zero = when the account was made.
func (u *User) Since(w Way) time.Time {
	switch w {
	case PasswordWay:
		return u.PasswordSince
	case EmailWay:
		return u.EmailSince
	case PhoneWay:
		return u.PhoneSince
	}
	for i := range u.Credentials.Passkeys {
		if p := &u.Credentials.Passkeys[i]; p.Way() == w {
			return p.Created
		}
	}
	for i := range u.Credentials.Connections {
		// The database has the time of an account in milliseconds.
		c := &u.Credentials.Connections[i]
		if c.Way() == w && c.Created.UnixMilli() != u.Created.UnixMilli() {
			return c.Created
		}
	}
	return time.Time{}
}

// IsSettled reports whether u has had a way in for WayAge, or since the account was made.
func (u *User) IsSettled(w Way, now time.Time) bool {
	since := u.Since(w)
	return since.IsZero() || now.Sub(since) >= WayAge
}

// Proving returns the ways in among those that asks accepts by which a person proves to be u: the
// settled ones. If there are none, it is the one that u has had for the longest time, so that an
// owner always has one.
func (u *User) Proving(asks func(Way) bool, now time.Time) (ways []Way) {
	all := slices.DeleteFunc(u.Ways(), func(w Way) bool { return !asks(w) })
	for _, w := range all {
		if u.IsSettled(w, now) {
			ways = append(ways, w)
		}
	}
	if ways == nil && len(all) > 0 {
		ways = []Way{slices.MinFunc(all, func(a, b Way) int {
			return u.Since(a).Compare(u.Since(b))
		})}
	}
	return ways
}

// CredentialChange is what a change of credentials does besides replacing the user's record.
type CredentialChange struct {
	// Session is the hash of the session that allows the change; zero = none. If it has ended,
	// nothing changes.
	Session     [32]byte
	EndSessions bool // all but Keep
	Keep        [32]byte
	EndTokens   bool      // all refresh families, codes and access tokens
	Used        [32]byte  // hash of the link that allows the change; zero = none. It ends
	Undone      time.Time // when the change was made that Used undoes
	EndLinks    bool      // those that restore a channel
	EndTrust    bool      // in all trusted browsers
	// FreeFactors forgets the attempts at second factors.
	FreeFactors bool
	Notices     []Notice
}

// Link is what the link of a message does, as the Store keeps it. It works once.
type Link struct {
	Hash    [32]byte // SHA-256 of the token in the link
	UserID  int64
	Made    time.Time // when the change was made that the message is about
	Ends    time.Time
	Channel Channel // that the message went by
	To      string  // address or number that the message went to
	// Address and Since restore a channel; "" = the link ends sessions only.
	Address string
	Since   time.Time // as User.Since
}

// Notice is a message without a code, as the Store keeps it until it is sent.
type Notice struct {
	ID         string
	UserID     int64
	Channel    Channel
	To         string
	Kind       Kind
	ByOperator bool
	Browser    string    // as in Message
	Language   string    // as in Message
	Seed       string    // the token of the Link is derived from it; "" = no link
	Link       [32]byte  // hash of the token
	Since      time.Time // of an AddressLeft: as in Link
	Made       time.Time // of the first change that it is about
	At         time.Time // of the last change that it is about
	Count      int       // changes that it is about
	Attempts   int
}

// NoticeStore keeps notices until they are sent, and links. Its methods may be called by many
// goroutines.
type NoticeStore interface {
	// ChangeCredentials is UpdateUser that also does what c says, in one transaction. It returns
	// ErrNotFound as well if the session c.Session or the link c.Used is gone. Notices of one kind to
	// one recipient in NoticeInterval become one, which counts them.
	ChangeCredentials(ctx context.Context, u *User, c CredentialChange) error
	// Link returns a link, or ErrNotFound. A link that ends sessions only is gone once the account
	// has another address than the one that the message went to.
	Link(ctx context.Context, hash [32]byte) (*Link, error)
	// RestoringLinks returns the links that restore a user's address or number at now, the oldest
	// first.
	RestoringLinks(ctx context.Context, userID int64, channel Channel, now time.Time) ([]Link, error)
	// UseLink ends the link, and all sessions and tokens of its user, or returns ErrNotFound.
	UseLink(ctx context.Context, hash [32]byte) error

	// DueNotices returns up to limit notices that are due at now, and how many are not sent.
	DueNotices(ctx context.Context, now time.Time, limit int) (due []Notice, waiting int, err error)
	// EndNotice notes that n was sent at now, with n.Count changes. Others that came since are sent
	// later.
	EndNotice(ctx context.Context, n *Notice, now time.Time) error
	// DelayNotice counts an attempt that has failed. The next one is due at a time.
	DelayNotice(ctx context.Context, id string, due time.Time) error
	// DropNotice deletes a notice that is not sent.
	DropNotice(ctx context.Context, id string) error
}
