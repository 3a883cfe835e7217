package signin_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

const agentURL, agentReturn = "https://agent.example/client.json", "http://localhost:4711/cb"

// documents are what a Fetcher of a test finds, by URL. It keeps a document until it is changed.
type documents struct {
	mu       sync.Mutex
	texts    map[string]string
	kept     bool
	requests int
}

func (d *documents) Fetch(_ context.Context, url string, _ time.Duration,
	by oauth.Payer) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.kept {
		if err := by.Charge(); err != nil {
			return nil, err
		}
		d.requests++
	}
	d.kept = true
	if text, ok := d.texts[url]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("the server responded with status 404")
}

func (d *documents) set(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts[agentURL], d.kept = text, false
}

// remove has the server no longer serve the document.
func (d *documents) remove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.texts, agentURL)
	d.kept = false
}

func agentDocument(redirect string) string {
	return `{"client_id":"` + agentURL + `","client_name":"Agent","redirect_uris":["` + redirect +
		`"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"]}`
}

func withDocuments(d *documents) stacktest.Option {
	return func(c *stack.Config) { c.Identity.ClientMetadata, c.Identity.Fetcher = true, d }
}

func askedByAgent(redirect string, more ...string) url.Values {
	return stacktest.Values(append([]string{"response_type", "code", "client_id", agentURL,
		"redirect_uri",
		redirect, "scope", "view-user", "state", "s", "code_challenge", stacktest.Challenge(),
		"code_challenge_method", "S256"}, more...)...)
}

func (d *documents) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests
}

func TestClientOfMetadataDocument(t *testing.T) {
	d := &documents{texts: map[string]string{agentURL: agentDocument(agentReturn)}}
	st := stacktest.NewIdentity(t, withDocuments(d))
	st.NewUser(t, "Rosa", rosa)
	api := st.NewClient(t, func(c *oauth.Client) { c.IntrospectAny = true })
	const other = "http://localhost:9999/cb" // another port
	b := st.NewBrowser(t)
	b.Authorize(askedByAgent(other, "prompt", "none")).Shows(t, 400, "/oauth/authorize")
	login := b.Authorize(askedByAgent(other))
	if login.Shows(t, 200, "/login"); d.count() != 0 {
		t.Errorf("got %d requests before the sign-in, want none", d.count())
	}
	consent := b.Send(login, "email", rosa, "password", stacktest.Password)
	consent.Shows(t, 200, "/consent")
	for _, words := range []string{"Agent", "agent.example", "http://localhost:9999", "your computer"} {
		if !strings.Contains(consent.Body, words) {
			t.Errorf("got a page without %q: %s", words, consent.Body)
		}
	}
	id := oauth.StoredClientID(agentURL)
	if _, err := st.Store.Client(t.Context(), id); !errors.Is(err, oauth.ErrNotFound) {
		t.Errorf("got %v before the consent, want no client", err)
	}
	back, err := url.Parse(b.Send(consent, "decision", "allow").Location)
	if err != nil || !strings.HasPrefix(back.String(), other+"?code=") {
		t.Fatalf("got %v, %v, want a code", back, err)
	}
	c, err := st.Store.Client(t.Context(), id)
	if err != nil || !c.Public || c.Options.MetadataURL != agentURL || !c.Options.SelfRegistered {
		t.Fatalf("got %+v, %v, want the client of the document", c, err)
	}
	tokens := st.PostToken(t, stacktest.Values("grant_type", "authorization_code", "client_id",
		agentURL, "code",
		back.Query().Get("code"), "redirect_uri", other, "code_verifier",
		stacktest.Verifier)).Object(t)
	if said := st.Introspect(t, api, tokens["access_token"]); said["client_id"] != agentURL {
		t.Errorf("got %v, want the URL as client_id", said)
	}
	if again := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id",
		agentURL, "refresh_token", tokens["refresh_token"].(string))); again.Status != 200 {
		t.Errorf("got %d %s, want tokens for a refresh token", again.Status, again.Body)
	}
	st.NewOperator(t).Do(200, http.MethodPost, "/clients/"+id+"/disable", "")
	b.Authorize(askedByAgent(other)).Shows(t, 400, "/oauth/authorize")
	if again := st.PostToken(t, stacktest.Values("grant_type", "refresh_token", "client_id",
		agentURL, "refresh_token", tokens["refresh_token"].(string))); again.Status == 200 {
		t.Error("got tokens for a disabled client")
	}
}

// TestStrangersDocumentDoesNotRedirect checks that nobody is sent to a client that a document
// describes before they have allowed it. Then the client hears of its mistakes.
func TestStrangersDocumentDoesNotRedirect(t *testing.T) {
	d := &documents{texts: map[string]string{agentURL: agentDocument(agentReturn)}}
	st := stacktest.NewIdentity(t, withDocuments(d))
	u := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
	for _, more := range [][]string{{"prompt", "none"}, {"scope", "nonsense"}} {
		b.Authorize(askedByAgent("http://localhost:9999/cb", more...)).Shows(t, 400, "/oauth/authorize")
	}
	id := strconv.FormatInt(u.ID, 10)
	ask := b.Send(b.Authorize(askedByAgent("http://localhost:9999/cb")), "account", id)
	ask.Says(t, "If you allow it, you go on to")
	denied := b.Send(ask, "decision", "deny")
	denied.Shows(t, 200, "/consent")
	denied.Says(t, "You did not allow it", "http://localhost:9999/cb?error=access_denied", "Go back to")
	b.Send(ask, "decision", "allow")
	wrong := b.Authorize(askedByAgent("http://localhost:9999/cb", "scope", "nonsense"))
	more := askedByAgent("http://localhost:9999/cb")
	more.Set("scope", "detail-user")
	refused := b.Send(b.Send(b.Authorize(more), "account", id), "decision", "deny")
	for want, p := range map[string]stacktest.Page{"invalid_request": wrong, "access_denied": refused} {
		if !strings.HasPrefix(p.Location, "http://localhost:9999/cb?error="+want) {
			t.Errorf("got %d %q after a consent, want %s", p.Status, p.Location, want)
		}
	}
}

// TestChangedDocumentNeedsConsent changes the redirect URIs of a client on the web, whose consent is
// remembered.
func TestChangedDocumentNeedsConsent(t *testing.T) {
	const first, second = "https://agent.example/a", "https://agent.example/b"
	d := &documents{texts: map[string]string{agentURL: agentDocument(first)}}
	st := stacktest.NewIdentity(t, withDocuments(d))
	user := st.NewUser(t, "Rosa", rosa)
	st.NewUser(t, "Kofi", kofi)
	code := func(p stacktest.Page, redirect string) {
		t.Helper()
		if !strings.HasPrefix(p.Location, redirect+"?code=") {
			t.Errorf("got %d %s, want a code at %s", p.Status, p.Location, redirect)
		}
	}
	one, two := st.NewBrowser(t), st.NewBrowser(t)
	code(one.Allow(askedByAgent(first), rosa), first)
	code(two.Allow(askedByAgent(first), kofi), first)
	silent := func(redirect string) url.Values { return askedByAgent(redirect, "prompt", "none") }
	code(one.Authorize(silent(first)), first)
	one.Authorize(askedByAgent(second)).Shows(t, 400, "/oauth/authorize")

	d.set(strings.Replace(agentDocument(first), `"Agent"`, `"Your bank"`, 1))
	code(one.Authorize(silent(first)), first) // a name proves nothing, so that pages say the host as well
	if me := one.Get("/me/apps"); !strings.Contains(me.Body, "agent.example") {
		t.Errorf("got %s, want the host of the document", me.Body)
	}
	d.set(agentDocument(second))
	one.Authorize(askedByAgent(first)).Shows(t, 400, "/oauth/authorize")
	stored := silent(first) // the ID under which the client is stored does not lead past its document
	stored.Set("client_id", oauth.StoredClientID(agentURL))
	one.Authorize(stored).Shows(t, 400, "/oauth/authorize")
	one.Authorize(silent(second)).Shows(t, 400, "/oauth/authorize") // nobody has accepted that address
	chooser := one.Authorize(askedByAgent(second, "skip_account_chooser", "true"))
	consent := one.Send(chooser, "account", stacktest.ChooserValue(user.ID))
	consent.Shows(t, 200, "/consent")
	code(one.Send(consent, "decision", "allow"), second)
	code(one.Authorize(silent(second)), second)
	two.Authorize(silent(second)).Shows(t, 400, "/oauth/authorize") // accepted the old document only

	trail := st.NewOperator(t).Do(200, http.MethodGet, "/audit?client_id="+oauth.StoredClientID(agentURL), "").Body
	for _, said := range []string{`"client_created"`, `"metadata_url":"` + agentURL, `"redirect_uris":["` + first + `"]`,
		`"client_changed"`, `"details":["redirect_uris"]`, `"redirect_uris":["` + second + `"]`} {
		if !strings.Contains(trail, said) {
			t.Errorf("got the trail %s, want %s", trail, said)
		}
	}
}

func TestMetadataDocumentsThatAreRefused(t *testing.T) {
	d := &documents{texts: map[string]string{}}
	st := stacktest.NewIdentity(t, withDocuments(d))
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.SignIn(st.NewClient(t, nil).Request(), rosa)
	good := agentDocument(agentReturn)
	for _, text := range []string{
		"", "[]", strings.Replace(good, agentURL, agentURL+"/", 1),
		strings.Replace(good, `"none"`, `"client_secret_basic"`, 1),
		strings.Replace(good, `"none"`, `"private_key_jwt"`, 1),
		strings.Replace(good, `{`, `{"client_secret":"x",`, 1),
		strings.Replace(good, `"Agent"`, `""`, 1),
	} {
		d.set(text)
		b.Authorize(askedByAgent(agentReturn)).Shows(t, 400, "/oauth/authorize")
	}
	for range 10 { // a server that fails keeps nobody out
		d.set("")
		b.Authorize(askedByAgent(agentReturn)).Shows(t, 400, "/oauth/authorize")
	}
	before := d.count()
	for range 10 {
		d.set(good)
		b.Authorize(askedByAgent(agentReturn)).Shows(t, 200, "/accounts")
	}
	d.set(good)
	if p := b.Authorize(askedByAgent(agentReturn)); p.Status != 429 || d.count() != before+10 {
		t.Errorf("got %d after %d requests, want 429 after 10", p.Status, d.count()-before)
	}
}

// TestDocumentThatCannotBeFetched has the host of a document refuse to serve it. Its last good copy holds
// for a month for a client that a person has consented to.
func TestDocumentThatCannotBeFetched(t *testing.T) {
	d := &documents{texts: map[string]string{agentURL: agentDocument(agentReturn)}}
	st := stacktest.NewIdentity(t, withDocuments(d))
	user := st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	if p := b.Allow(askedByAgent(agentReturn), rosa); !strings.HasPrefix(p.Location, agentReturn+"?code=") {
		t.Fatalf("got %d to %q, want a code", p.Status, p.Location)
	}
	fetched := func(ago time.Duration) {
		t.Helper()
		_, err := st.Tokens.UpdateClient(t.Context(), oauth.StoredClientID(agentURL), func(c *oauth.Client) error {
			c.Options.MetadataFetched = time.Now().Add(-ago).UnixMilli()
			return nil
		})
		stacktest.Must(t, err)
	}
	const day = 24 * time.Hour
	fetched(20 * day)
	b.Send(b.Authorize(askedByAgent(agentReturn)), "account", stacktest.ChooserValue(user.ID)).
		Shows(t, 200, "/consent") // this notes that the document is as it was
	d.remove()
	c, err := st.Store.Client(t.Context(), oauth.StoredClientID(agentURL))
	if err != nil || time.Since(time.UnixMilli(c.Options.MetadataFetched)) > time.Hour {
		t.Errorf("got %+v, %v, want the document noted as fetched", c, err)
	}
	fetched(29 * day)
	b.Authorize(askedByAgent("http://127.0.0.1:1/cb")).Shows(t, 400, "/oauth/authorize")
	consent := b.Send(b.Authorize(askedByAgent(agentReturn)), "account", stacktest.ChooserValue(user.ID))
	consent.Shows(t, 200, "/consent")
	if p := b.Send(consent, "decision", "allow"); !strings.HasPrefix(p.Location, agentReturn+"?code=") {
		t.Errorf("got %d to %q, want a code", p.Status, p.Location)
	}
	fetched(31 * day)
	b.Authorize(askedByAgent(agentReturn)).Shows(t, 400, "/oauth/authorize")
	fetched(day)
	b.Send(b.Authorize(askedByAgent(agentReturn)), "account", stacktest.ChooserValue(user.ID)).
		Shows(t, 200, "/consent")
	grant := oauth.Grant{UserID: user.ID, ClientID: c.ID}
	stacktest.Must(t, st.Tokens.RevokeAll(t.Context(), &oauth.Revoke{Consent: &grant}))
	b.Authorize(askedByAgent(agentReturn)).Shows(t, 400, "/oauth/authorize") // nobody consents any more
	const unknown = "https://unknown.example/client.json"
	other := askedByAgent(agentReturn)
	other.Set("client_id", unknown)
	b.Authorize(other).Shows(t, 400, "/oauth/authorize")
}

// TestOutdatedDocumentDoesNotComeBack has a document lose its redirect URI, or its sense, and then not be
// served any more. What it said before does not hold.
func TestOutdatedDocumentDoesNotComeBack(t *testing.T) {
	const first = "https://agent.example/a"
	for name, text := range map[string]string{
		"other redirect URI": agentDocument("https://agent.example/b"), "none": "{}"} {
		t.Run(name, func(t *testing.T) {
			d := &documents{texts: map[string]string{agentURL: agentDocument(first)}}
			st := stacktest.NewIdentity(t, withDocuments(d))
			st.NewUser(t, "Rosa", rosa)
			b := st.NewBrowser(t)
			b.Allow(askedByAgent(first), rosa)
			silent := askedByAgent(first, "prompt", "none")
			d.set(text)
			b.Authorize(silent).Shows(t, 400, "/oauth/authorize")
			d.remove()
			b.Authorize(silent).Shows(t, 400, "/oauth/authorize")
			d.set(agentDocument(first)) // it says so again
			b.Authorize(silent)
			d.remove()
			if p := b.Authorize(silent); !strings.HasPrefix(p.Location, first+"?code=") {
				t.Errorf("got %d to %q, want a code", p.Status, p.Location)
			}
		})
	}
}

func TestMetadataDocumentsAreOff(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewBrowser(t).Authorize(askedByAgent(agentReturn)).Shows(t, 400, "/oauth/authorize")
}
