package main

import (
	"net/http"
	"strings"

	"gatehouse/actors/brand"
)

const pathClients = "/admin/v1/clients"

// clientCommand is gatehouse client.
type clientCommand struct {
	Create       clientCreate       `cmd:"" help:"Register a client; its secret is shown once."`
	List         clientList         `cmd:"" help:"List the clients."`
	Show         idCommand          `cmd:"" help:"Show a client."`
	Update       clientUpdate       `cmd:"" help:"Change a client's registration."`
	Approve      idCommand          `cmd:"" help:"Approve a client for the scope detail-user."`
	Unapprove    idCommand          `cmd:"" help:"Withdraw the approval."`
	Verify       idCommand          `cmd:"" help:"Show an app that registered or described itself by its name."`
	Unverify     idCommand          `cmd:"" help:"Show it as unverified again."`
	RotateSecret clientRotateSecret `cmd:"" help:"Give a client a second secret. The first stays valid until it is revoked."`
	RevokeSecret clientRevokeSecret `cmd:"" help:"Revoke a client's secret: the older one, or a named one."`
	Disable      idCommand          `cmd:"" help:"Refuse a client and all its tokens."`
	Enable       idCommand          `cmd:"" help:"Accept a disabled client again."`
	Delete       idCommand          `cmd:"" help:"Delete a client and all its tokens."`
}

func newClientCommand() clientCommand {
	command := func(name, method, step, about string) idCommand {
		return idCommand{help: about + clientExample(name, ""), method: method,
			collection: pathClients, step: step}
	}
	remove := command("delete", http.MethodDelete, "", "")
	remove.done, remove.about = "deleted", func(id string) any { return map[string]any{"client_id": id} }
	return clientCommand{
		Show: command("show", http.MethodGet, "", "tokens_issued counts the access tokens that the server has issued to the client since the server started.\n"+
			"last_used_at says when it issued the last one. With several servers, each knows only its own.\n\n"),
		Approve: command("approve", http.MethodPost, "approve",
			"Existing tokens of the client can read detailed profiles from then on.\n\n"),
		Verify: command("verify", http.MethodPost, "verify",
			"Check first who stands behind the app: its name is then in the heading of the consent page, in place of its host.\n"+
				"An app that describes itself has to be verified again after its document changes name, redirect URIs or keys.\n\n"),
		Unverify:  command("unverify", http.MethodPost, "unverify", ""),
		Unapprove: command("unapprove", http.MethodPost, "unapprove", ""),
		Disable:   command("disable", http.MethodPost, "disable", ""),
		Enable:    command("enable", http.MethodPost, "enable", ""),
		Delete:    remove,
	}
}

// Help is shown by gatehouse client --help.
func (*clientCommand) Help() string {
	return "Example:\n\n    gatehouse client create --demo ./gatehouse-demo --name Shop --redirect-uri https://shop.example/callback\n" +
		"    gatehouse client list --demo ./gatehouse-demo"
}

// clientExample returns an example of a command about one client, which it registers first.
func clientExample(command, rest string) string {
	return strings.TrimRight("Example:\n\n    client=$(gatehouse client create --demo ./gatehouse-demo --name Shop --redirect-uri https://shop.example/callback --json |\n"+
		"      sed -n 's/.*\"client_id\": \"\\(.*\\)\".*/\\1/p')\n"+
		"    gatehouse client "+command+" --demo ./gatehouse-demo \"$client\" "+rest, " ")
}

type clientCreate struct {
	remoteFlags
	ID                string   `name:"id" placeholder:"ID" help:"Its client_id: 3 to 40 letters, digits, dots, underscores and hyphens, not digits alone (default: a UUID)."`
	Name              string   `name:"name" required:"" placeholder:"NAME" help:"Name that users see on the consent page."`
	ClientURI         string   `name:"client-uri" placeholder:"URL" help:"Page about the client, linked on the consent page: https, or http on this machine."`
	RedirectURI       []string `name:"redirect-uri" sep:"none" placeholder:"URI" help:"Redirect URI. May be repeated."`
	Scope             []string `name:"scope" sep:"none" placeholder:"SCOPES" help:"Scopes that it may request, separated by spaces or repeated: view-user, detail-user, openid, profile, email, phone, address and offline_access; \"\" = none (default: view-user; server-operations for an operator)."`
	Grant             []string `name:"grant" sep:"none" placeholder:"GRANT" help:"Grant that it may use: authorization_code, refresh_token, client_credentials, urn:ietf:params:oauth:grant-type:device_code for devices, urn:ietf:params:oauth:grant-type:token-exchange for --exchange or --id-jag-audience, or urn:ietf:params:oauth:grant-type:jwt-bearer for --id-jag-issuer. May be repeated (default: the first two; client_credentials for an operator)."`
	Public            bool     `name:"public" help:"It cannot keep a secret: an app or a web page."`
	Operator          bool     `name:"operator" help:"It may use the admin API."`
	ApproveDetailUser bool     `name:"approve-detail-user" help:"Approve it for the scope detail-user."`
	LoopbackAnyPort   bool     `name:"loopback-any-port" help:"Accept any port in redirects to 127.0.0.1 or [::1]."`
	IntrospectAny     bool     `name:"introspect-any" help:"It may introspect all tokens, not only its own."`
	TokensPerMinute   int      `name:"tokens-per-minute" min:"0" max:"1000000" placeholder:"N" help:"Access tokens that each server issues to it a minute, up to 1000000 (default: no quota)."`
	clientOptions
}

// Help is shown by gatehouse client create --help.
func (*clientCreate) Help() string {
	return "Example:\n\n    gatehouse client create --demo ./gatehouse-demo --name Shop --redirect-uri https://shop.example/callback --scope \"view-user detail-user\"\n" +
		"    gatehouse client create --demo ./gatehouse-demo --name Wiki --redirect-uri https://wiki.example/callback --scope \"openid profile email\" --post-logout-redirect-uri https://wiki.example/\n\n" +
		"docs/apps.md has a recipe for each of many programs."
}

// Run registers a client.
func (c *clientCreate) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	body := map[string]any{
		"name": c.Name, "public": c.Public, "operator": c.Operator,
		"detail_user_approved": c.ApproveDetailUser,
		"loopback_any_port":    c.LoopbackAnyPort, "introspect_any": c.IntrospectAny,
		"tokens_per_minute": c.TokensPerMinute,
	}
	if c.ID != "" {
		body["client_id"] = c.ID
	}
	if c.ClientURI != "" {
		body["client_uri"] = c.ClientURI
	}
	setList(body, "redirect_uris", c.RedirectURI)
	setWords(body, "scopes", c.Scope)
	setWords(body, "grants", c.Grant)
	if err := c.clientOptions.set(body); err != nil {
		return err
	}
	response, err := r.call(http.MethodPost, pathClients, body)
	if err != nil {
		return err
	}
	hasKeys := body["jwks"] != nil || body["federated"] != nil ||
		body["jwks_uri"] != nil && body["jwks_uri"] != ""
	if err := r.show(response); err != nil || c.JSON || c.Public || hasKeys {
		return err
	}
	return r.say("Keep the client_secret: it is not shown again.")
}

// setWords sets a member to the words of a repeated flag, if it was given. An empty text is an
// empty list.
func setWords(body map[string]any, name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	all := []string{}
	for _, t := range texts {
		all = append(all, strings.Fields(t)...)
	}
	body[name] = all
}

// setList sets a member if its flag was given.
func setList(body map[string]any, name string, values []string) {
	if len(values) > 0 {
		body[name] = values
	}
}

type clientList struct {
	remoteFlags
	Wide    bool `name:"wide" help:"Print all columns, however wide; with --failing, whole names."`
	Failing bool `name:"failing" help:"Only clients whose requests have failed since the server started, those with the most failures first."`
}

// Help is shown by gatehouse client list --help.
func (*clientList) Help() string {
	return "Example:\n\n    gatehouse client list --demo ./gatehouse-demo"
}

// Run lists the clients.
func (c *clientList) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	name := column{"NAME", clientName}
	if c.Wide {
		name = member("NAME", "name")
	}
	if c.Failing {
		return r.list(pathClients, "clients", []column{
			member("CLIENT ID", "client_id"), name, member("FAILURES", "failures"),
			member("LAST ERROR", "last_error"), member("LAST FAILURE", "last_failure_at"),
		}, "failures")
	}
	if c.Wide {
		return r.list(pathClients, "clients", []column{
			member("CLIENT ID", "client_id"), name, member("SCOPES", "scopes"),
			member("PUBLIC", "public"), member("OPERATOR", "operator"),
			member("APPROVED", "detail_user_approved"), member("DISABLED", "disabled"),
			member("REGISTERED BY", "registered_by"), member("DOCUMENT", "metadata_url"),
		}, "")
	}
	return r.list(pathClients, "clients", []column{
		member("CLIENT ID", "client_id"), name, {"KIND", clientKind},
		{"STATE", clientState},
	}, "")
}

// maxNameWidth is how much of a name fits beside the other columns of a terminal.
const maxNameWidth = 30

func clientName(client map[string]any) string {
	name := []rune(cell(client["name"]))
	if len(name) > maxNameWidth {
		return string(name[:maxNameWidth-1]) + "…"
	}
	return string(name)
}

func clientKind(client map[string]any) string {
	switch {
	case client["operator"] == true:
		return "operator"
	case client["public"] == true:
		return "public"
	}
	return "confidential"
}

func clientState(client map[string]any) string {
	switch {
	case client["disabled"] == true:
		return "disabled"
	case client["detail_user_approved"] == true:
		return "approved"
	case client["registered_by"] != "operator":
		return "by " + cell(client["registered_by"])
	}
	return "-"
}

type clientUpdate struct {
	remoteFlags
	ID              string   `arg:"" name:"id" help:"The client_id."`
	Name            *string  `name:"name" placeholder:"NAME" help:"Name that users see on the consent page."`
	ClientURI       *string  `name:"client-uri" placeholder:"URL" help:"Page about the client, linked on the consent page: https, or http on this machine; \"\" removes it."`
	RedirectURI     []string `name:"redirect-uri" sep:"none" placeholder:"URI" help:"Redirect URI; replaces all registered ones. May be repeated."`
	Scope           []string `name:"scope" sep:"none" placeholder:"SCOPES" help:"Scopes that it may request; replaces all registered ones; \"\" = none."`
	Grant           []string `name:"grant" sep:"none" placeholder:"GRANT" help:"Grant that it may use; replaces all registered ones. May be repeated."`
	LoopbackAnyPort *bool    `name:"loopback-any-port" negatable:"" help:"Accept any port in redirects to 127.0.0.1 or [::1]."`
	IntrospectAny   *bool    `name:"introspect-any" negatable:"" help:"It may introspect all tokens, not only its own."`
	TokensPerMinute *int     `name:"tokens-per-minute" min:"0" max:"1000000" placeholder:"N" help:"Access tokens that each server issues to it a minute, up to 1000000; 0 removes the quota."`
	Logo            *string  `name:"logo" placeholder:"FILE" help:"Picture above the heading of its consent page, unless the app is unverified: an SVG or PNG of at most 64 KB; \"\" removes it."`
	clientOptions
}

// Help is shown by gatehouse client update --help.
func (*clientUpdate) Help() string {
	return "Values that are not given stay as they are. An empty text removes a value, such as --backchannel-logout-uri \"\".\n\n" +
		clientExample("update", "--name \"The Shop\" --redirect-uri https://shop.example/back")
}

// Run changes a client.
func (c *clientUpdate) Run(p *program) error {
	body := map[string]any{}
	setText(body, "name", c.Name)
	setText(body, "client_uri", c.ClientURI)
	setList(body, "redirect_uris", c.RedirectURI)
	setWords(body, "scopes", c.Scope)
	setWords(body, "grants", c.Grant)
	if c.LoopbackAnyPort != nil {
		body["loopback_any_port"] = *c.LoopbackAnyPort
	}
	if c.IntrospectAny != nil {
		body["introspect_any"] = *c.IntrospectAny
	}
	if c.TokensPerMinute != nil {
		body["tokens_per_minute"] = *c.TokensPerMinute
	}
	if err := c.clientOptions.set(body); err != nil {
		return err
	}
	if len(body) == 0 && c.Logo == nil {
		return usagef("nothing to change: give at least one of the flags that --help lists")
	}
	if c.Logo == nil {
		return c.act(p, http.MethodPatch, itemPath(pathClients, c.ID), body)
	}
	return c.setLogo(p, body)
}

// setLogo sets or removes the picture, after the other changes.
func (c *clientUpdate) setLogo(p *program, body map[string]any) error {
	logo, err := readLogo(*c.Logo, brand.ParseImage)
	if err != nil {
		return usagef("--logo %q: %v", *c.Logo, err)
	}
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if _, err := r.call(http.MethodPatch, itemPath(pathClients, c.ID), body); err != nil {
			return err
		}
	}
	method, picture := http.MethodPut, any(logo.image)
	if logo.image == nil {
		method, picture = http.MethodDelete, nil
	}
	response, err := r.call(method, itemPath(pathClients, c.ID, "logo"), picture)
	if err != nil {
		return err
	}
	return r.show(response)
}
