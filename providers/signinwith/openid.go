package signinwith

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"gatehouse/actors/oauth"
)

// discovered is what a provider says of itself (OpenID Connect Discovery section 3).
type discovered struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	UserInfo      string   `json:"userinfo_endpoint"`
	Keys          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	TokenAuth     []string `json:"token_endpoint_auth_methods_supported"`
	SaysIssuer    bool     `json:"authorization_response_iss_parameter_supported"`

	until time.Time // it is fresh
}

// discover returns what p says of itself. One request at a time is under way for each provider. If p
// does not respond, what it said before goes on to count.
func (c *Client) discover(
	ctx context.Context, p *oauth.Provider, known *provider,
) (*discovered, error) {
	for {
		known.mu.Lock()
		if known.found != nil && time.Now().Before(known.found.until) {
			defer known.mu.Unlock()
			return known.found, nil
		}
		if known.fetching == nil {
			break
		}
		fetching := known.fetching
		known.mu.Unlock()
		select {
		case <-fetching:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for discovery: %w", oauth.ErrProviderAway)
		}
	}
	before, done := known.found, make(chan struct{})
	known.fetching = done
	known.mu.Unlock()
	found, err := c.fetchDiscovery(ctx, p)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.fetching = nil
	close(done)
	switch {
	case err == nil:
		known.found = found
		return found, nil
	case errors.Is(err, oauth.ErrProviderAway) && before != nil:
		kept := *before // its other endpoints may respond
		kept.until = time.Now().Add(keyRetry)
		known.found = &kept
		return &kept, nil
	}
	return nil, err
}

func (c *Client) fetchDiscovery(ctx context.Context, p *oauth.Provider) (*discovered, error) {
	var found discovered
	header, at, err := c.get(ctx,
		strings.TrimSuffix(p.Issuer, "/")+"/.well-known/openid-configuration", "", &found)
	if err != nil {
		return nil, err
	}
	found.until = at.Add(c.freshness(header, at))
	if found.Issuer != p.Issuer {
		return nil, &oauth.ProviderError{Reason: "its metadata name another issuer"}
	}
	for _, endpoint := range []string{found.Authorization, found.Token, found.Keys, found.UserInfo} {
		optional := endpoint == found.UserInfo && endpoint == ""
		plain := strings.HasPrefix(p.Issuer, "https://") && !strings.HasPrefix(endpoint, "https://")
		if base, _, _ := strings.Cut(endpoint, "?"); !optional && (plain ||
			oauth.CheckProviderURL(base) != nil) {
			return nil, &oauth.ProviderError{Reason: "its metadata lack an endpoint, or name one " +
				"that is no https URL"}
		}
	}
	return &found, nil
}

// config returns how p is asked. OpenID providers say it themselves.
func (c *Client) config(
	ctx context.Context, p *oauth.Provider, known *provider, redirectURI string,
) (*oauth2.Config, error) {
	config := &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.Secret, RedirectURL: redirectURI,
		Scopes: p.AskedScopes()}
	if p.Kind == oauth.GitHubProvider {
		config.Endpoint = oauth2.Endpoint{AuthURL: p.Issuer + "/login/oauth/authorize",
			TokenURL: p.Issuer + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams}
		return config, nil
	}
	found, err := c.discover(ctx, p, known)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	style := oauth2.AuthStyleInHeader // the default of RFC 8414 section 2
	if p.Secret == "" || found.TokenAuth != nil &&
		!slices.Contains(found.TokenAuth, "client_secret_basic") {
		style = oauth2.AuthStyleInParams
	}
	config.Endpoint = oauth2.Endpoint{AuthURL: found.Authorization, TokenURL: found.Token,
		AuthStyle: style}
	return config, nil
}

// said are claims of an id_token or of userinfo. Some providers write booleans as texts.
type said struct {
	Subject  string          `json:"sub"`
	Party    string          `json:"azp"`
	Name     string          `json:"name"`
	Username string          `json:"preferred_username"`
	Email    string          `json:"email"`
	Verified json.RawMessage `json:"email_verified"`
	Domain   string          `json:"hd"`
	Groups   json.RawMessage `json:"groups"`
}

// openIDIdentity returns who an id_token is about (OpenID Connect Core section 3.1.3.7).
func (c *Client) openIDIdentity(
	ctx context.Context, p *oauth.Provider, known *provider, token *oauth2.Token, nonce string,
) (*oauth.ProviderIdentity, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok || raw == "" {
		return nil, &oauth.ProviderError{Reason: "there is no id_token"}
	}
	found := known.said()
	if found == nil {
		return nil, fmt.Errorf("discovery: %w", oauth.ErrProviderAway)
	}
	keys := &remoteKeys{client: c, known: known, url: found.Keys}
	verifier := oidc.NewVerifier(p.Issuer, keys, &oidc.Config{ClientID: p.ClientID,
		SupportedSigningAlgs: signedBy(found)})
	verified, err := verifier.Verify(ctx, raw)
	switch {
	case errors.Is(keys.failed, oauth.ErrProviderAway):
		return nil, fmt.Errorf("read keys: %w", oauth.ErrProviderAway)
	case err != nil:
		return nil, &oauth.ProviderError{Reason: "the id_token is not valid: " + idTokenReason(err)}
	}
	var claims said
	if verified.Claims(&claims) != nil {
		return nil, &oauth.ProviderError{Reason: "the claims of the id_token are not as expected"}
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce)) != 1:
		return nil, &oauth.ProviderError{Reason: "the id_token has another nonce"}
	case claims.Party != "" && claims.Party != p.ClientID,
		claims.Party == "" && len(verified.Audience) > 1:
		return nil, &oauth.ProviderError{Reason: "the id_token is for another client"}
	case verified.Subject == "" || len(verified.Subject) > oauth.MostSubject ||
		strings.ContainsRune(verified.Subject, 0):
		return nil, &oauth.ProviderError{Reason: "the id_token has no subject, or one that cannot be kept"}
	case verified.AccessTokenHash != "" && verified.VerifyAccessToken(token.AccessToken) != nil:
		return nil, &oauth.ProviderError{Reason: "the id_token is of another access token"}
	}
	if err := c.addUserInfo(ctx, p, found, token.AccessToken, &claims); err != nil {
		return nil, err
	}
	return claims.identity(p), nil
}

// addUserInfo adds what userinfo says and the id_token does not. The address and whether it is
// verified come from one of them.
func (c *Client) addUserInfo(
	ctx context.Context, p *oauth.Provider, found *discovered, bearer string, claims *said,
) error {
	complete := claims.Email != "" && claims.Name != "" && (len(p.Groups) == 0 || claims.Groups != nil)
	if complete || found.UserInfo == "" {
		return nil
	}
	var info said
	if _, _, err := c.get(ctx, found.UserInfo, bearer, &info); err != nil {
		return fmt.Errorf("userinfo: %w", err)
	}
	if info.Subject != claims.Subject { // OpenID Connect Core section 5.3.2
		return &oauth.ProviderError{Reason: "userinfo is about another subject"}
	}
	if claims.Email == "" {
		claims.Email, claims.Verified = info.Email, info.Verified
	}
	if claims.Name == "" {
		claims.Name = info.Name
	}
	if claims.Username == "" {
		claims.Username = info.Username
	}
	if claims.Domain == "" {
		claims.Domain = info.Domain
	}
	if claims.Groups == nil {
		claims.Groups = info.Groups
	}
	return nil
}

// identity returns who the claims are about.
func (s *said) identity(p *oauth.Provider) *oauth.ProviderIdentity {
	who := &oauth.ProviderIdentity{
		Issuer: p.Issuer, Subject: s.Subject, Name: s.Name, Email: s.Email, Domain: s.Domain,
		EmailVerified: string(s.Verified) == "true" || string(s.Verified) == `"true"`,
		Account:       s.Email,
	}
	if who.Account == "" {
		who.Account = s.Username
	}
	if who.Name == "" {
		who.Name = s.Username
	}
	var one string
	if json.Unmarshal(s.Groups, &who.Groups) != nil && json.Unmarshal(s.Groups, &one) == nil {
		who.Groups = []string{one}
	}
	return who
}

// idTokenReason says in a word why go-oidc refused an id_token. Its texts have values of the token.
func idTokenReason(err error) string {
	text := err.Error()
	switch {
	case errors.As(err, new(*oidc.TokenExpiredError)):
		return "it has expired"
	case strings.Contains(text, "different provider"):
		return "it has another issuer"
	case strings.Contains(text, "expected audience"):
		return "it has another audience"
	case strings.Contains(text, "unsupported algorithm"), strings.Contains(text, "unexpected signature"):
		return "its algorithm is not allowed"
	case strings.Contains(text, "signature"):
		return "no key of the provider has signed it"
	}
	return "it is malformed"
}

// signedBy returns the algorithms that a provider may sign with.
func signedBy(found *discovered) (all []string) {
	for _, a := range oauth.ProviderAlgs {
		if found.Algorithms == nil && a == jose.RS256 || slices.Contains(found.Algorithms, string(a)) {
			all = append(all, string(a))
		}
	}
	if all == nil {
		return []string{oidc.RS256}
	}
	return all
}

// keyRetry is how long no other keys are read after some were read: tokens with unknown keys are
// cheap to make.
const keyRetry = 10 * time.Second

// keySet are the keys of a provider.
type keySet struct {
	reading sync.Mutex // held while they are read, so that one request is under way
	current atomic.Pointer[readKeys]
}

// readKeys are keys that were read. They are never changed.
type readKeys struct {
	url   string
	all   []jose.JSONWebKey
	read  time.Time
	until time.Time // they are fresh
}

// fresh returns the keys that were read at a URL, or nil if they are not fresh any more.
func (k *keySet) fresh(url string) *readKeys {
	known := k.current.Load()
	if known == nil || known.url != url || !time.Now().Before(known.until) {
		return nil
	}
	return known
}

// remoteKeys implements oidc.KeySet. Keys are kept as their headers say: one that the provider
// withdraws ends with that time.
type remoteKeys struct {
	client *Client
	known  *provider
	url    string
	failed error // why they could not be read; go-oidc passes on its text only
}

// VerifySignature implements oidc.KeySet.
func (r *remoteKeys) VerifySignature(ctx context.Context, text string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(text, oauth.ProviderAlgs)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errors.New("malformed signature")
	}
	var payload []byte
	verifies := func(keys []jose.JSONWebKey) (ok bool) {
		payload, ok = verify(signed, signed.Signatures[0].Header.KeyID, keys)
		return ok
	}
	keys, err := r.find(ctx, verifies)
	if err != nil {
		r.failed = err
		return nil, err
	}
	if payload == nil && !verifies(keys) {
		return nil, errors.New("no key has signed the signature")
	}
	return payload, nil
}

// find returns keys that suit, or else those that were read last. It reads them if those that are
// fresh do not suit.
func (r *remoteKeys) find(
	ctx context.Context, suit func([]jose.JSONWebKey) bool,
) ([]jose.JSONWebKey, error) {
	k := &r.known.keys
	if known := k.fresh(r.url); known != nil && suit(known.all) {
		return known.all, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	known := k.fresh(r.url) // another request may have read them meanwhile
	if known != nil && (time.Since(known.read) < keyRetry || suit(known.all)) {
		return known.all, nil
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	header, at, err := r.client.get(ctx, r.url, "", &set)
	if err != nil {
		return nil, err
	}
	read := &readKeys{url: r.url, read: at, until: at.Add(r.client.freshness(header, at))}
	for _, one := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(one, &key) == nil && key.Valid() && key.IsPublic() &&
			(key.Use == "" || key.Use == "sig") {
			read.all = append(read.all, key) // others may be of kinds that are not known here
		}
	}
	k.current.Store(read)
	return read.all, nil
}

// verify returns what one of the keys has signed.
func verify(signed *jose.JSONWebSignature, id string, keys []jose.JSONWebKey) ([]byte, bool) {
	for i := range keys {
		if id != "" && keys[i].KeyID != "" && keys[i].KeyID != id {
			continue
		}
		if payload, err := signed.Verify(&keys[i]); err == nil {
			return payload, true
		}
	}
	return nil, false
}
