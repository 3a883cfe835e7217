package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// demoFile is DIR/demo.json, which tells scripts about a running demo.
type demoFile struct {
	BaseURL     string       `json:"base_url"`             // of the public endpoints
	AdminURL    string       `json:"admin_url"`            // of metrics, health and the admin API
	UpstreamURL string       `json:"upstream_url"`         // of the simulator; settings at /_sim
	User        *demoUser    `json:"user,omitempty"`       // signs in by e-mail and password
	PhoneUser   *demoPhone   `json:"phone_user,omitempty"` // signs in by a code sent to the phone
	Clients     *demoClients `json:"clients,omitempty"`
}

type demoUser struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	ID       int64  `json:"id"`
}

type demoPhone struct {
	Phone string `json:"phone"`
	ID    int64  `json:"id"`
}

// demoClients are the clients of a demo.
type demoClients struct {
	Confidential demoClient `json:"confidential"` // approved for detail-user
	Public       demoClient `json:"public"`
	Unapproved   demoClient `json:"unapproved"` // confidential, not approved for detail-user
	Operator     demoClient `json:"operator"`   // may use the admin API
	OpenID       demoClient `json:"openid"`     // confidential, for OpenID Connect
}

// demoClient is what a client's program needs.
type demoClient struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"` // "" = a public client
	RedirectURI  string `json:"redirect_uri"`  // "" = it has none
}

// readDemoFile reads demo.json in dir. Its errors do not quote the file.
func readDemoFile(dir string) (demoFile, error) {
	text, err := os.ReadFile(filepath.Join(dir, "demo.json"))
	if err != nil {
		return demoFile{}, err
	}
	var file demoFile
	if json.Unmarshal(text, &file) != nil {
		return demoFile{}, errors.New("demo.json is not what a demo writes")
	}
	return file, nil
}

// write replaces the file in dir, whole or not at all, readable by its owner only.
func (f demoFile) write(dir string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("write demo.json: %w", err)
	}
	fresh, err := os.CreateTemp(dir, "demo.json.*") // mode 0600
	if err != nil {
		return fmt.Errorf("write demo.json: %w", err)
	}
	_, err = fresh.Write(append(text, '\n'))
	if err := errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return fmt.Errorf("write demo.json: %w", errors.Join(err, os.Remove(fresh.Name())))
	}
	if err := os.Rename(fresh.Name(), filepath.Join(dir, "demo.json")); err != nil {
		return fmt.Errorf("write demo.json: %w", errors.Join(err, os.Remove(fresh.Name())))
	}
	return nil
}

// greet prints what can be tried: lookups if there is an upstream, identity if it is offered, and
// agents if they may register.
func (f demoFile) greet(w io.Writer, dir string, identity, agents bool) error {
	var b strings.Builder
	fmt.Fprintf(&b,
		"gatehouse demo at %s: demo accounts and simulated lookups, no network needed.\n",
		f.BaseURL)
	if identity {
		f.greetIdentity(&b, dir)
	}
	if agents {
		f.greetAgents(&b)
	}
	if f.UpstreamURL != "" {
		f.greetLookups(&b)
	}
	fmt.Fprintf(&b, "\nAddresses, accounts and secrets are in %s. Stop with Ctrl-C.\n\n",
		filepath.Join(dir, "demo.json"))
	_, err := io.WriteString(w, b.String())
	return err
}

func (f demoFile) greetLookups(b *strings.Builder) {
	fmt.Fprintf(b, `
Lookups:
  %s
  %s -H 'X-Forwarded-For: 8.8.8.8'
  %s -H 'Content-Type: application/json' -d '{"queries":["1.1.1.1","example.com"]}'
  %s
  %s -X PUT -d '{"faults":[{"kind":"status","status":503}]}'    # breaks the upstream
`, curl(f.BaseURL, "/api/lookup?q=8.8.8.8"), curl(f.BaseURL, "/api/my-ip"), curl(f.BaseURL, "/api/bulk"),
		curl(f.AdminURL, "/metrics"), curl(f.UpstreamURL, "/_sim"))
}

func (f demoFile) greetIdentity(b *strings.Builder, dir string) {
	c, o := f.Clients.Confidential, f.Clients.OpenID
	authorize := "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {c.ClientID}, "redirect_uri": {c.RedirectURI},
		"scope": {"view-user detail-user"}, "state": {"demo"},
	}.Encode()
	fmt.Fprintf(b, `
Identity: open this address in a browser and sign in as %s with the password %s
  %s
The browser ends at %s?code=…, where nothing listens: copy the code from the address bar into CODE.
  %s -d grant_type=authorization_code -d client_id=%s -d client_secret=%s --data-urlencode redirect_uri=%s -d code=CODE
  %s -H 'Authorization: Bearer ACCESS_TOKEN'
  gatehouse client list --demo '%s'

OpenID Connect: a program finds everything else at
  %s/.well-known/openid-configuration
and signs in with the client %s, the secret %s and the redirect URI %s.
`, f.User.Email, f.User.Password, browsable(f.BaseURL)+authorize, c.RedirectURI,
		curl(f.BaseURL, "/oauth/token"), c.ClientID, c.ClientSecret, c.RedirectURI,
		curl(f.BaseURL, "/api/user/details"), dir,
		browsable(f.BaseURL), o.ClientID, o.ClientSecret, o.RedirectURI)
}

// inspected is an endpoint of this service that responds with 401 to a post without a token, as MCP
// servers do.
const inspected = "/oauth/userinfo"

func (f demoFile) greetAgents(b *strings.Builder) {
	fmt.Fprintf(b, `
Agents (MCP): any agent may sign in here, since a demo has GATEHOUSE_AGENTS=on. Try MCP Inspector, and connect it:
  npx @modelcontextprotocol/inspector --transport http --server-url %s
It registers itself, and you sign in as %s. Then it fails, since this is no MCP server: docs/agents.md says how to guard yours.
`, browsable(f.BaseURL)+inspected, f.User.Email)
}

// browsable returns a base URL for a browser, which cannot reach a Unix socket.
func browsable(base string) string {
	if strings.HasPrefix(base, "unix:") {
		return "http://localhost"
	}
	return base
}
