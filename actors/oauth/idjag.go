package oauth

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// IDJAGDraft is draft-ietf-oauth-identity-assertion-authz-grant: the identity provider of a company
// says that a client may act for a person, and the client gets an access token for that.
const IDJAGDraft = "id-jag"

// Drafts are the names of specifications that are no standards yet. Operators turn each on.
var Drafts = []string{IDJAGDraft}

// idJAGProfile is what metadata call the draft (section 7.2).
const idJAGProfile = "urn:ietf:params:oauth:grant-profile:id-jag"

// Limits of ID-JAGs.
const (
	MostIDJAGIssuers = 20                 // and audiences
	IDJAGTyp         = "oauth-id-jag+jwt" // type of the JWT
	idJAGLifetime    = time.Hour          // from now; each that is used is kept for so long
)

// IDJAG says for which ID-JAGs a client gets tokens here, and which ID-JAGs it gets here for other
// services. The zero value is none.
type IDJAG struct {
	Issuers []string `json:"issuers,omitempty"` // of providers with which people sign in
	// Audiences are issuers of other services. After one and a space may follow the client's id there,
	// if it is not the same as here.
	Audiences []string `json:"audiences,omitempty"`
	// Groups are those of which a person must be in one to get an ID-JAG here; none = everybody.
	Groups []string `json:"groups,omitempty"`
}

// IsZero reports whether there are none.
func (j IDJAG) IsZero() bool { return len(j.Issuers)+len(j.Audiences)+len(j.Groups) == 0 }

// checkIDJAG checks whose ID-JAGs the client may send, and which it may get.
func (c *Client) checkIDJAG() *RegistrationError {
	const field = "id_jag"
	j := &c.Options.IDJAG
	bearer, exchange := c.Grants.Contains(JWTBearerGrant), c.Grants.Contains(TokenExchangeGrant)
	switch {
	case bearer && len(j.Issuers) == 0:
		return &RegistrationError{field, "the grant " + JWTBearerGrant.String() + " needs issuers"}
	case j.IsZero():
		return nil
	case c.Public:
		return &RegistrationError{field, "a public client has none"}
	case c.Options.SelfRegistered:
		return &RegistrationError{field, "no operator has registered this client"}
	case len(j.Issuers) > 0 && !bearer:
		return &RegistrationError{field, "issuers need the grant " + JWTBearerGrant.String()}
	case len(j.Issuers) > 0 && c.Options.RequireSecondFactor:
		return &RegistrationError{field,
			"a client with require_second_factor has no issuers: nobody signs in here then"}
	case len(j.Audiences) > 0 && !exchange:
		return &RegistrationError{field, "audiences need the grant " + TokenExchangeGrant.String()}
	case len(j.Groups) > 0 && len(j.Audiences) == 0:
		return &RegistrationError{field, "groups need audiences"}
	}
	if text := checkIssuers(j.Issuers); text != "" {
		return &RegistrationError{field, "issuers: " + text}
	}
	audiences := make([]string, len(j.Audiences))
	for i, audience := range j.Audiences {
		issuer, id, named := strings.Cut(audience, " ")
		if audiences[i] = issuer; named && !isForeignID(id) {
			return &RegistrationError{field, "audiences: after the issuer and a space must follow the client's id there"}
		}
	}
	if text := checkIssuers(audiences); text != "" {
		return &RegistrationError{field, "audiences: " + text}
	}
	if text := checkGroups(j.Groups); text != "" {
		return &RegistrationError{field, "groups: " + text}
	}
	return nil
}

// longestForeignID is how long the id of a client at another service may be, in bytes.
const longestForeignID = 200

// isForeignID reports whether id may be that of a client at another service: it has printable characters
// of ASCII without space (RFC 6749 appendix A.1).
func isForeignID(id string) bool {
	return id != "" && len(id) <= longestForeignID &&
		!strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// checkIssuers returns what is wrong with a list of issuers, for operators; "" = nothing.
func checkIssuers(issuers []string) string {
	if len(issuers) > MostIDJAGIssuers {
		return "a client can have at most 20"
	}
	for i, issuer := range issuers {
		if err := CheckProviderURL(issuer); err != nil {
			return err.Error()
		}
		if slices.Contains(issuers[:i], issuer) {
			return "each must be different"
		}
	}
	return ""
}

// IDJAGAssertion is an Identity Assertion JWT Authorization Grant whose signature is not checked
// (draft-ietf-oauth-identity-assertion-authz-grant section 3).
type IDJAGAssertion struct {
	Assertion
	Issuer    string
	Subject   string
	Scope     string   // that it grants
	Resources []string // that it is for; none = this service
}

// Key returns the issuer's key with the key ID of the assertion, or the only key; nil = there is none
// that may sign. RSA keys of other sizes are refused: they are too slow to check, or not secure.
func (a *IDJAGAssertion) Key(keys []jose.JSONWebKey) *jose.JSONWebKey {
	key := a.Assertion.Key(keys)
	if key == nil || key.Algorithm != "" && key.Algorithm != a.signed.Signatures[0].Header.Algorithm {
		return nil
	}
	if k, ok := key.Key.(*rsa.PublicKey); ok && checkRSA(k) != nil {
		return nil
	}
	return key
}

// idJAGClaims are those of an ID-JAG.
type idJAGClaims struct {
	assertionClaims
	ClientID string   `json:"client_id"`
	Scope    string   `json:"scope"`
	Resource audience `json:"resource"`
}

// ParseIDJAG checks everything of an ID-JAG for the client but its signature. issuer is that of this
// service.
func (c *Client) ParseIDJAG(jwt, issuer string, now time.Time) (*IDJAGAssertion, *Error) {
	var claims idJAGClaims
	if len(jwt) > longestAssertion {
		return nil, errIDJAG("The assertion has more than 8192 bytes.")
	}
	signed, err := jose.ParseSignedCompact(jwt, ProviderAlgs)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errIDJAG("The assertion is malformed, or not signed by an algorithm with a public key.")
	}
	header := &signed.Signatures[0].Header
	switch {
	case typOf(*header) != IDJAGTyp:
		return nil, errIDJAG("The typ of the assertion must be " + IDJAGTyp + ".")
	case json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &claims) != nil:
		return nil, errIDJAG("The claims of the assertion are malformed.")
	case claims.Issuer == issuer:
		return nil, errIDJAG("The issuer of the assertion is this service, but must be an identity provider.")
	case !slices.Contains(c.Options.IDJAG.Issuers, claims.Issuer):
		return nil, errIDJAG("The client is not registered for the issuer of the assertion.")
	case len(claims.Audience) != 1 || claims.Audience[0] != issuer:
		return nil, errIDJAG("The assertion must have " + issuer + " as its only aud.")
	case claims.ClientID != c.WireID():
		return nil, errIDJAG("The client_id of the assertion is that of another client.")
	case claims.Subject == "" || len(claims.Subject) > MostSubject || !clean(claims.Subject):
		return nil, errIDJAG("The assertion must have a sub of at most 255 bytes.")
	case claims.ID == "" || len(claims.ID) > longestJTI:
		return nil, errIDJAG("The assertion must have a jti of at most 256 bytes.")
	case claims.hasExpired(now):
		return nil, errIDJAG("The assertion has expired, or has no exp.")
	case claims.Expires > seconds(now.Add(idJAGLifetime)):
		return nil, errIDJAG("The assertion expires more than an hour ahead.")
	case claims.Issued == nil:
		return nil, errIDJAG("The assertion has no iat.")
	case claims.isEarly(now):
		return nil, errIDJAG("The assertion is not valid yet.")
	}
	// No client ID has a space, so that the Replay is not that of a client's own assertion.
	replay := sha256.Sum256([]byte("id-jag " + claims.Issuer + "\x00" + claims.ID))
	return &IDJAGAssertion{
		Assertion{KeyID: header.KeyID, Replay: replay, Expires: claims.end(), signed: signed},
		claims.Issuer, claims.Subject, claims.Scope, claims.Resource,
	}, nil
}

// Grant returns what a request of the client gets for an ID-JAG: the scopes that the ID-JAG names,
// without those that the client may not have or that need a sign-in here. A scope of the request
// narrows them. The error is InvalidTarget or InvalidScope.
func (a *IDJAGAssertion) Grant(
	c *Client, r *TokenRequest, known *Resources,
) (Scopes, Targets, *Error) {
	scopes, names, _ := splitScopes(a.Scope)
	scopes &= c.Scopes & GrantableScopes &^ OfflineAccess
	targets, fault := known.Resolve(c, a.Resources, nil)
	if fault != nil {
		return 0, nil, fault
	}
	for i := range targets {
		for _, name := range names {
			targets[i].Scopes |= known.bit(targets[i].Resource, name)
		}
	}
	none := scopes == 0 &&
		!slices.ContainsFunc(targets, func(t Target) bool { return t.Scopes != 0 })
	asked, _, ok := splitScopes(r.Scope)
	switch {
	case none && (a.Scope != "" || len(targets) == 0):
		return 0, nil, invalidScope("The assertion grants no scope that the client may have.",
			"Ask the identity provider for other scopes, or the operator to add them to the client.")
	case r.Scope == "":
		return scopes, targets, nil
	case !ok:
		return 0, nil, errUnknownScope
	case !scopes.Contains(asked):
		return 0, nil, invalidScope("The scope is more than the assertion grants to the client.",
			"Request scopes of the assertion only, or leave scope out.")
	}
	return asked, targets, nil
}

func errIDJAG(description string) *Error {
	return invalidGrant(description, "Get a new assertion for this client and this service from the identity provider.")
}

// Errors for ID-JAGs. They are shared and must not be modified.
var (
	// ErrIDJAGUsed: it was sent before, to any node.
	ErrIDJAGUsed = errIDJAG("The assertion was used before.")
	// ErrIDJAGSignature: no key of its issuer has signed it.
	ErrIDJAGSignature = errIDJAG("The assertion is not signed with a key of its issuer.")
	// ErrIDJAGProvider: people do not sign in with its issuer.
	ErrIDJAGProvider = errIDJAG("The issuer of the assertion is no provider with which people sign in.")
	// ErrIDJAGPerson: no account is connected to its subject, or the account is disabled.
	ErrIDJAGPerson = invalidGrant("The person of the assertion has no account here that may be used.",
		"Ask the person to sign in here once with the identity provider.")
	// ErrIDJAGKeys: the keys of its issuer cannot be read.
	ErrIDJAGKeys = &Error{Code: TemporarilyUnavailable,
		Description: "The keys of the assertion's issuer could not be read.",
		Hint:        "Try again in a few seconds.", RetryAfter: 10 * time.Second}
)
