package token

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// errUnavailable is what clients are told of everything that is not their mistake.
var errUnavailable = &oauth.Error{
	Code:        oauth.TemporarilyUnavailable,
	Description: "The service cannot do this at the moment.",
	Hint:        "Try again in a second.",
	RetryAfter:  time.Second,
}

// errTooManyEnds is what a client is told that has revoked endLimit tokens which would still be
// valid.
var errTooManyEnds = &oauth.Error{
	Code:        oauth.TemporarilyUnavailable,
	Description: "The client has revoked too many access tokens that have not expired.",
	Hint:        "Try again when some have expired, or revoke the refresh token instead.",
	RetryAfter:  time.Minute,
}

// errRepeated is what a client is told that has sent a replaced refresh token too often within the
// grace period.
var errRepeated = &oauth.Error{
	Code:        oauth.TemporarilyUnavailable,
	Description: "The refresh token was replaced, and its replacement was repeated too often.",
	Hint:        "Use the refresh token of the latest response, also in parallel requests.",
	Throttled:   true,
	RetryAfter:  time.Second,
}

// errFailed is what clients of the authorization endpoint are told of a failure.
var errFailed = &oauth.Error{Code: oauth.ServerError, Description: "Something went wrong on our side."}

// quotaUsed returns what a client is told when decision refuses it an access token.
func quotaUsed(decision ratelimit.Decision) *oauth.Error {
	return &oauth.Error{
		Code:        oauth.TemporarilyUnavailable,
		Description: "The client has used up its quota of access tokens for this minute.",
		Hint:        "Use each access token until it expires, and try again later.",
		Throttled:   true,
		RetryAfter:  time.Duration(decision.Wait) * time.Second,
	}
}

// isOverload reports whether err comes from too much load or from a deadline.
func isOverload(err error) bool {
	return errors.Is(err, oauth.ErrBusy) || errors.Is(err, mailbox.ErrFull) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// authorizeFault is fault for the authorization endpoint. That has no status to tell a failure from
// overload, so a failure is server_error (RFC 6749 section 4.1.2.1).
func (s *Service) authorizeFault(err error, step string) *oauth.Error {
	fault := s.fault(err, step)
	temporary := isOverload(err) || errors.Is(err, oauth.ErrUnknownOutcome) || errors.Is(err, mailbox.ErrStopped)
	if fault == errUnavailable && !temporary {
		return errFailed
	}
	return fault
}

// fault returns what a client is told of err, nil for nil, and logs what it is not told. step says
// what was attempted.
func (s *Service) fault(err error, step string) *oauth.Error {
	if err == nil {
		return nil
	}
	var fault *oauth.Error
	switch {
	case errors.As(err, &fault):
		return fault
	case isOverload(err):
		s.metrics.overloads.Inc()
	case errors.Is(err, mailbox.ErrStopped):
	default:
		s.config.Logger.Error("a write or read of the identity service failed", "step", step, "error", err)
	}
	return errUnavailable
}

// throttled returns the error for a failed client authentication from an address that has failed
// too often, and every other fault as it is.
func (s *Service) throttled(fault *oauth.Error, c oauth.Credentials, now time.Time) *oauth.Error {
	if fault == nil || fault.Code != oauth.InvalidClient || !c.Caller.IsValid() {
		return fault
	}
	wait := s.wrongSecrets.Take(c.Caller, now)
	if wait == 0 {
		return fault
	}
	return tooManyFailures(wait)
}

// tooManyFailures returns the error for a caller who has to wait after failed authentications.
func tooManyFailures(wait time.Duration) *oauth.Error {
	fault := tooMany("Too many failed client authentications came from this address.", wait)
	fault.Hint = "Check client_id and client_secret, or the key of the assertion, and try again later."
	return fault
}
