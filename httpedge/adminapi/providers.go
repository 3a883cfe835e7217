package adminapi

import (
	"time"

	"gatehouse/actors/oauth"
)

// providerRecord is a provider with which people sign in as the admin API shows it, without its
// secret.
type providerRecord struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	// ClientSecretSetAt is when the secret was set; missing = there is none.
	ClientSecretSetAt string            `json:"client_secret_set_at,omitempty"`
	Scopes            []string          `json:"scopes"` // that it is asked for
	Label             string            `json:"label"`
	Icon              string            `json:"icon"`
	AllowedDomains    []string          `json:"allowed_domains"`
	CreateAccounts    bool              `json:"create_accounts"`
	TrustEmail        bool              `json:"trust_email"`
	Groups            map[string]string `json:"groups"`
	Disabled          bool              `json:"disabled"`
	RedirectURI       string            `json:"redirect_uri"` // to register at the provider
	CreatedAt         string            `json:"created_at"`
	Set               string            `json:"set,omitempty"`
	Declared          bool              `json:"declared,omitempty"`
}

func (c *adminCall) providerRecord(p *oauth.Provider) providerRecord {
	r := providerRecord{ID: p.ID, Kind: string(p.Kind), Issuer: p.Issuer, ClientID: p.ClientID,
		Scopes: p.AskedScopes(), Label: p.Label, Icon: p.Icon,
		AllowedDomains: orEmpty(p.AllowedDomains), CreateAccounts: p.CreateAccounts,
		TrustEmail: p.TrustEmail, Groups: p.Groups, Disabled: p.Disabled,
		RedirectURI: c.people.ProviderRedirectURI(p.ID), CreatedAt: timestamp(p.Created),
		Set: p.Set, Declared: p.Declared}
	if p.Secret != "" {
		r.ClientSecretSetAt = timestamp(p.SecretSet)
	}
	if r.Groups == nil {
		r.Groups = map[string]string{}
	}
	return r
}

// listProviders lists all: they are few.
func listProviders(c *adminCall) (any, error) {
	all, err := c.tokens.Providers(c.context)
	if err != nil {
		return nil, err
	}
	page := struct {
		Providers []providerRecord `json:"providers"`
		Next      string           `json:"next"` // always ""
	}{Providers: []providerRecord{}}
	for _, p := range all {
		page.Providers = append(page.Providers, c.providerRecord(p))
	}
	return page, nil
}

func showProvider(c *adminCall) (any, error) {
	p, err := c.tokens.Provider(c.context, c.pathValue("id"))
	if err != nil {
		return nil, err
	}
	return c.providerRecord(p), nil
}

// putProvider makes the provider in the path what the request describes.
func putProvider(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	dry, err := c.dryRun()
	if err != nil {
		return nil, err
	}
	p, err := describedProvider(o)
	if err != nil {
		return nil, err
	}
	p.ID = c.pathValue("id")
	put, created, err := c.tokens.PutProvider(c.context, p, dry, c.now)
	if err != nil {
		return nil, err
	}
	if created && !dry {
		c.created(pathAdminProviders + "/" + put.ID)
	}
	return c.providerRecord(put), nil
}

func deleteProvider(c *adminCall) (any, error) {
	return nil, c.tokens.DeleteProvider(c.context, c.pathValue("id"))
}

// DescribedProvider is DescribedClient for a provider.
func DescribedProvider(text []byte, id string, now time.Time) (*oauth.Provider, error) {
	o, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	p, err := describedProvider(o)
	if err != nil {
		return nil, err
	}
	p.ID, p.Created = id, now
	if p.Tidy(); p.Secret != "" {
		p.SecretSet = now
	}
	checked := *p
	if p.Kind == oauth.GitHubProvider && p.Secret == "" {
		checked.Secret = "kept" // that of before, if there is one
	}
	return p, checked.CheckRegistration()
}

func describedProvider(o *object) (*oauth.Provider, error) {
	var p oauth.Provider
	var kind string
	o.text("kind", &kind)
	p.Kind = oauth.ProviderKind(kind)
	o.text("issuer", &p.Issuer)
	o.text("client_id", &p.ClientID)
	o.text("client_secret", &p.Secret)
	o.texts("scopes", &p.Scopes)
	o.text("label", &p.Label)
	o.text("icon", &p.Icon)
	o.texts("allowed_domains", &p.AllowedDomains)
	o.flag("create_accounts", &p.CreateAccounts)
	o.flag("trust_email", &p.TrustEmail)
	o.member("groups", "must be an object of names here by names at the provider", &p.Groups)
	o.flag("disabled", &p.Disabled)
	o.setName(&p.Set)
	return &p, o.end()
}
