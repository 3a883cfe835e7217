package contracts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// A verifier for PKCE and its challenge (RFC 7636 appendix B).
const (
	CodeVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	CodeChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// Values that a pact can pass as parameters and send in forms. The access token stands in for one
// that the state issues.
const (
	ExampleCode         = "gtac_s1E3MBpQFHgmVfiUsofpN8X9I7Wk8DHezWNUcw5PReq0pigbL"
	ExampleRefreshToken = "gtrt_rmTvUoeSl9XR4aFiQc6ByluyweNtd5HPSdZVmiaR2x30y7U4b"
	ExampleAccessToken  = "gtat_AQABlNQumTYGx3r6zgXSiddJXX_2MEg3bGCJQr92XsdIwSHmy6p0uBzGaNJzPOXB6lYnblsyicVYRje5tBXkXuYMMzPeEfptqLlx9XVkuo37Q3i_66hxFnEYxs35JOj-792297M"
)

// longAgo is further in the past than any lifetime.
const longAgo = -365 * 24 * time.Hour

func tokenStates() []State {
	nonce := Parameter{"nonce", String, nil, nil, "Nonce of the authorization request."}
	forOther := Parameter{"resource", String, nil, nil, "URI of a registered resource that it is for. Default: none."}
	granted := Parameter{"scope", String, DefaultScope, nil, "The scopes that were granted."}
	owners := append(append([]Value{}, clientValues...), userValues...)
	return []State{
		{"an authorization code", "A code for the client, which a user has allowed.", []Parameter{
			{"code", String, nil, nil,
				"The code, in gatehouse's format. Default: a new one. A pact can use `" +
					ExampleCode + "`."},
			{"kind", String, "live", []string{"live", "expired", "used"}, "Its status."},
			granted,
			{"redirect_uri", String, nil, nil, "Registered redirect URI of the authorization request. Default: the client's first."},
			{"code_challenge", String, nil, nil, "S256 challenge of the authorization request. Default: that of " + CodeVerifier + " for a public client, none for others."},
			{"default_scope", Boolean, false, nil, "Whether the authorization request named no scope."},
			nonce, forOther,
		}, append([]Value{{"code", "The code."}}, owners...), parseCode},
		{"a refresh token", "A refresh token that the client has received for a code.", []Parameter{
			{"refresh_token", String, nil, nil, "The refresh token, in gatehouse's format. Default: a new one. A pact can use `" + ExampleRefreshToken + "`."},
			{"kind", String, "live", []string{"live", "expired", "revoked", "used"}, "Its status; used: before the grace period."},
			granted,
		}, append([]Value{{"refresh_token", "The refresh token."}, {"access_token", "The access token issued with it."}}, owners...), parseRefreshToken},
		{"an access token", "An access token of the client, for a user or for the client itself.", []Parameter{
			{"access_token", String, nil, nil, "The access token as the request of the pact has it: `gtat_` and up to 250 letters, digits, `-` and `_`. Default: the real one. A pact can use `" + ExampleAccessToken + "`."},
			{"kind", String, "live", []string{"live", "expired", "revoked"}, "Its status."},
			granted,
			{"acr", Integer, 0, nil, "How the user signed in: 1 is with one factor, 2 with two. Default: it is not known."},
			{"exchanges", Integer, 0, nil, "How many token exchanges by the client it comes from, at most 4; it is for a resource server then."},
			{"user", Boolean, true, nil, "Whether it is for a user; otherwise for the client itself."},
			forOther,
		}, append([]Value{{"access_token", "The access token."}}, owners...), parseAccessToken},
		limitState("/api/user", token.BasicProfile, 100, owners),
		limitState("/api/user/details", token.DetailedProfile, 50, owners),
		limitState("/oauth/userinfo", token.UserInfo, 100, owners),
	}
}

// given returns an argument, or a new value when there is none. Its error says that the service
// would reject the argument's format.
func given(
	a arguments, name string, hasFormat func(string) bool, fresh func() string,
) (string, error) {
	s := a.text(name)
	switch {
	case s == "":
		return fresh(), nil
	case !hasFormat(s):
		return "", fmt.Errorf("%s: it does not have gatehouse's format; STATES.md has an example", name)
	}
	return s, nil
}

func parseCode(a arguments) (setUp, error) {
	scopes, err := scopesOf(a)
	if err != nil {
		return nil, err
	}
	plain, err := given(a, "code", oauth.LooksLikeAuthorizationCode, oauth.NewAuthorizationCode)
	if err != nil {
		return nil, err
	}
	if s := a.text("code_challenge"); s != "" && !oauth.ValidCodeChallenge(s) {
		return nil, fmt.Errorf("code_challenge: got %s, want the base64url form of a SHA-256, such as %s", s, CodeChallenge)
	}
	return func(ctx context.Context, f *fixture) error {
		now := time.Now()
		code := oauth.AuthorizationCode{Hash: oauth.HashOf(plain), RedirectURI: a.text("redirect_uri"), Scopes: scopes,
			DefaultScopes: a.flag("default_scope"), CodeChallenge: a.text("code_challenge"), Expires: now.Add(lifetimes.Code)}
		if a.text("kind") == "expired" {
			code.Expires = now.Add(-time.Minute)
		}
		if scopes.Contains(oauth.OpenID) {
			code.Details = oauth.GrantDetails{AuthTime: now.Unix(), AMR: []string{"pwd"},
				SID: rand.Text(), Nonce: a.text("nonce")}
		}
		f.values["nonce"], f.values["sid"] = code.Details.Nonce, code.Details.SID
		f.values["auth_time"] = code.Details.AuthTime
		var err error
		if code.Details.Targets, err = f.targetsOf(ctx, a); err != nil {
			return err
		}
		f.values["code"] = plain
		if err := f.saveCode(ctx, &code); err != nil || a.text("kind") != "used" {
			return err
		}
		_, err = f.redeem(ctx, &code, oauth.NewRefreshToken(), now)
		return err
	}, nil
}

// saveCode stores a code for the current client and user, creating both if needed.
func (f *fixture) saveCode(ctx context.Context, code *oauth.AuthorizationCode) error {
	if err := errors.Join(f.needClient(ctx), f.needUser(ctx)); err != nil {
		return err
	}
	if uri := code.RedirectURI; uri != "" && !f.client.AllowsRedirect(uri) {
		return stateErrorf("redirect_uri: %s is not registered for the client, which has %s", uri,
			cmp.Or(strings.Join(f.client.RedirectURIs, " "), "none"))
	}
	code.ClientID, code.UserID = f.client.ID, f.user.ID
	client, err := f.store.Client(ctx, f.client.ID)
	if err != nil {
		return err
	}
	user, err := f.store.User(ctx, f.user.ID)
	if err != nil {
		return err
	}
	code.Epochs = oauth.Epochs{Client: client.Epoch, User: user.Epoch}
	if code.RedirectURI == "" && len(f.client.RedirectURIs) > 0 {
		code.RedirectURI = f.client.RedirectURIs[0]
	}
	if code.CodeChallenge == "" && f.client.Public {
		code.CodeChallenge = CodeChallenge
	}
	return f.submit(ctx, &oauth.SaveCode{Code: *code})
}

// redeem exchanges a code for tokens at a time and returns the access token.
func (f *fixture) redeem(
	ctx context.Context, code *oauth.AuthorizationCode, refresh string, at time.Time,
) (*oauth.AccessToken, error) {
	hash, expires := oauth.HashOf(refresh), at.Add(lifetimes.AccessToken)
	op := &oauth.Redeem{
		Code: code.Hash, Now: at, Refresh: &hash,
		Family: oauth.Family{ID: uuid.New(), ClientID: code.ClientID, UserID: code.UserID, Scopes: code.Scopes, Generation: 1,
			Advanced: at, Expires: at.Add(lifetimes.RefreshToken), Ends: at.Add(lifetimes.RefreshFamily),
			AccessExpires: expires},
	}
	if err := f.submit(ctx, op); err != nil {
		return nil, err
	}
	if op.Outcome != oauth.OutcomeDone {
		return nil, errors.New("the store rejects the code")
	}
	return &oauth.AccessToken{ClientID: code.ClientID, UserID: code.UserID, FamilyID: op.Family.ID,
		Scopes: code.Scopes, Issued: at.Unix(), Expires: expires.Unix(), Epochs: op.Epochs}, nil
}

// submit waits until the store has executed op.
func (f *fixture) submit(ctx context.Context, op oauth.Operation) error {
	done := make(chan error, 1)
	op.OnDone(func(err error) { done <- err })
	f.store.Submit(op)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// issue issues tokens to the current client for the current user, as if a code had been redeemed at
// a time.
func (f *fixture) issue(
	ctx context.Context, refresh string, scopes oauth.Scopes, at time.Time,
) (*oauth.AccessToken, error) {
	code := oauth.AuthorizationCode{Hash: oauth.HashOf(oauth.NewAuthorizationCode()), Scopes: scopes, Expires: at.Add(lifetimes.Code)}
	if err := f.saveCode(ctx, &code); err != nil {
		return nil, err
	}
	return f.redeem(ctx, &code, refresh, at)
}

// issueToClient issues an access token to the current client itself at a time.
func (f *fixture) issueToClient(
	ctx context.Context, scopes oauth.Scopes, at time.Time,
) (*oauth.AccessToken, error) {
	if err := f.needClient(ctx); err != nil {
		return nil, err
	}
	return &oauth.AccessToken{ClientID: f.client.ID, Scopes: scopes &^ oauth.UserScopes,
		Issued: at.Unix(), Expires: at.Add(lifetimes.AccessToken).Unix(),
		Epochs: oauth.Epochs{Client: f.client.Epoch}}, nil
}

// seal makes an access token the current one. In the requests of the pact it is text, if given.
func (f *fixture) seal(t *oauth.AccessToken, text string) {
	key := f.Tokens.Keys(oauth.TokenKeys)[0]
	sealed := oauth.NewTokenKey(&key).Seal(t)
	if text != "" {
		f.tokens[text] = sealed
	}
	if t.Scopes.Contains(oauth.ServerOperations) {
		f.operator = sealed
	}
	f.values["access_token"] = cmp.Or(text, sealed)
	f.values["access_client"], f.values["access_user"] = t.ClientID, t.UserID
}

func parseRefreshToken(a arguments) (setUp, error) {
	scopes, err := scopesOf(a)
	if err != nil {
		return nil, err
	}
	refresh, err := given(a, "refresh_token", oauth.LooksLikeRefreshToken, oauth.NewRefreshToken)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *fixture) error {
		at := time.Now()
		if a.text("kind") == "expired" {
			at = at.Add(longAgo)
		}
		f.values["refresh_token"] = refresh
		t, err := f.issue(ctx, refresh, scopes, at)
		if err != nil {
			return err
		}
		f.seal(t, "")
		switch a.text("kind") {
		case "revoked":
			return f.Tokens.RevokeAll(ctx, &oauth.Revoke{FamilyID: t.FamilyID})
		case "used":
			return f.replace(ctx, t.FamilyID)
		}
		return nil
	}, nil
}

// replace uses a refresh token so long ago that its grace period is over.
func (f *fixture) replace(ctx context.Context, family uuid.UUID) error {
	now := time.Now()
	op := &oauth.Rotate{
		FamilyID: family, Generation: 1, Now: now.Add(longAgo), Grace: lifetimes.RefreshGrace, Expires: now.Add(lifetimes.RefreshToken),
		AccessExpires: now.Add(lifetimes.AccessToken), Refresh: oauth.HashOf(oauth.NewRefreshToken()),
	}
	if err := f.submit(ctx, op); err != nil {
		return err
	}
	if op.Outcome != oauth.OutcomeDone {
		return errors.New("the store rejects the refresh token")
	}
	return nil
}

func parseAccessToken(a arguments) (setUp, error) {
	scopes, err := scopesOf(a)
	if err != nil {
		return nil, err
	}
	text := a.text("access_token")
	if text != "" && !standIn.MatchString(text) {
		return nil, errors.New("access_token: it is not gtat_ and up to 250 letters, digits, - and _")
	}
	if err := a.within("exchanges", 0, oauth.MostExchanges); err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *fixture) error {
		at := time.Now()
		if a.text("kind") == "expired" {
			at = at.Add(-lifetimes.AccessToken - time.Minute)
		}
		var t *oauth.AccessToken
		var err error
		if a.flag("user") {
			t, err = f.issue(ctx, oauth.NewRefreshToken(), scopes, at)
		} else {
			t, err = f.issueToClient(ctx, scopes, at)
		}
		if err != nil {
			return err
		}
		targets, err := f.targetsOf(ctx, a)
		if err != nil {
			return err
		}
		t.SetTargets(targets)
		for range a.number("exchanges") {
			t.Subject = &oauth.SubjectToken{ClientID: t.ClientID, Epoch: t.Epochs.Client,
				Resource: t.Audience[0].Resource, Subject: t.Subject}
		}
		if acr := a.number("acr"); acr != 0 {
			t.AuthTime, t.TwoFactors = at.Unix(), acr == 2
		}
		f.seal(t, text)
		if a.text("kind") != "revoked" {
			return nil
		}
		return f.Tokens.RevokeAll(ctx, &oauth.Revoke{Token: &oauth.TokenEnd{
			ID: t.ID, ClientID: t.ClientID, Expires: time.Unix(t.Expires, 0),
		}})
	}, nil
}

func limitState(path string, endpoint token.Endpoint, limit int, owners []Value) State {
	return State{"the limit of " + path + " is used up", "The access token has no requests left in this minute. It is the token of an earlier state, or a new one.",
		[]Parameter{{"remaining", Integer, 0, nil, fmt.Sprintf("Remaining requests, at most %d.", limit-1)},
			{"elapsed", Integer, 0, nil, "Seconds since the first request, at most 30."}},
		append([]Value{{"access_token", "The access token."}}, owners...),
		func(a arguments) (setUp, error) {
			return func(ctx context.Context, f *fixture) error {
				at := time.Now().Add(-time.Duration(a.number("elapsed")) * time.Second)
				f.values["opened "+path] = at
				return f.useUp(ctx, endpoint, limit-a.number("remaining"), at)
			}, errors.Join(a.within("remaining", 0, limit-1), a.within("elapsed", 0, 30))
		}}
}

// useUp makes requests with the current access token at a time.
func (f *fixture) useUp(ctx context.Context, endpoint token.Endpoint, requests int,
	at time.Time) error {
	if _, ok := f.values["access_token"]; !ok {
		if err := f.setUpDefault(ctx, "an access token"); err != nil {
			return err
		}
	}
	text, _ := f.values["access_token"].(string)
	bearer := f.tokens.issued(text)
	for range requests {
		switch admission := f.Tokens.Admit(bearer, endpoint, at); admission.Verdict {
		case token.Admitted, token.InsufficientScope, token.UnapprovedScope:
		default:
			return stateErrorf("the access token is not live, or its limit is already used up")
		}
	}
	return nil
}
