package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Limits of the assertions of clients (RFC 7523 section 3).
const (
	assertionLifetime = 5 * time.Minute
	assertionSkew     = 10 * time.Second // between the clocks of client and server
	longestAssertion  = 8 << 10          // bytes
	longestJTI        = 256              // bytes
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// AssertionAlgs are the algorithms of assertions.
var AssertionAlgs = []string{"RS256", "ES256"}

var assertionAlgs = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

// parseAssertion returns credentials with an assertion. Their client is the one that the assertion
// names. Service checks whether it has signed it.
func (sent sentCredentials) parseAssertion(authorization string) (Credentials, *Error) {
	const hint = "Send client_assertion_type=" + assertionType +
		" and a signed JWT as client_assertion, and nothing else that authenticates."
	switch {
	case authorization != "" || sent.secret != "":
		return Credentials{}, invalidRequest("The client authenticates in two ways at once.", hint)
	case sent.assertionType == "" || sent.assertion == "":
		return Credentials{}, invalidRequest(
			"The parameter client_assertion_type or client_assertion is missing.", hint)
	case sent.assertionType != assertionType:
		return Credentials{}, &Error{Code: InvalidClient,
			Description: "The client_assertion_type is not supported.", Hint: hint}
	}
	claims, ok := parseClaims(sent.assertion)
	id, isOwn := sent.id, claims.Issuer == "" || claims.Issuer == claims.Subject
	switch {
	case !ok || claims.Subject == "" || !clean(claims.Subject):
		return Credentials{}, errAssertion("The client_assertion is malformed.")
	case id == "" && !isOwn:
		return Credentials{}, errAssertion("The client_assertion must have the client_id as iss and sub. For that of another issuer, the form must have the client_id.")
	case id == "":
		id = claims.Subject
	case isOwn && StoredClientID(id) != StoredClientID(claims.Subject):
		return Credentials{}, errAssertion("The client_id differs from the sub of the client_assertion.")
	}
	return Credentials{ClientID: StoredClientID(id), Assertion: sent.assertion}, nil
}

func errAssertion(description string) *Error {
	return &Error{Code: InvalidClient, Description: description,
		Hint: "Sign a new JWT with a key of the client: RS256 or ES256, iss and sub the client_id, aud the issuer alone, a new jti, exp at most 5 minutes ahead."}
}

// ErrAssertionUsed is the error for an assertion that was sent before. It must not be modified.
var ErrAssertionUsed = errAssertion("The client_assertion was used before.")

// authenticateByKey is Authenticate for credentials with an assertion.
func (c *Client) authenticateByKey(given Credentials) *Error {
	switch {
	case c == nil || !c.HasKeys():
		return errAssertion("The client is unknown or has no keys.")
	case !given.Proven:
		return errAssertion("The client_assertion is not signed with a key of the client.")
	case c.Disabled:
		return given.refused("The client is disabled.", "Ask the operator to enable it.")
	}
	return nil
}

// assertionTyp is the explicit type of assertions (draft-ietf-oauth-rfc7523bis section 4).
const assertionTyp = "client-authentication+jwt"

// isForeign reports whether the typ of a JWT says that it is for another purpose than an assertion,
// such as at+jwt or logout+jwt: all kinds with a type of their own end like that (RFC 8725 section
// 3.11).
func isForeign(h jose.Header) bool {
	typ := typOf(h)
	return typ != assertionTyp &&
		(strings.HasSuffix(typ, "+jwt") || strings.HasSuffix(typ, "+sd-jwt"))
}

// typOf returns the typ of a JWT in lower case and in its short form (RFC 7515 section 4.1.9).
func typOf(h jose.Header) string {
	typ, _ := h.ExtraHeaders[jose.HeaderType].(string)
	return strings.TrimPrefix(strings.ToLower(typ), "application/")
}

// assertionClaims are those of an assertion.
type assertionClaims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  audience `json:"aud"`
	Expires   float64  `json:"exp"`
	Issued    *float64 `json:"iat"`
	NotBefore *float64 `json:"nbf"`
	ID        string   `json:"jti"`
}

// hasExpired reports whether now is not before exp, which must be there.
func (c *assertionClaims) hasExpired(now time.Time) bool { return !(c.Expires > seconds(now)) }

// isEarly reports whether iat or nbf is ahead of a clock that is assertionSkew fast.
func (c *assertionClaims) isEarly(now time.Time) bool {
	latest := seconds(now.Add(assertionSkew))
	return c.Issued != nil && *c.Issued > latest || c.NotBefore != nil && *c.NotBefore > latest
}

// end returns when they expire, in whole seconds.
func (c *assertionClaims) end() time.Time { return time.Unix(int64(math.Ceil(c.Expires)), 0) }

// audience is a string or a list of them.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// parseClaims returns the claims of a JWT whose signature is not checked.
func parseClaims(jwt string) (c assertionClaims, ok bool) {
	if len(jwt) > longestAssertion || strings.Count(jwt, ".") != 2 {
		return c, false
	}
	_, rest, _ := strings.Cut(jwt, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	return c, err == nil && json.Unmarshal(text, &c) == nil
}

// Assertion is an assertion whose claims are right. Its signature is not checked yet.
type Assertion struct {
	KeyID   string    // that it names; "" = none
	Replay  Hash      // of client and jti: the same for an assertion that is sent again
	Expires time.Time // from then on it is refused as expired
	// IsReusable is set for a JWT of another issuer. It has no Replay.
	IsReusable bool

	signed *jose.JSONWebSignature
}

// ParseAssertion checks everything of a client's assertion but its signature (RFC 7523 section 3).
// Its only audience must be one of audiences. The error is InvalidClient.
func (c *Client) ParseAssertion(
	jwt string, audiences []string, now time.Time,
) (*Assertion, *Error) {
	claims, ok := parseClaims(jwt)
	signed, err := jose.ParseSignedCompact(jwt, assertionAlgs)
	fault := errAssertion
	if c.Options.IsFederated() {
		fault = errFederated
	}
	if !ok || err != nil {
		return nil, fault("The client_assertion is malformed, or not signed by RS256 or ES256.")
	}
	if isForeign(signed.Signatures[0].Header) {
		return nil, fault("The typ of the client_assertion is that of another kind of JWT: use JWT, " +
			assertionTyp + " or none.")
	}
	if c.Options.IsFederated() {
		return c.Options.Federated.parse(&claims, signed, audiences[0], now)
	}
	switch {
	case claims.Issuer != claims.Subject || claims.Subject != c.WireID() && claims.Subject != c.ID:
		return nil, errAssertion("The client_assertion must have the client_id as iss and sub.")
	case len(claims.Audience) > 1: // another of them could send it here in the client's name
		return nil, errAssertion("The client_assertion is for several audiences.")
	case len(claims.Audience) == 0 || !slices.Contains(audiences, claims.Audience[0]):
		return nil, errAssertion("The client_assertion is for another audience than " + audiences[0] + ".")
	case claims.ID == "" || len(claims.ID) > longestJTI:
		return nil, errAssertion("The client_assertion must have a jti of at most 256 bytes.")
	case claims.hasExpired(now):
		return nil, errAssertion("The client_assertion has expired, or has no exp.")
	case claims.Expires > seconds(now.Add(assertionLifetime+assertionSkew)):
		return nil, errAssertion("The client_assertion expires more than 5 minutes ahead.")
	case claims.isEarly(now):
		return nil, errAssertion("The client_assertion is not valid yet.")
	case claims.Issued != nil && *claims.Issued < seconds(now.Add(-2*assertionLifetime)):
		return nil, errAssertion("The client_assertion was issued too long ago.")
	}
	return &Assertion{
		KeyID:   signed.Signatures[0].Header.KeyID,
		Replay:  sha256.Sum256([]byte(c.ID + "\x00" + claims.ID)),
		Expires: claims.end(), signed: signed,
	}, nil
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// Key returns the key that the assertion says it is signed with: the one with its key ID, or the only
// one if it names none. nil = there is no such key.
func (a *Assertion) Key(keys []jose.JSONWebKey) *jose.JSONWebKey {
	for i := range keys {
		if keys[i].KeyID == a.KeyID || a.KeyID == "" && len(keys) == 1 {
			return &keys[i]
		}
	}
	return nil
}

// IsSignedBy reports whether a key has signed the assertion. A check takes up to a fifth of a
// millisecond.
func (a *Assertion) IsSignedBy(key *jose.JSONWebKey) bool {
	_, err := a.signed.Verify(key.Key)
	return err == nil
}

// ErrNoKey returns the error for an assertion that is signed with no key of the client, or of the
// issuer. refused says why a key is not accepted; nil = all are.
func (a *Assertion) ErrNoKey(refused error) *Error {
	fault, owner := errAssertion(""), "client"
	if a.IsReusable {
		fault, owner = errFederated(""), "issuer"
		fault.Hint = "Send a new JWT. If the client was registered with the issuer's keys, ask the operator to give the new ones."
	}
	fault.Description = "The " + owner + " has no key with the kid of the client_assertion."
	if a.KeyID == "" {
		fault.Description = "The client_assertion names no key: its header needs a kid."
	}
	if refused != nil {
		fault.Description += " A key of the " + owner + " is not accepted: " + refused.Error() + "."
	}
	return fault
}
