package contracts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors"
	"gatehouse/actors/oauth"
)

// What a pact may send as PKCE (RFC 7636 appendix B).
const (
	CodeVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	CodeChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// Values of the right form that a pact may give as parameters, for forms. The access token ends in the year 2100.
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
		{"an authorization code", "A code for the client that a user has allowed.", []Parameter{
			{"code", String, nil, nil, "The code, in the form that they have; by default a new one. A pact may use `" + ExampleCode + "`."},
			{"kind", String, "live", []string{"live", "expired", "used"}, "What became of it."},
			granted,
			{"redirect_uri", String, nil, nil, "Of the authorization request, one that is registered; by default the client's first."},
			{"code_challenge", String, nil, nil, "Of the authorization request, S256; by default that of " + CodeVerifier + " for a public client and none for another."},
			{"default_scope", Boolean, false, nil, "Whether the authorization request named no scope."},
		}, append([]Value{{"code", "The code."}}, owners...), checkCode, putCode},
		{"a refresh token", "A refresh token that the client got for a code.", []Parameter{
			{"refresh_token", String, nil, nil, "The refresh token, in the form that they have; by default a new one. A pact may use `" + ExampleRefreshToken + "`."},
			{"kind", String, "live", []string{"live", "expired", "revoked", "used"}, "What became of it; used: longer ago than the grace time."},
			granted,
		}, append([]Value{{"refresh_token", "The refresh token."}, {"access_token", "The access token that came with it."}}, owners...), checkRefreshToken, putRefreshToken},
		{"an access token", "An access token of the client: for a user, or for itself.", []Parameter{
			{"access_token", String, nil, nil, "The access token; by default a new one. A pact may use `" + ExampleAccessToken + "`, or another that is signed with the SHA-256 of \"gatehouse contracts\"."},
			{"kind", String, "live", []string{"live", "expired", "revoked"}, "What became of it. An expired one is always new."},
			granted,
			{"user", Boolean, true, nil, "Whether a user has granted it; if not, it is the client's own."},
		}, append([]Value{{"access_token", "The access token."}}, owners...), checkAccessToken, putAccessToken},
		limitState("/api/user", actors.BasicProfile, 100, owners),
		limitState("/api/user/details", actors.DetailedProfile, 50, owners),
	}
}

// code returns a new authorization code for the present client and user, and what is kept of it.
func (f *fixture) code(ctx context.Context, a arguments) (string, *oauth.AuthorizationCode, error) {
	if err := errors.Join(f.needClient(ctx), f.needUser(ctx)); err != nil {
		return "", nil, err
	}
	scopes, err := scopesOf(a)
	if err != nil {
		return "", nil, err
	}
	plain := given(a, "code", oauth.NewAuthorizationCode)
	if uri := a.text("redirect_uri"); uri != "" && !f.client.AllowsRedirect(uri) {
		return "", nil, refusef("redirect_uri: %s is not registered for the client, which has %s", uri, cmp.Or(strings.Join(f.client.RedirectURIs, " "), "none"))
	}
	code := &oauth.AuthorizationCode{
		Hash: oauth.HashOf(plain), ClientID: f.client.ID, UserID: f.user.ID, RedirectURI: a.text("redirect_uri"), Scopes: scopes,
		DefaultScopes: a.flag("default_scope"), CodeChallenge: a.text("code_challenge"), Expires: time.Now().Add(lifetimes.Code),
	}
	if code.RedirectURI == "" && len(f.client.RedirectURIs) > 0 {
		code.RedirectURI = f.client.RedirectURIs[0]
	}
	if code.CodeChallenge == "" && f.client.Public {
		code.CodeChallenge = CodeChallenge
	}
	return plain, code, nil
}

func putCode(ctx context.Context, f *fixture, a arguments) error {
	plain, code, err := f.code(ctx, a)
	if err != nil {
		return err
	}
	if a.text("kind") == "expired" {
		code.Expires = time.Now().Add(-time.Minute)
	}
	if err := f.save(ctx, code); err != nil {
		return err
	}
	if a.text("kind") == "used" {
		if _, err := f.redeem(ctx, code, arguments{}, time.Now()); err != nil {
			return err
		}
	}
	f.values["code"] = plain
	return nil
}

func (f *fixture) save(ctx context.Context, code *oauth.AuthorizationCode) error {
	op := &oauth.SaveCode{Code: *code}
	return f.submit(ctx, op)
}

// pair is an access token and a refresh token of one family.
type pair struct {
	access, refresh, family string
	expires                 time.Time // of the access token
}

// given returns an argument, or a new value when there is none.
func given(a arguments, name string, fresh func() string) string {
	if s := a.text(name); s != "" {
		return s
	}
	return fresh()
}

// newPair returns the tokens that the arguments name, and new ones for the others, issued at a time.
func (f *fixture) newPair(a arguments, at time.Time) (pair, error) {
	p := pair{expires: at.Add(lifetimes.AccessToken), refresh: given(a, "refresh_token", oauth.NewRefreshToken), family: uuid.NewString()}
	if p.access = a.text("access_token"); p.access == "" {
		p.access = f.keys.NewAccessToken(p.expires)
		return p, nil
	}
	expires, ok := f.keys.CheckAccessToken(p.access)
	if !ok {
		return pair{}, errUnsigned
	}
	p.expires = expires
	return p, nil
}

// redeem exchanges a code at a time.
func (f *fixture) redeem(ctx context.Context, code *oauth.AuthorizationCode, a arguments, at time.Time) (pair, error) {
	p, err := f.newPair(a, at)
	if err != nil {
		return pair{}, err
	}
	hash := oauth.HashOf(p.refresh)
	op := &oauth.Redeem{
		Code: code.Hash, Now: at, Refresh: &hash,
		Family: oauth.Family{ID: p.family, ClientID: code.ClientID, UserID: code.UserID, Scopes: code.Scopes, Generation: 1,
			Advanced: at, Expires: at.Add(lifetimes.RefreshToken), Ends: at.Add(lifetimes.RefreshFamily)},
		Access: oauth.AccessToken{Hash: oauth.HashOf(p.access), ClientID: code.ClientID, UserID: code.UserID, FamilyID: p.family,
			Scopes: code.Scopes, Issued: at, Expires: p.expires},
	}
	if err := f.submit(ctx, op); err != nil {
		return pair{}, err
	}
	if op.Outcome != oauth.OutcomeDone {
		return pair{}, errors.New("the store did not take the code")
	}
	return p, nil
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

// issue makes a code and redeems it at a time, at which it was new.
func (f *fixture) issue(ctx context.Context, a arguments, at time.Time) (pair, *oauth.AuthorizationCode, error) {
	_, code, err := f.code(ctx, a)
	if err != nil {
		return pair{}, nil, err
	}
	code.Expires = at.Add(lifetimes.Code)
	if err := f.save(ctx, code); err != nil {
		return pair{}, nil, err
	}
	p, err := f.redeem(ctx, code, a, at)
	return p, code, err
}

func putRefreshToken(ctx context.Context, f *fixture, a arguments) error {
	kind, at := a.text("kind"), time.Now()
	if kind == "expired" {
		at = at.Add(longAgo)
	}
	p, code, err := f.issue(ctx, a, at)
	if err != nil {
		return err
	}
	f.values["refresh_token"], f.values["access_token"] = p.refresh, p.access
	switch kind {
	case "revoked":
		return f.submit(ctx, &oauth.Revoke{FamilyID: p.family})
	case "used":
		return f.replace(ctx, p, code)
	}
	return nil
}

// replace uses a refresh token so long ago that its grace time is over.
func (f *fixture) replace(ctx context.Context, p pair, code *oauth.AuthorizationCode) error {
	now := time.Now()
	access := f.keys.NewAccessToken(now.Add(lifetimes.AccessToken))
	op := &oauth.Rotate{
		FamilyID: p.family, Generation: 1, Now: now.Add(longAgo), Grace: lifetimes.RefreshGrace, Expires: now.Add(lifetimes.RefreshToken),
		Refresh: oauth.HashOf(oauth.NewRefreshToken()),
		Access: oauth.AccessToken{Hash: oauth.HashOf(access), ClientID: code.ClientID, UserID: code.UserID, FamilyID: p.family,
			Scopes: code.Scopes, Issued: now, Expires: now.Add(lifetimes.AccessToken)},
	}
	if err := f.submit(ctx, op); err != nil {
		return err
	}
	if op.Outcome != oauth.OutcomeDone {
		return errors.New("the store did not take the refresh token")
	}
	return nil
}

func putAccessToken(ctx context.Context, f *fixture, a arguments) error {
	token, err := f.accessToken(ctx, a)
	if err != nil {
		return err
	}
	f.values["access_token"] = token
	switch a.text("kind") {
	case "expired":
		f.values["access_token"] = f.keys.NewAccessToken(time.Now().Add(-time.Minute))
	case "revoked":
		hash := oauth.HashOf(token)
		return f.submit(ctx, &oauth.Revoke{Access: &hash})
	}
	return nil
}

func (f *fixture) accessToken(ctx context.Context, a arguments) (string, error) {
	now := time.Now()
	if a.flag("user") {
		p, _, err := f.issue(ctx, a, now)
		return p.access, err
	}
	if err := f.needClient(ctx); err != nil {
		return "", err
	}
	scopes, err := scopesOf(a)
	if err != nil {
		return "", err
	}
	p, err := f.newPair(a, now)
	if err != nil {
		return "", err
	}
	return p.access, f.submit(ctx, &oauth.Issue{Token: oauth.AccessToken{Hash: oauth.HashOf(p.access), ClientID: f.client.ID,
		Scopes: scopes &^ oauth.UserScopes, Issued: now, Expires: p.expires}})
}

func limitState(path string, endpoint actors.Endpoint, limit int, owners []Value) State {
	return State{"the limit of " + path + " is used up", "The requests of this minute are spent: those of a state's access token before, or of a new one.",
		[]Parameter{{"remaining", Integer, 0, nil, fmt.Sprintf("Requests that are left, at most %d.", limit-1)}},
		append([]Value{{"access_token", "The access token."}}, owners...),
		func(a arguments) error { return a.within("remaining", 0, limit-1) },
		func(ctx context.Context, f *fixture, a arguments) error {
			return f.useUp(ctx, endpoint, limit-a.number("remaining"))
		}}
}

// useUp makes requests with the present access token.
func (f *fixture) useUp(ctx context.Context, endpoint actors.Endpoint, requests int) error {
	if _, ok := f.values["access_token"]; !ok {
		if _, err := f.setUp(ctx, "an access token", nil); err != nil {
			return err
		}
	}
	token, _ := f.values["access_token"].(string)
	for range requests {
		switch admission := f.identity.Admit(token, endpoint, time.Now()); admission.Verdict {
		case actors.Admitted, actors.InsufficientScope, actors.UnapprovedScope:
		default:
			return refusef("the access token is not live, or is used up already")
		}
	}
	return nil
}
