package token

import (
	"context"
	"errors"
	"reflect"
	"time"

	"gatehouse/actors/oauth"
)

// errUnchanged ends a change of a client's record that changes nothing.
var errUnchanged = errors.New("nothing changes")

// PutClient registers the client that d describes under its id, or replaces the one with that id.
// With dry it only checks. The errors are those of CreateClient, and
// oauth.ErrDeclared and oauth.ErrBusy.
func (s *Service) PutClient(
	ctx context.Context, d oauth.ClientDescription, dry bool, now time.Time,
) (put *oauth.Client, created bool, err error) {
	put, created, err = s.putClient(ctx, d, dry, now)
	if errors.Is(err, oauth.ErrClientIDTaken) { // by another request at the same time
		put, created, err = s.putClient(ctx, d, dry, now)
	}
	return put, created, err
}

func (s *Service) putClient(
	ctx context.Context, d oauth.ClientDescription, dry bool, now time.Time,
) (put *oauth.Client, created bool, err error) {
	c := d.Client
	old, err := s.config.Tokens.Client(ctx, c.ID)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		if c.Secrets == nil {
			c.Secrets = []oauth.Secret{} // CreateClient makes none
		}
		if dry {
			return &c, true, s.checkNewClient(ctx, &c)
		}
		put, _, err = s.CreateClient(ctx, c, now)
		return put, true, err
	case err != nil:
		return nil, false, err
	}
	if dry {
		put, err = s.checkPut(ctx, old, &d)
		return put, false, err
	}
	put, err = s.changeClient(ctx, c.ID, func(stored *oauth.Client) error {
		next, err := d.Replace(stored)
		if err != nil {
			return err
		}
		if reflect.DeepEqual(next, stored) {
			return errUnchanged
		}
		*stored = *next
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return old, false, nil
	}
	return put, false, err
}

// checkPut returns the record that PutClient would store in place of old.
func (s *Service) checkPut(
	ctx context.Context, old *oauth.Client, d *oauth.ClientDescription,
) (*oauth.Client, error) {
	if old.Options.Declared {
		return nil, oauth.ErrDeclared
	}
	next, err := d.Replace(old)
	if err != nil {
		return nil, err
	}
	return next, s.checkClientChange(ctx, old, next)
}
