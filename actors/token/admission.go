package token

import (
	"context"
	"errors"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Endpoint is a protected endpoint with a rate limit of its own.
type Endpoint int

// The protected endpoints (interface document, section 8).
const (
	BasicProfile    Endpoint = iota // GET /api/user: 100 requests a minute and access token
	DetailedProfile                 // GET /api/user/details: 50
	UserInfo                        // /oauth/userinfo: 100 (OpenID Connect Core section 5.3)
	adminAPI                        // no limit
	introspection                   // no limit, and no scope
)

// Scope returns the scope that the endpoint requires.
func (e Endpoint) Scope() oauth.Scopes { return scopeOf[e] }

// isLimited reports whether the requests of an access token to the endpoint are counted.
func (e Endpoint) isLimited() bool { return int(e) < len(limitOf) }

// Verdict is the decision about a bearer token at an endpoint. Nodes tell each other its number: a
// new one comes last.
type Verdict int

// The verdicts.
const (
	TokenInvalid      Verdict = iota // malformed, unknown, revoked, or of a disabled client or user: 401
	TokenExpired                     // 401 token_expired
	RateLimited                      // 429
	InsufficientScope                // 403 insufficient_scope
	UnapprovedScope                  // 403 unapproved_scope
	Admitted                         // 200
	TryLater                         // overloaded, or the store does not respond: 503
	WrongAudience                    // for resources of others (RFC 8707): 401
	// InsufficientAuthentication: the client requires a second factor, and the user has signed in
	// without. 401 insufficient_user_authentication
	InsufficientAuthentication
)

// Admission is the decision about a request with a bearer token.
type Admission struct {
	Verdict Verdict
	Rate    ratelimit.Decision // of RateLimited, Admitted, and those that a scope or sign-in refuses
	Profile []byte             // the endpoint's JSON, with Admitted; must not be changed
}

// loadTimeout is how long a request waits for the client and user of its token to be read.
const loadTimeout = 2 * time.Second

// Admit decides about a request to endpoint with a bearer token at now, and counts it. token may
// share memory with the request. It returns at once for a token in use, and within two seconds for
// another; in a cluster it may wait askTime more for the holder of the token's partition.
func (s *Service) Admit(token string, endpoint Endpoint, now time.Time) Admission {
	result, _ := s.admit(token, endpoint, now)
	return result
}

// AdmitOperator returns Admitted and the client's id when the token carries oauth.ServerOperations
// and its client is an operator, so that it may use the admin API. Otherwise it returns one of the
// verdicts of Admit, and the client's id with InsufficientScope. No window counts it.
func (s *Service) AdmitOperator(token string, now time.Time) (_ Verdict, clientID string) {
	admission, x := s.admit(token, adminAPI, now)
	if admission.Verdict != Admitted && admission.Verdict != InsufficientScope {
		return admission.Verdict, ""
	}
	return admission.Verdict, x.client.record.key
}

// Audience returns the URIs that an access token is for, for an error about it; nil = it cannot be
// said.
func (s *Service) Audience(token string) []string {
	_, number, ok := oauth.PeekToken(token)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	t, ok := s.openToken(token, number)
	known, err := s.Resources(ctx)
	if !ok || err != nil {
		return nil
	}
	return known.Audience(known.Known(t.Targets()), t.Scopes)
}

// admit is Admit, and returns the session of an admitted token.
func (s *Service) admit(token string, endpoint Endpoint, now time.Time) (Admission, *session) {
	if s.stopped.Load() || !s.isCurrent(now) {
		return Admission{Verdict: TryLater}, nil
	}
	id, number, ok := oauth.PeekToken(token)
	if !ok {
		return Admission{Verdict: TokenInvalid}, nil
	}
	if a := s.directory.find(&id); a != nil && a.is(token) {
		if result, settled := s.admitInUse(a, endpoint, now); settled {
			return result, &a.session
		}
	}
	return s.admitOpened(token, number, endpoint, now)
}

// admitInUse asks a token's actor. False says that the token's client or user has to be read first,
// or that another actor takes its place.
func (s *Service) admitInUse(
	a *tokenActor, endpoint Endpoint, now time.Time,
) (_ Admission, settled bool) {
	result, stale, err := s.askToken(a, endpoint, now)
	switch {
	case stale || hasStopped(err):
		return Admission{}, false
	case err != nil:
		return Admission{Verdict: TryLater}, true
	}
	return result, true
}

// admitOpened opens a token and makes its actor. Where nothing is counted it goes on when there is
// no room: operators must reach the admin API then.
func (s *Service) admitOpened(
	token string, number uint16, endpoint Endpoint, now time.Time,
) (Admission, *session) {
	t, verdict := s.check(token, number, now)
	if verdict != Admitted {
		return Admission{Verdict: verdict}, nil
	}
	ctx, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	for ctx.Err() == nil {
		x, verdict := s.open(ctx, &t)
		if verdict != Admitted {
			return Admission{Verdict: verdict}, nil
		}
		a := s.use(&x, t.ID, token)
		switch {
		case a == nil && !endpoint.isLimited(): // no actor is needed
			alone, m := tokenActor{id: t.ID, service: s, session: x}, admission{endpoint: endpoint, now: now}
			if alone.admit(&m); m.stale {
				continue
			}
			return m.result, &x
		case a == nil:
			return Admission{Verdict: TryLater}, nil
		}
		if result, settled := s.admitInUse(a, endpoint, now); settled {
			return result, &a.session
		}
	}
	return Admission{Verdict: TryLater}, nil
}

// check opens a token, and refuses it if that needs no client and no user.
func (s *Service) check(
	token string, number uint16, now time.Time,
) (t oauth.AccessToken, _ Verdict) {
	t, ok := s.openToken(token, number)
	switch {
	case !ok:
		return t, TokenInvalid
	case now.Unix() >= t.Expires:
		return t, TokenExpired
	case s.ended.has(&t.ID, &t.FamilyID) || s.ended.haveEnded(t.Subject):
		return t, TokenInvalid
	}
	return t, Admitted
}

// use returns the actor of a token, in use from now on. It returns nil when there is no room for
// it.
func (s *Service) use(x *session, id oauth.TokenID, token string) *tokenActor {
	if a := s.directory.find(&id); a != nil || !s.directory.hasRoom(x) {
		return a.know(token)
	}
	a := &tokenActor{
		id: id, text: strings.Clone(oauth.SealedIn(token)), service: s, session: *x, seen: s.clock(time.Now()),
	}
	if s.config.Peers != nil {
		a.shared = new(counts)
	}
	s.spawner.Spawn(a)
	used := s.directory.insert(a)
	if used != a {
		a.Stop()
	}
	return used.know(token)
}

// open returns the session of a token with its client and user, which it reads if needed. The
// verdict is Admitted when neither of them has ended the token.
func (s *Service) open(ctx context.Context, t *oauth.AccessToken) (x session, _ Verdict) {
	if !s.inflight.Enter() {
		return x, TryLater
	}
	defer s.inflight.Leave()
	x = session{
		expires: uint32(t.Expires), auth: uint32(t.AuthTime), epochs: t.Epochs, family: t.FamilyID,
		lasts: uint32(t.Expires - t.Issued), key: t.Key, packed: packScopes(t),
	}
	for again := false; ctx.Err() == nil; again = true {
		a, client, err := s.client(ctx, t.ClientID)
		if err != nil {
			return x, s.failedRead("read client of access token", err)
		}
		x.client = a
		var u *user
		if t.UserID != 0 {
			if x.user, u, err = s.users.load(ctx, t.UserID); err != nil {
				return x, s.failedRead("read user of access token", err)
			}
		}
		if x.origin, err = s.origin(ctx, t.Subject); err != nil {
			return x, s.failedRead("read clients that led to an access token", err)
		}
		switch ahead := x.isAhead(client, u); {
		case ahead && !again: // another process was faster: it has issued the token after a change
			x.client.record.outdate()
			if x.user != nil {
				x.user.outdate()
			}
			x.origin.outdate()
			continue
		case ahead || !x.isLive(client, u):
			return x, TokenInvalid
		}
		return x, Admitted
	}
	return x, TryLater
}

// failedRead returns what a failed read means to the request.
func (s *Service) failedRead(step string, err error) Verdict {
	if errors.Is(err, oauth.ErrNotFound) || errors.Is(err, account.ErrNotFound) {
		return TokenInvalid
	}
	s.config.Logger.Warn("a request could not be admitted", "step", step, "error", err)
	return TryLater
}

// hasEnded reports whether a token has ended, or the key that sealed it.
func (s *Service) hasEnded(id *oauth.TokenID, x *session) bool {
	return s.ended.has(id, &x.family) || x.origin != nil && s.ended.haveEnded(x.origin.SubjectToken) ||
		s.keys.find(x.key) == nil
}
