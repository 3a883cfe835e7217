package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// waiting is a connection that waits until the person has signed in to the account that it belongs
// to, or has named an address.
type waiting struct {
	Provider   string             `json:"provider"`
	Connection account.Connection `json:"connection"`
	Name       string             `json:"name"`
	Address    string             `json:"address,omitempty"`
	UserID     int64              `json:"-"` // 0 = nobody's yet

	provider *oauth.Provider // as it is now
}

// user returns a new account with the connection.
func (w *waiting) user(email, language string, now time.Time) *account.User {
	return &account.User{Name: w.Name, Email: email, Created: now, Updated: now, Language: language,
		Credentials: account.Credentials{Connections: []account.Connection{w.Connection}}}
}

// wait keeps a connection, and returns the token for the browser's cookie.
func (s *Service) wait(
	ctx context.Context, w waiting, a *oauth.ProviderAttempt, now time.Time,
) (string, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return "", fmt.Errorf("keep a connection: %w", err)
	}
	token := account.NewSecret()
	return token, s.config.Providers.CreateAttempt(ctx, &oauth.ProviderAttempt{
		Hash: oauth.HashOf(token), Browser: a.Browser, Provider: w.Provider, Purpose: withWait,
		Query: a.Query, UserID: w.UserID, Identity: string(text),
		Ends: now.Add(oauth.ProviderAttemptEnd),
	})
}

// Waiting is a connection that waits.
type Waiting struct {
	Provider ProviderChoice
	Address  string // of the account that the person signs in to, or that the provider named; "" = none
	UserID   int64  // whose account that is; 0 = the person has to name an address
}

// Waiting returns the connection that waits in a browser, or ErrAttemptEnded.
func (s *Service) Waiting(
	ctx context.Context, token, secret string, now time.Time,
) (*Waiting, error) {
	w, _, err := s.waiting(ctx, token, secret, now)
	if err != nil {
		return nil, err
	}
	p := w.provider
	return &Waiting{ProviderChoice{ID: p.ID, Issuer: p.Issuer, Name: p.Name(), Icon: p.ShownIcon()},
		w.Address, w.UserID}, nil
}

// waiting returns the connection that waits in a browser, as its provider is now: a group that the
// provider maps to no more is left out. The error is ErrAttemptEnded or a failure.
func (s *Service) waiting(
	ctx context.Context, token, secret string, now time.Time,
) (w *waiting, a *oauth.ProviderAttempt, err error) {
	if s.config.Providers == nil || !account.LooksLikeSecret(token) {
		return nil, nil, ErrAttemptEnded
	}
	a, err = s.config.Providers.Attempt(ctx, oauth.HashOf(token), oauth.HashOf(secret))
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		return nil, nil, ErrAttemptEnded
	case err != nil:
		return nil, nil, err
	case a.Purpose != withWait || !now.Before(a.Ends):
		return nil, nil, ErrAttemptEnded
	}
	w = &waiting{UserID: a.UserID}
	if err := json.Unmarshal([]byte(a.Identity), w); err != nil {
		return nil, nil, fmt.Errorf("read a connection that waits: %w", err)
	}
	if w.provider, err = s.provider(ctx, w.Provider); err != nil {
		return nil, nil, err
	}
	if w.provider.Issuer != w.Connection.Issuer {
		return nil, nil, ErrAttemptEnded
	}
	w.Connection.Groups = slices.DeleteFunc(w.Connection.Groups,
		func(name string) bool { return !w.provider.MapsTo(name) })
	return w, a, nil
}

// ConnectWaiting adds the connection that waits in a browser to the account of a session, if that is
// its account and the person has signed in since it waits. The error is ErrAttemptEnded if not,
// ErrProofNeeded if that sign-in does not suffice, ErrConnectionTaken, ErrTooManyConnections or a
// failure.
func (s *Service) ConnectWaiting(
	ctx context.Context, token, secret string, session *account.Session, now time.Time,
) error {
	w, a, err := s.waiting(ctx, token, secret, now)
	if err != nil {
		return err
	}
	since := a.Ends.Add(-oauth.ProviderAttemptEnd)
	if w.UserID == 0 || w.UserID != session.UserID || session.SignedIn.UnixMilli() < since.UnixMilli() {
		return ErrAttemptEnded
	}
	if _, err := s.config.Providers.TakeAttempt(ctx, a.Hash, a.Browser); err != nil {
		if errors.Is(err, oauth.ErrNotFound) {
			return ErrAttemptEnded
		}
		return err
	}
	w.Connection.Created = now
	return s.connect(ctx, session, w.Connection, signedInBy(session), session.SignedIn, now)
}

// BeginConnection sends a code to the address that a person names for the connection that waits in
// a browser. It returns the token for the cookie, which ConfirmConnection needs. Response and time do
// not depend on whether the address has an account. The error is ErrAttemptEnded,
// account.FieldErrors, a *ThrottledError, account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) BeginConnection(
	ctx context.Context, waits, secret, email string, by Browser, now time.Time,
) (token string, err error) {
	if _, _, err := s.waiting(ctx, waits, secret, now); err != nil {
		return "", err
	}
	address, err := s.parseAddress(account.Email, email, now)
	if err != nil {
		return "", err
	}
	c := &account.Challenge{Purpose: account.ForConnection, Channel: account.Email, Address: address,
		Message: account.ChangeCode}
	return s.requestCode(ctx, c, by, now, nil)
}

// WaitingError says that the address that a code has reached has an account: the person signs in to
// it first. Token is for the cookie, in place of the one before.
type WaitingError struct{ Token string }

// Error implements error.
func (e *WaitingError) Error() string { return "the address has an account" }

// ConfirmConnection creates an account with the connection that waits in a browser and the address
// that the code was sent to, and signs in. If the address has an account, the error is a
// *WaitingError. Else it is ErrAttemptEnded, ErrWrongCode, ErrCodeExpired, ErrDisabled,
// ErrNotConnected, a *ThrottledError, account.ErrBusy or a failure.
func (s *Service) ConfirmConnection(
	ctx context.Context, waits, secret, token, code string, by Browser, now time.Time,
) (in *SignedIn, err error) {
	defer func() {
		if !errors.As(err, new(*WaitingError)) {
			s.metrics.signedIn(byProvider, err)
		}
	}()
	return s.signInByCode(ctx, token, account.ForConnection, by, now,
		func(
			ctx context.Context, c *account.Challenge, owner *account.User,
		) (*account.User, error) {
			w, a, err := s.waiting(ctx, waits, secret, now)
			if err != nil {
				return nil, err
			}
			if err := s.checkCode(ctx, c, code, owner, by, now); err != nil {
				return nil, err
			}
			switch {
			case owner.Disabled:
				return nil, ErrDisabled
			case owner.ID == 0 && !s.takesNew(w.provider):
				return nil, ErrNotConnected
			}
			_, err = s.config.Providers.TakeAttempt(ctx, a.Hash, a.Browser)
			if errors.Is(err, oauth.ErrNotFound) {
				err = ErrAttemptEnded
			}
			if err != nil {
				return nil, err
			}
			if owner.ID == 0 {
				w.Connection.Created = now
				u := w.user(c.Address, audit.SourceOf(ctx).Language, now)
				return u, s.takeChallenge(ctx, c, u, now)
			}
			if err := s.takeChallenge(ctx, c, nil, now); err != nil {
				return nil, err
			}
			w.UserID, w.Address = owner.ID, owner.Email
			next, err := s.wait(ctx, *w, a, now)
			if err != nil {
				return nil, err
			}
			return nil, &WaitingError{next}
		})
}
