package signin_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// TestWrongFieldsAreShownByGet sends a form with wrong fields. The browser is led to a page that it
// can load again and go back to, with what was entered but for the password.
func TestWrongFieldsAreShownByGet(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	_, fields := b.Get("/register").Form(t)
	fields.Set("name", "Ida")
	fields.Set("email", "ida@")
	fields.Set("password", "secret harbour lamps")
	sent := b.Once("POST", "/register", fields)
	if sent.Status != 303 || !strings.HasPrefix(sent.Location, "/register?again=") ||
		strings.Contains(sent.Location, "ida") {
		t.Fatalf("got %d to %s, want a page without what was entered in its URL", sent.Status, sent.Location)
	}
	for range 2 { // as a reload does
		p := b.Get(sent.Location)
		p.Shows(t, 422, "/register")
		p.Says(t, "This is not an email address.", `value="Ida"`, `value="ida@"`)
	}
	cookie := b.Cookies()["gatehouse-again"]
	raw, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || !strings.Contains(string(raw), "Ida") || strings.Contains(string(raw), "harbour") ||
		strings.Contains(string(raw), fields.Get("form_token")) {
		t.Errorf("got the cookie %q, %v, want no secret in it", raw, err)
	}
	if p := b.Get("/register"); p.Status != 200 || strings.Contains(p.Body, "ida@") {
		t.Errorf("got %d %s, want a new form in another tab", p.Status, p.Body)
	}
	if p := b.Get("/reset" + strings.TrimPrefix(sent.Location, "/register")); p.Status != 200 {
		t.Errorf("got %d %s, want nothing on another page", p.Status, p.Body)
	}
	other := st.NewBrowser(t)
	other.Get("/register")
	for name, stolen := range map[string]string{"of another browser": cookie,
		"changed": "A" + cookie[1:], "cut": cookie[:20], "none": ""} {
		p := other.Once("GET", sent.Location, nil, "Cookie", "gatehouse-form="+
			other.Cookies()["gatehouse-form"]+"; gatehouse-again="+stolen)
		if p.Status != 200 || strings.Contains(p.Body, "ida@") {
			t.Errorf("%s: got %d %s, want a new form", name, p.Status, p.Body)
		}
	}
}

// TestTooLongFormIsShownAtOnce keeps nothing that a browser would not keep.
func TestTooLongFormIsShownAtOnce(t *testing.T) {
	st := stacktest.NewReachable(t)
	b := st.NewBrowser(t)
	_, fields := b.Get("/register").Form(t)
	fields.Set("name", strings.Repeat("x", 4000))
	if p := b.Once("POST", "/register", fields); p.Status != 422 || b.Cookies()["gatehouse-again"] != "" {
		t.Errorf("got %d, want the page without a redirect", p.Status)
	}
}

// TestDisabledAccountIsTold after the right password only.
func TestDisabledAccountIsTold(t *testing.T) {
	st := stacktest.NewIdentity(t, func(c *stack.Config) { c.Brand.Support = "https://atlas.example/help" })
	u := st.NewUser(t, "Rosa", rosa)
	if _, err := st.People.UpdateUser(t.Context(), u.ID, func(u *account.User) error {
		u.Disabled = true
		return nil
	}, u.Created); err != nil {
		t.Fatal(err)
	}
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/login"), "email", rosa, "password", "not-the-password")
	p.Shows(t, 422, "/login")
	p.Says(t, "do not belong together")
	p = b.Send(b.Get("/login"), "email", rosa, "password", stacktest.Password)
	p.Shows(t, 403, "/login")
	p.Says(t, "This account is disabled", `<a href="https://atlas.example/help">`)
	if b.Cookies()["gatehouse"] != "" {
		t.Error("got a session, want none")
	}
}

// TestLoginGreets checks that the page greets the person who is signed in, and says what the sign-in is for.
func TestLoginGreets(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	st.NewBrowser(t).Get("/login?user_code=BCDF-GHJK").Says(t, "to connect a device")
	b, _ := st.SignedIn(t, rosa)
	b.Get("/login").Says(t, "You are already signed in:", rosa, `<a href="/me">`)
	b.Get("/login?user_code=BCDF-GHJK").Says(t, `<a href="/device?user_code=`)
}
