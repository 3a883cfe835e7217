package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/loadtest/lab"
)

// assertionType is the client_assertion_type of JWTs.
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// keys are those of a client that authenticates with private_key_jwt.
type keys struct {
	quick *ecdsa.PrivateKey
	slow  *rsa.PrivateKey // nil = none; a check of its signatures costs most
}

// jwks returns the public keys.
func (k keys) jwks() jose.JSONWebKeySet {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.quick.Public(), KeyID: "quick"}}}
	if k.slow != nil {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.slow.Public(), KeyID: "slow"})
	}
	return set
}

// claims returns those of a new assertion of a client.
func (t *target) claims(id string) ([]byte, error) {
	return json.Marshal(map[string]any{"iss": id, "sub": id, "aud": t.Base, "jti": rand.Text(),
		"exp": time.Now().Unix() + 60})
}

// sign returns an assertion that the quick key has signed.
func (t *target) sign(k keys, id string) (string, error) {
	claims, err := t.claims(id)
	if err != nil {
		return "", err
	}
	options := (&jose.SignerOptions{}).WithHeader("kid", "quick")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.quick}, options)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// pretend returns an assertion with a wrong signature by the slow key.
func (t *target) pretend(id string) (string, error) {
	claims, err := t.claims(id)
	if err != nil {
		return "", err
	}
	signature := make([]byte, 512)
	rand.Read(signature[1:])
	url64 := base64.RawURLEncoding.EncodeToString
	return url64([]byte(`{"alg":"RS256","kid":"slow"}`)) + "." + url64(claims) + "." + url64(signature), nil
}

// register registers a client that describes itself and returns its ID.
func (t *target) register(ctx context.Context, b *lab.Browser, client map[string]any) (string, *lab.Page, error) {
	client["redirect_uris"] = []string{redirectURI}
	text, err := json.Marshal(client)
	if err != nil {
		return "", nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Base+"/oauth/register",
		bytes.NewReader(text))
	if err != nil {
		return "", nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := b.Client.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	p := &lab.Page{Status: response.StatusCode, Body: string(text)}
	var made struct {
		ID string `json:"client_id"`
	}
	if err == nil && p.Status == http.StatusCreated {
		err = json.Unmarshal(text, &made)
	}
	return made.ID, p, err
}

// from returns a browser of the next attacker, at an address in a /48 of its own, and its number.
func (t *target) from() (*lab.Browser, int64) {
	n := t.attackers.Add(1)
	return t.browser(&http.Transport{MaxIdleConnsPerHost: 1}, fmt.Sprintf("2001:db8:%x::1", 0x1000+n)), n
}

// assert registers a client with keys and authenticates it again and again: half of the attackers
// with right signatures, the others with wrong ones, whose checks cost most.
func (t *target) assert(ctx context.Context, s *seen) {
	b, n := t.from()
	id, p, err := t.register(ctx, b, map[string]any{"token_endpoint_auth_method": "private_key_jwt",
		"jwks": t.strangers.jwks()})
	if err != nil || id == "" {
		s.count(p, err)
		return
	}
	for ctx.Err() == nil {
		var assertion string
		if n%2 == 0 {
			assertion, err = t.sign(t.strangers, id)
		} else {
			assertion, err = t.pretend(id)
		}
		if err == nil {
			p, err = b.Do(ctx, http.MethodPost, "/oauth/token", url.Values{"grant_type": {"refresh_token"},
				"refresh_token": {"x"}, "client_assertion_type": {assertionType}, "client_assertion": {assertion}})
		}
		s.count(p, err)
	}
}

// fetch registers clients whose keys are at hosts that do not respond, and authenticates them.
func (t *target) fetch(ctx context.Context, s *seen) {
	b, n := t.from()
	for i := 0; ctx.Err() == nil; i++ {
		id, _, err := t.register(ctx, b, map[string]any{"token_endpoint_auth_method": "private_key_jwt",
			"jwks_uri": fmt.Sprintf("https://slow-%d.example.com/%d/%d", i%4, n, i)})
		var assertion string
		if err == nil && id != "" {
			assertion, err = t.sign(t.strangers, id)
		}
		for range 10 {
			if err != nil || id == "" {
				retry(ctx)
				break
			}
			var p *lab.Page
			p, err = b.Do(ctx, http.MethodPost, "/oauth/token", url.Values{"grant_type": {"refresh_token"},
				"refresh_token": {"x"}, "client_assertion_type": {assertionType}, "client_assertion": {assertion}})
			s.count(p, err)
		}
	}
}

// connectDevices asks for device codes from ever other /48s.
func (t *target) connectDevices(ctx context.Context, s *seen) {
	b, _ := t.from()
	for ctx.Err() == nil {
		b.Client.Transport.(*proxy).caller = t.of256()
		p, err := b.Do(ctx, http.MethodPost, "/oauth/device_authorization",
			url.Values{"client_id": {t.device}, "scope": {"view-user"}})
		s.count(p, err)
	}
}

// registerAll registers clients from 256 /48s.
func (t *target) registerAll(ctx context.Context, s *seen) {
	b, _ := t.from()
	for ctx.Err() == nil {
		b.Client.Transport.(*proxy).caller = t.of256()
		_, p, err := t.register(ctx, b, map[string]any{"token_endpoint_auth_method": "none"})
		s.count(p, err)
	}
}

// of256 returns an address of the next of 256 /48s, in another /64 each time.
func (t *target) of256() string {
	n := t.attackers.Add(1)
	return fmt.Sprintf("2001:db8:%x:%x::1", 0x2000+n%256, n/256%65536)
}

// service is a program of an operator's client that authenticates with a key.
type service struct {
	waits   []time.Duration
	refused int
	failure error // the first
}

// serve requests an access token fifty times a second until ctx ends.
func (t *target) serve(ctx context.Context, s *service) {
	b := t.browser(&http.Transport{MaxIdleConnsPerHost: 1}, "203.0.113.5")
	person := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		assertion, err := t.sign(t.own, t.worker)
		began := time.Now()
		var p *lab.Page
		if err == nil {
			p, err = b.Do(person, http.MethodPost, "/oauth/token", url.Values{"grant_type": {"client_credentials"},
				"client_assertion_type": {assertionType}, "client_assertion": {assertion}})
		}
		if err == nil && p.Status != http.StatusOK {
			err = fmt.Errorf("got status %d %s", p.Status, strings.TrimSpace(p.Body))
		}
		if err != nil {
			s.refused++
			if s.failure == nil {
				s.failure = err
			}
		}
		s.waits = append(s.waits, time.Since(began))
		time.Sleep(20 * time.Millisecond)
	}
}

// p99 returns the 99th percentile of the waits.
func (s *service) p99() time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	slices.Sort(s.waits)
	return s.waits[(len(s.waits)*99)/100]
}

// prepareClients registers the operator's clients, and makes the keys.
func (t *target) prepareClients(ctx context.Context) (err error) {
	for _, k := range []*keys{&t.own, &t.strangers} {
		if k.quick, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
	}
	if t.strangers.slow, err = rsa.GenerateKey(rand.Reader, 4096); err != nil {
		return err
	}
	var made struct {
		ID string `json:"client_id"`
	}
	if err := t.operator.Call(ctx, http.MethodPost, "/admin/v1/clients", map[string]any{
		"name": "Reports", "scopes": []string{}, "grants": []string{"client_credentials"},
		"jwks": t.own.jwks(),
	}, &made); err != nil {
		return err
	}
	t.worker = made.ID
	if err := t.operator.Call(ctx, http.MethodPost, "/admin/v1/clients", map[string]any{
		"name": "Television", "public": true, "scopes": []string{"view-user"},
		"grants": []string{"urn:ietf:params:oauth:grant-type:device_code"},
	}, &made); err != nil {
		return err
	}
	t.device = made.ID
	return nil
}
