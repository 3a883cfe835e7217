package oauth

import (
	"regexp"
	"slices"
	"strings"
)

// MostClaims is how many claims may be declared.
const MostClaims = 100

// Claim is a claim that operators have declared, made of an attribute of people.
type Claim struct {
	Name      string
	Attribute string // whose value it has
	Scope     string // that releases it: one of claimScopes
	// Set and Declared are those of ClientOptions.
	Set      string
	Declared bool
	Type     string // of the attribute; set by the Store. "" = there is no such attribute
}

// claimSource begins the text of what a claim is made of.
const claimSource = "attributes."

// From returns the text of what the claim is made of: attributes. and a name.
func (c *Claim) From() string { return claimSource + c.Attribute }

// SetFrom is the inverse of From. It reports whether the text is one.
func (c *Claim) SetFrom(text string) (ok bool) {
	c.Attribute, ok = strings.CutPrefix(text, claimSource)
	return ok && c.Attribute != ""
}

// claimScopes are the scopes that may release a claim.
const claimScopes = OpenID | Profile | Email | Phone | Address | Groups

// ReleasedBy returns the scope that releases the claim.
func (c *Claim) ReleasedBy() Scopes { return scopeNamed(c.Scope) }

// reservedClaims are names with a meaning of their own, beside those of Claims: in JWTs (RFC 7519
// section 4.1), access tokens (RFC 9068 section 2.2), introspection (RFC 7662 section 2.2), OpenID
// Connect Core (sections 3.3.2.11, 5.1 and 5.6.2), token exchange, proof of possession, and here.
var reservedClaims = strings.Fields(`iss sub aud exp nbf iat jti
client_id scope roles entitlements active username token_type
given_name family_name middle_name nickname profile website zoneinfo locale c_hash s_hash sub_jwk
act may_act cnf events toe txn authorization_details gatehouse groups_truncated`)

var claimName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:/-]{0,99}$`)

// Check returns a *RegistrationError, or nil if c can be declared.
func (c *Claim) Check() error {
	lower := strings.ToLower(c.Name)
	switch {
	case !claimName.MatchString(c.Name):
		return &RegistrationError{"name", "it must have 1 to 100 letters, digits, underscores, dots, colons, " +
			"slashes and hyphens, a letter first"}
	case slices.Contains(Claims, lower) || slices.Contains(reservedClaims, lower):
		return &RegistrationError{"name", "it has a meaning already: choose another name"}
	case c.Attribute == "":
		return &RegistrationError{"from", "it must be attributes. and the name of an attribute"}
	case c.Scope == "" || scopeNamed(c.Scope) == 0 || !claimScopes.Contains(scopeNamed(c.Scope)):
		return &RegistrationError{"scope", "it must be one of " + claimScopes.List()}
	}
	return nil
}

// MostResourceClaims is how many claims tokens for one resource may have.
const MostResourceClaims = 20

// checkClaims checks the claims that JWTs for the resource have: groups, or declared ones, which need
// not exist yet.
func (r *Resource) checkClaims() *RegistrationError {
	const field = "claims"
	if len(r.Claims) > MostResourceClaims {
		return &RegistrationError{field, "a resource can have at most 20"}
	}
	for i, name := range r.Claims {
		lower := strings.ToLower(name)
		switch {
		case slices.Contains(r.Claims[:i], name):
			return &RegistrationError{field, "each must be different"}
		case name == GroupsClaim:
		case !claimName.MatchString(name), slices.Contains(Claims, lower),
			slices.Contains(reservedClaims, lower):
			return &RegistrationError{field, "each must be groups or a declared claim"}
		}
	}
	return nil
}

// GroupsClaim is the name of the claim with a person's groups.
const GroupsClaim = "groups"
