package docs_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

// The tables of errors are compared with the codes in openapi.yaml, which the tests of httpedge
// hold against the code, and with the statuses of endpoint.ProblemOf.

// told returns "code status" of an error.
func told(err error) string {
	p := endpoint.ProblemOf(err)
	if p.Code == "" {
		p.Code = "none, message alone"
	}
	return p.Code + " " + strconv.Itoa(p.Status)
}

// withStatus returns "code status" of each code, with the status of the first error that has it.
func withStatus(codes []string, errs ...error) []string {
	lines := slices.Clone(codes)
	for i, code := range codes {
		for _, err := range slices.Backward(errs) {
			if strings.HasPrefix(told(err), code+" ") {
				lines[i] = told(err)
			}
		}
	}
	return lines
}

func problemCodes(t *testing.T) []string {
	return enum(t, "schemas", "Problem", "properties", "error")
}

func problems(t *testing.T) []string {
	return withStatus(problemCodes(t), endpoint.ErrNotFound, endpoint.ErrMethodNotAllowed,
		endpoint.ErrBadRequest, endpoint.ErrRequestTimeout, endpoint.ErrBodyTooLarge,
		endpoint.ErrHeadersTooLarge, endpoint.ErrPanic)
}

func lookupErrors(t *testing.T) []string {
	codes := enum(t, "schemas", "LookupError", "properties", "error")
	errs := []error{endpoint.ErrBodyTooLarge, endpoint.ErrNotJSON, endpoint.ErrInvalidRequest,
		endpoint.ErrInvalidKey, endpoint.ErrKeyRequired}
	var shared []string
	for _, err := range errs {
		shared = append(shared, endpoint.ProblemOf(err).Code)
	}
	for _, code := range codes {
		err := &geo.Error{Code: geo.Code(code)}
		errs = append(errs, err)
		if slices.Contains(shared, code) {
			continue
		}
		if endpoint.ProblemOf(err).Message == "" {
			t.Errorf("got no message for %s, want a case in lookupProblem of httpedge/endpoint", code)
		}
		if !slices.Contains(geo.Codes, err.Code) {
			t.Errorf("got no %s in geo.Codes", code)
		}
	}
	return withStatus(codes, errs...)
}

// reasons are those of lookup errors; "" stands for none.
func reasons(t *testing.T) []string {
	all := slices.DeleteFunc(enum(t, "schemas", "LookupError", "properties", "reason"),
		func(reason string) bool { return reason == "" })
	messages := map[string]string{}
	for _, reason := range all {
		message := geo.Reason(reason).Message()
		if messages[message] != "" {
			t.Errorf("got the message of %s for %s, want a case in its Message", messages[message], reason)
		}
		messages[message] = reason
	}
	return all
}

// adminErrors are those of the admin API that not every endpoint has, and not_found.
func adminErrors(t *testing.T) []string {
	general := problemCodes(t)
	codes := slices.DeleteFunc(enum(t, "schemas", "AdminError", "properties", "error"),
		func(code string) bool { return code != "not_found" && slices.Contains(general, code) })
	return withStatus(codes, endpoint.ErrInvalidRequest, oauth.ErrNotFound, account.ErrTaken,
		endpoint.ErrNotJSON, oauth.ErrUnknownOutcome)
}

func profileErrors(*testing.T) []string {
	var lines []string
	for v := token.TokenInvalid; v <= token.InsufficientAuthentication; v++ {
		if v != token.Admitted {
			lines = append(lines, told(&endpoint.Refusal{Verdict: v}))
		}
	}
	return lines
}

// oauthErrors are those of the token endpoint that not every endpoint has, those of redirects, and
// server_error.
func oauthErrors(t *testing.T) []string {
	general := problemCodes(t)
	codes := append(enum(t, "schemas", "TokenError", "properties", "error"),
		enum(t, "headers", "Authorized", "x-parameters", "error")...)
	return slices.DeleteFunc(codes,
		func(code string) bool { return code != "server_error" && slices.Contains(general, code) })
}
