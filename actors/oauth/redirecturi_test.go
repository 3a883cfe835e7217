package oauth_test

import (
	"net/url"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

var registrable = []string{
	"https://app.example/cb",
	"https://app.example",
	"https://app.example:8443/cb?tenant=1",
	"https://[2001:db8::1]/cb",
	"https://192.0.2.1/cb",
	"https://app.example/%C3%A9",
	"http://127.0.0.1/cb",
	"http://127.0.0.1:49152/cb",
	"http://[::1]:8080/cb",
	"http://localhost:3000/",
}

var privateUse = []string{"com.example.app:/cb", "com.example.app://cb",
	"com.example.app:///cb?x=1", "app:/cb", "myapp://cb", "cursor://anysphere.cursor-mcp/oauth/callback"}

var rejected = []string{
	"", "app.example/cb", "/cb", "//app.example/cb", "https:", "https:///cb",
	"https:app.example/cb", "HTTPS://app.example/cb",
	"https://app.example/cb#", "https://app.example/cb#part", "https://user@app.example/cb",
	"https://user:pw@app.example/cb",
	"https://*.app.example/cb", "https://app.example/*", "https://app.example/c b",
	"https://app.example\\@evil.example/cb",
	"https://app.example/cb\r\nSet-Cookie:x", "https://app.example/é", "https://é.example/cb",
	"https://%C5%81.example/cb",
	"https://app.example/%zz", "https://app.example/%2", "https://app.example:0/cb",
	"https://app.example:99999/cb", "https://app.example:/cb",
	"https://app.example:08080/cb", "https://[fe80::1%25eth0]/cb", "https://[::1/cb",
	"https://app.example/cb?code=1", "https://app.example/cb?a=1&state=2",
	"https://app.example/cb?iss=x", "https://app.example/cb?error=x",
	"https://app.example/cb?a;b", "http://app.example/cb", "http://127.0.0.2/cb",
	"http://localhost.evil.example/cb",
	"http://127.0.0.1.evil.example/cb", "http://[::2]/cb", "http://0x7f000001/cb",
	"http://LOCALHOST/cb",
	"javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "blob://x",
	"vbscript:/x", "about:/x", "ftp://x/y", "ws://x/y", "wss://x/y", "intent://x", "view-source://x",
	"ms-settings://x", "search-ms://x", "Cursor://x", "cursor:cb",
	"urn:ietf:wg:oauth:2.0:oob",
	"com.example.app:cb", "com.example.app://user@host/cb",
	"https://app.example/" + strings.Repeat("a", 2000),
}

func TestCheckRedirectURI(t *testing.T) {
	for _, public := range []bool{false, true} {
		for _, uri := range registrable {
			if err := oauth.CheckRedirectURI(uri, public); err != nil {
				t.Errorf("%s: got %v, want nil", uri, err)
			}
		}
		for _, uri := range rejected {
			if oauth.CheckRedirectURI(uri, public) == nil {
				t.Errorf("%.80q: got nil, want an error", uri)
			}
		}
		for _, uri := range privateUse {
			if err := oauth.CheckRedirectURI(uri, public); (err == nil) != public {
				t.Errorf("%s, public %t: got %v", uri, public, err)
			}
		}
	}
}

func TestRedirectURIMatchesByteForByte(t *testing.T) {
	c := &oauth.Client{RedirectURIs: []string{"https://app.example/cb", "http://127.0.0.1:4000/cb",
		"http://localhost:4000/cb"}}
	for _, uri := range c.RedirectURIs {
		if !c.AllowsRedirect(uri) {
			t.Errorf("%s: got no, want yes", uri)
		}
	}
	for _, uri := range []string{
		"", "https://app.example/cb/", "https://app.example/CB", "https://APP.example/cb",
		"https://app.example/cb?", "https://app.example/c%62",
		"https://app.example:443/cb", "https://app.example/cb/../cb", "https://app.example/cb#",
		"https://app.example/cb?x=1", "https://app.example",
		"http://127.0.0.1:4001/cb", "http://127.0.0.1/cb", "http://localhost:4001/cb",
	} {
		if c.AllowsRedirect(uri) {
			t.Errorf("%s: got yes, want no", uri)
		}
	}
}

func TestAnyPortOnLoopback(t *testing.T) {
	c := &oauth.Client{LoopbackAnyPort: true, RedirectURIs: []string{
		"http://127.0.0.1/cb", "http://[::1]:4000/cb?x=1", "http://localhost:4000/cb",
		"https://127.0.0.1/tls",
	}}
	for _, uri := range []string{
		"http://127.0.0.1/cb", "http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb",
		"http://[::1]/cb?x=1", "http://[::1]:5000/cb?x=1",
	} {
		if !c.AllowsRedirect(uri) {
			t.Errorf("%s: got no, want yes", uri)
		}
	}
	for _, uri := range []string{
		"http://127.0.0.1:0/cb", "http://127.0.0.1:65536/cb", "http://127.0.0.1:/cb",
		"http://127.0.0.1:080/cb", "http://127.0.0.1:+80/cb",
		"http://127.0.0.1:80@evil.example/cb", "http://127.0.0.1:80.evil.example/cb",
		"http://127.0.0.1.evil.example/cb", "http://127.0.0.1:80",
		"http://127.0.0.1:80/cb2", "http://127.0.0.1:80/cb?x", "http://127.0.0.1:80/cb#",
		"http://127.0.0.1:80\\cb", "http://[::1]:80/cb",
		"http://localhost:5000/cb", "https://127.0.0.1:5000/tls", "http://127.0.0.1:5000/tls",
	} {
		if c.AllowsRedirect(uri) {
			t.Errorf("%s: got yes, want no", uri)
		}
	}
}

func TestRedirectOrigin(t *testing.T) {
	for _, row := range []struct{ uri, want string }{
		{"https://app.example/cb?x=1", "https://app.example"},
		{"https://App.Example:443/cb", "https://app.example"},
		{"https://app.example:8443", "https://app.example:8443"},
		{"http://[::1]:80/cb", "http://[::1]"},
		{"com.example.app://host/cb", "com.example.app:"},
		{"", ""},
		{"/cb", ""},
	} {
		if got := oauth.RedirectOrigin(row.uri); got != row.want {
			t.Errorf("%s: got %q, want %q", row.uri, got, row.want)
		}
	}
}

// FuzzRedirectURI checks that only plain absolute URIs can be registered, and that a request
// matches one only if it has the same scheme, host and path.
func FuzzRedirectURI(f *testing.F) {
	for _, uri := range append(append(registrable, rejected...), privateUse...) {
		f.Add(uri, uri)
		f.Add("http://127.0.0.1/cb", uri)
	}
	f.Fuzz(func(t *testing.T, registered, asked string) {
		if oauth.CheckRedirectURI(registered, true) != nil {
			return
		}
		r, err := url.Parse(registered)
		if err != nil || !r.IsAbs() || r.User != nil ||
			strings.ContainsAny(registered, "#* \"<>\\\r\n") {
			t.Fatalf("%q can be registered", registered)
		}
		if r.Scheme == "http" && r.Hostname() != "127.0.0.1" && r.Hostname() != "::1" &&
			r.Hostname() != "localhost" {
			t.Fatalf("%q can be registered", registered)
		}
		c := &oauth.Client{LoopbackAnyPort: true, RedirectURIs: []string{registered}}
		if !c.AllowsRedirect(asked) {
			return
		}
		a, err := url.Parse(asked)
		if err != nil || a.Scheme != r.Scheme || a.Hostname() != r.Hostname() || a.User != nil ||
			a.RequestURI() != r.RequestURI() {
			t.Errorf("%q matches %q", asked, registered)
		}
	})
}
