package oauth

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Limits of providers.
const (
	MostProviders      = 50
	ProviderAttemptEnd = 10 * time.Minute // of a sign-in with a provider, from its begin
	longestProviderURL = 250              // bytes
	longestCredential  = 512              // bytes of a client's ID, and of its secret, at a provider
	mostOfProvider     = 100              // scopes, domains, and groups that are mapped
	// MostSubject is the length of a subject in bytes (OpenID Connect Core section 2).
	MostSubject = 255
)

// ProviderKind is the protocol of a provider.
type ProviderKind string

// The kinds.
const (
	OpenIDProvider ProviderKind = "oidc"   // OpenID Connect with discovery
	GitHubProvider ProviderKind = "github" // OAuth and the REST API of GitHub
)

// GitHubIssuer is the Issuer of GitHub itself. A GitHub Enterprise Server has its own address.
const GitHubIssuer = "https://github.com"

// googleIssuer is Google's issuer, which says in the claim hd whose accounts it manages.
const googleIssuer = "https://accounts.google.com"

// ProviderAlgs are the algorithms that may sign what providers say. All have a public half, so that
// nobody can sign with what everybody may read.
var ProviderAlgs = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384,
	jose.PS512, jose.EdDSA,
}

// ProviderIcons are the pictures that buttons may have.
var ProviderIcons = []string{"google", "microsoft", "github", "gitlab", "none"}

// Provider is another provider with which people sign in, as operators describe it. The zero value
// of an optional field is off or none.
type Provider struct {
	ID       string       `json:"-"` // in URLs: 1 to 40 letters, digits and hyphens, in lower case
	Kind     ProviderKind `json:"kind"`
	Issuer   string       `json:"issuer"` // of an OpenID provider as it says itself; of GitHub its base URL
	ClientID string       `json:"client_id"`
	// Secret authenticates this service at the provider; "" = it is a public client there. The Store
	// seals it.
	Secret    string    `json:"-"`
	SecretSet time.Time `json:"secret_set,omitzero"`
	Scopes    []string  `json:"scopes,omitempty"` // none = those of AskedScopes
	Label     string    `json:"label,omitempty"`  // what people read; "" = see Name
	Icon      string    `json:"icon,omitempty"`   // one of ProviderIcons; "" = that of the issuer
	// AllowedDomains are the domains of those who may sign in; none = anybody.
	AllowedDomains []string `json:"allowed_domains,omitempty"`
	CreateAccounts bool     `json:"create_accounts,omitempty"`
	// TrustEmail says that an address counts as verified if the provider says so.
	TrustEmail bool `json:"trust_email,omitempty"`
	// Groups are the groups here that groups of the provider stand for.
	Groups   map[string]string `json:"groups,omitempty"`
	Disabled bool              `json:"disabled,omitempty"` // nobody signs in with it
	Set      string            `json:"set,omitempty"`      // of files that it belongs to; "" = none
	Declared bool              `json:"declared,omitempty"` // by the server's own files
	// Released says that it was declared, and belongs to no set any more.
	Released bool      `json:"released,omitempty"`
	Created  time.Time `json:"-"`
	Version  int64     `json:"-"` // set by the Store; 0 = it is new
}

var (
	providerID  = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$`)
	domainName  = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$`)
	mappedGroup = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)
)

// operatorsGroup is the group of operators, which no provider decides about.
const operatorsGroup = "gatehouse-operators"

// IsProviderID reports whether id can be the ID of a provider.
func IsProviderID(id string) bool { return providerID.MatchString(id) }

// Tidy sets what an operator may leave out, and writes domains in lower case.
func (p *Provider) Tidy() {
	if p.Kind == GitHubProvider {
		p.Issuer = strings.TrimSuffix(cmp.Or(p.Issuer, GitHubIssuer), "/")
	}
	for i, d := range p.AllowedDomains {
		p.AllowedDomains[i] = strings.ToLower(strings.TrimPrefix(d, "@"))
	}
	if len(p.Scopes) == 0 {
		p.Scopes = nil
	}
	if len(p.AllowedDomains) == 0 {
		p.AllowedDomains = nil
	}
	if len(p.Groups) == 0 {
		p.Groups = nil
	}
}

// CheckRegistration returns a *RegistrationError unless p, after Tidy, can be used.
func (p *Provider) CheckRegistration() error {
	if !IsProviderID(p.ID) {
		return &RegistrationError{"id", "it must have 1 to 40 letters, digits and hyphens, in lower " +
			"case, and no hyphen at its begin or end"}
	}
	if p.Kind != OpenIDProvider && p.Kind != GitHubProvider {
		return &RegistrationError{"kind", "it must be oidc or github"}
	}
	if err := CheckProviderURL(p.Issuer); err != nil {
		return &RegistrationError{"issuer", err.Error()}
	}
	if u, err := url.Parse(p.Issuer); err != nil || isOfManyTenants(u) {
		return &RegistrationError{"issuer", "it must name one tenant: " +
			"https://login.microsoftonline.com/TENANT-ID/v2.0"}
	}
	switch {
	case p.ClientID == "" || len(p.ClientID) > longestCredential || !clean(p.ClientID):
		return &RegistrationError{"client_id",
			"it must have 1 to 512 bytes, UTF-8 without control characters"}
	case len(p.Secret) > longestCredential || !clean(p.Secret):
		return &RegistrationError{"client_secret",
			"it must have 1 to 512 bytes, UTF-8 without control characters"}
	case p.Kind == GitHubProvider && p.Secret == "":
		return &RegistrationError{"client_secret", "GitHub needs one"}
	case p.Label != "" && !isLabel(p.Label):
		return &RegistrationError{"label", mustBeLabel}
	case p.Icon != "" && !slices.Contains(ProviderIcons, p.Icon):
		return &RegistrationError{"icon", "it must be " + listOf(ProviderIcons)}
	}
	if len(p.Scopes) > mostOfProvider || slices.ContainsFunc(p.Scopes, func(s string) bool {
		return !isScopeName(s) || len(s) > longestProviderURL
	}) {
		return &RegistrationError{"scopes",
			"each must be a word of ASCII characters without quotes and backslashes"}
	}
	if p.Kind == OpenIDProvider && p.Scopes != nil && !slices.Contains(p.Scopes, "openid") {
		return &RegistrationError{"scopes", "they must have openid"}
	}
	if len(p.AllowedDomains) > mostOfProvider || slices.ContainsFunc(p.AllowedDomains,
		func(d string) bool { return len(d) > 253 || !domainName.MatchString(d) }) {
		return &RegistrationError{"allowed_domains", "each must be a domain name, such as example.com"}
	}
	return p.checkGroups()
}

func (p *Provider) checkGroups() error {
	if len(p.Groups) > mostOfProvider {
		return &RegistrationError{"groups", "at most 100 can be mapped"}
	}
	for upstream, local := range p.Groups {
		switch {
		case upstream == "" || len(upstream) > longestProviderURL || !clean(upstream):
			return &RegistrationError{"groups",
				"each name at the provider must have 1 to 250 bytes without control characters"}
		case !mappedGroup.MatchString(local):
			return &RegistrationError{"groups", "each name here must have 1 to 64 letters in lower " +
				"case, digits, dots, underscores and hyphens"}
		case local == operatorsGroup:
			return &RegistrationError{"groups", "no provider decides who is in " + operatorsGroup}
		}
	}
	return nil
}

// CheckProviderURL returns an error for operators to read, unless uri can be the issuer of a provider
// or one of its endpoints: https, or http on loopback, without a query and fragment.
func CheckProviderURL(uri string) error {
	if err := checkServerURL(uri); err != nil {
		return err
	}
	u, err := url.Parse(uri)
	if err != nil || u.RawQuery != "" || len(uri) > longestProviderURL {
		return errors.New("it must have no query, and at most 250 bytes")
	}
	return nil
}

// isOfManyTenants reports whether u is an address at Microsoft that stands for all tenants. Their
// tokens name others as their issuer, so anybody who has a tenant could make one.
func isOfManyTenants(u *url.URL) bool {
	tenant, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return strings.HasPrefix(u.Hostname(), "login.microsoftonline.") &&
		slices.Contains([]string{"", "common", "organizations", "consumers"}, strings.ToLower(tenant))
}

// AskedScopes returns the scopes that p is asked for.
func (p *Provider) AskedScopes() []string {
	switch {
	case p.Scopes != nil:
		return p.Scopes
	case p.Kind == GitHubProvider && len(p.Groups) > 0:
		return []string{"read:user", "user:email", "read:org"}
	case p.Kind == GitHubProvider:
		return []string{"read:user", "user:email"}
	}
	return []string{"openid", "email", "profile"}
}

// ShownIcon returns the picture for p's button; "" = none.
func (p *Provider) ShownIcon() string {
	switch {
	case p.Icon == "none":
		return ""
	case p.Icon != "":
		return p.Icon
	case p.Kind == GitHubProvider:
		return "github"
	case p.Issuer == googleIssuer:
		return "google"
	case p.Issuer == "https://gitlab.com":
		return "gitlab"
	case strings.HasPrefix(p.Issuer, "https://login.microsoftonline.com/"):
		return "microsoft"
	}
	return ""
}

// Name returns what people read of p: its label, or else the name of a well-known one, or its ID.
func (p *Provider) Name() string {
	if p.Label != "" {
		return p.Label
	}
	names := map[string]string{
		"google": "Google", "microsoft": "Microsoft", "github": "GitHub", "gitlab": "GitLab",
	}
	return cmp.Or(names[p.ShownIcon()], p.ID)
}

// ReplacedBy returns the record of p as d describes it. A secret that d does not have stays, and so
// does the time of one that is the same.
func (p *Provider) ReplacedBy(d *Provider) *Provider {
	next := *d
	next.ID, next.Created, next.Version = p.ID, p.Created, p.Version
	if d.Secret == "" || d.Secret == p.Secret {
		next.Secret, next.SecretSet = p.Secret, p.SecretSet
	} else if later := p.SecretSet.Add(time.Second); next.SecretSet.Before(later) {
		next.SecretSet = later // the time is shown in seconds, and tells one secret from another
	}
	return &next
}

// Lets reports whether p lets a person sign in, by the domains that it is restricted to.
func (p *Provider) Lets(who *ProviderIdentity) bool {
	if p.AllowedDomains == nil {
		return true
	}
	domain := who.Domain
	if p.Issuer != googleIssuer { // others let nobody have an address of a domain that it is not of
		_, domain, _ = strings.Cut(who.Email, "@")
		if !who.EmailVerified {
			domain = ""
		}
	}
	return slices.Contains(p.AllowedDomains, strings.ToLower(domain))
}

// Vouches reports whether p has verified the address of a person, and is trusted to do so.
func (p *Provider) Vouches(who *ProviderIdentity) bool {
	return p.TrustEmail && who.EmailVerified && who.Email != ""
}

// MapsTo reports whether a group here stands for one of p.
func (p *Provider) MapsTo(group string) bool {
	for _, local := range p.Groups {
		if local == group {
			return true
		}
	}
	return false
}

// LocalGroups returns the groups here that a person's groups at p stand for, sorted.
func (p *Provider) LocalGroups(who *ProviderIdentity) (all []string) {
	for _, name := range who.Groups {
		if local := p.Groups[name]; local != "" && !slices.Contains(all, local) {
			all = append(all, local)
		}
	}
	slices.Sort(all)
	return all
}

// ProviderIdentity is what a provider says of a person who has signed in there.
type ProviderIdentity struct {
	Issuer        string
	Subject       string // 1 to MostSubject bytes
	Name          string // of the person; "" = it does not say
	Account       string // by which the person knows the account there, such as its address
	Email         string // "" = it does not say
	EmailVerified bool   // it says so
	Domain        string // of the organization whose account it is, as Google says it
	Groups        []string
}

// ProviderError says why what a provider has sent is not accepted. It has nothing personal.
type ProviderError struct{ Reason string }

// Error implements error.
func (e *ProviderError) Error() string { return "response of the provider refused: " + e.Reason }

// ErrProviderAway says that a provider cannot be reached, or does not work.
var ErrProviderAway = errors.New("the provider does not respond")

// ProviderRequest is a request for a sign-in with a provider.
type ProviderRequest struct {
	RedirectURI string
	State       string
	Nonce       string
	Challenge   string       // of PKCE, by S256
	Again       bool         // the person has to sign in there again, also if signed in
	LoginHint   string       // address or name that the person may have there; "" = none
	Network     netip.Prefix // of the caller, who is charged for it
}

// ProviderResponse is what a browser brings back from a provider.
type ProviderResponse struct {
	RedirectURI string
	Code        string
	Issuer      string // as the parameter iss says (RFC 9207); "" = there is none
	Nonce       string // of the request
	Verifier    string // of PKCE
	Network     netip.Prefix
}

// ProviderClient asks providers. The errors of its methods wrap ErrProviderAway or ErrBusy, or are a
// *ProviderError. Its methods may be called by many goroutines.
type ProviderClient interface {
	// AuthorizationURL returns where the browser goes to sign in with p.
	AuthorizationURL(ctx context.Context, p *Provider, r ProviderRequest) (string, error)
	// Identity returns who has signed in with p. It keeps no token of p.
	Identity(ctx context.Context, p *Provider, r ProviderResponse) (*ProviderIdentity, error)
	// IsAway reports whether p did not respond the last time. It does not wait.
	IsAway(p *Provider) bool
}

// ProviderAttempt is a sign-in with a provider that has begun, or a connection that waits until the
// person has signed in to the account that it belongs to.
type ProviderAttempt struct {
	Hash     [32]byte // SHA-256 of the state, or of the cookie's value
	Browser  [32]byte // SHA-256 of the secret of the browser that it belongs to
	Provider string   // ID
	Purpose  string
	Session  [32]byte // that it belongs to; zero = none
	Query    string   // with which the pages go on
	UserID   int64    // of a connection that waits: whose account it is; 0 = nobody's yet
	Identity string   // of a connection that waits: as JSON
	Ends     time.Time
}

// ProviderStore keeps providers and attempts. Its methods may be called by many goroutines.
type ProviderStore interface {
	// Providers returns all providers, sorted by ID, with their secrets.
	Providers(ctx context.Context) ([]*Provider, error)
	// SaveProvider inserts p if its Version is 0, and replaces it otherwise. It sets p's Version. The
	// error is ErrConflict if p was changed since it was read, or exists, and ErrBusy if there are
	// MostProviders.
	SaveProvider(ctx context.Context, p *Provider) error
	// DeleteProvider deletes a provider, or returns ErrNotFound.
	DeleteProvider(ctx context.Context, id string) error
	// EndMapped ends memberships that no provider gives any more, because it was deleted or disabled, or
	// maps to other groups. ended reports whether there were any. It works in parts: after an error some
	// may have ended.
	EndMapped(ctx context.Context) (ended bool, err error)

	CreateAttempt(ctx context.Context, a *ProviderAttempt) error
	// Attempt returns the attempt with that Hash and Browser, or ErrNotFound. It may have ended.
	Attempt(ctx context.Context, hash, browser [32]byte) (*ProviderAttempt, error)
	// TakeAttempt is Attempt, and deletes it: of several calls in all processes one gets it.
	TakeAttempt(ctx context.Context, hash, browser [32]byte) (*ProviderAttempt, error)
}
