package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
)

const (
	// JWKSMaxAge is how long others may keep the result of JWKS.
	JWKSMaxAge = time.Hour
	// signingDelay is the time from the making of a signing key, which JWKS shows at once, to its
	// first use. By then others have read it, also those that read it once a day.
	signingDelay = 24 * time.Hour
	// signingCheck is how often the age of the signing keys is checked.
	signingCheck = time.Hour
	// rsaBits is the length of RSA keys (RFC 7518 section 3.3 asks for 2048 at least).
	rsaBits = 2048
)

// DefaultSigningKeyAge is how long a signing key is in use by default.
const DefaultSigningKeyAge = 90 * 24 * time.Hour

// purposeOf returns what the keys of an algorithm are for; "" = the algorithm is unknown.
func purposeOf(alg string) oauth.Purpose {
	switch jose.SignatureAlgorithm(alg) {
	case jose.RS256:
		return oauth.RS256Keys
	case jose.ES256:
		return oauth.ES256Keys
	}
	return ""
}

// signingKey is a key for JWTs.
type signingKey struct {
	oauth.Key
	alg    string
	signer jose.SigningKey
	public jose.JSONWebKey
}

// newPrivateKey returns a new key pair in the form of oauth.Key.Private. An RSA key may take a
// second.
func newPrivateKey(purpose oauth.Purpose) (string, error) {
	var private any
	var err error
	if purpose == oauth.RS256Keys {
		private, err = rsa.GenerateKey(rand.Reader, rsaBits)
	} else {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return "", fmt.Errorf("make %s key: %w", purpose, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("encode %s key: %w", purpose, err)
	}
	return string(der), nil
}

// parseSigningKey returns the signingKey of a stored key. Its ID is the thumbprint (RFC 7638): no
// other key ever has it.
func parseSigningKey(k *oauth.Key) (*signingKey, error) {
	private, err := x509.ParsePKCS8PrivateKey([]byte(k.Private))
	if err != nil {
		return nil, fmt.Errorf("parse %v: %w", k, err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("parse %v: it cannot sign", k)
	}
	alg := jose.RS256
	if k.Purpose == oauth.ES256Keys {
		alg = jose.ES256
	}
	public := jose.JSONWebKey{Key: signer.Public(), Algorithm: string(alg), Use: "sig"}
	thumbprint, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("parse %v: %w", k, err)
	}
	public.KeyID = base64.RawURLEncoding.EncodeToString(thumbprint)
	return &signingKey{
		Key: *k, alg: string(alg), public: public,
		signer: jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: private, KeyID: public.KeyID}},
	}, nil
}

// sign returns a JWT with that payload.
func (k *signingKey) sign(typ string, payload []byte) (string, error) {
	options := jose.SignerOptions{}
	signer, err := jose.NewSigner(k.signer, options.WithType(jose.ContentType(typ)))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// signingKeys returns the signing keys among all keys by purpose, the newest first. It takes those
// that before has already parsed.
func signingKeys(all []oauth.Key, before *keySet) (map[oauth.Purpose][]*signingKey, error) {
	parsed := map[oauth.Purpose][]*signingKey{}
	for i := range all {
		stored := &all[i]
		if !stored.Purpose.IsSigning() {
			continue
		}
		var key *signingKey
		if before != nil {
			for _, known := range before.signing[stored.Purpose] {
				if known.Private == stored.Private {
					copied := *known
					copied.Key, key = *stored, &copied
				}
			}
		}
		if key == nil {
			var err error
			if key, err = parseSigningKey(stored); err != nil {
				return nil, err
			}
		}
		parsed[stored.Purpose] = append(parsed[stored.Purpose], key)
	}
	return parsed, nil
}

// verifier returns the signing key with that ID and algorithm; nil when there is none at now.
func (k *keyring) verifier(id, alg string, now time.Time) *signingKey {
	for _, key := range k.current.Load().signing[purposeOf(alg)] {
		if key.public.KeyID == id && (key.Expires.IsZero() || now.Before(key.Expires)) {
			return key
		}
	}
	return nil
}

// signing returns the key that signs at now: the newest that has started. nil = there is none.
func (k *keyring) signing(purpose oauth.Purpose, now time.Time) *signingKey {
	keys := k.current.Load().signing[purpose]
	for _, key := range keys {
		if !key.Starts.After(now) {
			return key
		}
	}
	if len(keys) > 0 {
		return keys[len(keys)-1] // another process has just made it, and its clock differs
	}
	return nil
}

// signingKey returns the key that signs with alg at now. It makes the first one.
func (s *Service) signingKey(
	ctx context.Context, alg string, now time.Time,
) (*signingKey, error) {
	purpose := purposeOf(alg)
	if purpose == "" {
		return nil, fmt.Errorf("sign: %q is no algorithm of ours", alg)
	}
	if key := s.keys.signing(purpose, now); key != nil {
		return key, nil
	}
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the first %s key: %w", alg, ctx.Err())
	}
	if key := s.keys.signing(purpose, now); key != nil {
		return key, nil
	}
	if err := s.makeFirst(purpose, now); err != nil {
		return nil, err
	}
	key := s.keys.signing(purpose, now)
	if key == nil {
		return nil, fmt.Errorf("the first %s key is gone", alg)
	}
	return key, nil
}

// makeFirst makes the first key of a signing purpose, unless another process does. It returns when
// all processes know the key, so that others find it in JWKS before they meet a signature. A caller
// that has left ends nothing: the next one would have to begin again.
func (s *Service) makeFirst(purpose oauth.Purpose, now time.Time) error {
	ctx, cancel := context.WithTimeout(s.lifetime, requestTimeout)
	defer cancel()
	private, err := newPrivateKey(purpose)
	if err != nil {
		return err
	}
	err = s.config.Tokens.RotateKeys(keysRotated(ctx, purpose, "first"), oauth.KeyRotation{
		Purpose: purpose, Now: now, Starts: now, Private: private, First: true,
		Needed: s.needOf(purpose),
	})
	if err != nil && !errors.Is(err, oauth.ErrKeysInUse) {
		return fmt.Errorf("save the first %s key: %w", purpose, err)
	}
	if err := s.readKeys(ctx); err != nil {
		return err
	}
	if err := s.confirm(); err != nil {
		return err
	}
	if s.config.Shared && s.config.Peers == nil { // the others have read the change by then
		select {
		case <-time.After(2 * followEvery):
		case <-ctx.Done():
			return fmt.Errorf("wait until others know the first %s key: %w", purpose, ctx.Err())
		}
	}
	return nil
}

// watchSigningKeys rotates signing keys when they reach their age, until the Service stops. Of
// several processes one does, because the store refuses another key before the new one is in use.
func (s *Service) watchSigningKeys() {
	tick := time.NewTicker(signingCheck)
	defer tick.Stop()
	for {
		for _, purpose := range oauth.SigningPurposes {
			s.rotateAged(purpose, time.Now())
		}
		select {
		case <-s.lifetime.Done():
			return
		case <-tick.C:
		}
	}
}

// rotateAged makes the successor of a signing key whose age is reached a day later.
func (s *Service) rotateAged(purpose oauth.Purpose, now time.Time) {
	keys := s.Keys(purpose)
	if len(keys) == 0 || now.Before(keys[0].Starts.Add(s.config.SigningKeyAge-signingDelay)) {
		return
	}
	ctx, cancel := context.WithTimeout(s.lifetime, requestTimeout)
	defer cancel()
	_, err := s.RotateKeys(ctx, purpose, false, now)
	if err != nil && !errors.Is(err, oauth.ErrKeysInUse) && s.lifetime.Err() == nil {
		s.config.Logger.Error("a signing key could not be rotated: it stays in use",
			slog.String("purpose", string(purpose)), "error", err)
	}
}

// signingRotation returns what a rotation of signing keys asks for. atOnce leaves out the day in
// which others read the new key.
func (s *Service) signingRotation(
	purpose oauth.Purpose, atOnce bool, now time.Time,
) (r oauth.KeyRotation, err error) {
	r = oauth.KeyRotation{Purpose: purpose, Now: now, Starts: now, Needed: s.needOf(purpose)}
	if len(s.Keys(purpose)) > 0 {
		r.Starts = now.Add(signingDelay)
		if atOnce {
			r.Starts = now.Add(s.keys.delay)
		}
	}
	r.Expires = r.Starts.Add(r.Needed)
	r.Private, err = newPrivateKey(purpose)
	return r, err
}
