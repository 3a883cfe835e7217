package oauth

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// longestMetadataURL is the longest client_id that is the URL of a metadata document, in bytes.
const longestMetadataURL = 500

// IsMetadataURL reports whether a client_id has the form of a URL of a client-id metadata document:
// https with a path, without dot segments, fragment and user information.
func IsMetadataURL(id string) bool {
	if !strings.HasPrefix(id, "https://") || len(id) > longestMetadataURL || checkHTTPS(id) != nil {
		return false
	}
	u, err := url.Parse(id)
	return err == nil && len(u.Path) > 1 && u.Host == strings.ToLower(u.Host) &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), func(segment string) bool {
			return segment == "." || segment == ".."
		})
}

// StoredClientID returns the ID under which a client_id is stored: itself, or a UUID for the URL of
// a metadata document.
func StoredClientID(id string) string {
	if !IsMetadataURL(id) {
		return id
	}
	return uuid.NewHash(sha256.New(), uuid.NameSpaceURL, []byte(id), 8).String()
}

// WireID returns the client_id that the client sends and is shown.
func (c *Client) WireID() string {
	if c.Options.MetadataURL != "" {
		return c.Options.MetadataURL
	}
	return c.ID
}

// clientMetadata are the members of a client's metadata that are read (RFC 7591 section 2).
type clientMetadata struct {
	ClientID      string          `json:"client_id"`
	Name          string          `json:"client_name"`
	URI           string          `json:"client_uri"`
	RedirectURIs  []string        `json:"redirect_uris"`
	GrantTypes    []string        `json:"grant_types"`
	ResponseTypes []string        `json:"response_types"`
	AppType       string          `json:"application_type"` // OpenID Connect Registration section 2
	AuthMethod    string          `json:"token_endpoint_auth_method"`
	AuthMethods   []string        `json:"token_endpoint_auth_methods_supported"`
	JWKS          json.RawMessage `json:"jwks"`
	JWKSURI       string          `json:"jwks_uri"`
	Secret        json.RawMessage `json:"client_secret"`
	SecretExpires json.RawMessage `json:"client_secret_expires_at"`
}

// client returns the client that m describes, without an ID, a home page and a way to authenticate.
// The error is for people to read.
func (m *clientMetadata) client() (*Client, error) {
	switch {
	case m.GrantTypes != nil && !slices.Contains(m.GrantTypes, "authorization_code"):
		return nil, errors.New("its grant_types must have authorization_code")
	case m.ResponseTypes != nil && !slices.Contains(m.ResponseTypes, "code"):
		return nil, errors.New("its response_types must have code")
	case m.AppType != "" && m.AppType != "web" && m.AppType != "native":
		return nil, errors.New("its application_type must be web or native")
	}
	c := &Client{
		Name: m.Name, RedirectURIs: m.RedirectURIs,
		Scopes: GrantableScopes, Grants: AuthorizationCodeGrant,
		Options: ClientOptions{SelfRegistered: true},
	}
	if slices.Contains(m.GrantTypes, "refresh_token") {
		c.Grants |= RefreshTokenGrant
	}
	return c, nil
}

// check returns a *RegistrationError unless c, which m describes, may register itself. schemes are
// private-use ones without a dot that the operator allows beside ownSchemes.
func (m *clientMetadata) check(c *Client, schemes []string) error {
	if err := c.CheckRegistration(); err != nil {
		return err
	}
	if err := c.CheckNewName(); err != nil {
		return err
	}
	for i, uri := range c.RedirectURIs {
		if err := checkOwnScheme(uri, schemes); err != nil {
			return atIndex("redirect_uris", i, err.Error())
		}
		if m.AppType == "web" && !strings.HasPrefix(uri, "https://") {
			return atIndex("redirect_uris", i, "it must begin with https:// with the application_type web")
		}
	}
	for i, uri := range c.Options.PostLogoutRedirectURIs {
		if err := checkOwnScheme(uri, schemes); err != nil {
			return atIndex("post_logout_redirect_uris", i, err.Error())
		}
	}
	return nil
}

// isThere reports whether a member has a value.
func isThere(member json.RawMessage) bool { return member != nil && string(member) != "null" }

// setKeys has the client authenticate with its keys (RFC 7523).
func (m *clientMetadata) setKeys(c *Client) error {
	if isThere(m.JWKS) {
		c.Options.JWKS = string(m.JWKS)
	}
	c.Options.JWKSURI = m.JWKSURI
	if !c.HasKeys() {
		return errors.New("private_key_jwt needs jwks or jwks_uri")
	}
	return nil
}

// ParseMetadataDocument returns the client that the document at a URL describes. Members and grant
// types that it does not know are ignored. schemes are private-use ones without a dot that the
// operator allows to such clients. The error is for people to read.
func ParseMetadataDocument(address string, text []byte, schemes []string) (*Client, error) {
	var m clientMetadata
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, errors.New("it is not a JSON object with the members of RFC 7591")
	}
	switch {
	case m.ClientID != address:
		return nil, errors.New("its client_id is not its address")
	case isThere(m.Secret) || isThere(m.SecretExpires):
		return nil, errors.New("it must not have a client_secret")
	}
	c, err := m.client()
	if err != nil {
		return nil, err
	}
	c.ID, c.Options.MetadataURL = StoredClientID(address), address
	if err := m.setMethods(c); err != nil {
		return nil, err
	}
	if isSameHost(m.URI, address) {
		c.URI = m.URI
	}
	return c, m.check(c, schemes)
}

// setMethods has the client of a document authenticate as that says: by nothing, by its keys, or by
// either as it likes, since it may list several methods.
func (m *clientMetadata) setMethods(c *Client) error {
	methods := append([]string{cmp.Or(m.AuthMethod, methodNone)}, m.AuthMethods...)
	c.Public = slices.Contains(methods, methodNone)
	if slices.Contains(methods, methodKey) {
		return m.setKeys(c)
	}
	if !c.Public {
		return errors.New("its token_endpoint_auth_method must be none or private_key_jwt")
	}
	return nil
}

// isSameHost reports whether a page about a client may be linked: the host of its client_id has it.
func isSameHost(uri, address string) bool {
	u, err := url.Parse(uri)
	if err != nil || checkHTTPS(uri) != nil {
		return false
	}
	a, err := url.Parse(address)
	return err == nil && strings.EqualFold(u.Host, a.Host)
}

// Describe returns c, as it is stored, with what a fresh document says of it; nil = it is not
// stored. What operators have decided stays. changed reports whether people have to consent again:
// redirect URIs or keys are others than when the last of them did.
func (c *Client) Describe(fresh *Client) (described *Client, changed bool) {
	if c == nil {
		return fresh, true
	}
	d := *c
	d.Name, d.URI, d.Public = fresh.Name, fresh.URI, fresh.Public
	d.RedirectURIs, d.Grants = fresh.RedirectURIs, fresh.Grants
	d.Options = c.Options.Clone()
	d.Options.JWKS, d.Options.JWKSURI = fresh.Options.JWKS, fresh.Options.JWKSURI
	changed = c.Public != fresh.Public || !slices.Equal(c.RedirectURIs, fresh.RedirectURIs) ||
		c.Options.JWKS != fresh.Options.JWKS || c.Options.JWKSURI != fresh.Options.JWKSURI
	// an operator has checked another document
	d.Options.Verified = d.Options.Verified && !changed && c.Name == fresh.Name
	return &d, changed
}

// IsOutdatedBy reports whether people have to consent again to what a document says of the stored
// client.
func (c *Client) IsOutdatedBy(described *Client) bool {
	_, changed := c.Describe(described)
	return changed
}

// IsSame reports whether the stored client says what a document says of it.
func (c *Client) IsSame(described *Client) bool {
	return !c.IsOutdatedBy(described) && c.Name == described.Name && c.URI == described.URI &&
		c.Grants == described.Grants
}

// How long the stored description of a client is good while its document cannot be fetched, and how
// old MetadataFetched may become before it is stored again.
const (
	metadataHolds  = 30 * 24 * time.Hour
	metadataStored = 24 * time.Hour
)

// Holds reports whether c, as it is stored, is good at now without its document, if a person has
// consented to it: the document said the same not long ago. Its host may refuse some networks.
func (c *Client) Holds(now time.Time) bool {
	return c != nil && now.Sub(time.UnixMilli(c.Options.MetadataFetched)) < metadataHolds
}

// NeedsFetched reports whether MetadataFetched is to be stored again.
func (c *Client) NeedsFetched(now time.Time) bool {
	return now.Sub(time.UnixMilli(c.Options.MetadataFetched)) >= metadataStored
}

// ReturnsHere reports whether the redirect URI leads to a program on the user's own machine.
func (r *AuthorizationRequest) ReturnsHere() bool { return impersonable(r.RedirectURI) }

// Host returns the host of the document that describes the client; "" = none does.
func (c *Client) Host() string {
	u, err := url.Parse(c.Options.MetadataURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// IsUnverified reports whether nobody has checked who stands behind the client: it registered or
// described itself.
func (c *Client) IsUnverified() bool { return c.Options.SelfRegistered && !c.Options.Verified }

// HostBeforeConsent returns who stands behind a client that nobody has checked: the host of its
// document, or else of redirectURI; "" = a program on the user's computer.
func (c *Client) HostBeforeConsent(redirectURI string) string {
	if host := c.Host(); host != "" || impersonable(redirectURI) {
		return strings.ToLower(host)
	}
	_, host, _ := strings.Cut(RedirectOrigin(redirectURI), "://")
	return strings.TrimSuffix(host, ".")
}

// NameBeforeConsent returns what pages call the client before the person has consented to it: its
// name; or, since anybody can choose any text as the name of a client that registered itself, the
// host that describes it or else the origin of redirectURI.
func (c *Client) NameBeforeConsent(redirectURI string) string {
	if !c.IsUnverified() {
		return c.Name
	}
	return cmp.Or(c.Host(), RedirectOrigin(redirectURI))
}

// Description returns what a person has seen of a client that a metadata document describes, and
// what it is bound to, for an anti-forgery token; "" for other clients.
func (c *Client) Description() string {
	if c.Options.MetadataURL == "" {
		return ""
	}
	parts := append([]string{"", c.Name, c.URI, c.Options.JWKS, c.Options.JWKSURI},
		c.RedirectURIs...)
	return strings.Join(parts, " ")
}
