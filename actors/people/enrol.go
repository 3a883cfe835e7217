package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// NewAuthenticatorSecret returns the secret of a new authenticator app in base32, for typing.
func NewAuthenticatorSecret() string {
	var bits [account.TOTPSecret]byte
	rand.Read(bits[:]) // never fails
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bits[:])
}

// AuthenticatorURL returns the URL for authenticator apps of a secret of u.
func (s *Service) AuthenticatorURL(u *account.User, secret string) string {
	issuer := s.config.Name
	if issuer == "" {
		if at, err := url.Parse(s.config.Issuer); err == nil {
			issuer = at.Hostname()
		}
	}
	return account.TOTPURL(issuer, cmp.Or(u.Email, u.Phone), secret)
}

// NeedsToEnrol is Needs for a first second factor. In a browser that was not known for WayAge at the
// sign-in, a code to a channel of the account or a settled passkey is needed as well: one who knows
// only the password, and may have added a passkey, must not lock out the owner.
func (s *Service) NeedsToEnrol(
	u *account.User, session *account.Session, now time.Time,
) Need {
	proved := session.HasTwoFactors() &&
		(!session.Way.IsPasskey() || slices.Contains(u.Proving(s.asks, now), session.Way))
	if u.HasSecondFactor() || !session.NewBrowser || proved {
		return s.Needs(u, session, false, now)
	}
	by := signedInBy(session)
	byCode := by == account.EmailWay || by == account.PhoneWay
	recent := now.Sub(session.Proved) < account.ProofLifetime &&
		session.ProvedBy != account.PasswordWay
	if !byCode && !recent && len(s.ProofChannels(u, now)) > 0 {
		return NeedsCode
	}
	return s.Needs(u, session, false, now)
}

// MustEnrol reports whether u has to set up a second factor before a client gets a code in a session.
// always is the wish of the client.
func (s *Service) MustEnrol(u *account.User, session *account.Session, always bool) bool {
	return (s.config.RequireSecondFactor || always) && !u.HasSecondFactor() &&
		!session.HasTwoFactors()
}

// AddAuthenticator gives u an authenticator app with that secret in base32, when p proves who the
// person is and code is one of the app. It returns recovery codes, which are shown once, unless u has
// some, and notes the factor in the session. The error is ErrWrongCode, ErrHasApp, one of Prove,
// account.ErrNotFound or a failure.
func (s *Service) AddAuthenticator(
	ctx context.Context, u *account.User, p Proof, secret, code string, now time.Time,
) (codes []string, err error) {
	if s.NeedsToEnrol(u, p.Session, now) == NeedsCode {
		return nil, ErrProofNeeded
	}
	bits, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil || len(bits) != account.TOTPSecret {
		return nil, ErrWrongCode
	}
	step, ok := account.MatchTOTP(bits, strings.TrimSpace(code), now)
	if !ok {
		return nil, ErrWrongCode
	}
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return nil, err
	}
	sealed := s.sealSecret(bits)
	_, err = s.changeUser(ctx, u.ID, a, now, func(u *account.User) error {
		if u.Credentials.Authenticator != nil {
			return ErrHasApp
		}
		u.Credentials.Authenticator = &account.Authenticator{Secret: sealed, Created: now, Step: step}
		codes = firstRecoveryCodes(u)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return codes, s.noteFactor(ctx, p.Session, factorApp, now)
}

// ErrHasApp says that the account has an authenticator app already.
var ErrHasApp = errors.New("the account has an authenticator app")

// RemoveAuthenticator removes the authenticator app of u, when p proves who the person is. Without
// another second factor, the recovery codes end as well. The error is one of Prove,
// account.ErrNotFound or a failure.
func (s *Service) RemoveAuthenticator(
	ctx context.Context, u *account.User, p Proof, now time.Time,
) error {
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return err
	}
	_, err = s.changeUser(ctx, u.ID, a, now, func(u *account.User) error {
		u.Credentials.Authenticator = nil
		u.EndRecovery()
		return nil
	})
	return err
}

// ReplaceRecoveryCodes gives u other recovery codes in place of all former ones, when p proves who the
// person is. They are shown once. The error is one of Prove, account.ErrNotFound or a failure.
func (s *Service) ReplaceRecoveryCodes(
	ctx context.Context, u *account.User, p Proof, now time.Time,
) (codes []string, err error) {
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return nil, err
	}
	codes, hashes := newRecoveryCodes()
	_, err = s.changeUser(ctx, u.ID, a, now, func(u *account.User) error {
		if !u.HasSecondFactor() {
			return account.ErrNotFound
		}
		u.Credentials.RecoveryCodes = hashes
		return nil
	})
	return codes, err
}

// ResetFactors removes all second factors of a user, for an operator: the authenticator app, security
// keys and recovery codes. The error is account.ErrNotFound or a failure.
func (s *Service) ResetFactors(ctx context.Context, id int64, now time.Time) error {
	_, err := s.changeUser(ctx, id, authority{kind: asOperator}, now,
		func(u *account.User) error {
			u.Credentials.Authenticator, u.Credentials.RecoveryCodes = nil, nil
			u.Credentials.RemovePasskeys(func(key *account.Passkey) bool { return !key.SignsIn })
			return nil
		})
	return err
}

// firstRecoveryCodes gives u recovery codes with a second factor, unless there are some, and returns
// them.
func firstRecoveryCodes(u *account.User) (codes []string) {
	if len(u.Credentials.RecoveryCodes) > 0 {
		return nil
	}
	codes, u.Credentials.RecoveryCodes = newRecoveryCodes()
	return codes
}

// newRecoveryCodes returns recovery codes and their hashes.
func newRecoveryCodes() (codes []string, hashes [][]byte) {
	for range account.NewRecoveryCodes {
		code := account.NewRecoveryCode()
		hash, _ := account.RecoveryCodeHash(code)
		codes, hashes = append(codes, code), append(hashes, hash[:])
	}
	return codes, hashes
}

// A sealed secret is the number of its key, a nonce, and the secret under XChaCha20-Poly1305. Number
// and nonce are authenticated with it.
const secretHead = 2 + chacha20poly1305.NonceSizeX

// sealSecret seals the secret of an authenticator app under the current key.
func (s *Service) sealSecret(secret []byte) []byte {
	key := &s.config.FactorKeys()[0]
	head := make([]byte, secretHead, secretHead+len(secret)+chacha20poly1305.Overhead)
	binary.BigEndian.PutUint16(head, key.Number)
	rand.Read(head[2:]) // never fails
	aead, err := chacha20poly1305.NewX(key.Secret[:])
	if err != nil {
		panic(err) // the key has another length
	}
	return aead.Seal(head, head[2:], secret, head)
}

// openSecret is the inverse of sealSecret, under any key.
func (s *Service) openSecret(sealed []byte) (secret []byte, ok bool) {
	if len(sealed) < secretHead {
		return nil, false
	}
	for _, key := range s.config.FactorKeys() {
		if key.Number != binary.BigEndian.Uint16(sealed) {
			continue
		}
		aead, err := chacha20poly1305.NewX(key.Secret[:])
		if err != nil {
			panic(err) // the key has another length
		}
		head := sealed[:secretHead]
		secret, err = aead.Open(nil, head[2:], sealed[secretHead:], head)
		return secret, err == nil
	}
	return nil, false
}

// resealPage is how many users ResealFactors reads at a time.
const resealPage = 500

// ResealFactors seals the secrets of all authenticator apps under the current key, and returns how
// many it has sealed anew. It may be called again after an error.
func (s *Service) ResealFactors(ctx context.Context) (n int, err error) {
	current := s.config.FactorKeys()[0].Number
	for after := int64(0); ; {
		users, err := s.config.Store.Users(ctx, after, resealPage)
		if err != nil || len(users) == 0 {
			return n, err
		}
		for _, u := range users {
			after = u.ID
			done, err := s.reseal(ctx, u, current)
			if err != nil {
				return n, err
			}
			if done {
				n++
			}
		}
	}
}

// reseal seals the secret of u under the current key, unless it is.
func (s *Service) reseal(ctx context.Context, u *account.User, current uint16) (bool, error) {
	for range changeTries {
		a := u.Credentials.Authenticator
		if a == nil || len(a.Secret) < secretHead || binary.BigEndian.Uint16(a.Secret) == current {
			return false, nil
		}
		secret, ok := s.openSecret(a.Secret)
		if !ok {
			return false, nil // its key is gone; nothing can be done
		}
		next, again := *u, *a
		again.Secret = s.sealSecret(secret)
		next.Credentials.Authenticator = &again
		err := s.config.Store.UseCredential(ctx, &next)
		if err == nil {
			return true, nil
		}
		if errors.Is(err, account.ErrNotFound) {
			return false, nil
		}
		if !errors.Is(err, account.ErrConflict) {
			return false, err
		}
		if u, err = userOrZero(s.config.Store.User(ctx, u.ID)); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("reseal factors: others keep changing a user: %w", oauth.ErrBusy)
}
