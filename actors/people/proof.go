package people

import (
	"context"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
)

// ProofChannels returns the channels of u to which BeginProof can send a code.
func (s *Service) ProofChannels(u *account.User, now time.Time) (all []account.Channel) {
	proving := u.Proving(s.asks, now)
	for _, channel := range []account.Channel{account.SMS, account.Email} {
		if slices.Contains(proving, account.WayOf(channel)) {
			all = append(all, channel)
		}
	}
	return all
}

// BeginProof sends a code to a channel of u, one of ProofChannels. It returns the token for the
// cookie, which ConfirmProof needs. The error is ErrProofNeeded for another channel, a
// *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) BeginProof(
	ctx context.Context, u *account.User, channel account.Channel, by Browser, now time.Time,
) (token string, err error) {
	c, err := s.proofChallenge(u, s.asks, channel, now)
	if err != nil {
		return "", err
	}
	return s.requestCode(ctx, c, by, now, nil)
}

// proofChallenge returns a challenge that a channel of u proves with, among the ways in that asks
// accepts; "" = any channel.
func (s *Service) proofChallenge(
	u *account.User, asks func(account.Way) bool, channel account.Channel, now time.Time,
) (*account.Challenge, error) {
	for _, way := range u.Proving(asks, now) {
		of := account.Email
		if way == account.PhoneWay {
			of = account.SMS
		}
		if s.sends(way) && (channel == "" || channel == of) {
			return &account.Challenge{
				Purpose: account.ForProof, Channel: of, Address: *addressOf(u, of), UserID: u.ID,
				Message: account.ProofCode, Ends: now.Add(account.ProofLifetime),
			}, nil
		}
	}
	return nil, ErrProofNeeded
}

// ConfirmProof notes in a session that the code of a channel was entered: for ProofLifetime it
// allows changes of credentials. The error is ErrWrongCode, ErrCodeExpired, a *ThrottledError,
// account.ErrBusy, account.ErrNotFound or a failure.
func (s *Service) ConfirmProof(
	ctx context.Context, session *account.Session, token, code string, by Browser, now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	c, owner, err := s.challengeFor(ctx, token, account.ForProof, now)
	if err != nil {
		return err
	}
	ctx = paidBy(ctx, owner, s.known.knows(by.Known, owner, now), by.Caller)
	if c.UserID != session.UserID || owner.ID != c.UserID {
		return ErrCodeExpired
	}
	if err := s.checkCode(ctx, c, code, owner, by, now); err != nil {
		return err
	}
	if err := s.takeChallenge(ctx, c, nil, now); err != nil {
		return err
	}
	session.Proved, session.ProvedBy = now, account.WayOf(c.Channel)
	return s.config.Store.ProveSession(ctx, session)
}
