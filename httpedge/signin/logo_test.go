package signin_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestLogoOfApp shows the picture that an operator has set, for as long as people see the app by its
// name. Nothing that could run or load something is ever set.
func TestLogoOfApp(t *testing.T) {
	st := stacktest.NewIdentity(t)
	st.NewUser(t, "Rosa", rosa)
	o := st.NewOperator(t)
	c := st.NewClient(t, func(c *oauth.Client) { c.Options.SelfRegistered = true })
	client := "/clients/" + c.ID
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	for name, picture := range map[string]string{
		"script": `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`,
		"remote": `<svg xmlns="http://www.w3.org/2000/svg"><image href="https://evil.example/x.png"/></svg>`,
		"page":   "<html></html>", "none": "",
	} {
		if got := o.Do(400, "PUT", client+"/logo", picture); !strings.Contains(got.Body, "The picture ") {
			t.Errorf("%s: got %s, want what to do", name, got.Body)
		}
	}
	o.Do(413, "PUT", client+"/logo", svg+strings.Repeat(" ", 64<<10))
	o.Do(404, "PUT", "/clients/nobody/logo", svg)

	first, _ := o.Do(200, "PUT", client+"/logo", svg).Object(t)["logo"].(string)
	path := "/service/apps/" + c.ID + "/logo"
	shown := func() bool {
		t.Helper()
		page := st.NewBrowser(t).SignIn(c.Request("prompt", "consent"), rosa)
		page.Shows(t, 200, "/consent")
		_, source, onPage := strings.Cut(page.Body, `<img src="`)
		source, _, _ = strings.Cut(source, `"`)
		picture := st.Get(t, path)
		if onPage != (picture.Status == 200) || onPage && !strings.HasPrefix(source, path+"?v=") {
			t.Errorf("got the picture %q on the page, and %d at %s", source, picture.Status, path)
		}
		if onPage {
			picture.Has(t, "Content-Security-Policy", "default-src 'none'; sandbox",
				"X-Content-Type-Options", "nosniff", "Content-Type", "image/svg+xml")
		}
		return onPage
	}
	for _, step := range []struct {
		action string
		want   bool
	}{{"", false}, {"verify", true}, {"unverify", false}, {"verify", true}} {
		if step.action != "" {
			o.Do(200, "POST", client+"/"+step.action, "")
		}
		if shown() != step.want {
			t.Errorf("%q: got the picture shown %t, want %t", step.action, !step.want, step.want)
		}
	}
	next, _ := o.Do(200, "PUT", client+"/logo", "<?xml version='1.0'?>"+svg).Object(t)["logo"].(string)
	if first == "" || next == "" || next == first {
		t.Errorf("got %q and then %q, want another one", first, next)
	}
	o.Do(200, "PATCH", client, `{"name":"Other"}`)
	if !shown() {
		t.Error("got no picture after another change, want it to stay")
	}
	o.Do(200, "DELETE", client+"/logo", "")
	if shown() {
		t.Error("got a picture that was removed")
	}
	for _, missing := range []string{"/service/apps/nobody/logo", "/service/apps/%00/logo"} {
		if got := st.Get(t, missing); got.Status != 404 {
			t.Errorf("%s: got %d, want 404", missing, got.Status)
		}
	}
}

// TestLogoOutlivesApply keeps the picture of an app that a file describes anew, and deletes it with the
// app.
func TestLogoOutlivesApply(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	const described = `{"name":"Shop","public":true,"redirect_uris":["https://shop.example/"]}`
	o.Do(201, "PUT", "/clients/shop", described)
	o.Do(200, "PUT", "/clients/shop/logo", svg)
	o.Do(200, "PUT", "/clients/shop", strings.Replace(described, "Shop", "The Shop", 1))
	if got := st.Get(t, "/service/apps/shop/logo"); got.Status != 200 || got.Body != svg {
		t.Errorf("got %d %s after a file was applied, want the picture", got.Status, got.Body)
	}
	st.Alter(t, "DELETE FROM client_logos")
	if got := st.Get(t, "/service/apps/shop/logo"); got.Status != 200 || got.Body != svg {
		t.Errorf("got %d %s, want the picture from memory: anybody may ask for it without end", got.Status, got.Body)
	}
	o.Do(204, "DELETE", "/clients/shop", "")
	o.Do(201, "PUT", "/clients/shop", described)
	if got := st.Get(t, "/service/apps/shop/logo"); got.Status != 404 {
		t.Errorf("got %d for a new client with a former id, want 404", got.Status)
	}
}
