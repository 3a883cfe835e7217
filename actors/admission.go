package actors

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

// Verdict says what a bearer token is good for at an endpoint, in the order of the checks.
type Verdict int

// The verdicts.
const (
	TokenInvalid      Verdict = iota // missing, malformed, unknown, revoked; its client or user is disabled: 401
	TokenExpired                     // 401 token_expired
	RateLimited                      // 429
	InsufficientScope                // 403 insufficient_scope
	UnapprovedScope                  // 403 unapproved_scope
	Admitted                         // 200
	TryLater                         // too much to do: 503
)

// Admission is the answer to a bearer token.
type Admission struct {
	Verdict Verdict
	Rate    ratelimit.Decision // of RateLimited, InsufficientScope, UnapprovedScope and Admitted
	Profile []byte             // the JSON that the endpoint answers, with Admitted; never to be changed
}

// Admit decides about a request to endpoint with a bearer token at now, and counts it. token may share memory with the
// request. It returns within four seconds, and at once when the token was used a short time ago.
func (s *Identity) Admit(token string, endpoint Endpoint, now time.Time) Admission {
	if s.limits.stopped.Load() {
		return Admission{Verdict: TryLater}
	}
	hash := oauth.HashOf(token)
	return s.admit(token, &hash, endpoint, now)
}

// admit is Admit for a token whose hash is known.
func (s *Identity) admit(token string, hash *oauth.Hash, endpoint Endpoint, now time.Time) Admission {
	if admission, settled := s.limits.admitInUse(hash, endpoint, now); settled {
		return admission // what is in use was genuine when it came, and its actor knows when it ends
	}
	expires, ok := s.keys.CheckAccessToken(token)
	if !ok {
		return Admission{Verdict: TokenInvalid}
	}
	if !now.Before(expires) {
		return Admission{Verdict: TokenExpired}
	}
	return s.limits.admitAfterLoad(*hash, endpoint, now)
}

// AdmitOperator returns Admitted when the token carries oauth.ServerOperations and its client is an operator, so that it may use
// the admin API, and otherwise one of the verdicts that Admit returns. No window counts it.
func (s *Identity) AdmitOperator(token string, now time.Time) Verdict {
	return s.Admit(token, adminAPI, now).Verdict
}

// admitInUse asks the token's actor. False says that there is none, or that it does not know enough.
func (l *limits) admitInUse(hash *oauth.Hash, endpoint Endpoint, now time.Time) (_ Admission, settled bool) {
	a := l.directory.find(hash)
	if a == nil {
		return Admission{}, false
	}
	reply := l.ask(a, endpoint, now)
	switch reply.outcome {
	case askDecided:
		return reply.admission, true
	case askFailed:
		return Admission{Verdict: TryLater}, true
	}
	return Admission{}, false
}

// admitAfterLoad asks the token's actor once there is one that knows enough.
func (l *limits) admitAfterLoad(hash oauth.Hash, endpoint Endpoint, now time.Time) Admission {
	ctx, cancel := context.WithTimeout(l.lifetime, loadPatience)
	defer cancel()
	for ctx.Err() == nil {
		a := l.directory.find(&hash)
		if a != nil {
			switch reply := l.ask(a, endpoint, now); reply.outcome {
			case askDecided:
				return reply.admission
			case askFailed:
				return Admission{Verdict: TryLater}
			case askRejected:
				continue // it has left the directory
			}
		}
		if verdict := l.load(ctx, &hash, a, now); verdict != again {
			return Admission{Verdict: verdict}
		}
	}
	return Admission{Verdict: TryLater}
}
