package sqlstore_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var clientTests = map[string]func(*testing.T, *fixture){
	"ClientRoundTrip":           clientRoundTrip,
	"ClientIsReplaced":          clientIsReplaced,
	"ClientKeepsUnknownOptions": clientKeepsUnknownOptions,
	"ClientUpdateConflict":      clientUpdateConflict,
	"ClientIDIsUnique":          clientIDIsUnique,
	"UnknownClient":             unknownClient,
	"ClientPages":               clientPages,
	"DeleteClientRevokesTokens": deleteClient,
	"ClientIDIsTakenAgain":      clientIDIsTakenAgain,
}

func (f *fixture) fullClient() *oauth.Client {
	return &oauth.Client{
		ID: uuid.NewString(), Name: "Überapp 🚀", URI: "https://app.example/about", Public: true,
		Operator: true, IntrospectAny: true, LoopbackAnyPort: true,
		Disabled: true, DetailApproved: true, RedirectURIs: []string{"https://z.example/",
			"https://a.example/", "app.example:/x"},
		Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant,
		Secrets: []oauth.Secret{
			{ID: "zzzzzzzz", Hash: newHash(), Created: f.now}, {ID: "aaaaaaaa", Hash: newHash(), Created: f.now.Add(time.Second)},
		},
		TokensPerMinute: 1_000_000, Created: f.now, Awaits: f.now.Add(time.Hour),
		Options: oauth.ClientOptions{
			IDTokenAlg: "ES256", ClaimsInIDToken: true,
			PostLogoutRedirectURIs: []string{"https://z.example/out", "https://a.example/<out>"},
			BackchannelLogoutURI:   "https://app.example/logout", RequirePKCE: true,
			JWTAccessTokens: true, JWKS: `{"keys":[]}`, JWKSURI: "https://app.example/jwks",
			Resources: []string{"https://api.example/"}, SelfRegistered: true,
			MetadataURL: "https://app.example/client", Serves: []string{"https://api.example/"},
			Exchange: []oauth.ExchangeRule{{From: "https://api.example/", To: "https://b.example", Scopes: []string{"read"}}},
		},
	}
}

func (f *fixture) sameClient(want *oauth.Client) {
	f.Helper()
	got, err := f.Client(f.ctx, want.ID)
	f.must(err)
	if !reflect.DeepEqual(got, want) {
		f.Errorf("got %+v, want %+v", got, want)
	}
}

func clientRoundTrip(t *testing.T, f *fixture) {
	f.sameClient(f.client)
	c := f.fullClient()
	f.must(f.CreateClient(f.ctx, c))
	f.sameClient(c)
	all, err := f.Exchangers(f.ctx)
	if err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], c) {
		t.Errorf("got %+v, %v, want the client with rules for token exchange", all, err)
	}
}

// clientKeepsUnknownOptions changes a client that a newer program has stored with more options.
func clientKeepsUnknownOptions(t *testing.T, f *fixture) {
	f.client.Options.RequirePKCE = true
	f.must(f.UpdateClient(f.ctx, f.client))
	db := direct(t, f.url)
	stored := func() (options string) {
		f.must(db.QueryRowContext(f.ctx, `SELECT options FROM clients WHERE id = $1`,
			f.client.ID).Scan(&options))
		return options
	}
	_, err := db.ExecContext(f.ctx, `UPDATE clients SET options = $2 WHERE id = $1`, f.client.ID,
		`{"later":{"a":[1]},"require_pkce":true,"tomorrow":true}`)
	f.must(err)
	f.sameClient(f.client)
	f.client.Options.RequirePKCE, f.client.Options.Declared = false, true
	f.must(f.UpdateClient(f.ctx, f.client))
	f.sameClient(f.client)
	if got, want := stored(), `{"declared":true,"later":{"a":[1]},"tomorrow":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.client.Options.Declared = false
	f.must(f.UpdateClient(f.ctx, f.client))
	if got, want := stored(), `{"later":{"a":[1]},"tomorrow":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func clientIsReplaced(t *testing.T, f *fixture) {
	c := f.fullClient()
	f.must(f.CreateClient(f.ctx, c))
	f.must(f.GrantConsent(f.ctx, &account.Consent{UserID: f.user.ID, ClientID: c.ID, Scopes: 1,
		Granted: f.now}, time.Time{}))
	for _, change := range []func(*oauth.Client){
		func(c *oauth.Client) { c.Secrets = c.Secrets[1:] },
		func(c *oauth.Client) { c.RedirectURIs = []string{"https://b.example/"} },
		func(c *oauth.Client) {
			c.DetailApproved, c.Disabled, c.Name, c.URI = false, false, "New", "http://localhost/"
		},
		func(c *oauth.Client) {
			c.Secrets, c.RedirectURIs, c.Scopes, c.Grants, c.URI = nil,
				nil, 0, 0, ""
		},
		func(c *oauth.Client) { c.TokensPerMinute = 7 },
		func(c *oauth.Client) { c.TokensPerMinute = 0 },
		func(c *oauth.Client) { c.Awaits = time.Time{} },
		func(c *oauth.Client) { c.Options = oauth.ClientOptions{RequirePKCE: true} },
		func(c *oauth.Client) { c.Options = oauth.ClientOptions{} },
	} {
		changed := *c
		change(&changed)
		f.must(f.UpdateClient(f.ctx, &changed))
		f.sameClient(&changed)
		c = &changed
	}
	if _, err := f.Consent(f.ctx, f.user.ID, c.ID); err != nil {
		t.Errorf("consent to the updated client: got %v, want none", err)
	}
	f.sameClient(f.client)
}

func clientUpdateConflict(t *testing.T, f *fixture) {
	c := f.fullClient()
	f.must(f.CreateClient(f.ctx, c))
	first, second := *c, *c
	first.Name, second.Secrets, second.RedirectURIs = "First", nil, nil
	f.must(f.UpdateClient(f.ctx, &first))
	f.wantError("update of an old version", f.UpdateClient(f.ctx, &second), oauth.ErrConflict)
	f.sameClient(&first)
	for _, version := range []int64{-1, 7} {
		ahead := first
		ahead.Version = version
		f.wantError("update of an unknown version", f.UpdateClient(f.ctx, &ahead),
			oauth.ErrConflict)
	}
	if second.Version != c.Version {
		t.Errorf("version after a conflict: got %d, want %d", second.Version, c.Version)
	}
	second = first
	second.Disabled = !first.Disabled
	f.must(f.UpdateClient(f.ctx, &second))
	f.sameClient(&second)
}

func clientIDIsUnique(t *testing.T, f *fixture) {
	again := f.fullClient()
	again.ID = f.client.ID
	f.wantError("second client with the id", f.CreateClient(f.ctx, again), oauth.ErrClientIDTaken)
	f.sameClient(f.client)
}

// clientIDIsTakenAgain creates a client with the id of one that was deleted.
func clientIDIsTakenAgain(_ *testing.T, f *fixture) {
	c := f.newCrowd()
	gone := c.clients[1]
	before, err := f.Client(f.ctx, gone.ID)
	f.must(err)
	f.must(f.DeleteClient(f.ctx, gone.ID))
	again := f.fullClient()
	again.ID = gone.ID
	f.must(f.CreateClient(f.ctx, again))
	if again.Epoch <= before.Epoch {
		f.Errorf("got epoch %d, want one above %d", again.Epoch, before.Epoch)
	}
	f.sameClient(again)
	_, err = f.RefreshToken(f.ctx, *c.family[0][1].Refresh)
	f.wantError("refresh token", err, oauth.ErrNotFound)
	_, err = f.Consent(f.ctx, f.user.ID, gone.ID)
	f.wantError("consent", err, account.ErrNotFound)
}

func unknownClient(t *testing.T, f *fixture) {
	for _, id := range []string{"", "none", "a\x00b", "\xff"} {
		_, err := f.Client(f.ctx, id)
		f.wantError(fmt.Sprintf("client %q", id), err, oauth.ErrNotFound)
		f.wantError(fmt.Sprintf("delete client %q", id), f.DeleteClient(f.ctx, id),
			oauth.ErrNotFound)
	}
	f.wantError("update", f.UpdateClient(f.ctx, f.fullClient()), oauth.ErrNotFound)
	if err := f.CreateClient(f.ctx, &oauth.Client{ID: uuid.NewString(),
		Name: "a\x00b"}); err == nil {
		t.Error("client with a NUL in its name: got no error")
	}
}

func clientPages(t *testing.T, f *fixture) {
	want := map[string]*oauth.Client{f.client.ID: f.client}
	for range 6 {
		c := f.fullClient()
		f.must(f.CreateClient(f.ctx, c))
		want[c.ID] = c
	}
	after := ""
	for {
		page, err := f.Clients(f.ctx, after, 3)
		f.must(err)
		if len(page) > 3 {
			t.Fatalf("got %d clients, want at most 3", len(page))
		}
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			if c.ID <= after || !reflect.DeepEqual(c, want[c.ID]) {
				t.Errorf("after %s: got %+v, want %+v", after, c, want[c.ID])
			}
			after = c.ID
			delete(want, c.ID)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d clients are in no page", len(want))
	}
	if page, err := f.Clients(f.ctx, "", -1); err != nil || len(page) != 0 {
		t.Errorf("limit -1: got %d clients, error %v, want none", len(page), err)
	}
}

func deleteClient(t *testing.T, f *fixture) {
	c := f.newCrowd()
	f.must(f.DeleteClient(f.ctx, c.clients[1].ID))
	for _, token := range []access{first(c.family[0][1]), first(c.family[1][1]), c.machine[1]} {
		f.alive("token of the client", token, false)
	}
	_, err := f.Client(f.ctx, c.clients[1].ID)
	f.wantError("client", err, oauth.ErrNotFound)
	_, err = f.RefreshToken(f.ctx, *c.family[0][1].Refresh)
	f.wantError("refresh token", err, oauth.ErrNotFound)
	_, err = f.AuthorizationCode(f.ctx, c.family[0][1].Code)
	f.wantError("used code", err, oauth.ErrNotFound)
	gone := func(_, client int) bool { return client == 1 }
	c.check(f, gone)
	c.consents(f, gone)
	if !errors.Is(f.GrantConsent(f.ctx, &account.Consent{UserID: f.user.ID,
		ClientID: c.clients[1].ID}, time.Time{}), account.ErrNotFound) {
		t.Error("consent to a deleted client: got no ErrNotFound")
	}
}
