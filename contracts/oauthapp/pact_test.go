//go:build pact

package oauthapp_test

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/pact-foundation/pact-go/v2/matchers"

	"gatehouse/contracts/oauthapp"
	"gatehouse/contracts/pacttest"
)

// What the states are asked to make. Forms cannot hold values that a state gives back, so that what stands in forms is
// fixed; it is worth nothing anywhere else. The access token is signed with the key of contracts and ends in 2100.
const (
	clientID      = "3d8f6f0e-7a55-4b2b-9c39-1f5f4a1d2c77"
	secret        = "gtcs_kso76eK7EMqVnH4gYGgtmpzIsbL4BVnAKrTo3Ob2ehn4aaTZe"
	otherClientID = "a1f0c7de-0c3b-4a0f-8d53-6d0be5a1f2b4"
	otherSecret   = "gtcs_iLLoKojAXjNPqi0BoeXdciuPxFsv3O5Jag6B0a5gQdV28ESz4"
	redirectURI   = "https://app.example/callback"

	code         = "gtac_s1E3MBpQFHgmVfiUsofpN8X9I7Wk8DHezWNUcw5PReq0pigbL"
	refreshToken = "gtrt_rmTvUoeSl9XR4aFiQc6ByluyweNtd5HPSdZVmiaR2x30y7U4b"
	accessToken  = "gtat_MZIOziCt8neUblJ9femjWNa7y3Y35jlvfbMMTZc99Kh4TdRIW5QeFNGmmhH4"
	newRefresh   = "gtrt_ziT2QTUsOVATbhinwd4Q6ZV7i7pJyepcZm8XgLnDcRr30bzDJ"

	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

type (
	object = pacttest.Object
	state  = pacttest.State
)

var given = pacttest.Given

// TestPact tries everything that the application relies on, and keeps it as the pact of oauth-app and gatehouse.
func TestPact(t *testing.T) {
	p := pacttest.New(t, "../pacts", "oauth-app", "gatehouse")
	tokens(t, p)
	tokenRefusals(t, p)
	grantRefusals(t, p)
	busyTimes(t, p)
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
}

// confidential is the client that the application is, with further parameters.
func confidential(more ...any) state {
	return given("a confidential client", append([]any{"client_id", clientID, "client_secret", secret, "redirect_uri", redirectURI}, more...)...)
}

// public likewise, without a secret.
func public(more ...any) state {
	return given("a public client", append([]any{"client_id", clientID, "redirect_uri", redirectURI}, more...)...)
}

func otherClient() state {
	return given("another client", "client_id", otherClientID, "client_secret", otherSecret)
}

// newApp returns the application with the mock at base for a service.
func newApp(base string) *oauthapp.App {
	return &oauthapp.App{Service: base, Issuer: "https://id.example", ClientID: clientID, Secret: secret, RedirectURI: redirectURI}
}

// newPublicApp likewise, without a secret.
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

// basic is the header of newBasicApp.
const basic = "Basic M2Q4ZjZmMGUtN2E1NS00YjJiLTljMzktMWY1ZjRhMWQyYzc3Omd0Y3Nfa3NvNzZlSzdFTXFWbkg0Z1lHZ3RtcHpJc2JMNEJWbkFLclRvM09iMmVobjRhYVRaZQ=="

// wrongBasic likewise, with otherSecret.
const wrongBasic = "Basic M2Q4ZjZmMGUtN2E1NS00YjJiLTljMzktMWY1ZjRhMWQyYzc3Omd0Y3NfaUxMb0tvakFYak5QcWkwQm9lWGRjaXVQeEZzdjNPNUphZzZCMGE1Z1FkVjI4RVN6NA=="

// basicChallenge is what a client gets that has used HTTP Basic in vain.
const basicChallenge = `Basic realm="gatehouse", charset="UTF-8"`

// form returns names and values in turn as a form.
func form(pairs ...string) url.Values {
	f := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Add(pairs[i], pairs[i+1])
	}
	return f
}

// signed is form with the credentials of the client.
func signed(pairs ...string) url.Values {
	return form(append(pairs, "client_id", clientID, "client_secret", secret)...)
}

func post(path string, f url.Values) pacttest.Request {
	return pacttest.Request{Method: "POST", Path: path, Form: f, Header: map[string]any{"Accept": "application/json"}}
}

// with returns r with further headers.
func with(r pacttest.Request, pairs ...any) pacttest.Request {
	r.Header = maps.Clone(r.Header)
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header[pairs[i].(string)] = pairs[i+1]
	}
	return r
}

// requestID matches what every answer carries.
var requestID = pacttest.Matching("4bf92f3577b34da6", "^[0-9A-Za-z._-]{1,64}$")

// header returns what every answer in JSON has, and more.
func header(pairs ...any) map[string]any {
	h := map[string]any{"Content-Type": pacttest.JSONType, "X-Request-Id": requestID}
	for i := 0; i+1 < len(pairs); i += 2 {
		h[pairs[i].(string)] = pairs[i+1]
	}
	return h
}

// notStored is header for answers about credentials.
func notStored(pairs ...any) map[string]any {
	return header(append(pairs, "Cache-Control", "no-store", "Pragma", "no-cache")...)
}

// positive matches whole numbers from 1.
func positive(example string) matchers.Matcher { return pacttest.Matching(example, "^[1-9][0-9]*$") }

// four returns what is expected of an error body of the token endpoint.
func four(code string) object {
	return object{"error": code, "error_description": pacttest.NotEmpty("This is wrong."), "message": pacttest.NotEmpty("This is wrong."),
		"hint": pacttest.NotEmpty("Change that.")}
}

// withApp runs call with a deadline.
func withApp(t *testing.T, a *oauthapp.App, call func(context.Context, *oauthapp.App)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	call(ctx, a)
}

// wantRefusal fails the test unless err is an *Error of that status and code, which it returns.
func wantRefusal(t *testing.T, err error, status int, code string) *oauthapp.Error {
	t.Helper()
	var got *oauthapp.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if got.Status != status || got.Code != code {
		t.Errorf("got %d %s, want %d %s", got.Status, got.Code, status, code)
	}
	return got
}
