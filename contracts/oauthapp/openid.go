package oauthapp

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
)

// Provider is the metadata of an OpenID provider (OpenID Connect Discovery section 3).
type Provider struct {
	Metadata
	UserInfoEndpoint   string   `json:"userinfo_endpoint"`
	KeysURI            string   `json:"jwks_uri"`
	EndSessionEndpoint string   `json:"end_session_endpoint"`
	SubjectTypes       []string `json:"subject_types_supported"`
	Algorithms         []string `json:"id_token_signing_alg_values_supported"`
	ACR                []string `json:"acr_values_supported"`
	ClaimTypes         []string `json:"claim_types_supported"`
	Claims             []string `json:"claims_supported"`
	ClaimsParameter    bool     `json:"claims_parameter_supported"`
	RequestParameter   bool     `json:"request_parameter_supported"`
	RequestURI         bool     `json:"request_uri_parameter_supported"`
	BackchannelLogout  bool     `json:"backchannel_logout_supported"`
	BackchannelSession bool     `json:"backchannel_logout_session_supported"`
}

// Discover returns the metadata of the service as an OpenID provider.
func (a *App) Discover(ctx context.Context) (*Provider, error) {
	p := new(Provider)
	if err := a.document(ctx, "/.well-known/openid-configuration", p); err != nil {
		return nil, err
	}
	if p.Issuer == "" || p.KeysURI == "" || p.UserInfoEndpoint == "" || len(p.Algorithms) == 0 {
		return nil, errors.New("got metadata without an issuer, keys, userinfo or algorithms")
	}
	return p, nil
}

// ProtectedResource describes an API that takes access tokens (RFC 9728 section 2).
type ProtectedResource struct {
	Resource      string   `json:"resource"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	BearerMethods []string `json:"bearer_methods_supported"`
}

// ProtectedResource returns the description of the service's own APIs.
func (a *App) ProtectedResource(ctx context.Context) (*ProtectedResource, error) {
	r := new(ProtectedResource)
	return r, a.document(ctx, "/.well-known/oauth-protected-resource", r)
}

func (a *App) document(ctx context.Context, path string, into any) error {
	response, err := a.Do(ctx, Request{Path: path})
	if err != nil {
		return err
	}
	return response.decode(into)
}

// Key is a public key of the service (RFC 7517).
type Key struct {
	Type      string `json:"kty"` // "RSA" or "EC"
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	N         string `json:"n"` // RSA
	E         string `json:"e"`
	Curve     string `json:"crv"` // EC
	X         string `json:"x"`
	Y         string `json:"y"`
}

// Keys returns the public keys of the service's signatures.
func (a *App) Keys(ctx context.Context) ([]Key, error) {
	var set struct{ Keys []Key }
	if err := a.document(ctx, "/oauth/jwks", &set); err != nil {
		return nil, err
	}
	for _, k := range set.Keys {
		if _, err := k.public(); err != nil {
			return nil, err
		}
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("got no keys")
	}
	return set.Keys, nil
}

func (k Key) public() (crypto.PublicKey, error) {
	decoded := func(text string) []byte {
		b, _ := base64.RawURLEncoding.DecodeString(text) // a wrong one gives no key
		return b
	}
	number := func(text string) *big.Int { return new(big.Int).SetBytes(decoded(text)) }
	switch {
	case k.Type == "RSA" && k.Algorithm == "RS256" && number(k.N).BitLen() >= 2048:
		return &rsa.PublicKey{N: number(k.N), E: int(number(k.E).Int64())}, nil
	case k.Type == "EC" && k.Algorithm == "ES256" && k.Curve == "P-256":
		point := slices.Concat([]byte{4}, decoded(k.X), decoded(k.Y)) // SEC 1 section 2.3.3
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}
	return nil, fmt.Errorf("got a key of type %s for %s, want RS256 or ES256", k.Type, k.Algorithm)
}

// Claims is what userinfo says about a user (OpenID Connect Core section 5.1).
type Claims struct {
	Subject             string `json:"sub"`
	Name                string `json:"name"`
	PreferredUsername   string `json:"preferred_username"`
	Picture             string `json:"picture"`
	Gender              string `json:"gender"`
	Birthdate           string `json:"birthdate"` // YYYY-MM-DD
	UpdatedAt           int64  `json:"updated_at"`
	Email               string `json:"email"`
	EmailVerified       bool   `json:"email_verified"`
	PhoneNumber         string `json:"phone_number"` // E.164
	PhoneNumberVerified bool   `json:"phone_number_verified"`
	Address             struct {
		Formatted string `json:"formatted"`
	} `json:"address"`
	Groups          []string `json:"groups"`
	GroupsTruncated bool     `json:"groups_truncated"` // there are too many for Groups
}

const userInfoPath = "/oauth/userinfo"

// UserInfo returns the claims about the token's user.
func (a *App) UserInfo(ctx context.Context, accessToken string) (*Claims, Quota, error) {
	return a.userInfo(ctx, Request{Path: userInfoPath, Header: bearer(accessToken)})
}

// UserInfoByForm is UserInfo for clients that send the token in a form.
func (a *App) UserInfoByForm(ctx context.Context, accessToken string) (*Claims, Quota, error) {
	return a.userInfo(ctx, byForm(userInfoPath, url.Values{"access_token": {accessToken}}))
}

func (a *App) userInfo(ctx context.Context, r Request) (*Claims, Quota, error) {
	response, err := a.Do(ctx, r)
	if err != nil {
		return nil, Quota{}, err
	}
	claims := new(Claims)
	if err := response.decode(claims); err != nil {
		return nil, Quota{}, err
	}
	if claims.Subject == "" {
		return nil, Quota{}, errors.New("got claims without sub")
	}
	return claims, quotaOf(response), nil
}

func byForm(path string, form url.Values) Request {
	return Request{Method: http.MethodPost, Path: path, Body: form.Encode(),
		Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}
}

// Logout is a request to end a session (OpenID Connect RP-Initiated Logout section 2).
type Logout struct {
	IDToken     string // the last one of the user; "" = the person is asked
	RedirectURI string // registered; "" = the browser stays at the service
	State       string
}

// LogoutPath returns the path and query that the browser visits.
func (a *App) LogoutPath(l Logout) string {
	query := url.Values{"client_id": {a.ClientID}}
	for name, value := range map[string]string{"id_token_hint": l.IDToken,
		"post_logout_redirect_uri": l.RedirectURI, "state": l.State} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "/oauth/logout?" + query.Encode()
}

// Registration is how a client registers itself, or was registered (RFC 7591 section 3.2.1).
type Registration struct {
	ClientID     string          `json:"client_id,omitempty"`
	Secret       string          `json:"client_secret,omitempty"`
	Name         string          `json:"client_name,omitempty"`
	URI          string          `json:"client_uri,omitempty"`
	AppType      string          `json:"application_type,omitempty"`
	RedirectURIs []string        `json:"redirect_uris"`
	GrantTypes   []string        `json:"grant_types,omitempty"`
	AuthMethod   string          `json:"token_endpoint_auth_method,omitempty"`
	Scope        string          `json:"scope,omitempty"`
	JWKS         json.RawMessage `json:"jwks,omitempty"`
	JWKSURI      string          `json:"jwks_uri,omitempty"`
	IDTokenAlg   string          `json:"id_token_signed_response_alg,omitempty"`

	PostLogoutURIs []string `json:"post_logout_redirect_uris,omitempty"`
}

// Register registers a client. token is the operator's; "" = none is needed.
func (a *App) Register(ctx context.Context, r Registration, token string) (*Registration, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("describe a client: %w", err)
	}
	header := map[string]string{"Content-Type": "application/json"}
	if token != "" {
		header["Authorization"] = "Bearer " + token
	}
	response, err := a.Do(ctx, Request{Method: http.MethodPost, Path: "/oauth/register",
		Header: header, Body: string(body)})
	if err != nil {
		return nil, err
	}
	got := new(Registration)
	if err := response.decode(got); err != nil {
		return nil, err
	}
	if response.Status != http.StatusCreated || got.ClientID == "" || len(got.RedirectURIs) == 0 {
		return nil, errors.New("got a registration without a client")
	}
	return got, nil
}

// Device is the response to a device authorization request (RFC 8628 section 3.2).
type Device struct {
	Code        string `json:"device_code"`
	UserCode    string `json:"user_code"`
	URI         string `json:"verification_uri"`
	CompleteURI string `json:"verification_uri_complete"`
	ExpiresIn   int    `json:"expires_in"` // seconds
	Interval    int    `json:"interval"`   // seconds between two calls of DeviceTokens, at least
}

// BeginDevice requests a device code, with which a person allows this application elsewhere. scope
// "" requests the service's default.
func (a *App) BeginDevice(ctx context.Context, scope string) (*Device, error) {
	form := url.Values{}
	if scope != "" {
		form.Set("scope", scope)
	}
	response, err := a.post(ctx, "/oauth/device_authorization", form)
	if err != nil {
		return nil, err
	}
	d := new(Device)
	if err := response.decode(d); err != nil {
		return nil, err
	}
	if d.Code == "" || d.UserCode == "" || d.URI == "" || d.ExpiresIn < 1 || d.Interval < 1 {
		return nil, errors.New("got a device authorization without a code, an address or times")
	}
	return d, nil
}

// DeviceTokens returns the tokens of a device that its person has allowed. Before that, the error
// is an *Error with the code "authorization_pending", or "slow_down" for calls that come too early.
func (a *App) DeviceTokens(ctx context.Context, deviceCode string) (*Tokens, error) {
	return a.tokens(ctx, url.Values{
		"grant_type":  {"urn:ietf:params:oauth:grant-type:device_code"},
		"device_code": {deviceCode}})
}
