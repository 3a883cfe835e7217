//go:build programs

package programs_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/recipe"
	"gatehouse/providers/fetch"
)

// document is a server of one client-id metadata document.
type document struct {
	*httptest.Server
	url string
}

// newDocument serves the document of an app at a loopback address.
func newDocument(t *testing.T, a *app) *document {
	t.Helper()
	d := &document{}
	d.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(map[string]any{
			"client_id": d.url, "client_name": "Agent", "redirect_uris": []string{a.callback},
			"token_endpoint_auth_method": "none", "response_types": []string{"code"},
			"grant_types": []string{"authorization_code", "refresh_token"},
		})
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(d.Close)
	d.url = d.URL + "/client.json"
	return d
}

// accepts has the service read documents from d, which is on loopback.
func (d *document) accepts(t *testing.T) stacktest.Option {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(d.Certificate())
	fetcher, err := fetch.New(fetch.Config{Roots: roots, Allow: netip.Addr.IsLoopback})
	stacktest.Must(t, err)
	return func(c *stack.Config) {
		c.Identity.ClientMetadata, c.Identity.Fetcher = true, fetcher
	}
}

// newMCPServer starts an MCP server whose tokens come from st, and returns its URL.
func newMCPServer(t *testing.T, st *stacktest.IdentityStack) string {
	t.Helper()
	port := freePort(t)
	uri := fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	r := recipe.Read(t, "MCP server")
	r.CheckCode(t, "goapps/mcpserver/main.go")
	c := r.Create(t, st, recipe.Addresses(st.URL, port))[0]
	metadata, err := json.Marshal(oauth.NewProtectedResource(uri, st.URL, []string{"notes:read"}))
	stacktest.Must(t, err)
	start(t, "ready", withEnvironment(exec.Command(tool(t, "mcpserver")), map[string]string{
		"ISSUER": st.URL, "CLIENT_ID": c.ID, "CLIENT_SECRET": c.Secret, "PORT": strconv.Itoa(port),
		"RESOURCE_METADATA": string(metadata),
	}))
	return uri
}

// TestAgents signs a person in to the SDKs of the Model Context Protocol. An agent knows the
// address of an MCP server alone, and finds the rest. A second one on another port gets the same
// person.
func TestAgents(t *testing.T) {
	for _, row := range []struct {
		name     string
		program  string
		document bool
	}{
		{"Go SDK, registration", "mcpclient", false},
		{"Go SDK, metadata document", "mcpclient", true},
		{"TypeScript SDK, registration", "mcp.mjs", false},
		{"TypeScript SDK, metadata document", "mcp.mjs", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newApp(t, "", row.program, "/callback")
			d := newDocument(t, a)
			turnOn := d.accepts(t)
			if !row.document {
				d.url = ""
				turnOn = func(c *stack.Config) { c.Identity.Registration = oauth.RegistrationOpen }
			}
			st := stacktest.NewIdentity(t, turnOn)
			u := st.NewUser(t, "Rosa", "rosa@example.com")
			server := newMCPServer(t, st)
			for _, a := range []*app{a, newApp(t, "", row.program, "/callback")} {
				start(t, "ready", a.command(t, map[string]string{"PORT": strconv.Itoa(a.port),
					"MCP_SERVER": server, "CLIENT_METADATA": d.url}))
				p := newPerson(t)
				p.visit(a.base + "/login")
				p.reach(a.callback, signInSteps(u.Email), func() bool { return p.text() != "" })
				want := fmt.Sprintf("notes of %d", u.ID)
				state := p.state()
				if state["said"] != want || state["again"] != nil && state["again"] != want {
					t.Fatalf("got %v, %s, want %q", state, p.text(), want)
				}
			}
			clients, err := st.Store.Clients(t.Context(), "", 10)
			stacktest.Must(t, err)
			came := 0
			for _, c := range clients {
				if c.Options.SelfRegistered && (c.Options.MetadataURL != "") == row.document &&
					c.Awaits.IsZero() && !c.DetailApproved {
					came++
				}
			}
			want := 2 // a document describes both
			if row.document {
				want = 1
			}
			if came != want {
				t.Errorf("got clients %+v, want %d that came by themselves", clients, want)
			}
		})
	}
}

// TestCompanyAgent has the TypeScript SDK get an ID-JAG at the gatehouse of a company, and a token for it
// at the gatehouse of an MCP server, which it asks: nobody consents there.
func TestCompanyAgent(t *testing.T) {
	withIDJAG := func(c *stack.Config) { c.Identity.Drafts = []string{oauth.IDJAGDraft} }
	company, app := stacktest.NewIdentity(t, withIDJAG), stacktest.NewIdentity(t, withIDJAG)
	server := newMCPServer(t, app)
	agent := app.NewOpenIDClient(t, func(c *oauth.Client) {
		c.Grants |= oauth.JWTBearerGrant
		c.Options.IDJAG.Issuers, c.Options.Resources = []string{company.URL}, []string{server}
	})
	known := company.NewOpenIDClient(t, func(c *oauth.Client) {
		c.Grants |= oauth.TokenExchangeGrant
		c.Options.IDJAG.Audiences = []string{app.URL + " " + agent.ID}
	})
	provider := &oauth.Provider{ID: "company", Kind: oauth.OpenIDProvider, Issuer: company.URL,
		ClientID: "gate", Secret: "s3cret", Label: "Company"}
	if _, _, err := app.Tokens.PutProvider(t.Context(), provider, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	employee := company.NewUser(t, "Rosa", "rosa@example.com")
	person := &account.User{Name: "Rosa", Credentials: account.Credentials{Connections: []account.Connection{
		{Issuer: company.URL, Subject: strconv.FormatInt(employee.ID, 10), Created: time.Now()}}}}
	stacktest.Must(t, app.Store.CreateUser(t.Context(), person))
	page := company.NewBrowser(t).Allow(known.Request("scope", "openid email"), employee.Email)
	tokens := company.Redeem(t, known, page.Code(t, company)).Object(t)
	out, err := node(t, "mcp-company.mjs", map[string]string{
		"MCP_SERVER": server, "CLIENT_ID": agent.ID, "CLIENT_SECRET": agent.Secret, "ISSUER": app.URL,
		"COMPANY": company.URL, "COMPANY_ID": known.ID, "COMPANY_SECRET": known.Secret, "ID_TOKEN": tokens["id_token"].(string),
	}).CombinedOutput()
	if want := fmt.Sprintf("notes of %d\n", person.ID); err != nil || string(out) != want {
		t.Errorf("got %s and error %v, want %s", out, err, want)
	}
}
