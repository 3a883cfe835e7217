package token_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

const testIssuer = "https://id.example"

// clientKey is a key of a client.
type clientKey struct {
	*ecdsa.PrivateKey
	id string
}

func newClientKey(t *testing.T, id string) clientKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return clientKey{key, id}
}

// assert returns an assertion of a client.
func (k clientKey) assert(t *testing.T, client, jti string, now time.Time) string {
	t.Helper()
	return k.sign(t, map[string]any{"iss": client, "sub": client, "aud": testIssuer,
		"jti": jti, "exp": now.Unix() + 60})
}

func (k clientKey) sign(t *testing.T, content map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.PrivateKey},
		(&jose.SignerOptions{}).WithHeader("kid", k.id))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	object, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func jwksOf(t *testing.T, keys ...clientKey) string {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: key.id})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// proves returns a request with an assertion.
func proves(client, assertion string) *oauth.TokenRequest {
	return &oauth.TokenRequest{Grant: oauth.ClientCredentialsGrant,
		Credentials: oauth.Credentials{ClientID: client, Assertion: assertion}}
}

func TestAssertionIsUsedOnce(t *testing.T) {
	f := newFixture(t, func(c *token.Config) { c.Issuer = testIssuer })
	key, now := newClientKey(t, "a"), time.Now()
	c, _ := f.register(t, oauth.Client{Name: "Keys", Grants: oauth.ClientCredentialsGrant,
		Options: oauth.ClientOptions{JWKS: jwksOf(t, key)}})
	assertion := key.assert(t, c.ID, "1", now)
	if _, fault := f.Token(t.Context(), proves(c.ID, assertion), now); fault != nil {
		t.Fatalf("got %v, want a token", fault)
	}
	for what, assertion := range map[string]string{
		"replay":      assertion,
		"another key": newClientKey(t, "a").assert(t, c.ID, "2", now),
		"other name":  newClientKey(t, "b").assert(t, c.ID, "3", now),
		"expired":     key.assert(t, c.ID, "4", now.Add(-time.Hour)),
	} {
		_, fault := f.Token(t.Context(), proves(c.ID, assertion), now)
		if fault == nil || fault.Code != oauth.InvalidClient {
			t.Errorf("%s: got %v, want invalid_client", what, fault)
		}
	}
	f.ownRequest() // a client with a secret has no keys
	if _, fault := f.Token(t.Context(), proves(f.client.ID, key.assert(t, f.client.ID, "5", now)),
		now); fault == nil || fault.Code != oauth.InvalidClient {
		t.Errorf("client without keys: got %v, want invalid_client", fault)
	}
	unproven := proves(c.ID, "")
	if _, fault := f.Token(t.Context(), unproven, now); fault == nil ||
		fault.Code != oauth.InvalidClient {
		t.Errorf("no assertion: got %v, want invalid_client", fault)
	}
}

// TestWrongAssertionsAreThrottled sends wrong assertions, or a used one. They count for the client in
// the sender's network, and nowhere else.
func TestWrongAssertionsAreThrottled(t *testing.T) {
	for _, used := range []bool{false, true} {
		f := newFixture(t, func(c *token.Config) { c.Issuer = testIssuer })
		key, now := newClientKey(t, "a"), time.Now()
		c, _ := f.register(t, oauth.Client{Name: "Keys", Grants: oauth.ClientCredentialsGrant,
			Options: oauth.ClientOptions{JWKS: jwksOf(t, key)}})
		assertion, wrong := key.assert(t, c.ID, "used", now), 0
		if _, fault := f.Token(t.Context(), proves(c.ID, assertion), now); fault != nil {
			t.Fatalf("got %v, want a token", fault)
		}
		for i := range 40 {
			if !used {
				assertion = newClientKey(t, "a").assert(t, c.ID, strconv.Itoa(i), now)
			}
			r := proves(c.ID, assertion)
			r.Caller = netip.MustParseAddr("192.0.2.1")
			if _, fault := f.Token(t.Context(), r, now); !fault.Throttled {
				wrong++
			}
		}
		if wrong != 20 {
			t.Errorf("used %t: got %d assertions that are refused, want 20", used, wrong)
		}
		other, _ := f.register(t, oauth.Client{Name: "Other", Grants: oauth.ClientCredentialsGrant,
			Options: oauth.ClientOptions{JWKS: jwksOf(t, key)}})
		for _, row := range []struct {
			what, client, caller string
			after                time.Duration
			ok                   bool
		}{
			{"a right one, unchecked", c.ID, "192.0.2.1", 0, false},
			{"another client", other.ID, "192.0.2.1", 0, true},
			{"another network", c.ID, "192.0.2.2", 0, true},
			{"later", c.ID, "192.0.2.1", time.Second, true},
		} {
			r := proves(row.client, key.assert(t, row.client, row.what, now))
			r.Caller = netip.MustParseAddr(row.caller)
			_, fault := f.Token(t.Context(), r, now.Add(row.after))
			if ok := fault == nil; ok != row.ok || !ok && !fault.Throttled {
				t.Errorf("used %t, %s: got %v, want a token: %t", used, row.what, fault, row.ok)
			}
		}
	}
}

// served is a Fetcher of the keys that a client serves.
type served struct {
	keys    atomic.Pointer[string] // nil = the server does not respond
	fetches atomic.Int32
	busy    atomic.Bool // it has no room
	by      atomic.Pointer[oauth.Payer]
}

func (s *served) Fetch(_ context.Context, _ string, _ time.Duration, by oauth.Payer) ([]byte, error) {
	s.fetches.Add(1)
	s.by.Store(&by)
	if s.busy.Load() {
		return nil, oauth.ErrBusy
	}
	if keys := s.keys.Load(); keys != nil {
		return []byte(*keys), nil
	}
	return nil, errors.New("no response")
}

// TestKeyFetchesAreCharged checks who pays for the keys of a client that registered itself, and that
// a stranger who has used up the room takes nobody else's.
func TestKeyFetchesAreCharged(t *testing.T) {
	server := &served{}
	f := newFixture(t, func(c *token.Config) { c.Issuer, c.Fetcher = testIssuer, server })
	key, now := newClientKey(t, "first"), time.Now()
	text := jwksOf(t, key)
	server.keys.Store(&text)
	const uri = "https://keys.example/jwks"
	own, _ := f.register(t, oauth.Client{Name: "Keys", Grants: oauth.ClientCredentialsGrant,
		Options: oauth.ClientOptions{JWKSURI: uri}})
	stranger, _ := f.register(t, oauth.Client{Name: "Agent", Grants: oauth.ClientCredentialsGrant,
		Options: oauth.ClientOptions{JWKSURI: uri, SelfRegistered: true}})
	n := 0
	send := func(c *oauth.Client, caller string) *oauth.Error {
		n++
		r := proves(c.ID, key.assert(t, c.ID, strconv.Itoa(n), now))
		r.Caller = netip.MustParseAddr(caller)
		_, fault := f.Token(t.Context(), r, now)
		return fault
	}
	server.busy.Store(true)
	if fault := send(stranger, "2001:db8::1"); fault == nil || fault.Status() != 503 {
		t.Errorf("got %v without room, want 503", fault)
	}
	if by := server.by.Load(); by.Class != oauth.People || by.ID != "network 2001:db8::/48" {
		t.Errorf("got %+v, want the network of the caller", by)
	}
	last := 200
	for range 100 {
		if fault := send(stranger, "2001:db8::1"); fault != nil {
			last = fault.Status()
		}
	}
	if last != 429 {
		t.Errorf("got %d after many, want 429", last)
	}
	server.busy.Store(false)
	if fault := send(stranger, "192.0.2.1"); fault != nil {
		t.Errorf("got %v from another network, want a token", fault)
	}
	awaiting, _ := f.register(t, oauth.Client{Name: "Agent", Grants: oauth.ClientCredentialsGrant,
		Awaits: now.Add(time.Hour), Options: oauth.ClientOptions{JWKSURI: uri, SelfRegistered: true}})
	if fault := send(awaiting, "192.0.2.2"); fault != nil || server.by.Load().Class != oauth.Strangers {
		t.Errorf("got %v by %+v before a consent, want the keys from the strangers' slots", fault,
			server.by.Load())
	}
	early := key.assert(t, awaiting.ID, "early", now)
	if _, fault := f.Token(t.Context(), proves(awaiting.ID, early), now); fault != nil {
		t.Errorf("got %v, want a token", fault)
	}
	for _, when := range []string{"before", "after"} {
		if _, fault := f.Token(t.Context(), proves(awaiting.ID, early), now); fault != oauth.ErrAssertionUsed {
			t.Errorf("again, %s a consent: got %v, want %v", when, fault, oauth.ErrAssertionUsed)
		}
		if err := f.ConfirmClient(t.Context(), awaiting.ID, now); err != nil {
			t.Fatal(err)
		}
	}
	if fault := send(own, "2001:db8::1"); fault != nil {
		t.Errorf("got %v for a client of an operator, want a token", fault)
	}
	if by := server.by.Load(); by.Class != oauth.Operators || by.ID != "client "+own.ID {
		t.Errorf("got %+v, want the client", by)
	}
}

// TestServedKeysRotate has a client change its keys, which it serves by themselves or in the document that
// describes it.
func TestServedKeysRotate(t *testing.T) {
	const at = "https://keys.example/client.json"
	document := func(keys string) string {
		return `{"client_id":"` + at + `","client_name":"Keys","redirect_uris":["https://keys.example/cb"],` +
			`"token_endpoint_auth_method":"private_key_jwt","jwks":` + keys + `}`
	}
	first, second := newClientKey(t, "first"), newClientKey(t, "second")
	for name, row := range map[string]struct {
		options oauth.ClientOptions
		text    func(keys string) string
	}{
		"jwks_uri": {oauth.ClientOptions{JWKSURI: at}, func(keys string) string { return keys }},
		"document": {oauth.ClientOptions{MetadataURL: at, SelfRegistered: true, JWKS: jwksOf(t, first)}, document},
	} {
		t.Run(name, func(t *testing.T) {
			server := &served{}
			f := newFixture(t, func(c *token.Config) {
				c.Issuer, c.Fetcher, c.ClientMetadata = testIssuer, server, true
			})
			c, _ := f.register(t, oauth.Client{Name: "Keys", Grants: oauth.ClientCredentialsGrant, Options: row.options})
			now, n := time.Now(), 0
			send := func(key clientKey, at time.Duration, want oauth.Code, fetches int32) {
				t.Helper()
				n++
				_, fault := f.Token(t.Context(),
					proves(c.ID, key.assert(t, c.ID, strconv.Itoa(n), now.Add(at))), now.Add(at))
				var got oauth.Code
				if fault != nil {
					got = fault.Code
				}
				if got != want || server.fetches.Load() != fetches {
					t.Errorf("after %v: got %q and %d fetches, want %q and %d", at, got,
						server.fetches.Load(), want, fetches)
				}
			}
			serve := func(keys ...clientKey) {
				text := row.text(jwksOf(t, keys...))
				server.keys.Store(&text)
			}
			send(first, 0, oauth.TemporarilyUnavailable, 1)
			serve(first)
			send(first, time.Second, oauth.TemporarilyUnavailable, 1) // it is not asked at once
			send(first, time.Minute, "", 2)
			send(first, time.Minute, "", 2)
			serve(first, second)
			send(second, 90*time.Second, oauth.InvalidClient, 2) // a minute has not passed
			send(second, 2*time.Minute, "", 3)
			send(first, 2*time.Minute, "", 3)
			for range 10 {
				send(newClientKey(t, "unknown"), 150*time.Second, oauth.InvalidClient, 3)
			}
			server.keys.Store(nil)
			send(second, 2*time.Hour, "", 4) // the former keys are better than none
			send(second, 24*time.Hour, "", 5)
			send(second, 24*time.Hour+3*time.Minute, oauth.TemporarilyUnavailable, 6) // for a day
			serve(second)
			send(first, 26*time.Hour, oauth.InvalidClient, 7)
			if name == "document" {
				elsewhere := strings.Replace(document(jwksOf(t, first)), `"jwks":{`, `"jwks_uri":"https://keys.example/keys",`, 1)
				elsewhere = strings.TrimSuffix(elsewhere, "}") // the document, and the key set to which it leads
				server.keys.Store(&elsewhere)
				send(first, 28*time.Hour, "", 9)
				none := strings.Replace(document(""), `"private_key_jwt","jwks":`, `"none"`, 1)
				server.keys.Store(&none)
				send(first, 30*time.Hour, oauth.InvalidClient, 10)
			}
		})
	}
}

// issuer is a Fetcher of the metadata and keys of another issuer.
type issuer struct {
	served
	metadata atomic.Pointer[string]
}

func (i *issuer) Fetch(ctx context.Context, url string, age time.Duration, by oauth.Payer) ([]byte, error) {
	if url == "https://ci.example/.well-known/openid-configuration" {
		return []byte(*i.metadata.Load()), nil
	}
	if url != "https://keys.example/jwks" || by.Class != oauth.Operators {
		return nil, fmt.Errorf("got a request for %s by %+v", url, by)
	}
	return i.served.Fetch(ctx, url, age, by)
}

// TestFederatedClient authenticates a workload by JWTs of its platform, whose keys rotate and which is
// away at times.
func TestFederatedClient(t *testing.T) {
	server := &issuer{}
	say := func(metadata string) { server.metadata.Store(&metadata) }
	const good = `{"issuer":"https://ci.example","jwks_uri":"https://keys.example/jwks"}`
	f := newFixture(t, func(c *token.Config) { c.Issuer, c.Fetcher = testIssuer, server })
	first, second := newClientKey(t, "first"), newClientKey(t, "second")
	c, secret, err := f.CreateClient(t.Context(), oauth.Client{Name: "Deploy",
		Grants: oauth.ClientCredentialsGrant, Options: oauth.ClientOptions{
			Federated: oauth.Federated{Issuer: "https://ci.example", Subject: "repo:a/b"}}}, time.Now())
	if err != nil || secret != "" {
		t.Fatalf("got secret %q and error %v, want none", secret, err)
	}
	now := time.Now()
	sends := func(key clientKey, at time.Duration, want oauth.Code) {
		t.Helper()
		jwt := key.sign(t, map[string]any{"iss": "https://ci.example", "sub": "repo:a/b",
			"aud": testIssuer, "iat": now.Add(at).Unix(), "exp": now.Add(at + time.Hour).Unix()})
		for range 2 { // it may be sent again
			_, fault := f.Token(t.Context(), proves(c.ID, jwt), now.Add(at))
			var got oauth.Code
			if fault != nil {
				got = fault.Code
			}
			if got != want {
				t.Errorf("after %v: got %v, want %q", at, fault, want)
			}
		}
	}
	serve := func(keys ...clientKey) {
		text := jwksOf(t, keys...)
		server.keys.Store(&text)
	}
	serve(first)
	say(`{"issuer":"https://evil.example","jwks_uri":"https://keys.example/jwks"}`)
	sends(first, 0, oauth.TemporarilyUnavailable)
	say(good)
	sends(first, time.Minute, "")
	serve(second)
	sends(second, 3*time.Minute, "")
	sends(first, 4*time.Minute, oauth.InvalidClient)
	server.keys.Store(nil)
	sends(second, 2*time.Hour, "") // the former keys are better than none
	say(`{"issuer":"https://evil.example","jwks_uri":"https://keys.example/jwks"}`)
	serve(first)
	sends(first, 4*time.Hour, oauth.InvalidClient)
}

// TestIssuerThatTurnsHostile has an issuer whose keys are known say something else after an hour. What is
// no key set leaves the known keys; a key set without them ends them. A hostile key never counts.
func TestIssuerThatTurnsHostile(t *testing.T) {
	const good = `{"issuer":"https://ci.example","jwks_uri":"https://keys.example/jwks"}`
	known, hostile := newClientKey(t, "first"), newClientKey(t, "first")
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: hostile.PrivateKey, KeyID: "first"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		metadata, keys string
		stays          bool
	}{
		"the same":               {good, jwksOf(t, known), true},
		"other issuer":           {`{"issuer":"https://evil.example","jwks_uri":"https://keys.example/jwks"}`, jwksOf(t, hostile), true},
		"no issuer":              {`{"jwks_uri":"https://keys.example/jwks"}`, jwksOf(t, hostile), true},
		"keys at http":           {`{"issuer":"https://ci.example","jwks_uri":"http://keys.example/jwks"}`, jwksOf(t, hostile), true},
		"keys of a cloud":        {`{"issuer":"https://ci.example","jwks_uri":"https://169.254.169.254/"}`, jwksOf(t, hostile), true},
		"metadata that are none": {`"`, jwksOf(t, hostile), true},
		"keys that are none":     {good, `{"keys":`, true},
		"no keys":                {good, `{"keys":[]}`, false},
		"private keys":           {good, string(private), false},
		"symmetric key":          {good, `{"keys":[{"kty":"oct","kid":"first","k":"c2VjcmV0"}]}`, false},
		"many keys before it":    {good, jwksOf(t, append(slices.Repeat([]clientKey{hostile}, 500), known)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			server := &issuer{}
			serve := func(metadata, keys string) { server.metadata.Store(&metadata); server.keys.Store(&keys) }
			f := newFixture(t, func(c *token.Config) { c.Issuer, c.Fetcher = testIssuer, server })
			c, _ := f.register(t, oauth.Client{Name: "Deploy", Grants: oauth.ClientCredentialsGrant,
				Options: oauth.ClientOptions{Federated: oauth.Federated{Issuer: "https://ci.example", Subject: "repo:a/b"}}})
			now := time.Now()
			sends := func(what string, key clientKey, at time.Duration, want bool) {
				t.Helper()
				jwt := key.sign(t, map[string]any{"iss": "https://ci.example", "sub": "repo:a/b",
					"aud": testIssuer, "exp": now.Add(at + time.Hour).Unix()})
				if _, fault := f.Token(t.Context(), proves(c.ID, jwt), now.Add(at)); (fault == nil) != want {
					t.Errorf("%s: got %v, want a token: %v", what, fault, want)
				}
			}
			serve(good, jwksOf(t, known))
			sends("before", known, 0, true)
			serve(row.metadata, row.keys)
			sends("known key", known, 2*time.Hour, row.stays)
			if name != "many keys before it" { // its public half is in the set
				sends("hostile key", hostile, 4*time.Hour, false)
			}
			serve(good, jwksOf(t, known))
			sends("honest again", known, 6*time.Hour, true)
		})
	}
}
