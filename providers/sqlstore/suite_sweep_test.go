package sqlstore_test

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
	"SweepDeletesChangesAndKeys":        sweepDeletesChangesAndKeys,
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
	token, code := f.machine(), f.code()
	session := &account.Session{Hash: newHash(), UserID: f.user.ID,
		Expires: f.now.Add(30 * time.Minute)}
	f.endedTokens(f.CreateSession(f.ctx, session))
	f.do(&oauth.Revoke{Token: &token.end}, &oauth.SaveCode{Code: code})
	f.sweep(f.now.Add(-time.Millisecond), 0)
	f.sweep(code.Expires.Add(-time.Millisecond), 0)
	f.sweep(code.Expires, 1)
	_, err := f.AuthorizationCode(f.ctx, code.Hash)
	f.wantError("code", err, oauth.ErrNotFound)
	f.sweep(session.Expires, 1)
	_, err = f.Session(f.ctx, session.Hash)
	f.wantError("session", err, account.ErrNotFound)
	f.sweep(token.end.Expires.Add(oauth.EndKept-time.Millisecond), 0)
	f.alive("ended token", token, false)
	f.sweep(token.end.Expires.Add(oauth.EndKept), 1)
	if _, ends, err := f.Ends(f.ctx, f.now); err != nil || len(ends) != 0 {
		t.Errorf("ends: got %d, error %v, want none", len(ends), err)
	}
}

func sweepKeepsUsedCodes(t *testing.T, f *fixture) {
	r := f.family()
	f.sweep(f.now.Add(2*time.Hour), 0)
	refresh, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	if refresh.Family.Revoked {
		t.Error("family: got revoked, want live")
	}
	next := f.rotate(r.Family, 1, f.now.Add(2*time.Hour), 0)
	f.do(next)
	f.outcome("rotate", next.Outcome, oauth.OutcomeDone)
	f.sweep(r.Family.Expires.Add(oauth.EndKept), 0) // the rotation moved the family's expiry
	replay := f.redeem(r.Code, r.Family.Expires)
	f.do(replay)
	f.outcome("replay", replay.Outcome, oauth.OutcomeReused)
	// The change that tells of the end, and the count of such events in their hour.
	f.sweep(next.AccessExpires.Add(oauth.EndKept), 2)
	f.sweep(next.Expires.Add(oauth.EndKept-time.Millisecond), 0)
	f.sweep(next.Expires.Add(oauth.EndKept), 4) // family, code and two refresh tokens
	_, err = f.RefreshToken(f.ctx, next.Refresh)
	f.wantError("refresh token", err, oauth.ErrNotFound)
}

func sweepKeepsFamilyOfLiveToken(t *testing.T, f *fixture) {
	code := f.code()
	r := f.redeem(code.Hash, f.now)
	r.Family.AccessExpires = r.Family.Expires.Add(time.Hour)
	f.do(&oauth.SaveCode{Code: code}, r)
	f.sweep(r.Family.Expires.Add(oauth.EndKept), 0)
	revoke := &oauth.Revoke{Consent: &oauth.Grant{UserID: f.user.ID, ClientID: f.client.ID}}
	f.do(revoke)
	f.ended("revoke", revoke.Ended, oauth.End{FamilyID: r.Family.ID,
		Expires: r.Family.AccessExpires})
	over := r.Family.AccessExpires.Add(oauth.EndKept)
	f.sweep(over.Add(-time.Millisecond), 0)
	f.alive("access token", first(r), false)
	f.sweep(over, 4) // family, code, refresh token and change
}

func sweepInManySteps(t *testing.T, f *fixture) {
	const codes = 950
	saves := make([]oauth.Operation, codes)
	for i := range saves {
		saves[i] = &oauth.SaveCode{Code: f.code()}
	}
	f.do(saves...)
	f.sweep(f.now.Add(time.Hour), codes)
}

func sweepDeletesChangesAndKeys(t *testing.T, f *fixture) {
	f.must(f.UpdateUser(f.ctx, f.user))
	f.must(f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.TokenKeys, Now: f.now,
		Expires: f.now.Add(time.Minute)}))
	f.sweep(f.now.Add(time.Minute-time.Millisecond), 0)
	f.sweep(f.now.Add(time.Minute), 1) // the former key
	f.sweep(f.now.Add(oauth.ChangesKept-time.Millisecond), 0)
	f.sweep(f.now.Add(oauth.ChangesKept+5*time.Minute), 2)
	last, changes, err := f.Changes(f.ctx, 0, 10)
	f.must(err)
	if last != 2 || len(changes) != 0 {
		t.Errorf("got last number %d and %d changes, want 2 and none", last, len(changes))
	}
}
