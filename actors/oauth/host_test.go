package oauth_test

import (
	"testing"

	"gatehouse/actors/oauth"
)

// TestHostBeforeConsent names the host that a browser goes to, and no host for this computer.
func TestHostBeforeConsent(t *testing.T) {
	for uri, want := range map[string]string{
		"https://evil.example/cb": "evil.example", "https://EVIL.example.:443/cb": "evil.example",
		"https://evil.example:8443/": "evil.example:8443", "https://xn--ggle-55da.example/": "xn--ggle-55da.example",
		"http://localhost:4711/": "", "https://localhost./": "", "https://a.localhost/": "",
		"https://127.1/": "", "https://0x7f000001/": "", "https://0177.0.0.1/": "", "https://2130706433/": "",
		"https://[::1]/": "", "https://[::ffff:127.0.0.1]/": "", "https://0/": "", "app.example:/cb": "",
		"https://127.example/": "127.example", "https://93.184.216.34/": "93.184.216.34",
	} {
		c := oauth.Client{Name: "Google", Options: oauth.ClientOptions{SelfRegistered: true}}
		if got := c.HostBeforeConsent(uri); got != want {
			t.Errorf("%s: got %q, want %q", uri, got, want)
		}
		c.Options.MetadataURL = "https://app.example/client.json"
		if got := c.HostBeforeConsent(uri); got != "app.example" {
			t.Errorf("%s: got %q, want the host of the document", uri, got)
		}
	}
}

// TestVerifiedDocumentThatChanges is unverified again, before anybody consents to it.
func TestVerifiedDocumentThatChanges(t *testing.T) {
	stored := &oauth.Client{Name: "Agent", RedirectURIs: []string{"https://app.example/cb"},
		Options: oauth.ClientOptions{SelfRegistered: true, Verified: true}}
	for name, change := range map[string]func(*oauth.Client){
		"the same":     func(*oauth.Client) {},
		"name":         func(c *oauth.Client) { c.Name = "Google" },
		"redirect URI": func(c *oauth.Client) { c.RedirectURIs = []string{"https://evil.example/cb"} },
		"keys":         func(c *oauth.Client) { c.Options.JWKSURI = "https://evil.example/keys" },
	} {
		fresh := *stored
		change(&fresh)
		if got, _ := stored.Describe(&fresh); got.IsUnverified() != (name != "the same") {
			t.Errorf("%s: got unverified %v", name, got.IsUnverified())
		}
	}
}
