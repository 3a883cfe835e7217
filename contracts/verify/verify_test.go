//go:build pact

package verify_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
	"gatehouse/contracts/report"
	"gatehouse/contracts/verify"
	"gatehouse/providers/sqlstore/pgtest"
)

// TestMain spares the library the certificates of the machine, which it reads for each interaction:
// nothing here is TLS.
func TestMain(m *testing.M) {
	if err := errors.Join(os.Setenv("SSL_CERT_FILE", os.DevNull),
		os.Setenv("SSL_CERT_DIR", os.DevNull)); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// pactOf returns a pact with interactions in JSON.
func pactOf(t *testing.T, interactions string) *contracts.Pact {
	t.Helper()
	p, err := contracts.ReadPact([]byte(`{"consumer":{"name":"shop"},"provider":{"name":"gatehouse"},"interactions":[`+interactions+
		`],"metadata":{"pactSpecification":{"version":"4.0"}}}`), "shop.json")
	stacktest.Must(t, err)
	stacktest.Must(t, p.Check())
	return p
}

// try verifies the pact with a new provider and both engines, which must agree. It returns the
// results of ours.
func try(t *testing.T, p *contracts.Pact, pending bool) []*report.Interaction {
	t.Helper()
	provider, err := contracts.Start(contracts.Config{})
	stacktest.Must(t, err)
	t.Cleanup(func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	all := verifyWith(t, verify.New, verify.Of(provider), p, pending)
	for i, native := range verifyWith(t, verify.NewNative, verify.Of(provider), p, pending) {
		if native.Result != all[i].Result {
			t.Errorf("got %+v, and %+v of the library", all[i], native)
		}
	}
	return all
}

// verifyWith verifies a pact with one of the engines.
func verifyWith(t *testing.T, engine func(verify.Target) (*verify.Verifier, error),
	target verify.Target, p *contracts.Pact, pending bool) []*report.Interaction {
	t.Helper()
	v, err := engine(target)
	stacktest.Must(t, err)
	defer func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	live := 0
	all, err := v.Pact(t.Context(), p, pending, func(*report.Interaction) { live++ })
	stacktest.Must(t, err)
	if live != len(p.Interactions) || len(all) != live {
		t.Errorf("got %d results and %d live ones, want %d", len(all), live, len(p.Interactions))
	}
	return all
}

const lookup = `{"type":"Synchronous/HTTP","description":"a lookup","providerStates":[{"name":"the upstream knows a query","params":{"query":"8.8.8.8"}}],
"request":{"method":"GET","path":"/api/lookup","query":{"q":["8.8.8.8"]}},
"response":{"status":200,"body":{"contentType":"application/json","encoded":false,"content":`

func TestVerifiedInteraction(t *testing.T) {
	got := try(t, pactOf(t, lookup+`{"ok":true,"query":"8.8.8.8"}}}}`), false)
	if got[0].Result != report.Verified || got[0].Problems != nil {
		t.Errorf("got %+v, want it verified", got[0])
	}
}

// TestFailureShowsProblems expects a wrong field, type and status.
func TestFailureShowsProblems(t *testing.T) {
	body := strings.Replace(lookup, `"status":200`, `"status":201`, 1)
	got := try(t, pactOf(t, body+`{"ok":"yes","planet":"Earth"}}}}`), false)[0]
	if got.Result != report.Failed || !strings.HasPrefix(got.Response, `200 {"ok":true`) ||
		got.Request != "GET /api/lookup" {
		t.Fatalf("got %+v, want a failure with the response", got)
	}
	text := ""
	for _, p := range got.Problems {
		text += p.String() + "\n"
	}
	for _, want := range []string{"status: expected 201, got 200",
		`body $.ok: expected "yes", got true`, "body $.planet is missing"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q in it", text, want)
		}
	}
}

func TestFailureOfPendingPact(t *testing.T) {
	if got := try(t, pactOf(t, lookup+`{"planet":"Earth"}}}}`),
		true)[0]; got.Result != report.Pending || len(got.Problems) == 0 {
		t.Errorf("got %+v, want it pending, with the problem", got)
	}
}

// TestHeaderListInOneValue expects a header with a list. Pacts of version 4 have it as one text, as
// one value of an array, or as several.
func TestHeaderListInOneValue(t *testing.T) {
	for header, want := range map[string]report.Result{
		`"private, max-age=600"`: report.Verified, `["private, max-age=600"]`: report.Verified,
		`["private","max-age=600"]`: report.Verified, `["public, max-age=1"]`: report.Failed} {
		body := strings.Replace(lookup, `"response":{`,
			`"response":{"headers":{"Cache-Control":`+header+`},`, 1)
		if got := try(t, pactOf(t, body+`{}}}}`), false)[0]; got.Result != want {
			t.Errorf("%s: got %+v, want it %s", header, got, want)
		}
	}
}

const authorize = `{"type":"Synchronous/HTTP","description":"a redirect","providerStates":[{"name":"a public client"}],
"request":{"method":"GET","path":"/oauth/authorize","query":{"response_type":["token"],"client_id":["` + contracts.DefaultClientID + `"],"redirect_uri":["https://app.example/callback"],"state":["xyz"]}},
"response":{"status":302,"headers":{"Location":["https://app.example/callback?error=X"]},"matchingRules":{"header":{"Location":{"combine":"AND","matchers":[{"match":"regex","regex":"REGEX"}]}}}}}`

func TestRedirectIsNotFollowed(t *testing.T) {
	got := try(t, pactOf(t, strings.Replace(authorize, "REGEX",
		`https://app\\.example/callback\\?.*error=unsupported_response_type.*`, 1)), false)[0]
	if got.Result != report.Verified {
		t.Errorf("got %+v, want it verified", got)
	}
}

func TestWrongRedirectNamesLocation(t *testing.T) {
	got := try(t, pactOf(t, strings.Replace(authorize, "REGEX", `https://other\\.example/.*`, 1)),
		false)[0]
	if got.Result != report.Failed || got.Problems[0].Where != "header Location" {
		t.Errorf("got %+v, want a failure of the header Location", got)
	}
}

// TestRedirectIsNotAPage expects a page, but the service redirects to one.
func TestRedirectIsNotAPage(t *testing.T) {
	body := strings.Replace(authorize, `"status":302`, `"status":200`, 1)
	body = body[:strings.Index(body, `,"headers"`)] + "}}"
	body = strings.Replace(body, `["token"]`,
		`["code"],"code_challenge":["`+
			contracts.CodeChallenge+`"],"code_challenge_method":["S256"]`, 1)
	got := try(t, pactOf(t, body), false)[0]
	if got.Result != report.Failed ||
		!strings.Contains(got.Problems[0].String(), "expected 200, got 302") {
		t.Errorf("got %+v, want a failure of the status", got)
	}
}

func TestMessageFails(t *testing.T) {
	got := try(t, pactOf(t,
		`{"type":"Asynchronous/Messages","description":"an event","contents":{"content":"x"}}`),
		false)[0]
	if got.Result != report.Failed || !strings.Contains(got.Problems[0].Reason, "no messages") {
		t.Errorf("got %+v, want a failure that says why", got)
	}
}

// TestFailedStateIsTheReason needs a result that the upstream does not have.
func TestFailedStateIsTheReason(t *testing.T) {
	body := strings.Replace(lookup, `"the upstream knows a query","params":{"query":"8.8.8.8"}`,
		`"the upstream knows a query","params":{"query":"5.255.255.1"}`, 1)
	got := try(t, pactOf(t, body+`{}}}}`), false)[0]
	if got.Result != report.Failed || len(got.Problems) != 1 || got.Problems[0].Where != "state" ||
		!strings.Contains(got.Problems[0].Reason, "400 state") {
		t.Errorf("got %+v, want the state as the reason, once", got)
	}
}

// TestValueThatNoStateGives uses the id of a user, but the token is for the client itself.
func TestValueThatNoStateGives(t *testing.T) {
	got := try(t, pactOf(t, `{"type":"Synchronous/HTTP","description":"x","providerStates":[
{"name":"an access token","params":{"user":false,"scope":""}}],
"request":{"method":"GET","path":"/api/lookup","query":{"q":["8.8.8.8"]},"headers":{"X-User":["17"]},
"generators":{"header":{"X-User":{"type":"ProviderState","expression":"${user_id}"}}}},
"response":{"status":200}}`), false)[0]
	if got.Result != report.Failed || len(got.Problems) != 1 || !strings.Contains(
		got.Problems[0].String(), `state: it uses the value "user_id", and its states give access_token`) {
		t.Errorf("got %+v, want the value as the reason", got)
	}
}

// TestPageIsShownAsText gets a page as the response.
func TestPageIsShownAsText(t *testing.T) {
	got := try(t, pactOf(t,
		`{"type":"Synchronous/HTTP","description":"a page","request":{"method":"GET","path":"/oauth/authorize"},"response":{"status":200}}`), false)[0]
	if !strings.HasPrefix(got.Response, `400 page "This request cannot be served · `) ||
		strings.ContainsAny(got.Response, "<{") {
		t.Errorf("got %s, want the title and the words of the page", got.Response)
	}
}

// TestSecretsAreRedacted expects another token, so that the actual one is part of the failure.
func TestSecretsAreRedacted(t *testing.T) {
	got := try(t, pactOf(t, `{"type":"Synchronous/HTTP","description":"a token","providerStates":[{"name":"a confidential client"}],
"request":{"method":"POST","path":"/oauth/token","headers":{"Content-Type":["application/x-www-form-urlencoded"]},
"body":{"contentType":"application/x-www-form-urlencoded","encoded":false,"content":"grant_type=client_credentials&client_id=`+contracts.DefaultClientID+`&client_secret=`+contracts.DefaultClientSecret+`"}},
"response":{"status":200,"body":{"contentType":"application/json","encoded":false,"content":{"access_token":"x"}}}}`), false)[0]
	text := got.Response + got.Problems[0].String()
	if got.Result != report.Failed || !strings.Contains(text, "gtat_…") ||
		regexp.MustCompile(`gtat_[^…]|…[\w-]`).MatchString(text) {
		t.Errorf("got %+v, want the token to be left out", got)
	}
}

// TestSecretsByName tries a service whose responses repeat secrets of each kind, without the form of
// gatehouse's own. Nothing of a failure may show them.
func TestSecretsByName(t *testing.T) {
	const secret = "hunter2 and more"
	for _, row := range []struct {
		name, secret      string
		request, response string // members of these parts besides those that each has
		headers, body     string // of the actual response
		states            string
	}{
		{name: "a device code", secret: "9KcT", response: `,"body":{"content":{"device_code":"x"}}`,
			body: `{"device_code":"gtdc_9KcTZ"}`},
		{name: "a lookup key", secret: "9KcT", request: `,"headers":{"X-Api-Key":["gtlk_9KcT"]}`},
		{name: "a lookup key of another form", secret: "hunter2", request: `,"headers":{"x-api-key":["hunter2"]}`},
		{name: "a scheme alone", secret: "hunter2", request: `,"headers":{"Proxy-Authorization":["hunter2"]}`},
		{name: "a user code", secret: "BCDF", response: `,"body":{"content":{"user_code":"x"}}`,
			body: `{"user_code":"BCDF-GHJK"}`},
		{name: "a user code of another form", secret: "vowels", response: `,"body":{"content":{"user_code":"x"}}`,
			body: `{"user_code":"vowels"}`},
		{name: "an address with a user code", secret: "BCDF", body: `{"uri":"https://x/device?user_code=BCDF-GHJK"}`},
		{name: "a member of the expected body", secret: secret, response: `,"body":{"content":{"list":[{"password":"` + secret + `"}]}}`,
			body: `{"list":[{"password":"x"}]}`},
		{name: "an object", secret: "more", response: `,"body":{"content":{"a":1}}`, body: `{"a":{"csrf":"` + secret + `"}}`},
		{name: "a number", secret: "123456", response: `,"body":{"content":{"a":1}}`, body: `{"a":{"code" : 123456}}`},
		{name: "a password with a space and a quote", secret: "more",
			request: `,"headers":{"Content-Type":"application/json"},"body":{"content":{"password":"hunter2\\\" and more","csrf":"more"}}`},
		{name: "a password in a text", secret: "more", response: `,"body":{"content":"x"}`,
			body: `{"text":` + strconv.Quote(`{"password":"hunter2 \"and\" more"}`) + `}`},
		{name: "a form", secret: "more", request: `,"headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":{"content":"a=1&code=hunter2+and+more"}`},
		{name: "a query", secret: "hunter2", request: `,"query":{"id_token_hint":["hunter2"]}`},
		{name: "a cookie", secret: "hunter2", response: `,"headers":{"Set-Cookie":["session=x"]}`,
			headers: "Set-Cookie: session=hunter2; Path=/"},
		{name: "an input of a page", secret: "hunter2", response: `,"body":{"contentType":"text/html","content":"<p>"}`,
			headers: "Content-Type: text/html", body: `<p><input type="hidden" name="form_token" value="hunter2"><input value="hunter2" name="csrf">`},
		{name: "a parameter of a state", secret: secret, states: `{"name":"a registration token","params":{"token":"` + secret + `"}}`},
	} {
		text := `{"type":"Synchronous/HTTP","description":"x","providerStates":[` + row.states + `],"request":{"method":"POST","path":"/"` +
			row.request + `},"response":{"status":201` + row.response + `}}`
		p, err := contracts.ReadPact([]byte(`{"consumer":{"name":"shop"},"provider":{"name":"gatehouse"},"interactions":[`+text+
			`],"metadata":{"pactSpecification":{"version":"4.0"}}}`), "shop.json")
		if err != nil || p.Malformed() != nil {
			t.Fatalf("%s: got %v and %v", row.name, err, p.Malformed())
		}
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			if name, value, ok := strings.Cut(row.headers, ": "); ok {
				w.Header().Set(name, value)
			}
			if _, err := io.WriteString(w, row.body); err != nil {
				t.Error(err)
			}
		})
		for _, engine := range []func(verify.Target) (*verify.Verifier, error){verify.New, verify.NewNative} {
			got := verifyWith(t, engine, verify.Target{Service: contracts.HideRedirects(service)}, p, false)[0]
			shown, err := json.Marshal(got)
			stacktest.Must(t, err)
			if got.Result != report.Failed || strings.Contains(string(shown), row.secret) ||
				!strings.Contains(string(shown), "…") {
				t.Errorf("%s: got %s, want no %s", row.name, shown, row.secret)
			}
		}
	}
}

// signedToken has the form of access tokens before they were sealed.
const signedToken = "gtat_MZIOziCt8neUblJ9femjWNa7y3Y35jlvfbMMTZc99Kh4TdRIW5QeFNGmmhH4"

// TestPactWithSignedToken verifies a pact that was written when access tokens were signed.
func TestPactWithSignedToken(t *testing.T) {
	about := func(name, path, kind, body string) string {
		return `{"type":"Synchronous/HTTP","description":"` + name + `","providerStates":[{"name":"a confidential client"},
{"name":"an access token","params":{"access_token":"` + signedToken + `","kind":"` + kind + `"}}],
"request":{"method":"POST","path":"` + path + `","headers":{"Content-Type":["application/x-www-form-urlencoded"]},
"body":{"contentType":"application/x-www-form-urlencoded","encoded":false,"content":"client_id=` + contracts.DefaultClientID +
			`&client_secret=` + contracts.DefaultClientSecret + `&token=` + signedToken + `"}},
"response":{"status":200,"body":{"contentType":"application/json","encoded":false,"content":` + body + `}}}`
	}
	profile := func(name, kind, status string) string {
		return `{"type":"Synchronous/HTTP","description":"` + name + `","providerStates":[
{"name":"an access token","params":{"access_token":"` + signedToken + `","kind":"` + kind + `"}}],
"request":{"method":"GET","path":"/api/user","headers":{"Authorization":["Bearer ` + signedToken + `"]}},
"response":{"status":` + status + `}}`
	}
	got := try(t, pactOf(t, strings.Join([]string{
		about("an introspection", "/oauth/introspect", "live", `{"active":true,"scope":"view-user detail-user"}`),
		about("an introspection of a revoked token", "/oauth/introspect", "revoked", `{"active":false}`),
		about("a revocation", "/oauth/revoke", "live", `{}`),
		profile("a profile", "live", "200"),
		profile("a profile with a revoked token", "revoked", "401"),
	}, ",")), false)
	for _, it := range got {
		if it.Result != report.Verified {
			t.Errorf("got %+v, want it verified", it)
		}
	}
}

// TestConcurrentVerifiers runs several verifiers, each with its own provider. Every second pact
// fails.
func TestConcurrentVerifiers(t *testing.T) {
	for i := range 6 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			body, want := `{"ok":true}}}}`, report.Verified
			if i%2 == 1 {
				body, want = `{"planet":"Earth"}}}}`, report.Failed
			}
			one := lookup + body
			for _, it := range try(t, pactOf(t, one+","+one+","+one), false) {
				if it.Result != want {
					t.Errorf("got %+v, want it %s", it, want)
				}
			}
		})
	}
}
