//go:build pact

package oauthapp_test

import (
	"errors"
	"maps"
	"net/url"
	"testing"

	"github.com/pact-foundation/pact-go/v2/matchers"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// Parameters of states. Forms cannot contain values of states, so values in forms are fixed. They
// are valid only here. The access token stands in for one that a state issues.
const (
	clientID      = "3d8f6f0e-7a55-4b2b-9c39-1f5f4a1d2c77"
	secret        = "gtcs_kso76eK7EMqVnH4gYGgtmpzIsbL4BVnAKrTo3Ob2ehn4aaTZe"
	otherClientID = "a1f0c7de-0c3b-4a0f-8d53-6d0be5a1f2b4"
	otherSecret   = "gtcs_iLLoKojAXjNPqi0BoeXdciuPxFsv3O5Jag6B0a5gQdV28ESz4"
	redirectURI   = "https://app.example/callback"

	code         = "gtac_s1E3MBpQFHgmVfiUsofpN8X9I7Wk8DHezWNUcw5PReq0pigbL"
	refreshToken = "gtrt_rmTvUoeSl9XR4aFiQc6ByluyweNtd5HPSdZVmiaR2x30y7U4b"
	accessToken  = "gtat_AQABlNQumTYGx3r6zgXSiddJXX_2MEg3bGCJQr92XsdIwSHmy6p0uBzGaNJzPOXB6lYnblsyicVYRje5tBXkXuYMMzPeEfptqLlx9XVkuo37Q3i_66hxFnEYxs35JOj-792297M"
	newRefresh   = "gtrt_ziT2QTUsOVATbhinwd4Q6ZV7i7pJyepcZm8XgLnDcRr30bzDJ"

	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

type (
	object = pacttest.Object
	state  = pacttest.State
)

var given = pacttest.Given

// TestPact runs everything that the application relies on. It is the pact of oauth-app and
// gatehouse.
func TestPact(t *testing.T) {
	p := pacttest.New(t, "../pacts", "oauth-app", "gatehouse")
	tokens(t, p)
	tokenErrors(t, p)
	grantErrors(t, p)
	overloads(t, p)
	revocations(t, p)
	introspections(t, p)
	metadata(t, p)
	redirects(t, p)
	redirectedErrors(t, p)
	authorizationPages(t, p)
	profiles(t, p)
	profileHeaders(t, p)
	profileRefusals(t, p)
	otherRequests(t, p)
	webPages(t, p)
	heads(t, p)
	failingPages(t, p)
	discovery(t, p)
	idTokens(t, p)
	userInfos(t, p)
	openIDAuthorizations(t, p)
	logouts(t, p)
	devices(t, p)
	resources(t, p)
	tokenExchanges(t, p)
	assertions(t, p)
	clientOptions(t, p)
	registrations(t, p)
	unusualValues(t, p)
	operations(t, p)
}

// confidential returns the state of the application's client, with further parameters.
func confidential(more ...any) state {
	return given("a confidential client",
		append([]any{"client_id", clientID, "client_secret", secret, "redirect_uri", redirectURI},
			more...)...)
}

// public returns the same for a client without a secret.
func public(more ...any) state {
	return given("a public client",
		append([]any{"client_id", clientID, "redirect_uri", redirectURI}, more...)...)
}

func otherClient() state {
	return given("another client", "client_id", otherClientID, "client_secret", otherSecret)
}

// newApp returns the application, with the mock at base as its service.
func newApp(base string) *oauthapp.App {
	return &oauthapp.App{Service: base, Issuer: "https://id.example", ClientID: clientID,
		Secret: secret, RedirectURI: redirectURI}
}

// newPublicApp returns the same without a secret.
func newPublicApp(base string) *oauthapp.App {
	a := newApp(base)
	a.Secret = ""
	return a
}

func newBasicApp(base string) *oauthapp.App {
	a := newApp(base)
	a.Basic = true
	return a
}

// basic is the Authorization header of newBasicApp.
const basic = "Basic M2Q4ZjZmMGUtN2E1NS00YjJiLTljMzktMWY1ZjRhMWQyYzc3Omd0Y3Nfa3NvNzZlSzdFTXFWbkg0Z1lHZ3RtcHpJc2JMNEJWbkFLclRvM09iMmVobjRhYVRaZQ=="

// wrongBasic is the same with otherSecret.
const wrongBasic = "Basic M2Q4ZjZmMGUtN2E1NS00YjJiLTljMzktMWY1ZjRhMWQyYzc3Omd0Y3NfaUxMb0tvakFYak5QcWkwQm9lWGRjaXVQeEZzdjNPNUphZzZCMGE1Z1FkVjI4RVN6NA=="

// basicChallenge matches the challenge for wrong HTTP Basic credentials.
const basicChallenge = `Basic realm="gatehouse", charset="UTF-8"`

// form returns a form of alternating names and values.
func form(pairs ...string) url.Values {
	f := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Add(pairs[i], pairs[i+1])
	}
	return f
}

// signed returns form with the client's credentials.
func signed(pairs ...string) url.Values {
	return form(append(pairs, "client_id", clientID, "client_secret", secret)...)
}

func post(path string, f url.Values) pacttest.Request {
	return pacttest.Request{Method: "POST", Path: path, Form: f,
		Header: map[string]any{"Accept": "application/json"}}
}

// with returns r with further headers.
func with(r pacttest.Request, pairs ...any) pacttest.Request {
	r.Header = maps.Clone(r.Header)
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header[pairs[i].(string)] = pairs[i+1]
	}
	return r
}

// requestID matches the request ID of every response.
var requestID = pacttest.Matching("4bf92f3577b34da6", "^[0-9A-Za-z._-]{1,64}$")

// header returns the headers of every JSON response, and more.
func header(pairs ...any) map[string]any {
	h := map[string]any{"Content-Type": pacttest.JSONType, "X-Request-Id": requestID}
	for i := 0; i+1 < len(pairs); i += 2 {
		h[pairs[i].(string)] = pairs[i+1]
	}
	return h
}

// notStored returns header for responses with credentials.
func notStored(pairs ...any) map[string]any {
	return header(append(pairs, "Cache-Control", "no-store", "Pragma", "no-cache")...)
}

// positive matches integers from 1.
func positive(example string) matchers.Matcher {
	return pacttest.Matching(example,
		"^[1-9][0-9]*$")
}

// four returns the expected error body of the token endpoint.
func four(code string) object {
	return object{"error": code, "error_description": pacttest.NotEmpty("This is wrong."),
		"message": pacttest.NotEmpty("This is wrong."),
		"hint":    pacttest.NotEmpty("Change that.")}
}

// wantError returns err as an *Error. The test fails unless it has that status and code.
func wantError(t *testing.T, err error, status int, code string) *oauthapp.Error {
	t.Helper()
	var got *oauthapp.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if got.Status != status || got.Code != code {
		t.Errorf("got %d %s, want %d %s", got.Status, got.Code, status, code)
	}
	return got
}
