package storetest

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var sweepTests = map[string]func(*testing.T, *fixture){
	"SweepDeletesExpiredRows":           sweepDeletesExpired,
	"SweepKeepsUsedCodesWithFamily":     sweepKeepsUsedCodes,
	"SweepKeepsFamilyOfLiveAccessToken": sweepKeepsFamilyOfLiveToken,
	"SweepInManySteps":                  sweepInManySteps,
}

func (f *fixture) sweep(now time.Time, want int) {
	f.Helper()
	got, err := f.Sweep(f.ctx, now)
	f.must(err)
	if got != want {
		f.Errorf("sweep: got %d rows, want %d", got, want)
	}
}

func sweepDeletesExpired(t *testing.T, f *fixture) {
	token, code := f.token(), f.code()
	session := &account.Session{Hash: newHash(), UserID: f.user.ID,
		Expires: f.now.Add(30 * time.Minute)}
	f.must(f.CreateSession(f.ctx, session))
	f.do(&oauth.Issue{Token: token}, &oauth.SaveCode{Code: code})
	f.sweep(f.now.Add(-time.Millisecond), 0)
	f.sweep(code.Expires.Add(-time.Millisecond), 0)
	f.sweep(code.Expires, 1)
	_, err := f.AuthorizationCode(f.ctx, code.Hash)
	f.wantError("code", err, oauth.ErrNotFound)
	f.sweep(session.Expires, 1)
	_, err = f.Session(f.ctx, session.Hash)
	f.wantError("session", err, account.ErrNotFound)
	f.alive("token", token.Hash, true)
	f.sweep(token.Expires, 1)
	f.alive("token", token.Hash, false)
}

func sweepKeepsUsedCodes(t *testing.T, f *fixture) {
	r := f.family()
	f.sweep(f.now.Add(2*time.Hour), 1) // the access token
	refresh, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	if refresh.Family.Revoked {
		t.Error("family: got revoked, want live")
	}
	next := f.rotate(r.Family, 1, f.now.Add(2*time.Hour), 0)
	next.Access.Expires = next.Now.Add(time.Hour)
	f.do(next)
	f.outcome("rotate", next.Outcome, oauth.OutcomeDone)
	f.sweep(r.Family.Expires, 1) // its access token; the rotation moved the family's expiry
	replay := f.redeem(r.Code, r.Family.Expires)
	f.do(replay)
	f.outcome("replay", replay.Outcome, oauth.OutcomeReused)
	f.sweep(next.Expires.Add(-time.Millisecond), 0)
	f.sweep(next.Expires, 4) // family, code and two refresh tokens
	_, err = f.RefreshToken(f.ctx, next.Refresh)
	f.wantError("refresh token", err, oauth.ErrNotFound)
}

func sweepKeepsFamilyOfLiveToken(t *testing.T, f *fixture) {
	code := f.code()
	r := f.redeem(code.Hash, f.now)
	r.Access.Expires = r.Family.Expires.Add(time.Hour)
	f.do(&oauth.SaveCode{Code: code}, r)
	f.sweep(r.Family.Expires, 2) // code and refresh token
	revoke := &oauth.Revoke{UserID: f.user.ID}
	f.do(revoke)
	f.revoked("revoke", revoke.Revoked, r.Access.Hash)
	f.sweep(r.Family.Expires, 1) // the family
}

func sweepInManySteps(t *testing.T, f *fixture) {
	const tokens = 950
	issues := make([]oauth.Operation, tokens)
	for i := range issues {
		issues[i] = &oauth.Issue{Token: f.token()}
	}
	f.do(issues...)
	f.sweep(f.now.Add(time.Hour), tokens)
}
