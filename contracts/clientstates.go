package contracts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/oauth"
)

// The defaults of clients. The secret is valid only in a Provider.
const (
	DefaultClientID     = "0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c90"
	DefaultClientSecret = "gtcs_contractsecret0contractsecret0contractsecret"
	DefaultRedirectURI  = "https://app.example/callback"
	DefaultScope        = "view-user detail-user"

	OtherClientID     = "a1f0c7de-0c3b-4a0f-8d53-6d0be5a1f2b4"
	OtherClientSecret = "gtcs_iLLoKojAXjNPqi0BoeXdciuPxFsv3O5Jag6B0a5gQdV28ESz4"

	loopbackRedirectURI = "http://127.0.0.1:8085/callback"
)

var clientValues = []Value{
	{"client_id", "The client's id."},
	{"client_secret", "Its secret; missing for a public client."},
	{"redirect_uri", "Its first redirect URI."},
}

func clientStates() []State {
	shared := []Parameter{
		{"client_id", String, DefaultClientID, nil, "A UUID, or 3 to 40 letters, digits, dots, underscores and hyphens."},
		{"name", String, "Contract", nil, "Name shown to people."},
		{"redirect_uri", String, DefaultRedirectURI, nil, "Registered URIs, separated by spaces."},
		{"scope", String, DefaultScope, nil, "The scopes that it may request."},
		{"disabled", Boolean, false, nil, "Whether an operator has disabled it."},
		{"detail_user_approved", Boolean, true, nil,
			"Whether an operator has approved it for detailed profiles."},
		{"post_logout_redirect_uri", String, nil, nil, "Registered URIs for the return after a logout, separated by spaces."},
		{"id_token_alg", String, nil, []string{"RS256", "ES256"}, "The algorithm of its id_tokens. Default: RS256."},
		{"registered_by", String, "operator", []string{"operator", "itself", "document"}, "Who has registered it. One that has registered itself waits for a person's consent."},
	}
	confidential := append(shared[:len(shared):len(shared)],
		Parameter{"client_secret", String, DefaultClientSecret, nil,
			"Its secret: the default, or one in gatehouse's format, such as `" + OtherClientSecret +
				"`."},
		Parameter{"grants", String, "authorization_code refresh_token client_credentials", nil, "The grant types that it may use."},
		Parameter{"operator", Boolean, false, nil, "Whether it may have the scope server-operations; add that to scope too."},
		Parameter{"jwks", String, nil, nil, "Its public keys (RFC 7517), with which it can authenticate. Default: none."},
		Parameter{"access_token_format", String, "opaque", []string{"opaque", "jwt"}, "The form of its access tokens."},
		Parameter{"require_pkce", Boolean, false, nil, "Whether it must send a code_challenge."},
		Parameter{"require_second_factor", Boolean, false, nil, "Whether people must use a second factor."},
		Parameter{"exchange", String, nil, nil, "A rule for token exchange: URIs of the resource servers from and to which, and the scopes there, separated by spaces. Default: none."},
		Parameter{"introspect_any", Boolean, false, nil, "Whether it may introspect the tokens of others."})
	public := append(shared[:len(shared):len(shared)],
		Parameter{"grants", String, "authorization_code refresh_token", nil, "The grant types that it may use."},
		Parameter{"loopback_any_port", Boolean, false, nil, "Whether its redirect URI on loopback may have another port."})
	public[2].Default = DefaultRedirectURI + " " + loopbackRedirectURI
	another := slices.Clone(confidential)
	for i := range another {
		switch another[i].Name {
		case "client_id":
			another[i].Default = OtherClientID
		case "client_secret":
			another[i].Default, another[i].Description = OtherClientSecret, "Its secret, in gatehouse's format."
		}
	}
	return []State{
		{"a confidential client", "A registered client with a secret. Later states use the last client that was set up.",
			confidential, clientValues, parseClient},
		{"another client", "A second client with a secret. Later states use it until another client is set up.",
			another, clientValues, parseClient},
		{"a public client", "A registered client without a secret. It must use PKCE.", public, []Value{clientValues[0], clientValues[2]}, parseClient},
	}
}

// newClient returns the client of the arguments and its secret, "" for a public client.
func newClient(a arguments) (c *oauth.Client, secret string, err error) {
	c = &oauth.Client{
		ID: a.text("client_id"), Name: a.text("name"), RedirectURIs: strings.Fields(a.text("redirect_uri")),
		Operator: a.flag("operator"), IntrospectAny: a.flag("introspect_any"), LoopbackAnyPort: a.flag("loopback_any_port"),
		Disabled: a.flag("disabled"), DetailApproved: a.flag("detail_user_approved"), Created: time.Now(),
	}
	c.Options.PostLogoutRedirectURIs = strings.Fields(a.text("post_logout_redirect_uri"))
	c.Options.IDTokenAlg = a.text("id_token_alg")
	c.Options.JWKS = a.text("jwks")
	c.Options.JWTAccessTokens = a.text("access_token_format") == "jwt"
	c.Options.RequirePKCE = a.flag("require_pkce")
	c.Options.RequireSecondFactor = a.flag("require_second_factor")
	switch a.text("registered_by") {
	case "itself":
		c.Options.SelfRegistered, c.Awaits = true, c.Created.Add(time.Hour)
	case "document":
		c.Options.SelfRegistered, c.Options.MetadataURL = true, "https://app.example/client.json"
	}
	switch words := strings.Fields(a.text("exchange")); len(words) {
	case 0:
	case 1:
		return nil, "", errors.New("exchange: it must have two URIs")
	default:
		c.Options.Exchange = []oauth.ExchangeRule{{From: words[0], To: words[1], Scopes: words[2:]}}
	}
	if err := c.CheckID(); err != nil {
		return nil, "", err
	}
	if c.Scopes, err = scopesOf(a); err != nil {
		return nil, "", err
	}
	for _, name := range strings.Fields(a.text("grants")) {
		grant, ok := oauth.ParseGrantType(name)
		if !ok {
			return nil, "", fmt.Errorf("grants: unknown grant type %s", name)
		}
		c.Grants |= grant
	}
	secret, confidential := a["client_secret"].(string)
	if c.Public = !confidential; confidential {
		if secret != DefaultClientSecret && !oauth.LooksLikeClientSecret(secret) {
			return nil, "", errors.New("client_secret: it does not have the format of gatehouse's client secrets; STATES.md has an example")
		}
		c.Secrets = []oauth.Secret{{ID: "Contract", Hash: oauth.HashOf(secret), Created: c.Created}}
	}
	return c, secret, c.CheckRegistration()
}

func parseClient(a arguments) (setUp, error) {
	c, secret, err := newClient(a)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *fixture) error {
		f.client, f.secret = c, secret
		return f.saveClient(ctx)
	}, nil
}

// saveClient stores the current client. It replaces a client with the same id.
func (f *fixture) saveClient(ctx context.Context) (err error) {
	if f.stored != nil {
		if f.client, err = f.stored(ctx, f.client); err != nil {
			return err
		}
	}
	there, err := f.store.Client(ctx, f.client.ID)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		err = f.store.CreateClient(ctx, f.client)
	case err == nil:
		f.client.Version = there.Version
		err = f.store.UpdateClient(ctx, f.client)
	}
	if err == nil {
		f.nameClient()
	}
	return err
}

// nameClient sets the values of the current client.
func (f *fixture) nameClient() {
	f.values["client_id"] = f.client.ID
	delete(f.values, "client_secret")
	if !f.client.Public {
		f.values["client_secret"] = f.secret
	}
	delete(f.values, "redirect_uri")
	if len(f.client.RedirectURIs) > 0 {
		f.values["redirect_uri"] = f.client.RedirectURIs[0]
	}
}

// needClient creates a client unless there is one.
func (f *fixture) needClient(ctx context.Context) error {
	if f.client != nil {
		return nil
	}
	return f.setUpDefault(ctx, "a confidential client")
}

// scopesOf parses the parameter scope.
func scopesOf(a arguments) (oauth.Scopes, error) {
	scopes, fault := oauth.ParseScopes(a.text("scope"))
	if fault != nil {
		return 0, fmt.Errorf("scope: %s", fault.Description)
	}
	return scopes, nil
}
