package token_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// declaredSet returns a set with one client.
func declaredSet(revision int64, change func(*oauth.Client)) []*oauth.DeclaredSet {
	c := &oauth.Client{ID: "wiki", Name: "Wiki", Public: true, RedirectURIs: []string{"https://wiki.example/"},
		Scopes: oauth.ViewUser, Grants: oauth.AuthorizationCodeGrant, Created: time.Unix(1, 0),
		Options: oauth.ClientOptions{Set: "default", Declared: true}}
	if change != nil {
		change(c)
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return []*oauth.DeclaredSet{{Name: "default", Revision: revision, Digest: oauth.HashOf(string(text)),
		Clients: []*oauth.Client{c}}}
}

// TestDeclareConfirmsChangesOnly: a node that starts with the files of the others waits for no node.
func TestDeclareConfirmsChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		for i, want := range []int{1, 1} {
			if _, err := c.nodes[i].Declare(t.Context(), declaredSet(1, nil)); err != nil {
				t.Fatal(err)
			}
			if c.confirms != want {
				t.Errorf("node %d: got %d waits for all nodes, want %d", i, c.confirms, want)
			}
		}
		c.unknown = errors.New("a node is away")
		if _, err := c.nodes[1].Declare(t.Context(), declaredSet(1, nil)); err != nil {
			t.Errorf("nothing changes: got %v, want no error", err)
		}
		other := declaredSet(2, func(c *oauth.Client) { c.Name = "Other" })
		if _, err := c.nodes[1].Declare(t.Context(), other); !errors.Is(err, oauth.ErrUnknownOutcome) {
			t.Errorf("a change: got %v, want an unknown outcome", err)
		}
	})
}

// TestDeclareChecksKeysURL: keys that can never be fetched are refused, as by the admin API.
func TestDeclareChecksKeysURL(t *testing.T) {
	checks := 0
	f := newFixture(t, func(c *token.Config) {
		c.CheckURL = func(_ context.Context, url string, _ bool) error {
			checks++
			if strings.Contains(url, "10.0.0.1") {
				return errors.New("10.0.0.1 has no public address")
			}
			return nil
		}
	})
	set := func(revision int64, url string) []*oauth.DeclaredSet {
		return declaredSet(revision, func(c *oauth.Client) {
			c.Public, c.Options.JWKSURI = false, url
		})
	}
	var refused *oauth.DeclareError
	if _, err := f.Declare(t.Context(), set(1, "https://10.0.0.1/keys")); !errors.As(err, &refused) ||
		!strings.Contains(refused.Message, "client wiki: jwks_uri: 10.0.0.1 has no public address") {
		t.Errorf("got %v, want a refusal", err)
	}
	if _, err := f.Client(t.Context(), "wiki"); !errors.Is(err, oauth.ErrNotFound) {
		t.Errorf("got %v, want no client", err)
	}
	for range 2 { // the second time nothing is new
		if _, err := f.Declare(t.Context(), set(1, "https://keys.example/")); err != nil {
			t.Error(err)
		}
	}
	if checks != 2 {
		t.Errorf("got %d checks, want one of each URL", checks)
	}
}

// TestDeclareIsRecorded: the trail has what the files change with the values before and after, as
// that of the admin API.
func TestDeclareIsRecorded(t *testing.T) {
	f := newFixture(t, nil)
	declare := func(sets []*oauth.DeclaredSet) {
		t.Helper()
		if _, err := f.Declare(t.Context(), sets); err != nil {
			t.Fatal(err)
		}
	}
	notes := &oauth.Resource{URI: "https://notes.example/", Scopes: []string{"n"}, Set: "default", Declared: true}
	both := func(revision int64, change func(*oauth.Client)) []*oauth.DeclaredSet {
		sets := declaredSet(revision, change)
		sets[0].Resources = []*oauth.Resource{notes}
		return sets
	}
	declare(both(1, nil))
	declare([]*oauth.DeclaredSet{{Name: "default", Revision: 2}})
	declare(both(3, func(c *oauth.Client) { c.Name = "The Wiki" }))

	events, err := f.store.Events(t.Context(), audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		if e.Subject != audit.OfClient("wiki") && e.Target != notes.URI {
			continue
		}
		before, _ := e.Data[audit.Before].(map[string]any)
		after, _ := e.Data[audit.After].(map[string]any)
		text, err := json.Marshal([]any{before["name"], after["name"], before["declared"], after["declared"]})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Action)+" "+string(text))
	}
	want := []string{
		"resource_created [null,null,null,true]", `client_created [null,"Wiki",null,true]`,
		"resource_deleted [null,null,true,null]", "client_disabled [null,null,null,null]",
		"client_changed [null,null,true,false]",
		"resource_created [null,null,null,true]", "client_enabled [null,null,null,null]",
		`client_changed ["Wiki","The Wiki",false,true]`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
