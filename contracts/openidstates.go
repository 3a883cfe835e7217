package contracts

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/cmd/stack"
)

// Values that a pact can pass as parameters and send in forms.
const (
	ExampleDeviceCode = "gtdc_L3VNf1sk5dL0WVqlafsiaeAIsY9CT8NvfiN73VMCDbX31yGNU"
	ExampleAssertion  = "eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiJjb250cmFjdCJ9.c2lnbmF0dXJl"
	DefaultResource   = "https://notes.example/v1"
	ExampleResource   = "https://mail.example"

	ExampleRegistrationToken = "contract-registration-token-0123"
)

// assertionFormat is what a text must match to stand in for an assertion.
var assertionFormat = regexp.MustCompile(`^[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+$`)

func openIDStates() []State {
	owners := append(append([]Value{}, clientValues...), userValues...)
	return []State{
		{"an id_token", "An id_token of the client about the user. With a browser that is signed in, it is of that session.",
			nil, append([]Value{{"id_token", "The id_token."}}, owners...), always(issueIDToken)},
		{"two people are signed in", "A browser with the sessions of the user and of another one, who have both allowed the client these scopes.",
			[]Parameter{{"scope", String, "openid", nil, "The scopes that were allowed."}},
			append([]Value{{"cookie", "The browser's Cookie header."}}, owners...), parseTwoSessions},
		{"a resource server", "A registered API of others, which accepts access tokens of this service (RFC 8707).", []Parameter{
			{"uri", String, DefaultResource, nil, "Its URI."},
			{"scope", String, "read write", nil, "Scopes that only it has, separated by spaces."},
		}, nil, parseResource},
		{"another resource server", "A second one.", []Parameter{
			{"uri", String, ExampleResource, nil, "Its URI."},
			{"scope", String, "read send", nil, "Scopes that only it has, separated by spaces."},
		}, nil, parseResource},
		{"a device code", "A device code that the client has received.", []Parameter{
			{"device_code", String, ExampleDeviceCode, nil, "The device code, in gatehouse's format."},
			{"kind", String, "allowed", []string{"allowed", "pending", "denied", "expired", "used"}, "Its status."},
			{"scope", String, DefaultScope, nil, "The scopes that the client asked for."},
		}, append([]Value{{"device_code", "The device code."}}, owners...), parseDeviceCode},
		{"the client has just asked for the tokens of a device", "The next token request with its device code comes too early.", []Parameter{
			{"device_code", String, ExampleDeviceCode, nil, "The device code."},
		}, nil, parsePoll},
		{"this address has requested too many device codes", "The next device authorization request of a public client from the caller's address is rejected for a while.",
			nil, nil, always(requestDevices)},
		{"clients may register themselves", "The operator lets clients register (RFC 7591).", []Parameter{
			{"who", String, "open", []string{"open", "token"}, "Who may: everybody, or who has the token."},
			{"token", String, ExampleRegistrationToken, nil, "The token, 32 to 256 characters."},
		}, nil, parseRegistration},
		{"clients may describe themselves", "The operator accepts clients that describe themselves in a client-id metadata document.",
			nil, nil, always(acceptDocuments)},
		{"the operator names policies", "The operator names pages with the terms of service and about privacy.",
			nil, nil, always(namePolicies)},
		{"this address has registered too many clients", "The next registration without a token from the caller's address is rejected for a while.",
			nil, nil, always(registerClients)},
		{"a client assertion", "A JWT that authenticates the client, whose key it is signed with (RFC 7523).", []Parameter{
			{"client_assertion", String, ExampleAssertion, nil, "The JWT as the request of the pact has it: it stands in for the real one."},
			{"kind", String, "live", []string{"live", "expired", "forged"}, "Its status."},
		}, append([]Value{{"client_assertion", "The JWT."}}, clientValues...), parseAssertion},
	}
}

func issueIDToken(ctx context.Context, f *fixture) error {
	if err := errors.Join(f.needClient(ctx), f.needUser(ctx)); err != nil {
		return err
	}
	now := time.Now()
	claims := token.IDToken{Issuer: f.Tokens.Issuer(), Audience: f.client.ID,
		Subject: strconv.FormatInt(f.user.ID, 10), AuthorizedParty: f.client.ID,
		Issued: now.Unix(), Expires: now.Add(lifetimes.AccessToken).Unix(), AuthTime: now.Unix()}
	cookie, _ := f.values["cookie"].(string)
	if _, session, ok := strings.Cut(cookie, "="); ok {
		sid, err := f.store.AddClientSession(ctx, oauth.HashOf(session), f.client.ID, rand.Text())
		if err != nil {
			return err
		}
		claims.SID = sid
	}
	signed, err := f.Tokens.Sign(cmp.Or(f.client.Options.IDTokenAlg, oauth.IDTokenAlgs[0]),
		token.IDTokenTyp, claims)
	f.values["id_token"] = signed
	return err
}

func parseTwoSessions(a arguments) (setUp, error) {
	scopes, err := scopesOf(a)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *fixture) error {
		if err := errors.Join(f.needClient(ctx), f.needUser(ctx)); err != nil {
			return err
		}
		now := time.Now()
		second := &account.User{Name: "Grace Hopper", Email: "grace@example.com", Created: now,
			Updated: now}
		if err := f.store.CreateUser(ctx, second); err != nil {
			return err
		}
		var sessions []string
		for _, u := range []*account.User{f.user, second} {
			session, err := f.newSession(ctx, u.ID, device)
			if err == nil {
				err = f.consent(ctx, u.ID, scopes)
			}
			if err != nil {
				return err
			}
			sessions = append(sessions, session)
		}
		f.values["cookie"] = sessionCookie + "=" + strings.Join(sessions, ".")
		return nil
	}, nil
}

func parseResource(a arguments) (setUp, error) {
	r := oauth.Resource{URI: a.text("uri"), Scopes: strings.Fields(a.text("scope"))}
	return func(ctx context.Context, f *fixture) error {
		_, err := f.Tokens.CreateResource(ctx, r, time.Now())
		return err
	}, r.CheckRegistration()
}

// targetsOf returns the targets of an argument resource, with all its scopes; nil = none.
func (f *fixture) targetsOf(ctx context.Context, a arguments) (oauth.Targets, error) {
	uri := a.text("resource")
	if uri == "" {
		return nil, nil
	}
	known, err := f.Tokens.Resources(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range known.All() {
		if r.URI == uri {
			return oauth.Targets{{Resource: r.Number, Scopes: 1<<len(r.Scopes) - 1}}, nil
		}
	}
	return nil, stateErrorf("resource: there is no resource server %s; set up one before", uri)
}

func parseDeviceCode(a arguments) (setUp, error) {
	scopes, err := scopesOf(a)
	if err != nil {
		return nil, err
	}
	plain, err := given(a, "device_code", oauth.LooksLikeDeviceCode, oauth.NewDeviceCode)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *fixture) error {
		if err := errors.Join(f.needClient(ctx), f.needUser(ctx)); err != nil {
			return err
		}
		now := time.Now()
		code := &oauth.DeviceCode{Hash: oauth.HashOf(plain), ClientID: f.client.ID, Scopes: scopes,
			UserCode: oauth.HashUserCode(oauth.NewUserCode()), Created: now,
			Expires: now.Add(oauth.DeviceCodeLifetime)}
		kind := a.text("kind")
		if kind == "expired" {
			code.Created, code.Expires = now.Add(longAgo), now.Add(-time.Minute)
		}
		f.values["device_code"] = plain
		if err := f.store.SaveDeviceCode(ctx, code); err != nil {
			return err
		}
		switch kind {
		case "denied":
			return f.store.DecideDeviceCode(ctx, code.Hash, nil, now)
		case "allowed", "used":
			return f.allowDevice(ctx, code, kind == "used", now)
		}
		return nil
	}, nil
}

// allowDevice lets the current user allow a device, which gets its tokens if it is used.
func (f *fixture) allowDevice(ctx context.Context, c *oauth.DeviceCode, used bool, now time.Time) error {
	user, err := f.store.User(ctx, f.user.ID)
	if err != nil {
		return err
	}
	client, err := f.store.Client(ctx, f.client.ID)
	if err != nil {
		return err
	}
	grant := &oauth.AuthorizationCode{Hash: c.Hash, ClientID: c.ClientID, UserID: user.ID,
		Scopes: c.Scopes, Expires: c.Expires,
		Epochs: oauth.Epochs{Client: client.Epoch, User: user.Epoch}}
	if err := f.store.DecideDeviceCode(ctx, c.Hash, grant, now); err != nil || !used {
		return err
	}
	_, err = f.redeem(ctx, grant, oauth.NewRefreshToken(), now)
	return err
}

func parsePoll(a arguments) (setUp, error) {
	return func(ctx context.Context, f *fixture) error {
		if err := f.needClient(ctx); err != nil {
			return err
		}
		for _, n := range f.nodes {
			_, _ = n.Tokens.Token(ctx, &oauth.TokenRequest{Grant: oauth.DeviceCodeGrant,
				Credentials: oauth.Credentials{ClientID: f.client.ID, Secret: f.secret},
				DeviceCode:  a.text("device_code")}, time.Now()) // it is pending
		}
		return nil
	}, nil
}

// requestDevices uses up the device codes of the caller.
func requestDevices(ctx context.Context, f *fixture) error {
	if err := f.needClient(ctx); err != nil {
		return err
	}
	request := &oauth.DeviceRequest{Scope: "view-user",
		Credentials: oauth.Credentials{ClientID: f.client.ID, Caller: f.callerAddress()}}
	return f.untilBusy(1000, func(n *node) *oauth.Error {
		_, fault := n.Tokens.BeginDevice(ctx, request, 0, time.Now())
		return fault
	})
}

func parseRegistration(a arguments) (setUp, error) {
	mode := map[string]oauth.RegistrationMode{"open": oauth.RegistrationOpen,
		"token": oauth.RegistrationToken}[a.text("who")]
	text := a.text("token")
	if len(text) < 32 || len(text) > 256 {
		return nil, errors.New("token: must have 32 to 256 characters")
	}
	return func(ctx context.Context, f *fixture) error {
		return f.restart(ctx, func(c *stack.Config) {
			c.Identity.Registration, c.Identity.RegistrationToken = mode, text
		})
	}, nil
}

func acceptDocuments(ctx context.Context, f *fixture) error {
	return f.restart(ctx, func(c *stack.Config) { c.Identity.ClientMetadata = true })
}

func namePolicies(ctx context.Context, f *fixture) error {
	return f.restart(ctx, func(c *stack.Config) {
		c.Brand.Terms, c.Brand.Privacy = "https://id.example/terms", "https://id.example/privacy"
	})
}

func registerClients(ctx context.Context, f *fixture) error {
	if err := f.setUpDefault(ctx, "clients may register themselves"); err != nil {
		return err
	}
	request := []byte(`{"redirect_uris":["https://app.example/callback"]}`)
	return f.untilBusy(100, func(n *node) *oauth.Error {
		_, fault := n.Tokens.Register(ctx, request, "", f.callerAddress(), time.Now())
		return fault
	})
}

func parseAssertion(a arguments) (setUp, error) {
	text := a.text("client_assertion")
	if !assertionFormat.MatchString(text) {
		return nil, errors.New("client_assertion: it does not have the form of a signed JWT")
	}
	return func(ctx context.Context, f *fixture) error {
		if err := f.needClient(ctx); err != nil {
			return err
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: &key.PublicKey, KeyID: "contract", Algorithm: "ES256", Use: "sig"}}})
		if err != nil {
			return err
		}
		client := *f.client
		client.Options.JWKS = string(set)
		f.client = &client
		if err := f.saveClient(ctx); err != nil {
			return err
		}
		if a.text("kind") == "forged" {
			if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
				return err
			}
		}
		f.tokens[text], err = f.assertion(key, a.text("kind") == "expired")
		f.values["client_assertion"] = text
		return err
	}, nil
}

// assertion returns a JWT that authenticates the current client.
func (f *fixture) assertion(key *ecdsa.PrivateKey, expired bool) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: key, KeyID: "contract"}}, nil)
	if err != nil {
		return "", fmt.Errorf("sign an assertion: %w", err)
	}
	at := time.Now()
	if expired {
		at = at.Add(longAgo)
	}
	return jwt.Signed(signer).Claims(jwt.Claims{Issuer: f.client.ID, Subject: f.client.ID,
		Audience: jwt.Audience{f.Tokens.Issuer()}, ID: rand.Text(), IssuedAt: jwt.NewNumericDate(at),
		Expiry: jwt.NewNumericDate(at.Add(4 * time.Minute))}).Serialize()
}
