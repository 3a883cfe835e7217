package actors

import (
	"context"
	"errors"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// errUnavailable is what clients are told of everything that is not their mistake.
var errUnavailable = &oauth.Error{
	Code:        oauth.TemporarilyUnavailable,
	Description: "The service cannot do this at the moment.",
	Hint:        "Try again in a second.",
	RetryAfter:  time.Second,
}

// errFailed is what clients of the authorization endpoint are told of a failure.
var errFailed = &oauth.Error{Code: oauth.ServerError, Description: "Something went wrong on our side."}

// IsTemporary reports whether err, of a method of an Identity, comes from load, from time that ran out or from a stop: the same
// request may be served a moment later. Every other error that the method does not document is a failure.
func IsTemporary(err error) bool {
	return isOverload(err) || errors.Is(err, account.ErrBusy) || errors.Is(err, oauth.ErrUnknownOutcome) || errors.Is(err, errStopped)
}

func isOverload(err error) bool {
	return errors.Is(err, oauth.ErrBusy) || errors.Is(err, errRefused) || errors.Is(err, errTooLate) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// authorizeFault is fault for the authorization endpoint, which has no status to tell a failure from load by: it says
// server_error (RFC 6749 section 4.1.2.1).
func (s *Identity) authorizeFault(err error, step string) *oauth.Error {
	fault := s.fault(err, step)
	if fault == errUnavailable && !IsTemporary(err) {
		return errFailed
	}
	return fault
}

// fault returns what a client is told of err, nil for nil, and logs what is not told. step says what was attempted.
func (s *Identity) fault(err error, step string) *oauth.Error {
	if err == nil {
		return nil
	}
	var told *oauth.Error
	switch {
	case errors.As(err, &told):
		return told
	case isOverload(err):
		s.metrics.overloads.Inc()
	default:
		s.config.Logger.Error("a write or read of the identity service failed", "step", step, "error", err)
	}
	return errUnavailable
}

// Wrong client secrets that one address may send: a burst at once and then one a second. Right ones are never held up.
const (
	wrongSecrets       = 20
	wrongSecretsEvery  = time.Second
	wrongSecretCallers = 10_000
)

// throttled turns a failed client authentication of a caller that failed too often before into an answer that says so, and returns
// everything else as it is.
func (s *Identity) throttled(fault *oauth.Error, c oauth.Credentials, now time.Time) *oauth.Error {
	if fault == nil || fault.Code != oauth.InvalidClient || !c.Caller.IsValid() {
		return fault
	}
	wait := s.wrongSecrets.Take(c.Caller, now)
	if wait == 0 {
		return fault
	}
	return &oauth.Error{
		Code:        oauth.TemporarilyUnavailable,
		Description: "Too many failed client authentications came from this address.",
		Hint:        "Check client_id and client_secret, and try again later.",
		Throttled:   true,
		RetryAfter:  wait,
	}
}
