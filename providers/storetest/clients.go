package storetest

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

var clientTests = map[string]func(*testing.T, *world){
	"ClientIsReadBack":          clientIsReadBack,
	"ClientIsReplaced":          clientIsReplaced,
	"ClientIsReplacedOnce":      clientIsReplacedOnce,
	"ClientIDIsTakenOnce":       clientIDIsTakenOnce,
	"ClientThatIsNotThere":      clientThatIsNotThere,
	"ClientsComeInPages":        clientsComeInPages,
	"DeleteClientEndsItsTokens": deleteClient,
}

func (w *world) fullClient() *oauth.Client {
	return &oauth.Client{
		ID: uuid.NewString(), Name: "Überapp 🚀", URI: "https://app.example/about", Public: true, Operator: true, IntrospectAny: true, LoopbackAnyPort: true,
		Disabled: true, DetailApproved: true, RedirectURIs: []string{"https://z.example/", "https://a.example/", "app.example:/x"},
		Scopes: oauth.UserScopes, Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant,
		Secrets: []oauth.Secret{
			{ID: "zzzzzzzz", Hash: newHash(), Created: w.now}, {ID: "aaaaaaaa", Hash: newHash(), Created: w.now.Add(time.Second)},
		},
		Created: w.now,
	}
}

func (w *world) sameClient(want *oauth.Client) {
	w.Helper()
	got, err := w.Client(w.ctx, want.ID)
	w.must(err)
	if !reflect.DeepEqual(got, want) {
		w.Errorf("got %+v, want %+v", got, want)
	}
}

func clientIsReadBack(t *testing.T, w *world) {
	w.sameClient(w.client)
	c := w.fullClient()
	w.must(w.CreateClient(w.ctx, c))
	w.sameClient(c)
}

func clientIsReplaced(t *testing.T, w *world) {
	c := w.fullClient()
	w.must(w.CreateClient(w.ctx, c))
	w.must(w.SaveConsent(w.ctx, &account.Consent{UserID: w.user.ID, ClientID: c.ID, Scopes: 1, Granted: w.now}))
	for _, change := range []func(*oauth.Client){
		func(c *oauth.Client) { c.Secrets = c.Secrets[1:] },
		func(c *oauth.Client) { c.RedirectURIs = []string{"https://b.example/"} },
		func(c *oauth.Client) {
			c.DetailApproved, c.Disabled, c.Name, c.URI = false, false, "New", "http://localhost/"
		},
		func(c *oauth.Client) { c.Secrets, c.RedirectURIs, c.Scopes, c.Grants, c.URI = nil, nil, 0, 0, "" },
	} {
		changed := *c
		change(&changed)
		w.must(w.UpdateClient(w.ctx, &changed))
		w.sameClient(&changed)
		c = &changed
	}
	if _, err := w.Consent(w.ctx, w.user.ID, c.ID); err != nil {
		t.Errorf("consent to a client that was changed: got %v, want none", err)
	}
	w.sameClient(w.client)
}

func clientIsReplacedOnce(t *testing.T, w *world) {
	c := w.fullClient()
	w.must(w.CreateClient(w.ctx, c))
	first, second := *c, *c
	first.Name, second.Secrets, second.RedirectURIs = "First", nil, nil
	w.must(w.UpdateClient(w.ctx, &first))
	w.gone("change of what was read before another", w.UpdateClient(w.ctx, &second), oauth.ErrConflict)
	w.sameClient(&first)
	for _, version := range []int64{-1, 7} {
		ahead := first
		ahead.Version = version
		w.gone("change of a version that there is not", w.UpdateClient(w.ctx, &ahead), oauth.ErrConflict)
	}
	if second.Version != c.Version {
		t.Errorf("version after a refused change: got %d, want %d", second.Version, c.Version)
	}
	second = first
	second.Disabled = !first.Disabled
	w.must(w.UpdateClient(w.ctx, &second))
	w.sameClient(&second)
}

func clientIDIsTakenOnce(t *testing.T, w *world) {
	again := w.fullClient()
	again.ID = w.client.ID
	if err := w.CreateClient(w.ctx, again); err == nil {
		t.Error("second client with the id: got no error")
	}
	w.sameClient(w.client)
}

func clientThatIsNotThere(t *testing.T, w *world) {
	for _, id := range []string{"", "none", "a\x00b", "\xff"} {
		_, err := w.Client(w.ctx, id)
		w.gone(fmt.Sprintf("client %q", id), err, oauth.ErrNotFound)
		_, err = w.DeleteClient(w.ctx, id)
		w.gone(fmt.Sprintf("delete client %q", id), err, oauth.ErrNotFound)
	}
	w.gone("update", w.UpdateClient(w.ctx, w.fullClient()), oauth.ErrNotFound)
	if err := w.CreateClient(w.ctx, &oauth.Client{ID: uuid.NewString(), Name: "a\x00b"}); err == nil {
		t.Error("client whose name holds a NUL: got no error")
	}
}

func clientsComeInPages(t *testing.T, w *world) {
	want := map[string]*oauth.Client{w.client.ID: w.client}
	for range 6 {
		c := w.fullClient()
		w.must(w.CreateClient(w.ctx, c))
		want[c.ID] = c
	}
	after := ""
	for {
		page, err := w.Clients(w.ctx, after, 3)
		w.must(err)
		if len(page) > 3 {
			t.Fatalf("got %d clients, want 3 at most", len(page))
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
	if page, err := w.Clients(w.ctx, "", -1); err != nil || len(page) != 0 {
		t.Errorf("limit -1: got %d clients, error %v, want none", len(page), err)
	}
}

func deleteClient(t *testing.T, w *world) {
	c := w.newCrowd()
	ended, err := w.DeleteClient(w.ctx, c.clients[1].ID)
	w.must(err)
	contains := map[oauth.Hash]bool{}
	for _, h := range ended {
		contains[h] = true
	}
	for _, hash := range []oauth.Hash{c.family[0][1].Access.Hash, c.family[1][1].Access.Hash, c.direct[0][1].Hash, c.machine[1].Hash} {
		w.alive("token of the client", hash, false)
		if !contains[hash] {
			t.Error("a token ended and was not told")
		}
	}
	_, err = w.Client(w.ctx, c.clients[1].ID)
	w.gone("client", err, oauth.ErrNotFound)
	_, err = w.RefreshToken(w.ctx, *c.family[0][1].Refresh)
	w.gone("refresh token", err, oauth.ErrNotFound)
	_, err = w.AuthorizationCode(w.ctx, c.family[0][1].Code)
	w.gone("used code", err, oauth.ErrNotFound)
	gone := func(_, client int) bool { return client == 1 }
	c.check(w, gone)
	c.consents(w, gone)
	if !errors.Is(w.SaveConsent(w.ctx, &account.Consent{UserID: w.user.ID, ClientID: c.clients[1].ID}), account.ErrNotFound) {
		t.Error("consent to a client that is gone: got none or another error")
	}
}
