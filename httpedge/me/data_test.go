package me_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestPersonalData downloads what is kept about a person: nothing of others, and no secret.
func TestPersonalData(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	u, bo := st.NewUser(t, "Ada", ada), st.NewUser(t, "Bo", "bo@example.com")
	c := st.NewClient(t, func(c *oauth.Client) { c.Name = "Atlas" })
	b, _ := st.SignedIn(t, ada)
	b.LetIn(c)
	if err := st.Store.Record(audit.With(t.Context(), audit.Event{Action: audit.SignOut, Subject: audit.OfUser(bo.ID)},
		audit.Event{Action: audit.UserRead, Subject: audit.OfUser(u.ID), From: "192.0.2.0/24",
			Source: audit.Source{Actor: audit.Actor{Kind: audit.Operator, ID: "secret-operator"}}})); err != nil {
		t.Fatal(err)
	}
	kept, err := st.Store.User(t.Context(), u.ID)
	stacktest.Must(t, err)
	kept.Credentials = account.Credentials{Handle: []byte("secret handle"), Passkeys: []account.Passkey{
		{ID: []byte("secret id"), PublicKey: []byte("secret key"), Name: "My phone", SignsIn: true}}}
	stacktest.Must(t, st.Store.UpdateUser(t.Context(), kept))
	b.Get("/me/data").Says(t, `href="/me/data/account.json"`)
	p := b.Get("/me/data/account.json")
	var got struct {
		Profile map[string]any
		WaysIn  []struct {
			Kind account.Way
			Name *string
		} `json:"ways_in"`
		Apps []struct {
			Name   string
			Scopes []string
		}
		Sessions []struct{ Current bool }
		History  []struct{ Action, By string }
	}
	if err := json.Unmarshal([]byte(p.Body), &got); err != nil || p.Status != http.StatusOK {
		t.Fatalf("got %d %s, %v, want JSON", p.Status, p.Body, err)
	}
	if got.Profile["email"] != ada || len(got.WaysIn) != 3 || len(got.Apps) != 1 || got.Apps[0].Name != "Atlas" ||
		len(got.Apps[0].Scopes) == 0 || len(got.Sessions) != 1 || !got.Sessions[0].Current || len(got.History) < 3 {
		t.Errorf("got %s, want the account, its app, session and history", p.Body)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store",
		"Content-Disposition": `attachment; filename="account.json"`} {
		if p.Header.Get(name) != want {
			t.Errorf("%s: got %q, want %q", name, p.Header.Get(name), want)
		}
	}
	if key := got.WaysIn[2]; key.Kind != "passkey" || key.Name == nil || *key.Name != "My phone" {
		t.Errorf("got the way in %+v, want the passkey by its name", key)
	}
	for _, secret := range []string{"c2VjcmV0", kept.PasswordHash, "argon2", "secret-operator", "bo@example.com", "sign_out"} {
		if strings.Contains(p.Body, secret) {
			t.Errorf("got %s, want nothing with %q", p.Body, secret)
		}
	}
	st.NewBrowser(t).Get("/me/data/account.json").Shows(t, 200, "/login")
	d.Covers("GET /me/data/account.json 200")
}
