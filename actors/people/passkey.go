package people

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// Errors about a passkey.
var (
	// ErrPasskeyWrong says that the response of the browser does not prove what it should.
	ErrPasskeyWrong = errors.New("the passkey does not prove who the person is")
	// ErrPasskeyUnknown says that no account has the passkey, or that it only is a second factor.
	ErrPasskeyUnknown = errors.New("the passkey belongs to no account")
	// ErrPasskeyExpired says that the challenge was used, or that the browser took too long.
	ErrPasskeyExpired = errors.New("the challenge is no longer valid")
	// ErrPasskeyRefused says that the counter of the passkey has fallen back: it may be a copy.
	ErrPasskeyRefused = errors.New("the passkey may be a copy")
	// ErrPasskeyTaken says that the account has the passkey already.
	ErrPasskeyTaken = errors.New("the account has this passkey already")
	// ErrManyPasskeys says that the account has account.MaxPasskeys.
	ErrManyPasskeys = errors.New("the account has too many passkeys")
)

const (
	// ChallengeLength is the number of random bytes in a challenge of WebAuthn.
	ChallengeLength = 32
	// HandleLength is the number of random bytes in a user handle.
	HandleLength = 32
	// maxCredentialID is the length of the longest ID of a passkey (WebAuthn level 3, section 4).
	maxCredentialID = 1023
	// maxPasskeyResponse limits the response of a browser, in bytes.
	maxPasskeyResponse = 16 << 10
)

// passkeyAMR says how a user signed in by a passkey (RFC 8176): by a key that the user holds, and that
// has verified the user.
var passkeyAMR = []string{"pop", "user", "mfa"}

// passkeyAlgorithms are the algorithms of passkeys, the best first.
var passkeyAlgorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// PasskeyAnswer is what a browser responds to a challenge of WebAuthn.
type PasskeyAnswer struct {
	Challenge []byte    // ChallengeLength bytes, as the form has sealed them
	Made      time.Time // when the form was made
	Response  []byte    // PublicKeyCredential as JSON
	Caller    netip.Addr
}

// PasskeySignIn is an attempt to sign in by a passkey.
type PasskeySignIn struct {
	PasskeyAnswer
	Device string // as in SignIn
	App    string // as in SignIn
	// Known returns the value of the cookie that marks the browser as known to the account with that
	// address or number.
	Known func(address string) string
}

// PasskeyDomain returns the relying party ID; "" = there are no passkeys.
func (s *Service) PasskeyDomain() string { return s.config.PasskeyDomain }

// SignInByPasskey starts a session for the user of a passkey that has verified the user. The error is
// ErrPasskeyWrong, ErrPasskeyUnknown, ErrPasskeyExpired, ErrPasskeyRefused, ErrDisabled, a
// *ThrottledError or a failure.
func (s *Service) SignInByPasskey(
	ctx context.Context, attempt PasskeySignIn, now time.Time,
) (in *SignedIn, err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	defer func() { s.metrics.signedIn(byPasskey, err) }()
	err = s.limitCaller(attempt.Caller, false, false, now, func() error {
		in, err = s.signInByPasskey(ctx, attempt, now)
		return err
	})
	return in, err
}

func (s *Service) signInByPasskey(
	ctx context.Context, attempt PasskeySignIn, now time.Time,
) (*SignedIn, error) {
	parsed, err := s.parseAssertion(attempt.PasskeyAnswer, now)
	if err != nil {
		return nil, err
	}
	if len(parsed.Response.UserHandle) != HandleLength {
		return nil, ErrPasskeyUnknown
	}
	u, err := s.config.Store.UserByHandle(ctx, parsed.Response.UserHandle)
	if errors.Is(err, account.ErrNotFound) {
		return nil, ErrPasskeyUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	ctx = byUser(ctx, u.ID)
	u, key, err := s.usePasskey(ctx, u, parsed, attempt.PasskeyAnswer, forSignIn, now)
	if err != nil {
		return nil, err
	}
	since := s.known.since(attempt.Known(u.Email), u, now)
	if since.IsZero() {
		since = s.known.since(attempt.Known(u.Phone), u, now)
	}
	return s.startSession(ctx, u, entry{
		device: attempt.Device, means: byPasskey, way: key.Way(), known: !since.IsZero(), since: since,
		app: attempt.App,
	}, now)
}

// passkeyUse is what a passkey is used for.
type passkeyUse bool

// The uses: a passkey either signs in and verifies its user each time, or it is a security key that
// only is a second factor.
const (
	forSignIn passkeyUse = true
	forFactor passkeyUse = false
)

// verifyPasskey verifies an answer of a passkey of u for a use, and uses its challenge. It returns u
// and the passkey as they are then. The error is as of SignInByPasskey, but for *ThrottledError.
func (s *Service) verifyPasskey(
	ctx context.Context, u *account.User, a PasskeyAnswer, use passkeyUse, now time.Time,
) (*account.User, *account.Passkey, error) {
	parsed, err := s.parseAssertion(a, now)
	if err != nil {
		return nil, nil, err
	}
	return s.usePasskey(byUser(ctx, u.ID), u, parsed, a, use, now)
}

// parseAssertion returns the answer to a challenge, which is not verified yet.
func (s *Service) parseAssertion(
	a PasskeyAnswer, now time.Time,
) (*protocol.ParsedCredentialAssertionData, error) {
	if err := s.checkPasskeyAnswer(a, now); err != nil {
		return nil, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(a.Response)
	if err != nil {
		return nil, ErrPasskeyWrong
	}
	return parsed, nil
}

// checkPasskeyAnswer returns an error unless an answer is in time and not too long.
func (s *Service) checkPasskeyAnswer(a PasskeyAnswer, now time.Time) error {
	switch {
	case s.config.PasskeyDomain == "", len(a.Challenge) != ChallengeLength,
		len(a.Response) > maxPasskeyResponse:
		return ErrPasskeyWrong
	case now.Sub(a.Made) >= account.PasskeyChallengeLifetime:
		return ErrPasskeyExpired
	}
	return nil
}

// usePasskey verifies an answer of a passkey of u for a use, uses its challenge, and notes that. It
// returns u and the passkey as they are then.
func (s *Service) usePasskey(
	ctx context.Context, u *account.User, parsed *protocol.ParsedCredentialAssertionData,
	a PasskeyAnswer, use passkeyUse, now time.Time,
) (*account.User, *account.Passkey, error) {
	i := u.Credentials.Passkey(parsed.RawID)
	handle := parsed.Response.UserHandle
	if i < 0 || u.Credentials.Passkeys[i].SignsIn != bool(use) ||
		len(handle) > 0 && !bytes.Equal(handle, u.Credentials.Handle) {
		return nil, nil, ErrPasskeyUnknown
	}
	err := parsed.Verify(base64.RawURLEncoding.EncodeToString(a.Challenge), s.config.PasskeyDomain,
		"", []string{s.origin}, nil, nil, protocol.TopOriginExplicitVerificationMode, false, bool(use),
		true, u.Credentials.Passkeys[i].PublicKey, protocol.SignaturePolicy{})
	if err != nil {
		return nil, nil, ErrPasskeyWrong
	}
	if err := s.useChallenge(ctx, a); err != nil {
		return nil, nil, err
	}
	if u.Disabled {
		return nil, nil, ErrDisabled
	}
	for range changeTries {
		used, key, err := s.notePasskey(ctx, u, i, &parsed.Response.AuthenticatorData, now)
		if !errors.Is(err, account.ErrConflict) {
			return used, key, err
		}
		if u, err = s.config.Store.User(ctx, u.ID); err != nil {
			return nil, nil, fmt.Errorf("read user: %w", err)
		}
		if i = u.Credentials.Passkey(parsed.RawID); i < 0 || u.Disabled {
			return nil, nil, ErrPasskeyUnknown // a concurrent request has removed it
		}
	}
	return nil, nil, fmt.Errorf("use passkey: others keep changing the account: %w", oauth.ErrBusy)
}

// useChallenge uses the challenge of an answer, or returns ErrPasskeyExpired.
func (s *Service) useChallenge(ctx context.Context, a PasskeyAnswer) error {
	err := s.config.Store.UsePasskeyChallenge(ctx, sha256.Sum256(a.Challenge),
		a.Made.Add(account.PasskeyChallengeLifetime))
	if errors.Is(err, account.ErrConflict) {
		return ErrPasskeyExpired
	}
	return err
}

// notePasskey notes in the record of u that the passkey at an index was used. If its counter has
// fallen back, it notifies the channels of u, and returns ErrPasskeyRefused. The error is
// account.ErrConflict when the account was changed since u was read.
func (s *Service) notePasskey(
	ctx context.Context, u *account.User, i int, data *protocol.AuthenticatorData, now time.Time,
) (*account.User, *account.Passkey, error) {
	key := u.Credentials.Passkeys[i]
	if isCopied(&key, data) {
		ctx = audit.With(ctx, audit.Event{Action: audit.PasskeyRefused, Outcome: audit.Refused,
			Subject: audit.OfUser(u.ID)})
		same := *u
		err := s.config.Store.UseCredential(ctx, &same,
			s.noticesTo(ctx, u, account.PasskeyRefused, now)...)
		if err == nil {
			err = ErrPasskeyRefused
		}
		return nil, nil, err
	}
	key.Counter, key.Used = data.Counter, now
	key.BackedUp = data.Flags.HasBackupState()
	used := *u
	used.Credentials.SetPasskey(i, key)
	if !key.SignsIn {
		ctx = ofUser(ctx, audit.FactorUsed, u.ID, factorKey)
	}
	if err := s.config.Store.UseCredential(ctx, &used); err != nil {
		return nil, nil, err
	}
	return &used, &key, nil
}

// isCopied reports whether the counter of a passkey has fallen back. Those that may be backed up, or
// have no counter, have none to compare (WebAuthn level 3, section 6.1.1).
func isCopied(key *account.Passkey, data *protocol.AuthenticatorData) bool {
	if key.BackupEligible || data.Counter == 0 && key.Counter == 0 {
		return false
	}
	return data.Counter <= key.Counter
}

// ProveByPasskey notes in a session that a passkey of u, which has verified the user, was used: for
// account.ProofLifetime it allows changes of credentials. The error is ErrProofNeeded if the passkey
// is too young, one of VerifyPasskey, a *ThrottledError, or account.ErrNotFound if the session has
// ended.
func (s *Service) ProveByPasskey(
	ctx context.Context, u *account.User, session *account.Session, a PasskeyAnswer, now time.Time,
) error {
	if session.UserID != u.ID {
		return ErrProofNeeded
	}
	return s.limitCaller(a.Caller, false, false, now, func() error {
		if !s.inflight.Enter() {
			return mailbox.ErrStopped
		}
		defer s.inflight.Leave()
		_, key, err := s.verifyPasskey(ctx, u, a, forSignIn, now)
		switch {
		case err != nil:
			return err
		case !slices.Contains(u.Proving(s.asks, now), key.Way()):
			return ErrProofNeeded
		}
		session.Proved, session.ProvedBy = now, key.Way()
		return s.config.Store.ProveSession(ctx, session)
	})
}

// NewPasskey is an answer to a challenge that makes a passkey.
type NewPasskey struct {
	PasskeyAnswer
	Handle []byte // the user handle, as the form has sealed it
	Name   string // "" = one that tells the kind
}

// NewHandle returns the user handle of u: the one that it has, or a new one.
func NewHandle(u *account.User) []byte {
	if u.Credentials.Handle != nil {
		return u.Credentials.Handle
	}
	handle := make([]byte, HandleLength)
	rand.Read(handle)
	return handle
}

// AddPasskey adds a passkey to u, when p proves who the person is. The error is one of Prove,
// ErrPasskeyWrong, ErrPasskeyExpired, ErrPasskeyTaken, ErrManyPasskeys, an account.FieldError about
// the name, account.ErrNotFound or a failure.
func (s *Service) AddPasskey(
	ctx context.Context, u *account.User, p Proof, n NewPasskey, now time.Time,
) (*account.Passkey, error) {
	return s.addPasskey(ctx, u, p, n, forSignIn, func(*account.User) {}, now)
}

// AddSecurityKey is AddPasskey for a security key that only is a second factor, so that it need not
// verify the user. It returns recovery codes, which are shown once, unless u has some, and notes the
// factor in the session. ErrProofNeeded is also as of NeedsToEnrol.
func (s *Service) AddSecurityKey(
	ctx context.Context, u *account.User, p Proof, n NewPasskey, now time.Time,
) (codes []string, err error) {
	if s.NeedsToEnrol(u, p.Session, now) == NeedsCode {
		return nil, ErrProofNeeded
	}
	_, err = s.addPasskey(ctx, u, p, n, forFactor, func(c *account.User) {
		codes = firstRecoveryCodes(c)
	}, now)
	if err != nil {
		return nil, err
	}
	return codes, s.noteFactor(ctx, p.Session, factorKey, now)
}

// addPasskey adds a passkey for a use. more changes the account with it.
func (s *Service) addPasskey(
	ctx context.Context, u *account.User, p Proof, n NewPasskey, use passkeyUse,
	more func(*account.User), now time.Time,
) (*account.Passkey, error) {
	if n.Name != "" {
		name, err := account.CheckPasskeyName(n.Name)
		if err != nil {
			return nil, err
		}
		n.Name = name
	}
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return nil, err
	}
	key, err := s.parsePasskey(n, use, now)
	if err != nil {
		return nil, err
	}
	if err := s.useChallenge(ctx, n.PasskeyAnswer); err != nil {
		return nil, err
	}
	_, err = s.changeUser(ctx, u.ID, a, now, func(c *account.User) error {
		switch {
		case c.Credentials.Handle == nil:
			c.Credentials.Handle = n.Handle
		case !bytes.Equal(c.Credentials.Handle, n.Handle):
			return ErrPasskeyExpired // another form has set the handle meanwhile
		}
		switch {
		case c.Credentials.Passkey(key.ID) >= 0:
			return ErrPasskeyTaken
		case len(c.Credentials.Passkeys) >= account.MaxPasskeys:
			return ErrManyPasskeys
		}
		c.Credentials.AddPasskey(*key)
		more(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}

// parsePasskey returns the passkey that an answer has made, after it was verified.
func (s *Service) parsePasskey(
	n NewPasskey, use passkeyUse, now time.Time,
) (*account.Passkey, error) {
	if err := s.checkPasskeyAnswer(n.PasskeyAnswer, now); err != nil {
		return nil, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(n.Response)
	if err != nil || len(n.Handle) != HandleLength {
		return nil, ErrPasskeyWrong
	}
	_, err = parsed.Verify(base64.RawURLEncoding.EncodeToString(n.Challenge),
		s.config.PasskeyDomain, []string{s.origin}, nil, nil,
		protocol.TopOriginExplicitVerificationMode, false, bool(use), true, nil, passkeyAlgorithms,
		protocol.AttestationPolicy{}, protocol.SignaturePolicy{})
	if err != nil {
		return nil, ErrPasskeyWrong
	}
	data := &parsed.Response.AttestationObject.AuthData
	key := &account.Passkey{
		ID: data.AttData.CredentialID, PublicKey: data.AttData.CredentialPublicKey,
		Counter: data.Counter, BackupEligible: data.Flags.HasBackupEligible(),
		BackedUp: data.Flags.HasBackupState(), AAGUID: data.AttData.AAGUID,
		SignsIn: bool(use), Name: n.Name, Created: now,
	}
	for _, t := range parsed.Response.Transports {
		if len(key.Transports) < maxTransports && len(t) <= maxTransport {
			key.Transports = append(key.Transports, string(t))
		}
	}
	return key, nil
}

// Limits on the transports of a passkey: browsers know six, of at most ten letters.
const (
	maxTransports = 8
	maxTransport  = 16
)

// RenamePasskey renames a passkey of u. The error is an account.FieldError about the name,
// account.ErrNotFound if u has no such passkey, or a failure.
func (s *Service) RenamePasskey(
	ctx context.Context, u *account.User, id []byte, name string, now time.Time,
) error {
	name, err := account.CheckPasskeyName(name)
	if err != nil {
		return err
	}
	_, err = s.changeUser(ctx, u.ID, authority{}, now, func(c *account.User) error {
		i := c.Credentials.Passkey(id)
		if i < 0 {
			return account.ErrNotFound
		}
		key := c.Credentials.Passkeys[i]
		key.Name = name
		c.Credentials.SetPasskey(i, key)
		return nil
	})
	return err
}

// RemovePasskey removes a passkey of u, when p proves who the person is. The error is one of Prove,
// ErrLastWay, account.ErrNotFound if u has no such passkey or the session has ended, or a failure.
func (s *Service) RemovePasskey(
	ctx context.Context, u *account.User, p Proof, id []byte, now time.Time,
) error {
	a, err := s.prove(ctx, u, p, now)
	if err != nil {
		return err
	}
	_, err = s.changeUser(ctx, u.ID, a, now, func(c *account.User) error {
		if c.Credentials.Passkey(id) < 0 {
			return account.ErrNotFound
		}
		c.Credentials.RemovePasskeys(func(key *account.Passkey) bool {
			return bytes.Equal(key.ID, id)
		})
		c.EndRecovery()
		return nil
	})
	return err
}

// OfferPasskey reports whether to offer u a passkey now, and notes that it was offered.
func (s *Service) OfferPasskey(
	ctx context.Context, u *account.User, now time.Time,
) (bool, error) {
	if !s.inflight.Enter() {
		return false, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if s.config.PasskeyDomain == "" || u.SignsInByPasskey() ||
		len(u.Credentials.Passkeys) >= account.MaxPasskeys ||
		now.Sub(u.Credentials.PasskeyOffered) < account.PasskeyOfferInterval {
		return false, nil
	}
	offered := *u
	offered.Credentials.PasskeyOffered = now
	err := s.config.Store.UseCredential(ctx, &offered)
	if errors.Is(err, account.ErrConflict) || errors.Is(err, account.ErrNotFound) {
		return false, nil // the next sign-in offers it
	}
	return err == nil, err
}

// SignInOptions returns the options with which a browser asks for any passkey that signs in
// (PublicKeyCredentialRequestOptionsJSON).
func (s *Service) SignInOptions(challenge []byte) json.RawMessage {
	return optionsOf(protocol.PublicKeyCredentialRequestOptions{
		Challenge: challenge, RelyingPartyID: s.config.PasskeyDomain, Timeout: passkeyTimeout,
		UserVerification: protocol.VerificationRequired,
	})
}

// PasskeyOptions returns the options with which a browser asks for a passkey of u that signs in, for
// ProveByPasskey.
func (s *Service) PasskeyOptions(u *account.User, challenge []byte) json.RawMessage {
	return s.optionsFor(u, challenge, forSignIn, protocol.VerificationRequired)
}

// SecurityKeyOptions returns the options with which a browser asks for a security key of u, for
// ConfirmFactorByKey and UseFactorByKey: the key asks for no PIN, since u has used another factor.
func (s *Service) SecurityKeyOptions(u *account.User, challenge []byte) json.RawMessage {
	return s.optionsFor(u, challenge, forFactor, protocol.VerificationDiscouraged)
}

func (s *Service) optionsFor(
	u *account.User, challenge []byte, use passkeyUse, v protocol.UserVerificationRequirement,
) json.RawMessage {
	return optionsOf(protocol.PublicKeyCredentialRequestOptions{
		Challenge: challenge, RelyingPartyID: s.config.PasskeyDomain, Timeout: passkeyTimeout,
		UserVerification: v,
		AllowedCredentials: descriptorsOf(u, func(key *account.Passkey) bool {
			return key.SignsIn == bool(use)
		}),
	})
}

// HasSecurityKey reports whether u has a security key that the service can ask for.
func (s *Service) HasSecurityKey(u *account.User) bool {
	return s.config.PasskeyDomain != "" && u.SecurityKeys() > 0
}

// NewPasskeyOptions returns the options with which a browser makes a passkey for u
// (PublicKeyCredentialCreationOptionsJSON). service is the name of the service. factor says that it is
// for AddSecurityKey.
func (s *Service) NewPasskeyOptions(
	u *account.User, service string, challenge, handle []byte, factor bool,
) json.RawMessage {
	o := protocol.PublicKeyCredentialCreationOptions{
		RelyingParty: protocol.RelyingPartyEntity{
			CredentialEntity: protocol.CredentialEntity{Name: service}, ID: s.config.PasskeyDomain,
		},
		User: protocol.UserEntity{
			CredentialEntity: protocol.CredentialEntity{Name: PasskeyUserName(u)}, DisplayName: u.Name,
			ID: protocol.URLEncodedBase64(handle),
		},
		Challenge: challenge, Parameters: passkeyAlgorithms, Timeout: passkeyTimeout,
		CredentialExcludeList: descriptorsOf(u, func(*account.Passkey) bool { return true }),
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
		Attestation: protocol.PreferNoAttestation,
	}
	if factor {
		o.AuthenticatorSelection = protocol.AuthenticatorSelection{
			ResidentKey:        protocol.ResidentKeyRequirementDiscouraged,
			RequireResidentKey: protocol.ResidentKeyNotRequired(),
			UserVerification:   protocol.VerificationDiscouraged,
		}
	}
	return optionsOf(o)
}

// PasskeyUserName returns what the dialogs of passkeys call u.
func PasskeyUserName(u *account.User) string { return cmp.Or(u.Email, u.Phone, u.Name) }

// ProvingPasskeys returns the passkeys among the ways in by which a person proves to be u.
func (s *Service) ProvingPasskeys(u *account.User, now time.Time) []account.Way {
	return slices.DeleteFunc(u.Proving(s.asks, now),
		func(w account.Way) bool { return !w.IsPasskey() })
}

// passkeyTimeout is the time that a browser waits for a person, in milliseconds.
const passkeyTimeout = int(account.PasskeyChallengeLifetime / time.Millisecond)

// descriptorsOf returns the passkeys of u for a browser that wanted reports.
func descriptorsOf(
	u *account.User, wanted func(*account.Passkey) bool,
) (all []protocol.CredentialDescriptor) {
	for _, key := range u.Credentials.Passkeys {
		if !wanted(&key) {
			continue
		}
		d := protocol.CredentialDescriptor{
			Type: protocol.PublicKeyCredentialType, CredentialID: key.ID,
		}
		for _, t := range key.Transports {
			d.Transport = append(d.Transport, protocol.AuthenticatorTransport(t))
		}
		all = append(all, d)
	}
	return all
}

func optionsOf(o any) json.RawMessage {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // a struct of strings, numbers and bytes has no error
	}
	return text
}

// originOf returns the origin of the pages of an issuer.
func originOf(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
