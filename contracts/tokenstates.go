package contracts

import (
	"cmp"
	"context"
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

// Values that a pact can pass as parameters and send in forms. The access token expires in 2100.
const (
	ExampleCode         = "gtac_s1E3MBpQFHgmVfiUsofpN8X9I7Wk8DHezWNUcw5PReq0pigbL"
	ExampleRefreshToken = "gtrt_rmTvUoeSl9XR4aFiQc6ByluyweNtd5HPSdZVmiaR2x30y7U4b"
	ExampleAccessToken  = "gtat_MZIOziCt8neUblJ9femjWNa7y3Y35jlvfbMMTZc99Kh4TdRIW5QeFNGmmhH4"
)

// longAgo is further in the past than any lifetime.
const longAgo = -365 * 24 * time.Hour

func tokenStates() []State {
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
		}, append([]Value{{"code", "The code."}}, owners...), parseCode},
		{"a refresh token", "A refresh token that the client has received for a code.", []Parameter{
			{"refresh_token", String, nil, nil, "The refresh token, in gatehouse's format. Default: a new one. A pact can use `" + ExampleRefreshToken + "`."},
			{"kind", String, "live", []string{"live", "expired", "revoked", "used"}, "Its status; used: before the grace period."},
			granted,
		}, append([]Value{{"refresh_token", "The refresh token."}, {"access_token", "The access token issued with it."}}, owners...), parseRefreshToken},
		{"an access token", "An access token of the client, for a user or for the client itself.", []Parameter{
			{"access_token", String, nil, nil, "The access token. Default: a new one. A pact can use `" + ExampleAccessToken + "`, or another one that is signed with the SHA-256 of \"gatehouse contracts\"."},
			{"kind", String, "live", []string{"live", "expired", "revoked"}, "Its status. An expired one is always new."},
			granted,
			{"user", Boolean, true, nil, "Whether it is for a user; otherwise for the client itself."},
		}, append([]Value{{"access_token", "The access token."}}, owners...), parseAccessToken},
		limitState("/api/user", token.BasicProfile, 100, owners),
		limitState("/api/user/details", token.DetailedProfile, 50, owners),
	}
}

// given returns an argument, or a new value when there is none. Its error says that the service would
// reject the argument's format.
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
		f.values["code"] = plain
		if err := f.saveCode(ctx, &code); err != nil || a.text("kind") != "used" {
			return err
		}
		return f.redeem(ctx, &code, newPair(now), now)
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
	if code.RedirectURI == "" && len(f.client.RedirectURIs) > 0 {
		code.RedirectURI = f.client.RedirectURIs[0]
	}
	if code.CodeChallenge == "" && f.client.Public {
		code.CodeChallenge = CodeChallenge
	}
	return f.submit(ctx, &oauth.SaveCode{Code: *code})
}

// pair is an access token and a refresh token of one family.
type pair struct {
	access, refresh, family string
	expires                 time.Time // of the access token
}

// newPair returns new tokens that are issued at a time.
func newPair(at time.Time) pair {
	keys, expires := Keys(), at.Add(lifetimes.AccessToken)
	return pair{keys.NewAccessToken(expires), oauth.NewRefreshToken(), uuid.NewString(), expires}
}

// redeem exchanges a code for tokens at a time.
func (f *fixture) redeem(
	ctx context.Context, code *oauth.AuthorizationCode, p pair, at time.Time,
) error {
	hash := oauth.HashOf(p.refresh)
	op := &oauth.Redeem{
		Code: code.Hash, Now: at, Refresh: &hash,
		Family: oauth.Family{ID: p.family, ClientID: code.ClientID, UserID: code.UserID, Scopes: code.Scopes, Generation: 1,
			Advanced: at, Expires: at.Add(lifetimes.RefreshToken), Ends: at.Add(lifetimes.RefreshFamily)},
		Access: oauth.AccessToken{Hash: oauth.HashOf(p.access), ClientID: code.ClientID, UserID: code.UserID, FamilyID: p.family,
			Scopes: code.Scopes, Issued: at, Expires: p.expires},
	}
	if err := f.submit(ctx, op); err != nil {
		return err
	}
	if op.Outcome != oauth.OutcomeDone {
		return errors.New("the store rejects the code")
	}
	return nil
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

// issue stores tokens for the current client and user, as if a code had been redeemed at a time.
func (f *fixture) issue(ctx context.Context, p pair, scopes oauth.Scopes, at time.Time) error {
	code := oauth.AuthorizationCode{Hash: oauth.HashOf(oauth.NewAuthorizationCode()), Scopes: scopes, Expires: at.Add(lifetimes.Code)}
	if err := f.saveCode(ctx, &code); err != nil {
		return err
	}
	f.values["access_token"] = p.access
	return f.redeem(ctx, &code, p, at)
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
		p := newPair(at)
		p.refresh = refresh
		f.values["refresh_token"] = refresh
		if err := f.issue(ctx, p, scopes, at); err != nil {
			return err
		}
		switch a.text("kind") {
		case "revoked":
			return f.submit(ctx, &oauth.Revoke{FamilyID: p.family})
		case "used":
			return f.replace(ctx, p.family, scopes)
		}
		return nil
	}, nil
}

// replace uses a refresh token so long ago that its grace period is over.
func (f *fixture) replace(ctx context.Context, family string, scopes oauth.Scopes) error {
	now := time.Now()
	next := newPair(now)
	op := &oauth.Rotate{
		FamilyID: family, Generation: 1, Now: now.Add(longAgo), Grace: lifetimes.RefreshGrace, Expires: now.Add(lifetimes.RefreshToken),
		Refresh: oauth.HashOf(next.refresh),
		Access: oauth.AccessToken{Hash: oauth.HashOf(next.access), ClientID: f.client.ID, UserID: f.user.ID, FamilyID: family,
			Scopes: scopes, Issued: now, Expires: next.expires},
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
	now := time.Now()
	p, keys := newPair(now), Keys()
	if bearer := a.text("access_token"); bearer != "" {
		if a.text("kind") == "expired" {
			return nil, errors.New("access_token: an expired one cannot be given")
		}
		expires, ok := keys.CheckAccessToken(bearer)
		if !ok {
			return nil, errors.New("access_token: it is not signed with the key of contracts")
		}
		p.access, p.expires = bearer, expires
	}
	return func(ctx context.Context, f *fixture) error {
		issue := f.issueToClient
		if a.flag("user") {
			issue = f.issue
		}
		if err := issue(ctx, p, scopes, now); err != nil {
			return err
		}
		switch a.text("kind") {
		case "expired":
			f.values["access_token"] = keys.NewAccessToken(now.Add(-time.Minute))
		case "revoked":
			hash := oauth.HashOf(p.access)
			return f.submit(ctx, &oauth.Revoke{Access: &hash})
		}
		return nil
	}, nil
}

// issueToClient stores an access token of the current client itself.
func (f *fixture) issueToClient(
	ctx context.Context, p pair, scopes oauth.Scopes, at time.Time,
) error {
	if err := f.needClient(ctx); err != nil {
		return err
	}
	f.values["access_token"] = p.access
	return f.submit(ctx, &oauth.Issue{Token: oauth.AccessToken{Hash: oauth.HashOf(p.access), ClientID: f.client.ID,
		Scopes: scopes &^ oauth.UserScopes, Issued: at, Expires: p.expires}})
}

func limitState(path string, endpoint token.Endpoint, limit int, owners []Value) State {
	return State{"the limit of " + path + " is used up", "The access token has no requests left in this minute. It is the token of an earlier state, or a new one.",
		[]Parameter{{"remaining", Integer, 0, nil, fmt.Sprintf("Remaining requests, at most %d.", limit-1)}},
		append([]Value{{"access_token", "The access token."}}, owners...),
		func(a arguments) (setUp, error) {
			return func(ctx context.Context, f *fixture) error {
				return f.useUp(ctx, endpoint, limit-a.number("remaining"))
			}, a.within("remaining", 0, limit-1)
		}}
}

// useUp makes requests with the current access token.
func (f *fixture) useUp(ctx context.Context, endpoint token.Endpoint, requests int) error {
	if _, ok := f.values["access_token"]; !ok {
		if err := f.setUpDefault(ctx, "an access token"); err != nil {
			return err
		}
	}
	bearer, _ := f.values["access_token"].(string)
	for range requests {
		switch admission := f.Tokens.Admit(bearer, endpoint, time.Now()); admission.Verdict {
		case token.Admitted, token.InsufficientScope, token.UnapprovedScope:
		default:
			return stateErrorf("the access token is not live, or its limit is already used up")
		}
	}
	return nil
}
