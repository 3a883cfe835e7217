package oauth

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limits of ClientOptions.
const (
	MostPostLogoutURIs = 10
	MostClientKeys     = 5
	MostResources      = 20 // that one client is restricted to
	MostRequiredGroups = 20
	longestJWKS        = 8 << 10
	longestResource    = 250
)

// HasKeys reports whether the client authenticates with JWTs (RFC 7523): those that it signs, or those
// of another issuer. It needs no secret then.
func (c *Client) HasKeys() bool {
	return c.Options.JWKS != "" || c.Options.JWKSURI != "" || c.Options.IsFederated()
}

// IsFederated reports whether JWTs of another issuer authenticate the client.
func (o *ClientOptions) IsFederated() bool { return o.Federated.IsSet() }

// checkOptions checks what few clients are registered for.
func (c *Client) checkOptions() *RegistrationError {
	o := &c.Options
	switch {
	case o.IDTokenAlg != "" && o.IDTokenAlg != "RS256" && o.IDTokenAlg != "ES256":
		return &RegistrationError{"id_token_alg", "it must be RS256 or ES256"}
	case len(o.PostLogoutRedirectURIs) > MostPostLogoutURIs:
		return &RegistrationError{"post_logout_redirect_uris", "a client can have at most 10"}
	case len(o.Resources) > MostResources:
		return &RegistrationError{"resources", "a client can be restricted to at most 20"}
	}
	for i, uri := range o.PostLogoutRedirectURIs {
		if err := CheckRedirectURI(uri, c.Public); err != nil {
			return &RegistrationError{"post_logout_redirect_uris", err.Error()}
		}
		if slices.Contains(o.PostLogoutRedirectURIs[:i], uri) {
			return &RegistrationError{"post_logout_redirect_uris", "each must be different"}
		}
	}
	for i, uri := range o.Resources {
		if err := CheckResourceURI(uri); err != nil {
			return &RegistrationError{"resources", err.Error()}
		}
		if slices.Contains(o.Resources[:i], uri) {
			return &RegistrationError{"resources", "each must be different"}
		}
	}
	if text := checkGroups(o.RequireGroups); text != "" {
		return &RegistrationError{"require_groups", text}
	}
	if o.BackchannelLogoutURI != "" {
		if err := checkServerURL(o.BackchannelLogoutURI); err != nil {
			return &RegistrationError{"backchannel_logout_uri", err.Error()}
		}
	}
	if err := c.checkFirstParty(); err != nil {
		return err
	}
	if err := c.checkIDJAG(); err != nil {
		return err
	}
	return c.checkKeys()
}

// checkFirstParty checks that only the operator can be behind a client that nobody consents to.
func (c *Client) checkFirstParty() *RegistrationError {
	const field = "first_party"
	switch {
	case !c.Options.FirstParty:
		return nil
	case c.Options.SelfRegistered:
		return &RegistrationError{field, "no operator has registered this client"}
	}
	for i, uri := range c.RedirectURIs {
		if impersonable(uri) {
			return &RegistrationError{field, "the redirect URI at index " + strconv.Itoa(i) +
				" must be https and lead to a server"}
		}
	}
	return nil
}

// checkKeys checks the keys of the client, or the address of them.
func (c *Client) checkKeys() *RegistrationError {
	o := &c.Options
	switch {
	case c.Public && o.JWKS != "" && o.MetadataURL == "":
		return &RegistrationError{"jwks", "a public client has no keys"}
	case c.Public && o.JWKSURI != "" && o.MetadataURL == "":
		return &RegistrationError{"jwks_uri", "a public client has no keys"}
	case o.IsFederated():
		if c.Public || o.JWKS != "" || o.JWKSURI != "" {
			return &RegistrationError{"federated", "a public client has no keys, and others have " +
				"only one of federated, jwks and jwks_uri"}
		}
		if err := o.Federated.check(); err != nil {
			return &RegistrationError{"federated", err.Error()}
		}
	case o.JWKS != "" && o.JWKSURI != "":
		return &RegistrationError{"jwks_uri", "a client has jwks or jwks_uri, not both"}
	case o.JWKS != "":
		if err := CheckJWKS(o.JWKS); err != nil {
			return &RegistrationError{"jwks", err.Error()}
		}
	case o.JWKSURI != "":
		if err := checkHTTPS(o.JWKSURI); err != nil {
			return &RegistrationError{"jwks_uri", err.Error()}
		}
	}
	return nil
}

// checkServerURL returns an error for operators to read, unless uri is the URL of a server: https,
// or http on 127.0.0.1, [::1] or localhost. It must have no fragment and no user information.
func checkServerURL(uri string) error {
	if err := checkURICharacters(uri); err != nil {
		return err
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return errors.New("it is not a URI")
	case u.User != nil:
		return errors.New("it must not contain a user name or password")
	case isNoServer(u.Hostname()):
		return errors.New("its host is an address where no server of a client is: it is " +
			"link-local, multicast, unspecified, or has the metadata of a cloud")
	case strings.HasPrefix(uri, "https://"):
		return checkHost(u)
	case strings.HasPrefix(uri, "http://"):
		return checkLocal(u)
	}
	return errors.New("it must begin with https://, or with http:// and 127.0.0.1, [::1] or " +
		"localhost")
}

func isNoServer(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && !IsServer(addr)
}

// IsServer reports whether an address may be one of a server that an operator has named: also one in
// a private network, but not link-local. There the clouds have what tells secrets of a machine.
func IsServer(addr netip.Addr) bool {
	addr = addr.Unmap()
	if translated := netip.MustParsePrefix("64:ff9b::/96"); translated.Contains(addr) { // RFC 6052
		text := addr.As16()
		addr = netip.AddrFrom4([4]byte(text[12:]))
	}
	return addr.IsValid() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() &&
		!addr.IsUnspecified() && !isMetadataServer(addr)
}

// isMetadataServer reports whether a cloud has its metadata there, other than at a link-local address.
func isMetadataServer(addr netip.Addr) bool {
	switch addr {
	case netip.AddrFrom4([4]byte{100, 100, 100, 200}), netip.MustParseAddr("fd00:ec2::254"),
		netip.MustParseAddr("fd20:ce::254"):
		return true
	}
	return false
}

// checkHTTPS returns an error unless uri is an https URL without a fragment and without user
// information.
func checkHTTPS(uri string) error {
	if !strings.HasPrefix(uri, "https://") {
		return errors.New("it must begin with https://")
	}
	return checkServerURL(uri)
}

// CheckResourceURI returns an error for operators to read, unless uri may name a resource server: an
// absolute https URL, or http on loopback, without a fragment (RFC 8707 section 2).
func CheckResourceURI(uri string) error {
	if len(uri) > longestResource {
		return errors.New("it must have at most 250 bytes")
	}
	return checkServerURL(uri)
}

// checkGroups returns what is wrong with a list of groups, for operators; "" = nothing.
func checkGroups(names []string) string {
	if len(names) > MostRequiredGroups {
		return "a client can have at most 20"
	}
	for i, name := range names {
		if !groupName.MatchString(name) || slices.Contains(names[:i], name) {
			return "each must be the name of a group, and different"
		}
	}
	return ""
}

// groupName is what the name of a group looks like.
var groupName = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

// listOf returns names as people write them: "a, b and c".
func listOf(names []string) string {
	end := len(names) - 1
	if end < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:end], ", ") + " and " + names[end]
}
