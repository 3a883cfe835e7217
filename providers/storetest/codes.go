package storetest

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var codeTests = map[string]func(*testing.T, *fixture){
	"CodeRoundTrip":                   codeRoundTrip,
	"RedeemCode":                      redeemCode,
	"ConcurrentRedeemsHaveOneWinner":  concurrentRedeems,
	"CodeReplayRevokesFamily":         codeReplayRevokesFamily,
	"CodeOfAnotherClientOrUserIsGone": codeOfAnother,
	"ExpiredUnknownOrDisabledIsGone":  codeIsGone,
	"CodeWithoutRefreshToken":         codeWithoutRefreshToken,
	"TokenRoundTrip":                  tokenRoundTrip,
	"KeysAreCreatedOnce":              keysAreCreatedOnce,
	"KeyRotation":                     keyRotation,
}

func codeRoundTrip(t *testing.T, f *fixture) {
	code := f.code()
	f.do(&oauth.SaveCode{Code: code})
	got, err := f.AuthorizationCode(f.ctx, code.Hash)
	f.must(err)
	if !reflect.DeepEqual(*got, code) {
		t.Errorf("got %+v, want %+v", *got, code)
	}
	_, err = f.AuthorizationCode(f.ctx, newHash())
	f.wantError("unknown code", err, oauth.ErrNotFound)
	_, err = f.RefreshToken(f.ctx, newHash())
	f.wantError("unknown refresh token", err, oauth.ErrNotFound)
}

func redeemCode(t *testing.T, f *fixture) {
	r := f.family()
	code, err := f.AuthorizationCode(f.ctx, r.Code)
	f.must(err)
	if !code.Used.Equal(f.now) || code.FamilyID != r.Family.ID {
		t.Errorf("code: got used %v by family %s, want %v by %s", code.Used, code.FamilyID,
			f.now, r.Family.ID)
	}
	access, err := f.AccessToken(f.ctx, r.Access.Hash)
	f.must(err)
	if !reflect.DeepEqual(*access, r.Access) {
		t.Errorf("access token: got %+v, want %+v", *access, r.Access)
	}
	refresh, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	want := oauth.RefreshToken{Hash: *r.Refresh, Generation: 1, Family: r.Family}
	if !reflect.DeepEqual(*refresh, want) {
		t.Errorf("refresh token: got %+v, want %+v", *refresh, want)
	}
}

func concurrentRedeems(t *testing.T, f *fixture) {
	code := f.code()
	f.do(&oauth.SaveCode{Code: code})
	RedeemConcurrently(t, []oauth.Store{f}, code, f.now)
}

// RedeemConcurrently redeems a saved code 64 times concurrently, through stores on one database. It
// checks that one redemption gets tokens, and that the others revoke them.
func RedeemConcurrently(t *testing.T, stores []oauth.Store, code oauth.AuthorizationCode,
	now time.Time) {
	t.Helper()
	const racers = 64
	redeems := make([]*oauth.Redeem, racers)
	errs := make(chan error, racers)
	var start, ended sync.WaitGroup
	start.Add(1)
	for i := range redeems {
		f := &fixture{now: now, user: &account.User{ID: code.UserID},
			client: &oauth.Client{ID: code.ClientID}}
		redeems[i] = f.redeem(code.Hash, now)
		ended.Go(func() {
			done := make(chan error, 1)
			redeems[i].OnDone(func(err error) { done <- err })
			start.Wait()
			stores[i%len(stores)].Submit(redeems[i])
			errs <- <-done
		})
	}
	start.Done()
	ended.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	var winner *oauth.Redeem
	outcomes := map[oauth.Outcome]int{}
	var revoked []oauth.Hash
	for _, r := range redeems {
		outcomes[r.Outcome]++
		revoked = append(revoked, r.Revoked...)
		if r.Outcome == oauth.OutcomeDone {
			winner = r
		}
	}
	if outcomes[oauth.OutcomeDone] != 1 || outcomes[oauth.OutcomeReused] != racers-1 {
		t.Fatalf("got outcomes %v, want 1 done and %d reused", outcomes, racers-1)
	}
	if len(revoked) != 1 || revoked[0] != winner.Access.Hash {
		t.Errorf("got %d tokens revoked, want the winner's", len(revoked))
	}
	for _, r := range redeems {
		_, err := stores[0].AccessToken(t.Context(), r.Access.Hash)
		if !errors.Is(err, oauth.ErrNotFound) {
			t.Errorf("token of outcome %d: got %v, want %v", r.Outcome, err, oauth.ErrNotFound)
		}
	}
}

func codeReplayRevokesFamily(t *testing.T, f *fixture) {
	r, other := f.family(), f.family()
	next := f.rotate(r.Family, 1, f.now, 0)
	f.do(next)
	replay := f.redeem(r.Code, f.now.Add(48*time.Hour)) // long after the code itself expired
	f.do(replay)
	f.outcome("replay", replay.Outcome, oauth.OutcomeReused)
	f.revoked("replay", replay.Revoked, r.Access.Hash, next.Access.Hash)
	for hash, want := range map[oauth.Hash]bool{
		r.Access.Hash: false, next.Access.Hash: false, replay.Access.Hash: false,
		other.Access.Hash: true,
	} {
		f.alive("access token", hash, want)
	}
	refresh, err := f.RefreshToken(f.ctx, next.Refresh)
	f.must(err)
	if !refresh.Family.Revoked {
		t.Error("family: got live, want revoked")
	}
	again := f.redeem(r.Code, f.now)
	f.do(again)
	f.outcome("second replay", again.Outcome, oauth.OutcomeReused)
	f.revoked("second replay", again.Revoked)
}

func codeOfAnother(t *testing.T, f *fixture) {
	code := f.code()
	f.do(&oauth.SaveCode{Code: code})
	foreign, mistaken, right := f.redeem(code.Hash, f.now), f.redeem(code.Hash,
		f.now), f.redeem(code.Hash, f.now)
	foreign.Family.ClientID = f.newClient().ID
	mistaken.Family.UserID = f.newUser().ID
	replay := f.redeem(code.Hash, f.now)
	replay.Family.ClientID = foreign.Family.ClientID
	f.do(foreign, mistaken, right, replay)
	f.outcome("another client", foreign.Outcome, oauth.OutcomeGone)
	f.outcome("another user", mistaken.Outcome, oauth.OutcomeGone)
	f.outcome("its client", right.Outcome, oauth.OutcomeDone)
	f.outcome("another client's replay", replay.Outcome, oauth.OutcomeGone)
	f.alive("access token", right.Access.Hash, true)
}

func codeIsGone(t *testing.T, f *fixture) {
	code := f.code()
	f.do(&oauth.SaveCode{Code: code})
	disabled := *f.user
	disabled.Disabled = true
	f.must(f.UpdateUser(f.ctx, &disabled))
	for what, r := range map[string]*oauth.Redeem{
		"expired":          f.redeem(code.Hash, code.Expires),
		"unknown":          f.redeem(newHash(), f.now),
		"of disabled user": f.redeem(code.Hash, f.now),
	} {
		f.do(r)
		f.outcome(what, r.Outcome, oauth.OutcomeGone)
		f.alive(what, r.Access.Hash, false)
	}
	f.user.Version = disabled.Version
	f.must(f.UpdateUser(f.ctx, f.user))
	r := f.redeem(code.Hash, code.Expires.Add(-time.Millisecond))
	f.do(r)
	f.outcome("user is enabled again", r.Outcome, oauth.OutcomeDone)
}

func codeWithoutRefreshToken(t *testing.T, f *fixture) {
	code := f.code()
	r := f.redeem(code.Hash, f.now)
	r.Refresh = nil
	f.do(&oauth.SaveCode{Code: code}, r)
	f.outcome("redeem", r.Outcome, oauth.OutcomeDone)
	replay := f.redeem(code.Hash, f.now)
	f.do(replay)
	f.revoked("replay", replay.Revoked, r.Access.Hash)
}

func tokenRoundTrip(t *testing.T, f *fixture) {
	const tokens = 100 // more than one statement inserts
	issues := make([]oauth.Operation, tokens)
	for i := range issues {
		issues[i] = &oauth.Issue{Token: f.token()}
	}
	f.must(errors.Join(f.inOneBatch(issues...)...))
	for _, op := range issues {
		want := op.(*oauth.Issue).Token
		got, err := f.AccessToken(f.ctx, want.Hash)
		f.must(err)
		if !reflect.DeepEqual(*got, want) {
			t.Fatalf("got %+v, want %+v", *got, want)
		}
	}
	_, err := f.AccessToken(f.ctx, newHash())
	f.wantError("unknown access token", err, oauth.ErrNotFound)
}

func keyRotation(t *testing.T, f *fixture) {
	first, err := f.RotateKeys(f.ctx, f.now, time.Time{})
	f.must(err)
	if first.Current == [32]byte{} || first.Previous == [32]byte{} ||
		first.Current == first.Previous || !first.Made.Equal(f.now) {
		t.Errorf("got keys made %v, two %t, want two made at %v", first.Made,
			first.Current != first.Previous, f.now)
	}
	later := f.now.Add(time.Hour)
	_, err = f.RotateKeys(f.ctx, later, f.now.Add(-1))
	f.wantError("rotation while the previous key is in use", err, oauth.ErrKeysInUse)
	if kept, err := f.AccessTokenKeys(f.ctx); err != nil || kept != first {
		t.Errorf("after a refused rotation: got other keys, or %v", err)
	}
	var ended sync.WaitGroup
	var rotated atomic.Int32
	for range 8 {
		ended.Go(func() {
			second, err := f.RotateKeys(f.ctx, later, f.now)
			if err == nil && second.Previous == first.Current && second.Made.Equal(later) {
				rotated.Add(1)
			} else {
				f.wantError("concurrent rotation", err, oauth.ErrKeysInUse)
			}
		})
	}
	ended.Wait()
	if got := rotated.Load(); got != 1 {
		t.Errorf("got %d rotations, want 1", got)
	}
}

func keysAreCreatedOnce(t *testing.T, f *fixture) {
	const callers = 8
	keys := make([]oauth.Keys, callers)
	var ended sync.WaitGroup
	for i := range keys {
		ended.Go(func() {
			var err error
			if keys[i], err = f.AccessTokenKeys(f.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	ended.Wait()
	for _, k := range keys {
		if k != keys[0] || k.Current == [32]byte{} || k.Previous != [32]byte{} {
			t.Error("keys: got different ones or none, want the same for all")
		}
	}
}
