package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// ImportUsers creates the users of a part of an import, whose addresses count as verified, and sets
// Created and Refused of p. It sends no messages. The error is account.ErrConflict if a later part
// was done, or a failure.
func (s *Service) ImportUsers(ctx context.Context, p *account.ImportPart, now time.Time) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	var valid []account.ImportedUser
	for _, one := range p.Users {
		one.User.Tidy()
		one.User.Created, one.User.Updated = now, now
		for i := range one.User.Credentials.Connections {
			if c := &one.User.Credentials.Connections[i]; c.Created.IsZero() || c.Created.After(now) {
				c.Created = now
			}
		}
		problem, err := importProblem(one.User, now)
		switch {
		case err != nil:
			return err
		case problem != nil:
			p.Refused = append(p.Refused, account.RefusedLine{Line: one.Line, FieldError: *problem})
		default:
			p.Lost += s.importFactors(one.User, now)
			valid = append(valid, one)
		}
	}
	p.Users = valid
	if err := s.config.Store.ImportUsers(ctx, p); err != nil {
		return fmt.Errorf("import users: %w", err)
	}
	return nil
}

// importProblem returns the first reason why u cannot be imported; nil = none.
func importProblem(u *account.User, now time.Time) (*account.FieldError, error) {
	var fields account.FieldErrors
	if err := checkUser(u, now); errors.As(err, &fields) {
		return &fields[0], nil
	} else if err != nil {
		return nil, err
	}
	var wrong account.FieldError
	switch {
	case u.ID < 0 || u.ID > account.MaxID:
		return &account.FieldError{Field: "id", Message: "must be a number from 1 to 2^53-1"}, nil
	case u.ServiceID != "" && (len(u.ServiceID) != 36 || uuid.Validate(u.ServiceID) != nil):
		return &account.FieldError{Field: "service_id", Message: "must be a UUID"}, nil
	case u.PasswordHash != "" && u.Email == "":
		return &account.FieldError{Field: "password_hash", Message: "is of no use without an e-mail address"}, nil
	case u.PhoneSignIn && u.Phone == "":
		return &account.FieldError{Field: "phone_sign_in", Message: "needs a phone number"}, nil
	case checkImportedPasskeys(&u.Credentials) != nil:
		return &account.FieldError{Field: "passkeys", Message: "must be as an export wrote them"}, nil
	case u.PasswordHash != "" && errors.As(account.CheckHash(u.PasswordHash), &wrong):
		return &wrong, nil
	}
	if text := checkImportedConnections(u.Credentials.Connections); text != "" {
		return &account.FieldError{Field: "connections", Message: text}, nil
	}
	return nil, nil
}

// checkImportedPasskeys returns an error unless the passkeys of c are as this service keeps them.
func checkImportedPasskeys(c *account.Credentials) error {
	if c.Passkeys == nil && c.Handle == nil {
		return nil
	}
	if len(c.Handle) != HandleLength || len(c.Passkeys) > account.MaxPasskeys {
		return ErrPasskeyWrong
	}
	for i, key := range c.Passkeys {
		_, err := webauthncose.ParsePublicKey(key.PublicKey)
		if len(key.ID) == 0 || len(key.ID) > maxCredentialID || err != nil || key.Created.IsZero() ||
			len(key.Transports) > maxTransports || c.Passkey(key.ID) != i {
			return ErrPasskeyWrong
		}
		if _, err := account.CheckPasskeyName(key.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkImportedConnections returns what is wrong with the connections of a line, for the operator;
// "" = nothing.
func checkImportedConnections(all []account.Connection) string {
	if len(all) > account.MaxConnections {
		return "must be at most " + strconv.Itoa(account.MaxConnections)
	}
	for i, c := range all {
		isRepeated := slices.ContainsFunc(all[:i], func(o account.Connection) bool {
			return o.Way() == c.Way()
		})
		isWrongGroup := func(name string) bool {
			return !account.IsGroupName(name) || name == account.OperatorsGroup
		}
		switch {
		case oauth.CheckProviderURL(c.Issuer) != nil:
			return "must each have an issuer with https, or a provider"
		case c.Subject == "" || len(c.Subject) > oauth.MostSubject:
			return "must each have a subject of 1 to 255 bytes"
		case isRepeated:
			return "must have each issuer and subject once"
		case len(c.Groups) > account.MostGroups || slices.ContainsFunc(c.Groups, isWrongGroup):
			return "must have groups that a provider may give: at most 1,000, without " +
				account.OperatorsGroup
		case c.Name != shortLine(c.Name, account.MaxConnectionName):
			return "must have names of one line, of at most 200 characters, without control characters"
		}
	}
	return ""
}

// ExportFactors returns the authenticator app of u for a file, whose secret is sealed under the key
// file; nil = there is none.
func (s *Service) ExportFactors(u *account.User) *account.Authenticator {
	a := u.Credentials.Authenticator
	if a == nil {
		return nil
	}
	secret, ok := s.openSecret(a.Secret)
	if !ok {
		return nil
	}
	return &account.Authenticator{Secret: s.config.Store.SealFactor(secret), Created: a.Created,
		Step: a.Step}
}

// importFactors seals the secret of an authenticator app from a file under a key of this service, and
// returns how many are lost: 1 if it was sealed under another key file, or if all security keys were
// left out. The recovery codes go with the last second factor.
func (s *Service) importFactors(u *account.User, now time.Time) (lost int) {
	a := u.Credentials.Authenticator
	if a == nil {
		if !u.HasSecondFactor() && len(u.Credentials.RecoveryCodes) > 0 {
			lost = 1
		}
		u.EndRecovery()
		return lost
	}
	secret, ok := s.config.Store.OpenFactor(a.Secret)
	if !ok || len(secret) != account.TOTPSecret {
		u.Credentials.Authenticator = nil
		u.EndRecovery()
		return 1
	}
	again := &account.Authenticator{Secret: s.sealSecret(secret), Created: a.Created, Step: a.Step}
	if again.Created.IsZero() || again.Created.After(now) {
		again.Created = now
	}
	u.Credentials.Authenticator = again
	return 0
}
