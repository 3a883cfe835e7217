package oauth

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Limits of ClientOptions.
const (
	MostPostLogoutURIs = 10
	MostClientKeys     = 5
	MostResources      = 20 // that one client is restricted to
	longestJWKS        = 8 << 10
	longestResource    = 250
)

// HasKeys reports whether the client authenticates with keys (RFC 7523). It needs no secret then.
func (c *Client) HasKeys() bool { return c.Options.JWKS != "" || c.Options.JWKSURI != "" }

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
	if o.BackchannelLogoutURI != "" {
		if err := checkServerURL(o.BackchannelLogoutURI); err != nil {
			return &RegistrationError{"backchannel_logout_uri", err.Error()}
		}
	}
	return c.checkKeys()
}

// checkKeys checks the keys of the client, or the address of them.
func (c *Client) checkKeys() *RegistrationError {
	o := &c.Options
	switch {
	case c.Public && o.JWKS != "" && o.MetadataURL == "":
		return &RegistrationError{"jwks", "a public client has no keys"}
	case c.Public && o.JWKSURI != "" && o.MetadataURL == "":
		return &RegistrationError{"jwks_uri", "a public client has no keys"}
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
	case isLinkLocal(u.Hostname()):
		return errors.New("it must not name a link-local address: no server of a client is there")
	case strings.HasPrefix(uri, "https://"):
		return checkHost(u)
	case strings.HasPrefix(uri, "http://"):
		return checkLocal(u)
	}
	return errors.New("it must begin with https://, or with http:// and 127.0.0.1, [::1] or localhost")
}

func isLinkLocal(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLinkLocalUnicast()
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

// listOf returns names as people write them: "a, b and c".
func listOf(names []string) string {
	end := len(names) - 1
	if end < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:end], ", ") + " and " + names[end]
}
