package httpedge_test

import (
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

// TestHome shows what the roles or the setting say, to browsers only.
func TestHome(t *testing.T) {
	const signIn, form = `href="/login"`, `name="q"`
	for _, row := range []struct {
		home         string
		lookups      bool
		shows, lacks []string
	}{
		{"", false, []string{signIn, form}, nil}, {"both", false, []string{signIn, form}, nil},
		{"", true, []string{form}, []string{signIn}},
		{"off", true, nil, nil}, {"off", false, nil, nil},
		{"geo", true, []string{form}, []string{signIn}}, {"geo", false, []string{form}, []string{signIn}},
		{"identity", false, []string{signIn}, []string{form}},
	} {
		set := func(c *stack.Config) { c.Home = row.home }
		var st *stacktest.Stack
		if row.lookups {
			st = stacktest.NewLookups(t, set)
		} else {
			st = stacktest.NewIdentity(t, set).Stack
		}
		page := st.Get(t, "/", "Accept", likesPages)
		if want := map[bool]int{true: 200, false: 404}[row.shows != nil]; page.Status != want {
			t.Errorf("%q: got %d, want %d", row.home, page.Status, want)
		}
		for _, text := range row.shows {
			says(t, page, text)
		}
		for _, text := range row.lacks {
			if strings.Contains(page.Body, text) {
				t.Errorf("%q: got %s, want nothing with %s", row.home, page.Body, text)
			}
		}
		for _, accept := range []string{"", "*/*", "application/json", "application/json, text/html"} {
			missing := st.Get(t, "/nowhere", "Accept", accept)
			if got := st.Get(t, "/", "Accept", accept); got.Status != 404 || got.Body != missing.Body {
				t.Errorf("%q: got %d %s, want what programs get elsewhere: %s", accept, got.Status, got.Body,
					missing.Body)
			}
		}
	}
}

// TestHomeLooksUp uses the cache and the limit of the endpoint. Who opens the page is not looked up.
func TestHomeLooksUp(t *testing.T) {
	provider := stacktest.NewProvider()
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider), func(c *stack.Config) {
		c.TrustedProxies = prefixes(t, "127.0.0.1/32")
	})
	d := st.Describe(t)
	open := func(query string) stacktest.Response {
		return st.Get(t, "/"+query, "Accept", likesPages, "X-Forwarded-For", "81.2.69.142")
	}
	own := open("")
	says(t, own, "Your address is <bdi>81.2.69.142</bdi>.", `name="q" value="81.2.69.142">Look it up`)
	if n := provider.Asked("81.2.69.142"); n != 0 {
		t.Errorf("got %d upstream queries about a visitor, want none", n)
	}
	says(t, open("?q=81.2.69.142"), "Testland", "AS64500 Test", "curl &#39;"+st.URL+"/api/lookup?q=81.2.69.142&#39;")
	st.Get(t, "/api/lookup?q=81.2.69.142").Has(t, "X-Cache", "hit")
	says(t, open(""), "near <bdi>81.2.69.142, Testland</bdi>.")
	open("?q=81.2.69.142")
	if n := provider.Asked("81.2.69.142"); n != 1 {
		t.Errorf("got %d upstream queries, want one: the cache is the same", n)
	}
	for query, want := range map[string]string{"10.0.0.1": "private or reserved", "": "Check its spelling",
		"%22%3E%3Cscript%3E": "Check its spelling", "\xff": "Check its spelling"} {
		p := open("?q=" + query)
		says(t, p, want, `id="q-wrong"`)
		if p.Status != 400 || strings.Contains(p.Body, "<script>") {
			t.Errorf("%q: got %d %s, want 400 and no script", query, p.Status, p.Body)
		}
	}
	chosen := st.Send(t, "POST", st.URL+"/", "language=de", "Accept", likesPages, "Content-Type",
		"application/x-www-form-urlencoded")
	if chosen.Status != 200 { // after a redirect to the page
		t.Errorf("got %d, want the choice of a language", chosen.Status)
	}
	if sent := st.Send(t, "POST", st.URL+"/", "a=b", "Accept", likesPages); sent.Status != 404 {
		t.Errorf("got %d, want 404", sent.Status)
	}
	d.Covers("GET / 200")
}

// TestHomeIsLimited counts lookups of the page and those of the endpoint together.
func TestHomeIsLimited(t *testing.T) {
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.Lookups.CallerLimit = 2 })
	st.Get(t, "/api/lookup?q=8.8.8.1")
	st.Get(t, "/?q=8.8.8.2", "Accept", likesPages)
	p := st.Get(t, "/?q=8.8.8.3", "Accept", likesPages)
	if p.Status != 429 || p.Header.Get("Retry-After") == "" ||
		!strings.Contains(p.Body, "There are too many lookups just now.") {
		t.Errorf("got %d %s, want the limit of the caller", p.Status, p.Body)
	}
}

// TestHomeKnowsPlacesOfFiles shows where a visitor is by the files, without a lookup.
func TestHomeKnowsPlacesOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	mmdbtest.WriteCity(t, path, map[string]geo.Location{"81.2.69.0/24": {Country: "United Kingdom",
		CountryCode: "GB", City: "London"}})
	provider := stacktest.NewProvider()
	st := stacktest.NewLookups(t, stacktest.WithProvider(provider), func(c *stack.Config) {
		c.TrustedProxies = prefixes(t, "127.0.0.1/32")
		c.Lookups.Files = mmdb.Config{Files: []string{path}}
	})
	home := st.Get(t, "/", "Accept", likesPages, "X-Forwarded-For", "81.2.69.142")
	says(t, home, "Your address is <bdi>81.2.69.142</bdi>, near <bdi>London, United Kingdom</bdi>.")
	if n := provider.Asked("81.2.69.142"); n != 0 || strings.Contains(home.Body, "Look it up") {
		t.Errorf("got %d upstream queries and %s, want none and no button", n, home.Body)
	}
}

func says(t *testing.T, a stacktest.Response, all ...string) {
	t.Helper()
	stacktest.Page{Response: a}.Says(t, all...)
}
