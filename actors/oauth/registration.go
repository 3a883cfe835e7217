package oauth

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a client record.
const (
	MostRedirectURIs = 20
	MostSecrets      = 2
	longestName      = 100 // characters
	largestQuota     = 1_000_000
)

// RegistrationError tells an operator what is wrong with a client record.
type RegistrationError struct {
	// Field is client_id, name, client_uri, redirect_uris, scopes, grants, public, operator, introspect_any,
	// loopback_any_port, tokens_per_minute, secrets, or a member of ClientOptions in JSON.
	Field   string
	Message string // one sentence
}

// Error returns the field and the message.
func (e *RegistrationError) Error() string { return e.Field + ": " + e.Message }

// CheckRegistration returns the first *RegistrationError of c, or nil if c can be registered.
func (c *Client) CheckRegistration() error {
	if !clean(c.Name) || strings.TrimSpace(c.Name) == "" ||
		utf8.RuneCountInString(c.Name) > longestName {
		return &RegistrationError{"name",
			"it must have 1 to 100 characters, and no control characters"}
	}
	for _, check := range []func(*Client) *RegistrationError{
		(*Client).checkKind, (*Client).checkURI, (*Client).checkRedirectURIs, (*Client).checkGrants,
		(*Client).checkScopes, (*Client).checkQuota, (*Client).checkOptions, (*Client).checkExchange,
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// CheckNewName returns a *RegistrationError if people cannot see all of c's name, or may see it in
// another order than it is written. Check it when a client is created or renamed; older records may
// break this rule.
func (c *Client) CheckNewName() error {
	if strings.ContainsFunc(c.Name, isUnseen) {
		return &RegistrationError{"name", "all its characters must be visible"}
	}
	return nil
}

// isUnseen reports whether r is invisible or changes the direction of text, which can make one name
// look like another. Joiners are allowed, since scripts and emoji need them.
func isUnseen(r rune) bool {
	const nonJoiner, joiner = 0x200C, 0x200D
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point)
}

func (c *Client) checkURI() *RegistrationError {
	if c.URI == "" {
		return nil
	}
	if err := checkServerURL(c.URI); err != nil {
		return &RegistrationError{"client_uri", err.Error()}
	}
	return nil
}

func (c *Client) checkRedirectURIs() *RegistrationError {
	const field = "redirect_uris"
	if len(c.RedirectURIs) > MostRedirectURIs {
		return &RegistrationError{field, "a client can have at most 20"}
	}
	for i, uri := range c.RedirectURIs {
		if err := CheckRedirectURI(uri, c.Public); err != nil {
			return atIndex(field, i, err.Error())
		}
		if slices.Contains(c.RedirectURIs[:i], uri) {
			return atIndex(field, i, "it is there twice")
		}
	}
	if c.Grants.Contains(AuthorizationCodeGrant) && len(c.RedirectURIs) == 0 {
		return &RegistrationError{field, "the grant authorization_code needs at least one"}
	}
	loopback := func(uri string) bool { _, _, ok := cutLoopback(uri); return ok }
	if c.LoopbackAnyPort && !slices.ContainsFunc(c.RedirectURIs, loopback) {
		return &RegistrationError{"loopback_any_port",
			"it needs a redirect URI on http://127.0.0.1 or http://[::1]"}
	}
	return nil
}

// atIndex returns the error of an item of a list, counted from 0.
func atIndex(field string, index int, message string) *RegistrationError {
	return &RegistrationError{field, "at index " + strconv.Itoa(index) + ", " + message}
}

func (c *Client) checkGrants() *RegistrationError {
	const field = "grants"
	switch {
	case c.Grants == 0 || !AllGrants.Contains(c.Grants):
		return &RegistrationError{field,
			"it must have one or more of " + strings.Join(AllGrants.Names(), ", ")}
	case c.Grants.Contains(RefreshTokenGrant) &&
		c.Grants&(AuthorizationCodeGrant|DeviceCodeGrant) == 0:
		return &RegistrationError{field,
			"refresh_token needs a grant that issues refresh tokens, such as authorization_code"}
	case c.Public && c.Grants.Contains(ClientCredentialsGrant):
		return &RegistrationError{field, "client_credentials is not for public clients"}
	}
	return nil
}

func (c *Client) checkScopes() *RegistrationError {
	const field = "scopes"
	switch {
	case !AllScopes.Contains(c.Scopes):
		return &RegistrationError{field, "only " + AllScopes.List() + " exist"}
	case c.Scopes.Contains(ServerOperations) && !c.Operator:
		return &RegistrationError{field, "server-operations is for operator clients"}
	case c.Operator && !c.Scopes.Contains(ServerOperations):
		return &RegistrationError{field, "an operator client needs server-operations"}
	case c.Operator && !c.Grants.Contains(ClientCredentialsGrant):
		return &RegistrationError{"grants", "an operator client needs client_credentials"}
	}
	return nil
}

func (c *Client) checkQuota() *RegistrationError {
	if c.TokensPerMinute < 0 || c.TokensPerMinute > largestQuota {
		return &RegistrationError{"tokens_per_minute", "it must be from 1 to 1000000, or 0 for no quota"}
	}
	return nil
}

func (c *Client) checkKind() *RegistrationError {
	switch {
	case c.Public && c.Operator:
		return &RegistrationError{"operator", "a public client cannot be an operator"}
	case c.Public && c.IntrospectAny:
		return &RegistrationError{"introspect_any", "a public client cannot introspect"}
	case c.Public && len(c.Secrets) > 0:
		return &RegistrationError{"secrets", "a public client cannot have one"}
	case !c.Public && len(c.Secrets) == 0 && !c.HasKeys():
		return &RegistrationError{"secrets", "a confidential client needs one"}
	case len(c.Secrets) > MostSecrets:
		return &RegistrationError{"secrets", "a client can have at most two: revoke the older one first"}
	}
	return nil
}
