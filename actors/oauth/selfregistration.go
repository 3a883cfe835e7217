package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of clients that registered themselves (RFC 7591, or a client-id metadata document).
const (
	// LongestRegistration is the length of a registration request, in bytes.
	LongestRegistration = 5 << 10
	// ConsentWithin is how long such a client waits for its first consent.
	ConsentWithin = time.Hour
	// MostAwaiting is how many of those that send a registration request may wait at a time.
	MostAwaiting = 10_000
	// ClientIdle is how long such a client stays without use.
	ClientIdle = 90 * 24 * time.Hour
	// ReviewEvery is how often the use of such a client is looked at.
	ReviewEvery = 24 * time.Hour
	// MostSelfRegistered is how many such clients one account may have consented to.
	MostSelfRegistered = 100
)

// RegistrationStore keeps clients that registered themselves.
type RegistrationStore interface {
	// RegisterClient is CreateClient for a client that awaits a consent. It returns a *CrowdedError
	// if as many of its caller do as r allows. If r.Most do in all, it deletes the oldest ones of the
	// networks that have most of them, and returns them.
	RegisterClient(ctx context.Context, c *Client, r Registrant) (ended []EndedClient, err error)
	// SettledClients is Clients without those that await a consent, which anybody can make.
	SettledClients(ctx context.Context, after string, limit int) ([]*Client, error)
	// HasConsent reports whether a person has consented to a client and not withdrawn it.
	HasConsent(ctx context.Context, clientID string) (bool, error)
	// EndClients deletes self-registered clients at now, and returns them: those that have awaited
	// a consent for too long, and those without use. A client is in use while a consent was used
	// within ClientIdle or a refresh token is valid, and while it is disabled. Each is looked at
	// every ReviewEvery. It works in small steps between other writes.
	EndClients(ctx context.Context, now time.Time) ([]EndedClient, error)
}

// EndedClient is a self-registered client that was deleted.
type EndedClient struct {
	ID   string
	Idle bool // false = nobody has consented in time
}

// Registrant is who registers a client, and what may await a consent then.
type Registrant struct {
	Caller netip.Addr // zero = not known
	// PerCaller is how many clients of an IPv4 address or IPv6 /64 may await a consent, and of an IPv6
	// /48 four times as many; 0 = no limit.
	PerCaller int
	Most      int // in all
}

// CrowdedError is the error of a registration of a caller for whom too many clients await a consent.
type CrowdedError struct{ Until time.Time } // when the first of them ends

// Error implements error.
func (*CrowdedError) Error() string { return "too many clients of the caller await a consent" }

// HasLapsed reports whether nobody has consented in time to a client that registered itself.
func (c *Client) HasLapsed(now time.Time) bool {
	return !c.Awaits.IsZero() && !now.Before(c.Awaits)
}

// RegistrationMode says who may register clients (RFC 7591). The zero value is RegistrationOff.
type RegistrationMode int

// The modes.
const (
	RegistrationOff   RegistrationMode = iota
	RegistrationToken                  // who has the initial access token (RFC 7591 section 3)
	RegistrationOpen                   // everybody
)

// registration are the members of a registration request and its response beside those of
// clientMetadata (RFC 7591 section 2; OpenID Connect Registration section 2; RP-Initiated Logout
// section 3.1).
type registration struct {
	clientMetadata
	Scope          string   `json:"scope"`
	PostLogoutURIs []string `json:"post_logout_redirect_uris"`
	IDTokenAlg     string   `json:"id_token_signed_response_alg"`
	SubjectType    string   `json:"subject_type"`
}

// The methods by which a registered client authenticates at the token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// Registration is what a registration request asks for.
type Registration struct {
	Client *Client // without an ID
	method string  // by which it authenticates
	kind   string  // application_type; "" = it says nothing
}

// ParseRegistration returns what a registration request asks for (RFC 7591 section 3.1). Members that
// it does not know are ignored. With RegistrationOpen, a client that has a secret or keys must use
// PKCE all the same. schemes are private-use ones without a dot that the operator allows.
func ParseRegistration(
	text []byte, mode RegistrationMode, schemes []string,
) (*Registration, *Error) {
	if len(text) > LongestRegistration {
		return nil, invalidMetadata("The request is larger than 5 KiB.",
			"Leave out members that are not needed.")
	}
	var r registration
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, unreadable(text, err)
	}
	c, err := r.client()
	method := ""
	if err == nil {
		method, err = r.authentication(c, mode)
	}
	if err == nil {
		err = r.setOptions(c)
	}
	if err != nil {
		return nil, invalidMetadata("The client's metadata are not valid: "+err.Error()+".",
			"Correct the request.")
	}
	checked := *c
	if method == methodBasic || method == methodPost {
		checked.Secrets = []Secret{{}} // it gets one
	}
	return &Registration{c, method, r.AppType}, InvalidMetadata(r.check(&checked, schemes))
}

func invalidMetadata(description, hint string) *Error {
	return &Error{Code: InvalidClientMetadata, Description: description, Hint: hint}
}

// unreadable returns the error of a request that is not JSON, or has a member of another type.
func unreadable(text []byte, err error) *Error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) || kind.Field == "" {
		return invalidMetadata("The body is not a JSON object.",
			"Send the client's metadata as a JSON object (RFC 7591 section 3.1).")
	}
	field := strings.TrimPrefix(kind.Field, "clientMetadata.")
	fault := invalidMetadata("A member of the request has the wrong type.",
		"Correct the member "+field+noString(text, field)+".")
	if strings.HasPrefix(field, "redirect_uris") {
		fault.Code = InvalidRedirectURI
	}
	return fault
}

// noString says at which index a list has no string; "" = nowhere, or there is no list.
func noString(text []byte, member string) string {
	var all map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(text, &all) != nil || json.Unmarshal(all[member], &list) != nil {
		return ""
	}
	for i, value := range list {
		if value[0] != '"' && string(value) != "null" {
			return " at index " + strconv.Itoa(i)
		}
	}
	return ""
}

// authentication has the client authenticate as it has asked for. Without a word, that is by nothing
// with RegistrationOpen, and else by a secret (RFC 7591 section 2).
func (r *registration) authentication(c *Client, mode RegistrationMode) (method string, err error) {
	method = r.AuthMethod
	switch {
	case method == "" && mode == RegistrationOpen:
		method = methodNone
	case method == "":
		method = methodBasic
	}
	c.Public = method == methodNone
	c.Options.RequirePKCE = mode == RegistrationOpen && !c.Public
	switch method {
	case methodNone, methodBasic, methodPost:
		return method, nil
	case methodKey:
		return method, r.setKeys(c)
	}
	return "", errors.New("its token_endpoint_auth_method must be none, client_secret_basic, " +
		"client_secret_post or private_key_jwt")
}

// setOptions sets what metadata documents do not have.
func (r *registration) setOptions(c *Client) error {
	if names := strings.Fields(r.Scope); len(names) > 0 {
		c.Scopes = 0 // if it asks for scopes of resources only, which need no registration
		for _, name := range names {
			c.Scopes |= scopeNamed(name) & GrantableScopes
		}
	}
	if r.IDTokenAlg != "" && !slices.Contains(IDTokenAlgs, r.IDTokenAlg) {
		return errors.New("its id_token_signed_response_alg must be RS256 or ES256")
	}
	if r.SubjectType != "" && r.SubjectType != "public" {
		return errors.New("its subject_type must be public")
	}
	c.Options.IDTokenAlg, c.Options.PostLogoutRedirectURIs = r.IDTokenAlg, r.PostLogoutURIs
	if c.Name == "" && len(c.RedirectURIs) > 0 {
		c.Name = RedirectOrigin(c.RedirectURIs[0])
	}
	c.Name = cmp.Or(c.Name, "App") // the redirect URI is refused then
	if !slices.ContainsFunc(c.RedirectURIs, func(uri string) bool { return !isSameHost(r.URI, uri) }) {
		c.URI = r.URI // nobody else's page is linked
	}
	return nil
}

// InvalidMetadata returns what a client that registers itself is told of a *RegistrationError; nil for
// other errors.
func InvalidMetadata(err error) *Error {
	var wrong *RegistrationError
	if !errors.As(err, &wrong) {
		return nil
	}
	field := wrong.Field
	if field == "name" {
		field = "client_name"
	}
	fault := invalidMetadata("The member "+field+" is not valid: "+wrong.Message+".",
		"Correct "+field+".")
	if field == "redirect_uris" {
		fault.Code = InvalidRedirectURI
	}
	return fault
}

// registered is the response to a registration request (RFC 7591 section 3.2.1).
type registered struct {
	ClientID       string          `json:"client_id"`
	Issued         int64           `json:"client_id_issued_at"`
	Secret         string          `json:"client_secret,omitempty"`
	SecretExpires  *int64          `json:"client_secret_expires_at,omitempty"` // 0 = never
	Name           string          `json:"client_name"`
	URI            string          `json:"client_uri,omitempty"`
	RedirectURIs   []string        `json:"redirect_uris"`
	GrantTypes     []string        `json:"grant_types"`
	ResponseTypes  []string        `json:"response_types"`
	AppType        string          `json:"application_type,omitempty"`
	AuthMethod     string          `json:"token_endpoint_auth_method"`
	Scope          string          `json:"scope,omitempty"`
	JWKS           json.RawMessage `json:"jwks,omitempty"`
	JWKSURI        string          `json:"jwks_uri,omitempty"`
	PostLogoutURIs []string        `json:"post_logout_redirect_uris,omitempty"`
	IDTokenAlg     string          `json:"id_token_signed_response_alg"`
}

// Response returns the response that tells the client how it was registered. secret is "" if it has
// none.
func (r *Registration) Response(secret string) []byte {
	c := r.Client
	response := registered{
		ClientID: c.ID, Issued: c.Created.Unix(), Secret: secret, Name: c.Name, URI: c.URI,
		RedirectURIs: c.RedirectURIs, GrantTypes: c.Grants.Names(), ResponseTypes: []string{"code"},
		AppType: r.kind, AuthMethod: r.method, Scope: c.Scopes.String(),
		JWKS: json.RawMessage(c.Options.JWKS), JWKSURI: c.Options.JWKSURI,
		PostLogoutURIs: c.Options.PostLogoutRedirectURIs, IDTokenAlg: c.IDTokenAlg(),
	}
	if secret != "" {
		response.SecretExpires = new(int64)
	}
	return encode(response)
}
