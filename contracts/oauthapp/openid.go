package oauthapp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
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

// Claims is what an id_token or userinfo says about a user (OpenID Connect Core section 5.1).
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
}

// IDToken is what an id_token says (OpenID Connect Core section 2).
type IDToken struct {
	Claims
	Issuer          string `json:"iss"`
	Audience        string `json:"aud"`
	Expires         int64  `json:"exp"`
	Nonce           string `json:"nonce"`
	AccessTokenHash string `json:"at_hash"`
}

// CheckIDToken returns what an id_token says. It must be signed by one of the keys, for this
// application, with the nonce of the authorization request ("" = none) and for the access token.
func (a *App) CheckIDToken(keys []Key, idToken, nonce, accessToken string) (*IDToken, error) {
	parts := strings.Split(idToken, ".")
	if len(parts) != 3 {
		return nil, errors.New("the id_token is no signed JWT")
	}
	var header struct{ Alg, Kid string }
	claims := new(IDToken)
	if err := errors.Join(decodePart(parts[0], &header), decodePart(parts[1], claims)); err != nil {
		return nil, fmt.Errorf("read an id_token: %w", err)
	}
	i := slices.IndexFunc(keys, func(k Key) bool {
		return k.ID == header.Kid && k.Algorithm == header.Alg
	})
	if i < 0 {
		return nil, errors.New("the id_token is signed with an unknown key")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !keys[i].verifies(parts[0]+"."+parts[1], signature) {
		return nil, errors.New("the id_token is not signed with the key that it names")
	}
	issuer := a.Issuer
	if issuer == "" {
		issuer = a.Service
	}
	sum := sha256.Sum256([]byte(accessToken))
	switch {
	case claims.Issuer != issuer, claims.Audience != a.ClientID, claims.Subject == "":
		return nil, errors.New("the id_token is of another issuer, or for another application")
	case !time.Now().Before(time.Unix(claims.Expires, 0)):
		return nil, errors.New("the id_token has expired")
	case claims.Nonce != nonce:
		return nil, errors.New("the id_token is for another authorization request")
	case claims.AccessTokenHash != base64.RawURLEncoding.EncodeToString(sum[:16]):
		return nil, errors.New("the id_token is for another access token")
	}
	return claims, nil
}

// decodePart decodes the header or the claims of a JWT.
func decodePart(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.NewDecoder(bytes.NewReader(text)).Decode(into)
}

func (k Key) verifies(signed string, signature []byte) bool {
	public, err := k.public()
	if err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(signed))
	switch public := public.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case *ecdsa.PublicKey:
		return len(signature) == 64 && ecdsa.Verify(public, sum[:],
			new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	}
	return false
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
