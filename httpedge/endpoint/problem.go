package endpoint

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/geo"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
)

// Problem is what a caller is told about an error. Every format renders the same problem. It is an
// error itself, so that handlers can return one. Shared values are never changed.
type Problem struct {
	Status      int                 // HTTP status; a page with a form has 422 for 400
	Code        string              // names the error for programs; "" = none
	Description string              // what is wrong, for developers; "" = Message says it
	Message     string              // what is wrong and what to do, for people
	Hint        string              // what to change in the request; only with OAuth errors
	Reason      geo.Reason          // refines Code; only with lookup errors
	Fields      account.FieldErrors // what is wrong with which field
	Challenge   string              // value of WWW-Authenticate; "" = none
	RetryAfter  time.Duration       // when to try again; 0 = unknown
	Final       bool                // a lookup that is repeated fails as well
	Unexpected  bool                // only an operator can help: to be logged
}

// Error returns the code and the message.
func (p *Problem) Error() string { return p.Code + ": " + p.Message }

// Saying returns the same problem with another message.
func (p Problem) Saying(message string) *Problem {
	p.Message = message
	return &p
}

// Problems that the server and the handlers find themselves.
var (
	ErrNotFound = &Problem{Status: fasthttp.StatusNotFound, Code: "not_found",
		Message: "There is nothing at this path."}
	ErrMethodNotAllowed = &Problem{Status: fasthttp.StatusMethodNotAllowed,
		Code:    "method_not_allowed",
		Message: "This path does not support the method of the request."}
	ErrBadRequest = &Problem{Status: fasthttp.StatusBadRequest, Code: "bad_request",
		Message: "This is not a well-formed HTTP/1.1 request."}
	ErrInvalidRequest = &Problem{Status: fasthttp.StatusBadRequest, Code: "invalid_request",
		Message: "Some members of the request are not valid: see fields."}
	ErrHeadersTooLarge = &Problem{Status: fasthttp.StatusRequestHeaderFieldsTooLarge,
		Code:    "headers_too_large",
		Message: "The request line and the headers together are larger than 16 KiB."}
	ErrBodyTooLarge = &Problem{Status: fasthttp.StatusRequestEntityTooLarge,
		Code:    "payload_too_large",
		Message: "The request body is larger than 64 KiB."}
	ErrRequestTimeout = &Problem{Status: fasthttp.StatusRequestTimeout, Code: "request_timeout",
		Message: "The request did not arrive in time."}
	ErrPanic = &Problem{Status: fasthttp.StatusInternalServerError, Code: "server_error",
		Unexpected: true,
		Message:    "Something went wrong on our side. Give the request id when you ask for help."}
	ErrNotJSON = &Problem{Status: fasthttp.StatusUnsupportedMediaType,
		Code:    "unsupported_media_type",
		Message: "Send the body as Content-Type: application/json."}
	ErrNoToken = &Problem{Status: fasthttp.StatusUnauthorized, Challenge: challengeBare,
		Message: "Send an access token in the header Authorization: Bearer."}
	ErrBadTokenForm = &Problem{Status: fasthttp.StatusBadRequest, Code: "invalid_request",
		Challenge: challengeForm,
		Message:   "Send one access token: in the header Authorization: Bearer, or in the form as access_token."}
	ErrInvalidKey = &Problem{Status: fasthttp.StatusUnauthorized, Code: "invalid_api_key",
		Challenge: challengeKey,
		Message:   "The key in the header X-Api-Key is not valid. Correct it, or ask the operator for a new one."}
	ErrKeyRequired = &Problem{Status: fasthttp.StatusUnauthorized, Code: "api_key_required",
		Challenge: challengeKey,
		Message:   "Send your API key in the header X-Api-Key. The operator of this service hands them out."}
	ErrInvalidToken = &Problem{Status: fasthttp.StatusUnauthorized, Challenge: challengeInvalid,
		Message: "The access token is not valid."}
)

// ProblemOf is the one map from an error to what a caller is told: status, code, message and
// Retry-After. The statuses of *oauth.Error are the RFC's and stand in package oauth.
func ProblemOf(err error) Problem {
	switch e := err.(type) { // the errors of hot paths, which cost no allocation
	case *geo.Error:
		return lookupProblem(e)
	case *Problem:
		return *e
	}
	var own *Problem
	var told *oauth.Error
	var refusal *Refusal
	var throttled *people.ThrottledError
	switch {
	case errors.As(err, &own):
		return *own
	case errors.As(err, &told):
		return oauthProblem(told)
	case errors.As(err, &refusal):
		return refusal.problem()
	case errors.As(err, &throttled):
		return Problem{Status: fasthttp.StatusTooManyRequests, Code: "rate_limit_exceeded",
			RetryAfter: throttled.RetryAfter,
			Message:    "There were too many attempts."}
	}
	if p, ok := recordProblem(err); ok {
		return p
	}
	if p, ok := signInProblem(err); ok {
		return p
	}
	return Failure(err)
}

// Failure is ProblemOf for an error that is not the caller's, whatever it is.
func Failure(err error) Problem {
	p := Problem{Status: fasthttp.StatusServiceUnavailable, Code: "temporarily_unavailable",
		RetryAfter: time.Second}
	switch {
	case errors.Is(err, oauth.ErrUnknownOutcome):
		p.Message = "The change was not confirmed in time. Check whether it was made before you try again."
	case isTemporary(err):
		p.Message = "The service is overloaded. Nothing was changed; try again in a few seconds."
	default:
		p.Message = "The service cannot do this at the moment. Give the request id when you ask for help."
		p.Unexpected = true
	}
	return p
}

// recordProblem returns the problem of an error about a user, a client or a key; false = err is
// another.
func recordProblem(err error) (Problem, bool) {
	var registration *oauth.RegistrationError
	var taken *oauth.TakenError
	var field account.FieldError
	var fields account.FieldErrors
	switch {
	case errors.As(err, &registration) && registration.Field == "secrets":
		return conflict("secrets: " + registration.Message + "."), true
	case errors.As(err, &registration):
		return invalid(account.FieldErrors{{Field: registration.Field,
			Message: registration.Message}}), true
	case errors.As(err, &fields):
		return invalid(fields), true
	case errors.As(err, &field):
		return invalid(account.FieldErrors{field}), true
	case errors.Is(err, account.ErrTaken):
		return conflict("The email address, phone number or username belongs to another user."),
			true
	case errors.As(err, &taken):
		return conflict("The resource " + taken.URI + " exists already, perhaps written in another way."), true
	case errors.Is(err, account.ErrGroupTaken):
		return conflict("There is a group with this name already."), true
	case errors.Is(err, account.ErrTooManyGroups):
		return conflict("The user is in 1000 groups, which is the most."), true
	case errors.Is(err, account.ErrNoGroup):
		return Problem{Status: fasthttp.StatusNotFound, Code: "not_found",
			Message: "There is no such group."}, true
	case errors.Is(err, oauth.ErrClientIDTaken):
		return conflict("Another client has this client_id. Choose another one."), true
	case errors.Is(err, oauth.ErrDeclared):
		return conflict("The server's own files declare this record. Change it there."), true
	case errors.Is(err, oauth.ErrConflict):
		return conflict("There is one already."), true
	case errors.Is(err, oauth.ErrKeysInUse):
		return conflict("What was made with a former key has not expired."), true
	case errors.Is(err, oauth.ErrNotFound), errors.Is(err, account.ErrNotFound):
		return Problem{Status: fasthttp.StatusNotFound, Code: "not_found",
			Message: "There is no such record."}, true
	}
	return Problem{}, false
}

func invalid(fields account.FieldErrors) Problem {
	p := *ErrInvalidRequest
	p.Fields = fields
	return p
}

func conflict(message string) Problem {
	return Problem{Status: fasthttp.StatusConflict, Code: "conflict", Message: message}
}

// signInProblem returns the problem of somebody who cannot sign in or prove who they are; false =
// err is another.
func signInProblem(err error) (Problem, bool) {
	p := Problem{Status: fasthttp.StatusUnprocessableEntity}
	switch {
	case errors.Is(err, people.ErrWrongCredentials):
		p.Message = "The email address and the password do not belong together. Check both and try again."
	case errors.Is(err, people.ErrWrongCode):
		p.Message = "This is not the code that we sent. Check it and try again."
	case errors.Is(err, people.ErrCodeExpired):
		p.Message = "This code is no longer valid: it has expired, was used or was tried too often. Ask for a new one."
	case errors.Is(err, people.ErrPasskeyWrong):
		p.Message = "This passkey could not be checked. Try again, or sign in another way."
	case errors.Is(err, people.ErrPasskeyUnknown):
		p.Message = "No account here has this passkey. Perhaps it was removed."
	case errors.Is(err, people.ErrPasskeyExpired):
		p.Message = "This took too long, or was sent twice. Try again."
	case errors.Is(err, people.ErrPasskeyRefused):
		p.Message = "This passkey may be a copy, so it was refused. Sign in another way."
	case errors.Is(err, people.ErrPasskeyTaken):
		p.Message = "Your account has this passkey already."
	case errors.Is(err, people.ErrManyPasskeys):
		p.Message = "Your account has 20 passkeys. Remove one before you add another."
	case errors.Is(err, people.ErrNoAccount):
		p.Message = "There is no account with this address. Perhaps you registered with another one."
	case errors.Is(err, people.ErrPasswordNeeded):
		p.Status, p.Message = fasthttp.StatusForbidden,
			"This account has a password, and a code to the phone does not replace it."
	case errors.Is(err, people.ErrDisabled):
		p.Status, p.Message = fasthttp.StatusForbidden, "Nobody can sign in to it at the moment."
	case errors.Is(err, people.ErrProofNeeded):
		p.Status, p.Message = fasthttp.StatusForbidden,
			"For your safety, this needs a code to where your account could be reached before."
	default:
		return Problem{}, false
	}
	return p, true
}

func oauthProblem(e *oauth.Error) Problem {
	p := Problem{Status: e.Status(), Code: string(e.Code), Message: e.Description, Hint: e.Hint}
	if e.Code == oauth.TemporarilyUnavailable {
		p.RetryAfter = max(time.Second, e.RetryAfter)
	}
	if e.Code == oauth.InvalidToken {
		p.Challenge = challengeInvalid
	}
	if e.Code == oauth.InvalidClient && e.BasicTried {
		p.Challenge = challengeBasic
	}
	return p
}

func lookupProblem(e *geo.Error) Problem {
	p := Problem{Status: fasthttp.StatusInternalServerError, Code: string(e.Code), Reason: e.Reason,
		RetryAfter: max(0, e.RetryAfter)}
	switch e.Code {
	case geo.CodeInvalidQuery:
		p.Status, p.Message = fasthttp.StatusBadRequest, e.Reason.Message()
	case geo.CodeRateLimited:
		p.Status, p.RetryAfter = fasthttp.StatusTooManyRequests, max(time.Second, e.RetryAfter)
		p.Message = "Too many lookups: the upstream provider's limit, or the limit per caller, is reached. Try again later; cached results are still served."
	case geo.CodeProviderUnreachable:
		p.Status = fasthttp.StatusBadGateway
		p.Message = "The upstream provider does not respond. Try again later; cached results are still served."
		if p.Final = e.Damaged; p.Final {
			p.Message = geo.DamagedMessage
		}
	case geo.CodeOverloaded:
		p.Status, p.RetryAfter = fasthttp.StatusServiceUnavailable, max(time.Second, e.RetryAfter)
		p.Message = "The service is overloaded. Try again in a few seconds."
	}
	return p
}

// isTemporary reports whether err comes from overload, a timeout or a stop: the same request may
// succeed a moment later.
func isTemporary(err error) bool {
	for _, temporary := range []error{
		oauth.ErrBusy, account.ErrBusy, oauth.ErrUnknownOutcome, mailbox.ErrFull, mailbox.ErrStopped,
		context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, temporary) {
			return true
		}
	}
	return false
}
