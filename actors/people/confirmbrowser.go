package people

import (
	"context"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
)

// BeginBrowser requests a code that makes the browser known to an account. Its owner can then sign
// in when too many attempts of others have failed. It returns the token for the cookie, which
// ConfirmBrowser needs. Only the message reveals that the address has no account: response and time
// are the same. The errors are those of BeginReset.
func (s *Service) BeginBrowser(
	ctx context.Context, email string, by Browser, now time.Time,
) (token string, err error) {
	return s.requestOwnerCode(ctx, account.ForBrowser, account.BrowserCode, email, by, now)
}

// requestOwnerCode requests a code of that purpose and kind for the owner of an address. Somebody
// at an address without an account, or with a disabled one, gets a message without a code.
func (s *Service) requestOwnerCode(
	ctx context.Context, purpose account.Purpose, kind account.Kind, email string,
	by Browser, now time.Time,
) (token string, err error) {
	address, err := s.parseAddress(account.Email, email, now)
	if err != nil {
		return "", err
	}
	c := &account.Challenge{
		Purpose: purpose, Channel: account.Email, Address: address, Message: account.NoAccount,
	}
	return s.requestCode(ctx, c, by, now, func(_ context.Context, owner *account.User) error {
		if owner.ID != 0 && !owner.Disabled {
			c.UserID, c.Message = owner.ID, kind
		}
		return nil
	})
}

// ConfirmBrowser returns the mark of a browser that is known to the account whose owner got the
// code. It signs nobody in: that takes the password. The error is ErrWrongCode, ErrCodeExpired, a
// *ThrottledError, account.ErrBusy or a failure.
func (s *Service) ConfirmBrowser(
	ctx context.Context, token, code string, by Browser, now time.Time,
) (known string, err error) {
	if !s.inflight.Enter() {
		return "", mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	c, owner, err := s.challengeFor(ctx, token, account.ForBrowser, now)
	if err != nil {
		return "", err
	}
	ctx = paidBy(ctx, owner, s.known.knows(by.Known, owner, now), by.Caller)
	if err := s.checkCode(ctx, c, code, owner, by, now); err != nil {
		return "", err
	}
	if c.UserID == 0 || owner.ID != c.UserID { // the owner of the address has changed
		return "", ErrCodeExpired
	}
	ctx = ofUser(byUser(ctx, owner.ID), audit.BrowserConfirmed, owner.ID)
	if err := s.takeChallenge(ctx, c, nil, now); err != nil {
		return "", err
	}
	since := (&entry{way: account.WayOf(c.Channel)}).knownSince(now)
	if s.known.owns(by.Known, owner, now) {
		return s.known.ownMark(owner, since), nil
	}
	return s.known.mark(owner, since), nil
}
