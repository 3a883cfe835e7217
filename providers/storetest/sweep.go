package storetest

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var sweepTests = map[string]func(*testing.T, *world){
	"SweepTakesOnlyWhatHasExpired":        sweepTakesExpired,
	"SweepKeepsUsedCodesWithTheirFamily":  sweepKeepsUsedCodes,
	"SweepKeepsAFamilyOfALiveAccessToken": sweepKeepsFamilyOfLiveToken,
	"SweepTakesMoreThanOneStep":           sweepTakesManySteps,
}

func (w *world) sweep(now time.Time, want int) {
	w.Helper()
	got, err := w.Sweep(w.ctx, now)
	w.must(err)
	if got != want {
		w.Errorf("sweep: got %d rows, want %d", got, want)
	}
}

func sweepTakesExpired(t *testing.T, w *world) {
	token, code := w.token(), w.code()
	session := &account.Session{Hash: newHash(), UserID: w.user.ID, Expires: w.now.Add(30 * time.Minute)}
	w.must(w.CreateSession(w.ctx, session))
	w.do(&oauth.Issue{Token: token}, &oauth.SaveCode{Code: code})
	w.sweep(w.now.Add(-time.Millisecond), 0)
	w.sweep(code.Expires.Add(-time.Millisecond), 0)
	w.sweep(code.Expires, 1)
	_, err := w.AuthorizationCode(w.ctx, code.Hash)
	w.gone("code", err, oauth.ErrNotFound)
	w.sweep(session.Expires, 1)
	_, err = w.Session(w.ctx, session.Hash)
	w.gone("session", err, account.ErrNotFound)
	w.alive("token", token.Hash, true)
	w.sweep(token.Expires, 1)
	w.alive("token", token.Hash, false)
}

func sweepKeepsUsedCodes(t *testing.T, w *world) {
	r := w.family()
	w.sweep(w.now.Add(2*time.Hour), 1) // the access token
	refresh, err := w.RefreshToken(w.ctx, *r.Refresh)
	w.must(err)
	if refresh.Family.Revoked {
		t.Error("family: got revoked, want live")
	}
	next := w.rotate(r.Family, 1, w.now.Add(2*time.Hour), 0)
	next.Access.Expires = next.Now.Add(time.Hour)
	w.do(next)
	w.outcome("rotate", next.Outcome, oauth.OutcomeDone)
	w.sweep(r.Family.Expires, 1) // its access token; the rotation has prolonged the family
	replay := w.redeem(r.Code, r.Family.Expires)
	w.do(replay)
	w.outcome("replay", replay.Outcome, oauth.OutcomeReused)
	w.sweep(next.Expires.Add(-time.Millisecond), 0)
	w.sweep(next.Expires, 4) // family, code and two refresh tokens
	_, err = w.RefreshToken(w.ctx, next.Refresh)
	w.gone("refresh token", err, oauth.ErrNotFound)
}

func sweepKeepsFamilyOfLiveToken(t *testing.T, w *world) {
	code := w.code()
	r := w.redeem(code.Hash, w.now)
	r.Access.Expires = r.Family.Expires.Add(time.Hour)
	w.do(&oauth.SaveCode{Code: code}, r)
	w.sweep(r.Family.Expires, 2) // code and refresh token
	revoke := &oauth.Revoke{UserID: w.user.ID}
	w.do(revoke)
	w.revoked("revoke", revoke.Revoked, r.Access.Hash)
	w.sweep(r.Family.Expires, 1) // the family
}

func sweepTakesManySteps(t *testing.T, w *world) {
	const tokens = 950
	issues := make([]oauth.Operation, tokens)
	for i := range issues {
		issues[i] = &oauth.Issue{Token: w.token()}
	}
	w.do(issues...)
	w.sweep(w.now.Add(time.Hour), tokens)
}
