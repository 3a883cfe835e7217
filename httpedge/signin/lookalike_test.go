package signin_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// TestLookalikesAreNamed asks for consent as clients that nobody has checked, whose names look like that
// of the service or of another client. The heading never has their names.
func TestLookalikesAreNamed(t *testing.T) {
	st := stacktest.NewIdentity(t, func(c *stack.Config) { c.Brand.Name = "Atlas" })
	st.NewUser(t, "Rosa", rosa)
	st.NewClient(t, func(c *oauth.Client) { c.Name = "Notes" })
	for name, want := range map[string]string{
		"\u0410tl\u0430s": "looks like “<bdi>Atlas</bdi>”", "Atlas Account Security": "looks like “<bdi>Atlas</bdi>”",
		"N0tes": "looks like “<bdi>Notes</bdi>”", "G\u043e\u043egle": "mixes letters of different scripts",
		"Google": "",
	} {
		c := st.NewClient(t, func(c *oauth.Client) { c.Name, c.Options.SelfRegistered = name, true })
		p := st.NewBrowser(t).SignIn(c.Request(), rosa)
		p.Shows(t, 200, "/consent")
		if want != "" {
			p.Says(t, want)
		} else if strings.Contains(p.Body, "Careful:") {
			t.Errorf("%s: got %s, want no warning about the name", name, p.Body)
		}
		_, heading, _ := strings.Cut(p.Body, "<h1>")
		heading, _, _ = strings.Cut(heading, "</h1>")
		if strings.Contains(heading, name) || !strings.Contains(p.Body, "<bdi>"+name+"</bdi>") {
			t.Errorf("%s: got the heading %s, want the name as text only", name, heading)
		}
	}
	for host, looks := range map[string]bool{"atlas.example.evil.example": true, "notes.example": false} {
		uri := "https://" + host + "/cb"
		c := st.NewClient(t, func(c *oauth.Client) {
			c.Name, c.RedirectURIs, c.Options.SelfRegistered = "Shop", []string{uri}, true
		})
		p := st.NewBrowser(t).SignIn(c.Request("redirect_uri", uri), rosa)
		p.Shows(t, 200, "/consent")
		if strings.Contains(p.Body, "its address looks like that of <bdi>Atlas</bdi>") != looks {
			t.Errorf("%s: got %s, want a warning about the address: %t", host, p.Body, looks)
		}
	}
	checked := st.NewClient(t, func(c *oauth.Client) { c.Name = "Atlas Maps" })
	if p := st.NewBrowser(t).SignIn(checked.Request(), rosa); strings.Contains(p.Body, "Careful:") {
		t.Errorf("got %s, want no warning about an operator's client", p.Body)
	}
}

// TestCoveredPermissionsAreLeftOut says once what several scopes let a client see.
func TestCoveredPermissionsAreLeftOut(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	const email, phone = "<li>see your email address</li>", "<li>see your phone number</li>"
	for approved, want := range map[bool]int{false: 1, true: 0} {
		c := st.NewOpenIDClient(t, func(c *oauth.Client) { c.DetailApproved = approved })
		p := st.NewBrowser(t).SignIn(c.Request("scope", "openid view-user detail-user email phone"), rosa)
		if strings.Contains(p.Body, email) || strings.Count(p.Body, phone) != want {
			t.Errorf("approved %t: got %s, want no email address, and the phone number %d times", approved,
				p.Body, want)
		}
	}
}
