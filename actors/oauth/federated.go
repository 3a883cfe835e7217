package oauth

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Limits of what a client may be federated with.
const (
	longestFederated  = 512 // bytes of a subject, and of an audience
	federatedLifetime = 24 * time.Hour
)

// Federated says which JWTs of another issuer authenticate a client: those that a workload gets from
// where it runs, so that it needs no secret. The zero value is none.
type Federated struct {
	Issuer   string `json:"issuer"`
	Subject  string `json:"subject"`
	Audience string `json:"audience,omitempty"` // "" = the issuer of this service
	JWKS     string `json:"jwks,omitempty"`     // the issuer's keys; "" = those that its metadata name
}

// IsSet reports whether there are such JWTs.
func (f *Federated) IsSet() bool { return *f != Federated{} }

// check returns an error for operators to read.
func (f *Federated) check() error {
	if err := checkHTTPS(f.Issuer); err != nil {
		return errors.New("issuer: " + err.Error())
	}
	switch u, err := url.Parse(f.Issuer); {
	case err != nil || u.RawQuery != "" || len(f.Issuer) > longestFederated:
		return errors.New("issuer: it must be an https URL without a query, of at most 512 bytes")
	case f.Subject == "" || len(f.Subject) > longestFederated || !clean(f.Subject):
		return errors.New("subject: it must have 1 to 512 bytes, UTF-8 without control characters")
	case len(f.Audience) > longestFederated || !clean(f.Audience):
		return errors.New("audience: it must have at most 512 bytes, UTF-8 without control " +
			"characters")
	case f.JWKS != "":
		if err := CheckJWKS(f.JWKS); err != nil {
			return errors.New("jwks: " + err.Error())
		}
	}
	return nil
}

// MetadataURL returns where the issuer's metadata are (OpenID Connect Discovery section 4).
func (f *Federated) MetadataURL() string {
	return strings.TrimSuffix(f.Issuer, "/") + "/.well-known/openid-configuration"
}

// KeysURL returns where the keys of the issuer are, as its metadata say.
func (f *Federated) KeysURL(metadata []byte) (string, error) {
	var said struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	switch {
	case json.Unmarshal(metadata, &said) != nil:
		return "", errors.New("the metadata of the issuer are no JSON object")
	case said.Issuer != f.Issuer:
		return "", errors.New("the metadata are of another issuer")
	}
	return said.JWKSURI, checkHTTPS(said.JWKSURI)
}

func errFederated(description string) *Error {
	return &Error{Code: InvalidClient, Description: description,
		Hint: "Send a JWT that the issuer has made for this client: its iss, sub and aud must be those that the client is registered for."}
}

// parse checks everything of a JWT but its signature. issuer is that of this service. The JWT may be
// sent again until it expires.
func (f *Federated) parse(
	claims *assertionClaims, signed *jose.JSONWebSignature, issuer string, now time.Time,
) (*Assertion, *Error) {
	audience := cmp.Or(f.Audience, issuer)
	issued := seconds(now)
	if claims.Issued != nil {
		issued = *claims.Issued
	}
	switch {
	case claims.Issuer != f.Issuer:
		return nil, errFederated("The client_assertion is not of the issuer that the client is registered for.")
	case claims.Subject != f.Subject:
		return nil, errFederated("The client_assertion is not of the subject that the client is registered for.")
	case len(claims.Audience) != 1 || claims.Audience[0] != audience:
		return nil, errFederated("The client_assertion must have " + audience + " as its only aud.")
	case claims.hasExpired(now):
		return nil, errFederated("The client_assertion has expired, or has no exp.")
	case claims.Expires-issued > federatedLifetime.Seconds():
		return nil, errFederated("The client_assertion is valid for more than 24 hours.")
	case claims.isEarly(now):
		return nil, errFederated("The client_assertion is not valid yet.")
	}
	return &Assertion{
		KeyID: signed.Signatures[0].Header.KeyID, Expires: claims.end(), IsReusable: true,
		signed: signed,
	}, nil
}
