package token

import (
	"context"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Endpoint is a protected endpoint with a rate limit of its own.
type Endpoint int

// The protected endpoints (interface document, section 8).
const (
	BasicProfile    Endpoint = iota // GET /api/user: 100 requests a minute and access token
	DetailedProfile                 // GET /api/user/details: 50
	adminAPI                        // no limit
	introspection                   // no limit, and no scope
)

// Verdict is the decision about a bearer token at an endpoint, in the order of the checks.
type Verdict int

// The verdicts.
const (
	TokenInvalid      Verdict = iota // malformed, unknown or revoked, or its client or user is disabled: 401
	TokenExpired                     // 401 token_expired
	RateLimited                      // 429
	InsufficientScope                // 403 insufficient_scope
	UnapprovedScope                  // 403 unapproved_scope
	Admitted                         // 200
	TryLater                         // overloaded, or the store does not respond: 503
)

// Admission is the decision about a request with a bearer token.
type Admission struct {
	Verdict Verdict
	Rate    ratelimit.Decision // of RateLimited, InsufficientScope, UnapprovedScope and Admitted
	Profile []byte             // the endpoint's JSON, with Admitted; must not be changed
}

// Admit decides about a request to endpoint with a bearer token at now, and counts it. token may
// share memory with the request. It returns within two seconds, and at once for a token in use.
func (s *Service) Admit(token string, endpoint Endpoint, now time.Time) Admission {
	if s.stopped.Load() {
		return Admission{Verdict: TryLater}
	}
	hash := oauth.HashOf(token)
	return s.admit(token, &hash, endpoint, now)
}

// AdmitOperator returns Admitted when the token carries oauth.ServerOperations and its client is an
// operator, so that it may use the admin API, and otherwise one of the verdicts of Admit. No window
// counts it.
func (s *Service) AdmitOperator(token string, now time.Time) Verdict {
	return s.Admit(token, adminAPI, now).Verdict
}

// admit is Admit for a token whose hash is known.
func (s *Service) admit(
	token string, hash *oauth.Hash, endpoint Endpoint, now time.Time,
) Admission {
	a := s.directory.find(hash)
	if a != nil { // its token was genuine when the actor was made
		if result, settled := s.admitInUse(a, endpoint, now); settled {
			return result
		}
	}
	expires, ok := s.keys.CheckAccessToken(token)
	if !ok {
		return Admission{Verdict: TokenInvalid}
	}
	if !now.Before(expires) {
		return Admission{Verdict: TokenExpired}
	}
	return s.admitAfterLoad(*hash, a, endpoint, now)
}

// admitInUse asks a token's actor. False says that the token has to be loaded first.
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

// admitAfterLoad loads the token until its actor can decide. stale is the actor that could not.
func (s *Service) admitAfterLoad(hash oauth.Hash, stale *tokenActor, endpoint Endpoint, now time.Time) Admission {
	ctx, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	for first := true; ctx.Err() == nil; first = false {
		a, verdict := s.load(ctx, hash, stale, now, first)
		switch {
		case a != nil:
			if result, settled := s.admitInUse(a, endpoint, now); settled {
				return result
			}
			stale = a
		case verdict != again:
			return Admission{Verdict: verdict}
		}
	}
	return Admission{Verdict: TryLater}
}
