package people

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// tokenLength is the number of bytes in the token of a link.
const tokenLength = 32

// Link returns what the link of a notice does, for display, or account.ErrNotFound if it does nothing
// any more.
func (s *Service) Link(ctx context.Context, token string, now time.Time) (*account.Link, error) {
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != tokenLength {
		return nil, account.ErrNotFound
	}
	l, err := s.config.Store.Link(ctx, oauth.HashOf(token))
	if err == nil && !now.Before(l.Ends) {
		err = account.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read link: %w", err)
	}
	return l, nil
}

// UseLink does what the link of a notice does, once, and returns its user as the account is then. All
// sessions and tokens end. A channel that has left comes back, and ways in that were added since are
// removed, and those that were younger than a day then. The error is account.ErrNotFound,
// account.ErrTaken if the channel belongs to another account now, which ends the sessions and tokens
// all the same, or a failure.
func (s *Service) UseLink(
	ctx context.Context, token string, now time.Time,
) (*account.User, error) {
	l, err := s.Link(ctx, token, now)
	if err != nil {
		return nil, err
	}
	ctx = byUser(ctx, l.UserID)
	if l.Address == "" {
		return s.secure(ctx, l)
	}
	u, err := s.changeUser(ctx, l.UserID, authority{kind: asLink, link: l}, now,
		func(u *account.User) error {
			// Another request may have used the link since.
			if _, err := s.config.Store.Link(ctx, l.Hash); err != nil {
				return err
			}
			return s.undo(ctx, u, l, now)
		})
	if !errors.Is(err, account.ErrTaken) {
		return u, err
	}
	if _, end := s.secure(ctx, l); end != nil {
		return nil, end
	}
	return nil, err
}

// undo restores the channel of l to u. It removes the ways in that were not settled when the change
// was made: the person who made it may have added them just before. The other channel of that time
// comes back as well: else who has the one of l alone would have the account.
func (s *Service) undo(
	ctx context.Context, u *account.User, l *account.Link, now time.Time,
) (err error) {
	hadPassword := u.PasswordHash != ""
	other := account.SMS
	if l.Channel == account.SMS {
		other = account.Email
	}
	hadOther := *addressOf(u, other) != ""
	if !u.IsSettled(account.PasswordWay, l.Made) {
		u.PasswordHash, u.PasswordSince = "", time.Time{}
	}
	if !u.IsSettled(account.EmailWay, l.Made) {
		u.Email, u.EmailSince = "", time.Time{}
	}
	if !u.IsSettled(account.PhoneWay, l.Made) {
		u.Phone, u.PhoneSince = "", time.Time{}
	}
	u.Credentials.RemovePasskeys(func(key *account.Passkey) bool {
		return l.Made.Sub(key.Created) < account.WayAge
	})
	if l.Made.Sub(u.PhoneSignInSince) < account.WayAge {
		u.PhoneSignIn, u.PhoneSignInSince = false, time.Time{}
	}
	if a := u.Credentials.Authenticator; a != nil && l.Made.Sub(a.Created) < account.WayAge {
		u.Credentials.Authenticator = nil
	}
	u.EndRecovery()
	u.Credentials.Connections = slices.DeleteFunc(slices.Clone(u.Credentials.Connections),
		func(c account.Connection) bool { return !u.IsSettled(c.Way(), l.Made) })
	restore(u, l)
	if *addressOf(u, other) == "" {
		links, err := s.config.Store.RestoringLinks(ctx, u.ID, other, now)
		if err != nil {
			return err
		}
		if o := linkOfThen(links, l, hadOther); o != nil {
			owner, err := s.owner(ctx, &account.Challenge{Channel: other, Address: o.Address})
			if err != nil {
				return err
			}
			if owner.ID == 0 || owner.ID == u.ID {
				restore(u, o)
			}
		}
	}
	if !hadPassword || u.PasswordHash != "" || u.Email == "" || u.Phone == "" {
		return nil
	}
	// A code to the phone did not sign in alone, and must not from now on. The owner sets a password
	// by the e-mail address.
	u.PasswordHash, err = s.hasher.Hash(paidBy(ctx, u, true, audit.SourceOf(ctx).Caller), rand.Text())
	u.PasswordSince = l.Made
	return err
}

// restore gives u the channel of a link, as old as it was.
func restore(u *account.User, l *account.Link) {
	*addressOf(u, l.Channel) = l.Address
	if l.Channel == account.SMS {
		u.PhoneSince = l.Since
	} else {
		u.EmailSince = l.Since
	}
}

// linkOfThen returns the one among links, by time, that restores the settled channel which the
// account had when the change of l was made: the first that left since, or else, in place of a
// younger one, the last that left before; nil = there is none.
func linkOfThen(links []account.Link, l *account.Link, hadYounger bool) *account.Link {
	i := slices.IndexFunc(links, func(o account.Link) bool { return !o.Made.Before(l.Made) })
	switch {
	case i >= 0 && (links[i].Since.IsZero() || l.Made.Sub(links[i].Since) >= account.WayAge):
		return &links[i]
	case i < 0:
		i = len(links)
	}
	if i == 0 || !hadYounger {
		return nil
	}
	return &links[i-1]
}

// secure ends all sessions and tokens of the user of l.
func (s *Service) secure(ctx context.Context, l *account.Link) (*account.User, error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	err := s.config.Store.UseLink(ofUser(ctx, audit.SignOut, l.UserID, "all"), l.Hash)
	if err != nil && errors.Is(err, account.ErrNotFound) {
		return nil, err
	}
	if err = s.config.Tokens.UserChanged(l.UserID, err); err != nil {
		return nil, fmt.Errorf("end sessions: %w", err)
	}
	return s.config.Store.User(ctx, l.UserID)
}
