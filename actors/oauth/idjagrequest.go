package oauth

import (
	"strings"
	"time"
)

// IDJAGLifetime is how long an ID-JAG of this service is valid.
const IDJAGLifetime = 5 * time.Minute

// IDJAGClaims are those of an ID-JAG that this service issues
// (draft-ietf-oauth-identity-assertion-authz-grant section 3).
type IDJAGClaims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"` // the user's id in decimal digits
	Audience string   `json:"aud"` // issuer of the service that it is for
	ClientID string   `json:"client_id"`
	ID       string   `json:"jti"`
	Expires  int64    `json:"exp"`
	Issued   int64    `json:"iat"`
	Resource []string `json:"resource,omitempty"`
	Scope    string   `json:"scope,omitempty"` // of the other service
	Email    string   `json:"email,omitempty"`
}

// checkIDJAG checks what a request for an ID-JAG is for (section 4.3). Scopes and resources are those of
// another service, so only their form is checked.
func (r *TokenRequest) checkIDJAG() *Error {
	switch {
	case len(r.Audiences) != 1:
		return errOneAudience
	case len(r.Resources) > MostIDJAGResources:
		return &Error{Code: InvalidTarget, Description: "The request names more than 20 resources.",
			Hint: "Send fewer."}
	}
	for _, uri := range r.Resources {
		if CheckResourceURI(uri) != nil {
			return errForeignResource
		}
	}
	for _, name := range strings.Fields(r.Scope) {
		if !isScopeName(name) {
			return errForeignScope
		}
	}
	return nil
}

// MostIDJAGResources is how many resources an ID-JAG may name.
const MostIDJAGResources = 20

var (
	errOneAudience = &Error{Code: InvalidTarget,
		Description: "An ID-JAG is for exactly one audience.",
		Hint:        "Send the issuer of the other service as audience, once."}
	errNoAudience = &Error{Code: InvalidTarget,
		Description: "The client may not get ID-JAGs for this audience.",
		Hint:        "Ask the operator to add it to the client."}
	errForeignResource = &Error{Code: InvalidTarget, Description: "A resource is no URI that a service may have.",
		Hint: "Send the URIs of resources of the other service: absolute, https or on loopback, without a fragment."}
	errForeignScope = invalidScope("A scope has characters that none may have.",
		"Send scopes of the other service, separated by single spaces.")
)

// Errors about the subject token of an ID-JAG. They must not be modified.
var (
	// ErrIDJAGSubject is the error for a subject token that gives nothing.
	ErrIDJAGSubject = errSubject("The subject_token is not valid, or is not one of this client.",
		"Send an id_token or a refresh token of this service that the client has now.")
	// ErrIDJAGGroups is the error for a user for whom the client gets no ID-JAG.
	ErrIDJAGGroups = errSubject("The user is in no group for which the client gets ID-JAGs.",
		"Ask the operator to add the user to a group of the client.")
)

// IDAtAudience returns the id of c at the audience of a request, or an error unless c may get an ID-JAG for
// it.
func (c *Client) IDAtAudience(r *TokenRequest) (string, *Error) {
	for _, audience := range c.Options.IDJAG.Audiences {
		if issuer, id, named := strings.Cut(audience, " "); issuer == r.Audiences[0] {
			if !named {
				id = c.WireID()
			}
			return id, nil
		}
	}
	return "", errNoAudience
}
