package main

import (
	"net/http"
)

// providerCommand is gatehouse provider.
type providerCommand struct {
	List   providerList   `cmd:"" help:"List the providers."`
	Show   providerShow   `cmd:"" help:"Show a provider, with the redirect URI to register there."`
	Delete providerDelete `cmd:"" help:"Delete a provider. Nobody signs in with it any more; connections stay, for when it comes back."`
}

// Help is shown by gatehouse provider --help.
func (*providerCommand) Help() string {
	return "Providers are described in files for gatehouse apply or serve --declare: see docs/people.md.\n\n" +
		"Example:\n\n    gatehouse provider list --demo ./gatehouse-demo"
}

const pathProviders = "/admin/v1/providers"

type providerList struct{ remoteFlags }

// Help is shown by gatehouse provider list --help.
func (*providerList) Help() string {
	return "Example:\n\n    gatehouse provider list --demo ./gatehouse-demo"
}

// Run lists the providers.
func (c *providerList) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	return r.list(pathProviders, "providers", []column{
		member("ID", "id"), member("KIND", "kind"), member("ISSUER", "issuer"),
		member("DISABLED", "disabled"), member("REDIRECT URI", "redirect_uri"),
	}, "")
}

type providerShow struct {
	remoteFlags
	Provider string `arg:"" name:"provider" help:"ID of the provider."`
}

// providerExample returns an example of a command about one provider, which it describes first.
func providerExample(command string) string {
	return "Example:\n\n    printf 'set: " + command + "\\nproviders: [{id: " + command +
		"-example, kind: oidc, issuer: \"https://id.example\", client_id: gate}]\\n' | " +
		"gatehouse apply --demo ./gatehouse-demo -f -\n" +
		"    gatehouse provider " + command + " --demo ./gatehouse-demo " + command + "-example"
}

// Help is shown by gatehouse provider show --help.
func (*providerShow) Help() string { return providerExample("show") }

// Run shows a provider.
func (c *providerShow) Run(p *program) error {
	return c.act(p, http.MethodGet, itemPath(pathProviders, c.Provider), nil)
}

type providerDelete struct {
	remoteFlags
	Provider string `arg:"" name:"provider" help:"ID of the provider."`
}

// Help is shown by gatehouse provider delete --help.
func (*providerDelete) Help() string { return providerExample("delete") }

// Run deletes a provider.
func (c *providerDelete) Run(p *program) error {
	return c.act(p, http.MethodDelete, itemPath(pathProviders, c.Provider), nil)
}
