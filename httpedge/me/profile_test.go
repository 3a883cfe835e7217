package me_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

func TestProfileIsEdited(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ada", ada)
	c := st.NewClient(t, func(c *oauth.Client) { c.DetailApproved = true })
	b, _ := st.SignedIn(t, ada)
	token := b.LetIn(c, "scope", "view-user detail-user")
	p := b.SendTo(b.Get("/me/profile"), "/me/profile", "name", " Ada Lovelace ", "username", "Ada.L", "gender",
		"non-binary", "bio", "one\r\ntwo <b>",
		"place_of_birth", "London", "date_of_birth", "1915-12-10", "address",
		"St James's Square\r\nLondon", "profile_picture", "https://ada.example/a.png?b=c&d")
	p.Shows(t, 200, "/me/profile")
	p.Says(t, "Your profile is saved.", "Ada Lovelace", "St James's Square", "two &lt;b>")
	a := st.Send(t, "GET", st.URL+"/api/user/details", "", "Authorization", "Bearer "+token)
	for member, want := range map[string]any{"name": "Ada Lovelace", "username": "Ada.L",
		"gender": "non-binary", "bio": "one\ntwo <b>", "place_of_birth": "London",
		"date_of_birth": "1915-12-10", "address": "St James's Square\nLondon",
		"profile_picture": "https://ada.example/a.png?b=c&d", "email": ada} {
		if got := a.Object(t)[member]; got != want {
			t.Errorf("%s: got %v, want %v at once", member, got, want)
		}
	}
	// What is not sent stays, what is empty goes, and what the form does not have cannot be sent.
	p = b.SendTo(p, "/me/profile", "bio", "", "email", "evil@example.com", "phone_number", "+14155550100",
		"id", "1", "disabled", "true")
	p.Shows(t, 200, "/me/profile")
	p = b.Open("POST", "/me/profile", p.FormTo(t, "/me/profile").With("gender", ""))
	fields := p.FormTo(t, "/me/profile").Fields
	fields.Set("address", "")
	b.Open("POST", "/me/profile", fields).Shows(t, 200, "/me/profile")
	kept, err := st.Store.User(t.Context(), u.ID)
	if err != nil || kept.Bio != "one\ntwo <b>" || kept.Gender != "non-binary" ||
		kept.Address != "" || kept.Email != ada || kept.Phone != "" || kept.Disabled {
		t.Errorf("got %+v, %v", kept, err)
	}
}

func TestInvalidProfile(t *testing.T) {
	st := stacktest.NewIdentity(t)
	u := st.NewUser(t, "Ada", ada)
	other := st.NewUser(t, "Bo", "bo@example.com")
	other.Username = "Bo_Builds"
	stacktest.Must(t, st.Store.UpdateUser(t.Context(), other))
	b, _ := st.SignedIn(t, ada)
	for _, c := range []struct{ field, entered, says string }{
		{"name", " ", "Enter your name."},
		{"name", strings.Repeat("é", 201), "Use at most 200 characters."},
		{"username", "a b", "The username may contain only letters"},
		{"username", "bo_BUILDS", "This username is taken. Choose another one."},
		{"gender", strings.Repeat("x", 51), "Use at most 50 characters."},
		{"bio", strings.Repeat("x", 2001), "Use at most 2000 characters."},
		{"bio", "a\x00b", "Remove the control characters."},
		{"bio", "\xff\xfe", "This is not valid text."},
		{"place_of_birth", "\u202egnp", "Remove the control characters."},
		{"date_of_birth", "31.12.1990",
			"The date of birth must be a valid date in the form YYYY-MM-DD."},
		{"date_of_birth", "2990-12-31", "The date of birth must not be in the future."},
		{"address", strings.Repeat("x", 501), "Use at most 500 characters."},
		{"profile_picture", "javascript:alert(1)", "The link must be an http or https URL."},
	} {
		p := b.SendTo(b.Get("/me/profile"), "/me/profile", "gender", "female", c.field, c.entered)
		p.Shows(t, 422, "/me/profile")
		p.Says(t, c.says, `id="`+c.field+`-wrong"`)
		if f := p.FormTo(t, "/me/profile").Fields; c.field != "gender" && f.Get("gender") != "female" {
			t.Errorf("%s: got %v, want what was entered", c.field, f)
		}
	}
	p := b.SendTo(b.Get("/me/profile"), "/me/profile", "name", "", "date_of_birth", "x", "profile_picture", "x")
	fields := p.FormTo(t, "/me/profile").Fields
	fields["name"] = []string{"A", "B"}
	b.Once("POST", "/me/profile", fields).Shows(t, 400, "/me/profile")
	if kept, err := st.Store.User(t.Context(), u.ID); err != nil || kept.Name != "Ada" ||
		kept.Gender != "" || kept.Version != u.Version {
		t.Errorf("got %+v, %v, want nothing changed", kept, err)
	}
}
