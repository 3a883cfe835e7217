package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
)

// ErrProofNeeded says that a change of credentials needs a code to a channel of the account that is
// older: see Service.Needs and Service.BeginProof.
var ErrProofNeeded = errors.New("the change needs a code to an older channel of the account")

// ErrFactorNeeded says that a change of credentials needs a second factor of the account, which was
// not used for too long: see Service.UseFactor.
var ErrFactorNeeded = errors.New("the change needs the second factor of the account")

// ErrLastWay says that a change would leave the account without a way in.
var ErrLastWay = errors.New("the account would have no way in")

// authority is what allows a change of credentials. The zero authority allows none.
type authority struct {
	kind    authorityKind
	way     account.Way   // asPerson, asRecovery: that has proved who the person is
	at      time.Time     // when it has
	factor  time.Time     // when a second factor was used; zero = never
	session [32]byte      // asPerson: the one that the person is in. It has to live until the change
	keep    [32]byte      // session that goes on; zero = none
	link    *account.Link // asLink: the link that was used
}

type authorityKind int

const (
	asNobody   authorityKind = iota
	asPerson                 // in a session
	asRecovery               // by a code, for a new password
	asLink                   // by the link of a notice
	asOperator               // or the service itself
)

// authorityOf returns the authority of a request that proves nothing.
func authorityOf(ctx context.Context) authority {
	if s := audit.SourceOf(ctx); s.ByOperator() || s.Actor.Kind == audit.System {
		return authority{kind: asOperator}
	}
	return authority{}
}

// ends says what a change of credentials ends.
type ends int

const (
	endsNothing  ends = iota
	endsSessions      // all other sessions
	endsTokens        // all other sessions, and all tokens
)

// credential is a row of the table of all changes of credentials.
type credential struct {
	name string
	// differs reports whether the change is among those from old to u.
	differs func(old, u *account.User) bool
	since   func(u *account.User) *time.Time // is set to the time of the change; nil = none
	ends    ends
	notice  account.Kind // to all old and new channels
	left    func(old *account.User) (account.Channel, string, time.Time)
	factors string // what the audit trail calls the change of second factors; "" = it is none
	// endsTrust says that the change ends the trust in all browsers.
	endsTrust bool
}

// credentials are all changes of credentials of a user's record. changeUser makes all of them.
// deleteUser makes the one that is left: the end of the account.
var credentials = []credential{
	{
		name: "password set", ends: endsTokens, endsTrust: true, notice: account.PasswordSet,
		since: passwordSince,
		differs: func(old, u *account.User) bool {
			return old.PasswordHash == "" && u.PasswordHash != ""
		},
	},
	{
		name: "password changed", ends: endsTokens, endsTrust: true,
		notice: account.PasswordChanged, since: passwordSince,
		differs: func(old, u *account.User) bool {
			return old.PasswordHash != "" && u.PasswordHash != old.PasswordHash
		},
	},
	{
		name: "email added", ends: endsNothing, notice: account.EmailAdded, since: emailSince,
		differs: added(emailOf),
	},
	{
		name: "email changed", ends: endsSessions, notice: account.EmailChanged, since: emailSince,
		left:    emailLeft,
		differs: replaced(emailOf),
	},
	{
		name: "email removed", ends: endsSessions, notice: account.EmailRemoved, since: emailSince,
		left:    emailLeft,
		differs: removed(emailOf),
	},
	{
		name: "phone added", ends: endsNothing, notice: account.PhoneAdded, since: phoneSince,
		differs: added(phoneOf),
	},
	{
		name: "phone changed", ends: endsSessions, notice: account.PhoneChanged, since: phoneSince,
		left:    phoneLeft,
		differs: replaced(phoneOf),
	},
	{
		name: "phone removed", ends: endsSessions, notice: account.PhoneRemoved, since: phoneSince,
		left:    phoneLeft,
		differs: removed(phoneOf),
	},
	{
		name: "phone allowed in place of a password", ends: endsNothing,
		notice: account.PhoneSignInAllowed, since: phoneSignInSince,
		differs: func(old, u *account.User) bool { return !old.PhoneSignIn && u.PhoneSignIn },
	},
	{
		name: "phone no longer allowed in place of a password", ends: endsSessions,
		notice: account.PhoneSignInEnded, since: phoneSignInSince,
		differs: func(old, u *account.User) bool { return old.PhoneSignIn && !u.PhoneSignIn },
	},
	{
		name: "passkey added", ends: endsNothing, notice: account.PasskeyAdded,
		differs: func(old, u *account.User) bool { return lacksPasskey(old, u, true) },
	},
	{
		name: "passkey removed", ends: endsSessions, notice: account.PasskeyRemoved,
		differs: func(old, u *account.User) bool { return lacksPasskey(u, old, true) },
	},
	{
		name: "security key added", ends: endsNothing, endsTrust: true,
		notice: account.SecurityKeyAdded, factors: "security_key_added", differs: addsKey,
	},
	{
		name: "security key removed", ends: endsSessions, endsTrust: true,
		notice: account.SecurityKeyRemoved, factors: "security_key_removed",
		differs: func(old, u *account.User) bool { return addsKey(u, old) },
	},
	{
		name: "authenticator added", ends: endsNothing, endsTrust: true,
		notice: account.AuthenticatorAdded, factors: "authenticator_added",
		differs: func(old, u *account.User) bool {
			return u.Credentials.Authenticator != nil && isOtherApp(old, u)
		},
	},
	{
		name: "authenticator removed", ends: endsSessions, endsTrust: true,
		notice: account.AuthenticatorRemoved, factors: "authenticator_removed",
		differs: func(old, u *account.User) bool {
			return old.Credentials.Authenticator != nil && isOtherApp(old, u)
		},
	},
	{
		name: "recovery codes replaced", ends: endsNothing, notice: account.RecoveryCodesReplaced,
		factors: "recovery_codes_replaced",
		differs: func(old, u *account.User) bool {
			return u.Credentials.RecoveryCodes != nil && !isOtherApp(old, u) && !addsKey(old, u) &&
				!reflect.DeepEqual(old.Credentials.RecoveryCodes, u.Credentials.RecoveryCodes)
		},
	},
	{
		name: "connection added", ends: endsNothing, notice: account.ConnectionAdded,
		differs: connected,
	},
	{
		name: "connection removed", ends: endsSessions, notice: account.ConnectionRemoved,
		differs: func(old, u *account.User) bool { return connected(u, old) },
	},
}

// lacksPasskey reports whether other has a passkey that u has not: one that signs in, or a security
// key that only is a second factor.
func lacksPasskey(u, other *account.User, signsIn bool) bool {
	return slices.ContainsFunc(other.Credentials.Passkeys, func(key account.Passkey) bool {
		if key.SignsIn != signsIn {
			return false
		}
		i := u.Credentials.Passkey(key.ID)
		return i < 0 || !bytes.Equal(u.Credentials.Passkeys[i].PublicKey, key.PublicKey) ||
			u.Credentials.Passkeys[i].SignsIn != key.SignsIn
	})
}

// addsKey reports whether u has a security key that old has not.
func addsKey(old, u *account.User) bool { return lacksPasskey(old, u, false) }

// isOtherApp reports whether u has another authenticator app than old, or only one of them has one.
// Its secret may be sealed under another key.
func isOtherApp(old, u *account.User) bool {
	a, b := old.Credentials.Authenticator, u.Credentials.Authenticator
	return (a == nil) != (b == nil) || a != nil && !a.Created.Equal(b.Created)
}

// connected reports whether b has a connection that a does not have.
func connected(a, b *account.User) bool {
	return slices.ContainsFunc(b.Credentials.Connections, func(c account.Connection) bool {
		return !slices.Contains(a.Ways(), c.Way())
	})
}

func emailOf(u *account.User) string { return u.Email }
func phoneOf(u *account.User) string { return u.Phone }

func added(channel func(*account.User) string) func(old, u *account.User) bool {
	return func(old, u *account.User) bool { return channel(old) == "" && channel(u) != "" }
}

func replaced(channel func(*account.User) string) func(old, u *account.User) bool {
	return func(old, u *account.User) bool {
		return channel(old) != "" && channel(u) != "" && channel(u) != channel(old)
	}
}

func removed(channel func(*account.User) string) func(old, u *account.User) bool {
	return func(old, u *account.User) bool { return channel(old) != "" && channel(u) == "" }
}

func passwordSince(u *account.User) *time.Time    { return &u.PasswordSince }
func emailSince(u *account.User) *time.Time       { return &u.EmailSince }
func phoneSince(u *account.User) *time.Time       { return &u.PhoneSince }
func phoneSignInSince(u *account.User) *time.Time { return &u.PhoneSignInSince }

func emailLeft(old *account.User) (account.Channel, string, time.Time) {
	return account.Email, old.Email, old.EmailSince
}

func phoneLeft(old *account.User) (account.Channel, string, time.Time) {
	return account.SMS, old.Phone, old.PhoneSince
}

// credentialsOf returns the changes of credentials from old to u.
func credentialsOf(old, u *account.User) (all []credential) {
	for _, c := range credentials {
		if c.differs(old, u) {
			all = append(all, c)
		}
	}
	return all
}

// saveUser stores u, which a change has made of old. It is the one way for all changes of
// credentials: a allows them or does not; they end the sessions that lose trust, in one transaction
// with their events and the notices to people.
func (s *Service) saveUser(
	ctx context.Context, old, u *account.User, a authority, now time.Time,
) error {
	all := credentialsOf(old, u)
	if len(all) == 0 && a.kind != asLink {
		return s.config.Store.UpdateUser(ofChange(ctx, old, u, a), u)
	}
	if err := s.checkAuthority(a, old, now); err != nil {
		return err
	}
	if (a.kind == asPerson || a.kind == asRecovery) && !slices.ContainsFunc(u.Ways(), s.asks) {
		return ErrLastWay
	}
	c := account.CredentialChange{Session: a.session, Keep: a.keep, EndLinks: a.kind == asOperator}
	for _, one := range all {
		c.EndSessions = c.EndSessions || one.ends >= endsSessions
		c.EndTokens = c.EndTokens || one.ends == endsTokens
		c.EndTrust = c.EndTrust || one.endsTrust
		if one.since != nil && a.kind != asLink { // which restores the time as well
			*one.since(u) = now
		}
	}
	c.FreeFactors = isOtherApp(old, u) || old.HasSecondFactor() && !u.HasSecondFactor()
	if a.kind == asLink {
		c.EndTrust = true
		c.Used, c.Undone, c.EndTokens, c.Keep = a.link.Hash, a.link.Made, true, [32]byte{}
	}
	c.Notices = s.noticesOf(ctx, old, u, all, a, now)
	return s.config.Store.ChangeCredentials(ofChange(ctx, old, u, a), u, c)
}

// checkAuthority returns ErrProofNeeded or ErrFactorNeeded unless a allows to change the credentials of
// u.
func (s *Service) checkAuthority(a authority, u *account.User, now time.Time) error {
	switch a.kind {
	case asOperator, asLink:
		return nil
	case asPerson, asRecovery:
		if u.HasSecondFactor() && now.Sub(a.factor) >= account.ProofLifetime {
			return ErrFactorNeeded
		}
		asks := s.asks
		if a.kind == asRecovery {
			asks = s.sends
		}
		if now.Sub(a.at) < account.ProofLifetime && slices.Contains(u.Proving(asks, now), a.way) {
			return nil
		}
	}
	return ErrProofNeeded
}

// asks reports whether the service can ask for a way in.
func (s *Service) asks(w account.Way) bool {
	return w == account.PasswordWay || w.IsPasskey() && s.config.PasskeyDomain != "" || s.sends(w) ||
		strings.HasPrefix(string(w), connectionPrefix) && s.signsInWith(w)
}

// connectionPrefix begins each way in that is a connection.
var connectionPrefix = strings.TrimSpace(string((&account.Connection{}).Way())) + " "

// sends reports whether the service can send codes to a way in.
func (s *Service) sends(w account.Way) bool {
	switch w {
	case account.EmailWay:
		return s.Channels().Has(account.Email)
	case account.PhoneWay:
		return s.Channels().Has(account.SMS)
	}
	return false
}

// deleteUser deletes u with all that belongs to the account, and notifies its channels. It is the
// other half of saveUser.
func (s *Service) deleteUser(
	ctx context.Context, u *account.User, a authority, now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if err := s.checkAuthority(a, u, now); err != nil {
		return err
	}
	notices := s.noticesTo(ctx, u, account.AccountDeleted, now)
	for i := range notices {
		notices[i].Seed, notices[i].Link = "", [32]byte{} // nothing is left to be secured
	}
	ctx = ofUser(ctx, audit.AccountDeleted, u.ID)
	err := s.config.Store.DeleteUser(ctx, u.ID, a.session, notices...)
	if err = s.config.Tokens.UserChanged(u.ID, err); err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}
