package httpedge_test

import (
	"strings"
	"testing"

	"gatehouse/actors/brand"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// TestBrand finds what the operator gave on a page and in discovery.
func TestBrand(t *testing.T) {
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	st := stacktest.NewIdentity(t, func(c *stack.Config) {
		c.Brand = brand.Brand{Name: "Atlas", Support: "https://atlas.example/help",
			Terms: "https://atlas.example/terms", Privacy: "https://atlas.example/privacy",
			Logo: &brand.Image{Type: "image/svg+xml", Data: []byte(svg)}}
	})
	page := st.Get(t, "/login")
	if host := strings.TrimPrefix(st.URL, "http://"); !strings.Contains(page.Body,
		"<title>Sign in · Atlas</title>") || !strings.Contains(page.Body, "<bdi>"+host+"</bdi>") {
		t.Errorf("got %s, want the name in the title and the host below", page.Body)
	}
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "; img-src 'self'; ") {
		t.Errorf("got policy %q, want pictures of the service alone", csp)
	}
	for _, source := range []string{`<img src="`, `<link rel="icon" href="`} {
		_, path, _ := strings.Cut(page.Body, source)
		path, _, _ = strings.Cut(path, `"`)
		picture := st.Get(t, path)
		picture.Has(t, "Content-Security-Policy", "default-src 'none'; sandbox",
			"X-Content-Type-Options", "nosniff", "Content-Type", "image/svg+xml")
		if picture.Status != 200 || picture.Body != svg {
			t.Errorf("%s%s: got %d %s, want the logo", source, path, picture.Status, picture.Body)
		}
	}
	missing := st.Get(t, "/nowhere", "Accept", likesPages)
	if !strings.Contains(missing.Body, `<a href="https://atlas.example/help">Contact support</a>`) {
		t.Errorf("got %s, want a way to support", missing.Body)
	}
	metadata := st.Get(t, "/.well-known/openid-configuration").Object(t)
	if metadata["op_tos_uri"] != "https://atlas.example/terms" ||
		metadata["op_policy_uri"] != "https://atlas.example/privacy" {
		t.Errorf("got %v, want the operator's pages", metadata)
	}
	conn := st.Dial(t)
	conn.Say("GET /.well-known/change-password HTTP/1.1\r\nHost: x\r\n\r\n")
	change := conn.Hear()
	change.Has(t, "Location", "/me/password")
	if change.Status != 303 {
		t.Errorf("got %d, want 303", change.Status)
	}
}

// TestBrandWithoutSettings shows the first letter of the host in tabs, and no logo.
func TestBrandWithoutSettings(t *testing.T) {
	st := stacktest.NewLookups(t)
	if logo := st.Get(t, "/service/logo"); logo.Status != 404 {
		t.Errorf("got %d, want no logo", logo.Status)
	}
	if icon := st.Get(t, "/service/icon"); icon.Status != 200 ||
		!strings.Contains(icon.Body, ">1</text>") {
		t.Errorf("got %d %s, want the first of 127.0.0.1", icon.Status, icon.Body)
	}
	if change := st.Get(t, "/.well-known/change-password"); change.Status != 404 {
		t.Errorf("got %d without accounts, want 404", change.Status)
	}
}
