package people

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Errors of a sign-in with a provider.
var (
	// ErrAttemptEnded says that a sign-in with a provider was not begun in this browser, has ended or
	// was used.
	ErrAttemptEnded = errors.New("no such sign-in with a provider")
	// ErrNotLet says that a provider lets other domains sign in only.
	ErrNotLet = errors.New("the provider lets other domains sign in only")
	// ErrNotConnected says that no account belongs to the person, and none is made.
	ErrNotConnected = errors.New("no account is connected, and none is made")
	// ErrConnectionTaken says that another account has the connection.
	ErrConnectionTaken = errors.New("the connection belongs to another account")
	// ErrTooManyConnections says that the account has account.MaxConnections.
	ErrTooManyConnections = errors.New("too many connections")
)

// The purposes of a sign-in with a provider.
const (
	WithSignIn = "sign_in" // sign in, or create an account
	WithAdd    = "add"     // connect the account of a session
	WithProof  = "prove"   // prove in a session who the person is, before a change of credentials
	withWait   = "wait"    // a connection waits: see Waiting
)

// Limits on sign-ins with a provider that a caller begins: a burst, then one for each interval.
const (
	attempts      = 60
	attemptsEvery = 5 * time.Second
)

// PathWith is the path of the pages of sign-ins with providers, before the ID. PathCallback comes
// after it.
const (
	PathWith     = "/login/with/"
	PathCallback = "/callback"
)

// With is a sign-in with a provider that begins.
type With struct {
	Provider  string // ID
	Purpose   string // WithSignIn, WithAdd or WithProof
	Secret    string // of the browser: it alone can go on
	Caller    netip.Addr
	Session   *account.Session // for WithAdd and WithProof
	Query     string           // with which the pages go on
	Again     bool             // the person has to sign in at the provider again
	LoginHint string
}

// BeginWith begins a sign-in with a provider, and returns where the browser goes. The error is
// ErrAttemptEnded if there is no such provider, a *ThrottledError, oauth.ErrProviderAway,
// oauth.ErrBusy, a *oauth.ProviderError or a failure.
func (s *Service) BeginWith(ctx context.Context, w With, now time.Time) (url string, err error) {
	if !s.inflight.Enter() {
		return "", mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	p, err := s.provider(ctx, w.Provider)
	if err != nil {
		return "", err
	}
	if w.Caller.IsValid() {
		if wait := s.attempts.Take(w.Caller, now); wait > 0 {
			return "", &ThrottledError{RetryAfter: wait}
		}
	}
	state := account.NewSecret()
	challenge := sha256.Sum256([]byte(derived(w.Secret, "verifier", state)))
	url, err = s.config.ProviderClient.AuthorizationURL(ctx, p, oauth.ProviderRequest{
		RedirectURI: s.ProviderRedirectURI(p.ID), State: state, Nonce: derived(w.Secret, "nonce", state),
		Challenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
		Again:     w.Again || w.Purpose == WithProof, LoginHint: w.LoginHint,
		Network: ratelimit.SitePrefix(w.Caller),
	})
	if err != nil {
		s.logProvider(p, err)
		return "", fmt.Errorf("begin a sign-in with a provider: %w", err)
	}
	a := &oauth.ProviderAttempt{Hash: oauth.HashOf(state), Browser: oauth.HashOf(w.Secret),
		Provider: p.ID, Purpose: w.Purpose, Query: w.Query, Ends: now.Add(oauth.ProviderAttemptEnd)}
	if w.Session != nil {
		a.Session = w.Session.Hash
	}
	return url, s.config.Providers.CreateAttempt(ctx, a)
}

// logProvider logs why a provider failed, without anything personal.
func (s *Service) logProvider(p *oauth.Provider, err error) {
	s.config.Logger.Warn("a sign-in with a provider failed", "provider", p.ID, "error", err)
}

// ProviderRedirectURI returns the redirect URI to register at the provider with that ID.
func (s *Service) ProviderRedirectURI(id string) string {
	return s.config.Issuer + PathWith + id + PathCallback
}

// derived returns 256 bits that only the browser with that secret can have made of a state: the
// database need not keep them, and the URL with the state does not tell them.
func derived(secret, what, state string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(what + " of a sign-in with a provider " + state))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// TakeWith ends the attempt of a browser that comes back from a provider. The error is
// ErrAttemptEnded or a failure.
func (s *Service) TakeWith(
	ctx context.Context, id, state, secret string, now time.Time,
) (*oauth.ProviderAttempt, error) {
	if s.config.Providers == nil || !account.LooksLikeSecret(state) {
		return nil, ErrAttemptEnded
	}
	a, err := s.config.Providers.TakeAttempt(ctx, oauth.HashOf(state), oauth.HashOf(secret))
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		return nil, ErrAttemptEnded
	case err != nil:
		return nil, err
	case a.Provider != id || a.Purpose == withWait || !now.Before(a.Ends):
		return nil, ErrAttemptEnded
	}
	return a, nil
}

// Returned is what a browser brings back from a provider.
type Returned struct {
	State  string
	Code   string
	Issuer string // the parameter iss; "" = there is none
	Secret string // of the browser
	By     Browser
}

// WithResult is what a sign-in with a provider has led to. One of the fields is set, or none: the
// session that it was for has its connection, or its proof.
type WithResult struct {
	SignedIn *SignedIn
	// Waiting is the token of a connection that waits, for the browser's cookie. The person signs in
	// to the account with its address first, or NeedsAddress.
	Waiting      string
	NeedsAddress bool // the person has to name an address, and to enter the code that goes there
}

// FinishWith ends a sign-in with a provider. session is the one that the attempt is for, nil for
// WithSignIn. known returns the browser's mark for the account with an address. The error is
// ErrAttemptEnded, ErrNotLet, ErrNotConnected, ErrConnectionTaken, ErrTooManyConnections,
// ErrProofNeeded, ErrDisabled, oauth.ErrProviderAway, oauth.ErrBusy, a *oauth.ProviderError or a
// failure.
func (s *Service) FinishWith(
	ctx context.Context, a *oauth.ProviderAttempt, r Returned, session *account.Session,
	known func(address string) string, now time.Time,
) (result *WithResult, err error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if a.Purpose == WithSignIn {
		defer func() {
			if err != nil || result.SignedIn != nil {
				s.metrics.signedIn(byProvider, err)
			}
		}()
	}
	p, err := s.provider(ctx, a.Provider)
	if err != nil {
		return nil, err
	}
	who, err := s.config.ProviderClient.Identity(ctx, p, oauth.ProviderResponse{
		RedirectURI: s.ProviderRedirectURI(p.ID), Code: r.Code, Issuer: r.Issuer,
		Nonce:    derived(r.Secret, "nonce", r.State),
		Verifier: derived(r.Secret, "verifier", r.State), Network: ratelimit.SitePrefix(r.By.Caller),
	})
	if err != nil {
		s.logProvider(p, err)
		return nil, fmt.Errorf("sign in with a provider: %w", err)
	}
	// It may have taken its time: what the operator has changed meanwhile counts.
	if p, err = s.provider(ctx, a.Provider); err != nil {
		return nil, err
	}
	switch {
	case p.Issuer != who.Issuer:
		return nil, ErrAttemptEnded
	case !p.Lets(who):
		return nil, ErrNotLet
	}
	owner, err := userOrZero(s.config.Store.UserByConnection(ctx, who.Issuer, who.Subject))
	if err != nil {
		return nil, err
	}
	c := connectionOf(p, who, now)
	switch {
	case a.Purpose != WithSignIn && (session == nil || session.Hash != a.Session):
		return nil, ErrAttemptEnded
	case a.Purpose == WithProof:
		return &WithResult{}, s.proveWith(ctx, session, owner, c.Way(), now)
	case a.Purpose == WithAdd && owner.ID == session.UserID:
		return &WithResult{}, nil
	case a.Purpose == WithAdd && owner.ID != 0:
		return nil, ErrConnectionTaken
	case a.Purpose == WithAdd:
		return &WithResult{}, s.connect(ctx, session, c, session.ProvedBy, session.Proved, now)
	case owner.ID == 0:
		return s.strangerWith(ctx, p, who, c, a, r, now)
	case owner.Disabled:
		return nil, ErrDisabled
	}
	in, err := s.signInWith(ctx, owner, c, r.By, known, now)
	return &WithResult{SignedIn: in}, err
}

// connectionOf returns the connection of a person at a provider.
func connectionOf(p *oauth.Provider, who *oauth.ProviderIdentity, now time.Time) account.Connection {
	name := shortLine(who.Account, account.MaxConnectionName)
	return account.Connection{Issuer: who.Issuer, Subject: who.Subject,
		Name: cmp.Or(name, p.Name()), Groups: p.LocalGroups(who), Created: now, Used: now}
}

// shortLine returns text as one line of at most so many characters, without those that change the
// direction of the text around it.
func shortLine(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	runes := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text))
	return strings.TrimSpace(string(runes[:min(len(runes), limit)]))
}

// signInWith starts a session for u by the connection c.
func (s *Service) signInWith(
	ctx context.Context, u *account.User, c account.Connection, by Browser,
	known func(address string) string, now time.Time,
) (*SignedIn, error) {
	u, err := s.useConnection(ctx, u, c, now)
	if err != nil {
		return nil, err
	}
	since := s.known.since(known(cmp.Or(u.Email, u.Phone)), u, now)
	return s.startSession(ctx, u, entry{
		device: by.Device, means: byProvider, way: c.Way(), known: !since.IsZero(), since: since,
		app: by.App, second: by.Second,
	}, now)
}

// useConnection notes that a connection was used, and what the provider says. Others may change the
// user meanwhile.
func (s *Service) useConnection(
	ctx context.Context, u *account.User, c account.Connection, now time.Time,
) (*account.User, error) {
	for range changeTries {
		i := slices.IndexFunc(u.Credentials.Connections, func(o account.Connection) bool {
			return o.Way() == c.Way()
		})
		if i < 0 || u.Disabled {
			return nil, ErrNotConnected // it was removed since
		}
		next := *u
		next.Credentials.Connections = slices.Clone(u.Credentials.Connections)
		used := &next.Credentials.Connections[i]
		used.Name, used.Used, used.Groups = c.Name, now, c.Groups
		err := s.config.Store.UseCredential(ctx, &next)
		if changesGroups(u, &next) {
			err = s.config.Tokens.FamiliesEnded(err)
		}
		if !errors.Is(err, account.ErrConflict) {
			return &next, err
		}
		if u, err = s.config.Store.User(ctx, u.ID); err != nil {
			return nil, fmt.Errorf("read user: %w", err)
		}
	}
	return nil, fmt.Errorf("use a connection: others keep changing the user: %w", oauth.ErrBusy)
}

// changesGroups reports whether the connections of next may make the user a member of other groups
// than those that they made u a member of.
func changesGroups(u, next *account.User) bool {
	groups := map[string][]string{} // by issuer
	for _, c := range next.Credentials.Connections {
		groups[c.Issuer] = append(groups[c.Issuer], c.Groups...)
	}
	for issuer, names := range groups {
		if u.Mapped[issuer] != account.NewGroups(names) {
			return true
		}
	}
	for issuer := range u.Mapped {
		if groups[issuer] == nil {
			return true
		}
	}
	return false
}

// proveWith notes in a session that its user has signed in with a provider.
func (s *Service) proveWith(
	ctx context.Context, session *account.Session, owner *account.User, way account.Way,
	now time.Time,
) error {
	if owner.ID != session.UserID || !slices.Contains(owner.Proving(s.asks, now), way) {
		return ErrProofNeeded
	}
	session.Proved, session.ProvedBy = now, way
	return s.config.Store.ProveSession(ctx, session)
}

// HasProved reports whether a change of u's credentials that goes on elsewhere can begin in a session.
func (s *Service) HasProved(u *account.User, session *account.Session, now time.Time) bool {
	_, _, ok := proved(session, u.Proving(s.asks, now), false, now)
	return ok && (!u.HasSecondFactor() || session.UsedFactor(account.ProofLifetime, now))
}

// connect adds a connection to the account of a session, as a way in that proved at a time who the
// person is.
func (s *Service) connect(
	ctx context.Context, session *account.Session, c account.Connection, way account.Way, at,
	now time.Time,
) error {
	a := authority{kind: asPerson, way: way, at: at, factor: session.FactorUsed(),
		session: session.Hash, keep: session.Hash}
	_, err := s.changeUser(byUser(ctx, session.UserID), session.UserID, a, now,
		func(u *account.User) error {
			switch {
			case u.Disabled:
				return ErrDisabled
			case len(u.Credentials.Connections) >= account.MaxConnections:
				return ErrTooManyConnections
			}
			u.Credentials.Connections = append(slices.Clone(u.Credentials.Connections), c)
			return nil
		})
	if errors.Is(err, account.ErrTaken) {
		return ErrConnectionTaken
	}
	return err
}

// ProvesWith reports whether a sign-in with the provider of that issuer proves who the person u is.
func (s *Service) ProvesWith(u *account.User, issuer string, now time.Time) bool {
	proving := u.Proving(s.asks, now)
	return slices.ContainsFunc(u.Credentials.Connections, func(c account.Connection) bool {
		return c.Issuer == issuer && slices.Contains(proving, c.Way())
	})
}

// Connected returns the connections of u with the names of their providers, where people can sign
// in with those.
func (s *Service) Connected(u *account.User, choices []ProviderChoice) (all []Connected) {
	for i := range u.Credentials.Connections {
		c := Connected{Connection: u.Credentials.Connections[i]}
		for _, p := range choices {
			if p.Issuer == c.Issuer {
				c.Provider = p
			}
		}
		all = append(all, c)
	}
	return all
}

// Connected is a connection of a user.
type Connected struct {
	account.Connection
	Provider ProviderChoice // zero = people cannot sign in with it any more
}

// ID returns the name by which a person refers to a connection.
func (c *Connected) ID() string {
	sum := sha256.Sum256([]byte(c.Way()))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// RemoveConnection removes a connection of u, the user of a session, by its ID. The error is
// ErrProofNeeded unless HasProved, ErrLastWay, account.ErrNotFound or a failure.
func (s *Service) RemoveConnection(
	ctx context.Context, u *account.User, session *account.Session, id string, now time.Time,
) error {
	way, at, ok := proved(session, u.Proving(s.asks, now), false, now)
	if !ok {
		return ErrProofNeeded
	}
	a := authority{kind: asPerson, way: way, at: at, factor: session.FactorUsed(),
		session: session.Hash, keep: session.Hash}
	_, err := s.changeUser(ctx, u.ID, a, now, func(u *account.User) error {
		rest := slices.DeleteFunc(slices.Clone(u.Credentials.Connections),
			func(c account.Connection) bool { return (&Connected{Connection: c}).ID() == id })
		if len(rest) == len(u.Credentials.Connections) {
			return account.ErrNotFound
		}
		if u.Credentials.Connections = rest; len(rest) == 0 {
			u.Credentials.Connections = nil
		}
		return nil
	})
	return err
}

// strangerWith goes on for a person whom no account knows by this connection. An account with the
// address is never signed in to by the provider alone.
func (s *Service) strangerWith(
	ctx context.Context, p *oauth.Provider, who *oauth.ProviderIdentity, c account.Connection,
	a *oauth.ProviderAttempt, r Returned, now time.Time,
) (*WithResult, error) {
	w := waiting{Provider: p.ID, Connection: c, Name: personName(who)}
	email, isAddress := address(who.Email, now)
	if p.Vouches(who) && isAddress {
		owner, err := userOrZero(s.config.Store.UserByEmail(ctx, email))
		switch {
		case err != nil:
			return nil, err
		case owner.ID != 0:
			w.Address, w.UserID = owner.Email, owner.ID
			token, err := s.wait(ctx, w, a, now)
			return &WithResult{Waiting: token}, err
		}
		return s.createWith(ctx, p, w, email, r, now)
	}
	if !s.takesNew(p) {
		return nil, ErrNotConnected
	}
	if !s.Channels().Has(account.Email) { // no code can reach an address, so none is stored
		return s.createWith(ctx, p, w, "", r, now)
	}
	if isAddress {
		w.Address = email
	}
	token, err := s.wait(ctx, w, a, now)
	return &WithResult{Waiting: token, NeedsAddress: true}, err
}

// takesNew reports whether a person who comes from p may get an account.
func (s *Service) takesNew(p *oauth.Provider) bool { return p.CreateAccounts && s.Registers() }

// createWith creates an account that signs in with p, and signs in to it. email is verified; "" =
// none. If it is invited, the account is that of the invitation.
func (s *Service) createWith(
	ctx context.Context, p *oauth.Provider, w waiting, email string, r Returned, now time.Time,
) (*WithResult, error) {
	i, err := s.invitationTo(ctx, email, now)
	if err != nil {
		return nil, err
	}
	u := w.user(email, audit.SourceOf(ctx).Language, now)
	switch {
	case i != nil:
		u.Name, u.Groups = cmp.Or(i.Name, u.Name), i.Groups
		err = s.config.Store.AcceptInvitation(ofCreation(ctx, byInvitation), i.Hash, u)
		s.metrics.invited(invitationAccepted, err)
	case !s.takesNew(p):
		return nil, ErrNotConnected
	default:
		err = s.config.Store.CreateUser(ofCreation(ctx, byProvider), u)
	}
	if errors.Is(err, account.ErrTaken) || errors.Is(err, account.ErrNotFound) {
		// By a request at the same time: the next try finds it.
		return nil, fmt.Errorf("create user: %w", oauth.ErrBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	if i == nil {
		s.metrics.registrations.WithLabelValues(byProvider).Inc()
	}
	in, err := s.startSession(ctx, u, entry{
		device: r.By.Device, means: byProvider, way: w.Connection.Way(), known: true, app: r.By.App,
	}, now)
	return &WithResult{SignedIn: in}, err
}

// personName returns the name of a new account.
func personName(who *oauth.ProviderIdentity) string {
	local, _, _ := strings.Cut(who.Email, "@")
	for _, name := range []string{who.Name, who.Account, local} {
		u := &account.User{Name: shortLine(name, 200)}
		if u.Tidy(); u.Check(time.Time{}) == nil {
			return u.Name
		}
	}
	return "-"
}

// address returns an address in the form in which it is stored, and whether it is one.
func address(text string, now time.Time) (string, bool) {
	u := account.User{Name: "-", Email: text}
	u.Tidy()
	return u.Email, u.Email != "" && u.Check(now) == nil
}
