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

var codeTests = map[string]func(*testing.T, *world){
	"CodeIsReadBack":                     codeIsReadBack,
	"CodeIsRedeemedOnce":                 codeIsRedeemedOnce,
	"CodeRedeemedBy64AtOnceHasOneWinner": codeRedeemedBy64AtOnce,
	"CodeReplayEndsTheFamily":            codeReplayEndsTheFamily,
	"CodeOfAnotherIsNotTaken":            codeOfAnotherIsNotTaken,
	"CodeThatCannotBeRedeemedIsGone":     codeThatCannotBeRedeemedIsGone,
	"CodeWithoutRefreshToken":            codeWithoutRefreshToken,
	"TokenIsReadBack":                    tokenIsReadBack,
	"KeysAreMadeOnce":                    keysAreMadeOnce,
	"KeysAreRotated":                     keysAreRotated,
}

func codeIsReadBack(t *testing.T, w *world) {
	code := w.code()
	w.do(&oauth.SaveCode{Code: code})
	got, err := w.AuthorizationCode(w.ctx, code.Hash)
	w.must(err)
	if !reflect.DeepEqual(*got, code) {
		t.Errorf("got %+v, want %+v", *got, code)
	}
	_, err = w.AuthorizationCode(w.ctx, newHash())
	w.gone("unknown code", err, oauth.ErrNotFound)
	_, err = w.RefreshToken(w.ctx, newHash())
	w.gone("unknown refresh token", err, oauth.ErrNotFound)
}

func codeIsRedeemedOnce(t *testing.T, w *world) {
	r := w.family()
	code, err := w.AuthorizationCode(w.ctx, r.Code)
	w.must(err)
	if !code.Used.Equal(w.now) || code.FamilyID != r.Family.ID {
		t.Errorf("code: got used %v by family %s, want %v by %s", code.Used, code.FamilyID, w.now, r.Family.ID)
	}
	access, err := w.AccessToken(w.ctx, r.Access.Hash)
	w.must(err)
	if !reflect.DeepEqual(*access, r.Access) {
		t.Errorf("access token: got %+v, want %+v", *access, r.Access)
	}
	refresh, err := w.RefreshToken(w.ctx, *r.Refresh)
	w.must(err)
	want := oauth.RefreshToken{Hash: *r.Refresh, Generation: 1, Family: r.Family}
	if !reflect.DeepEqual(*refresh, want) {
		t.Errorf("refresh token: got %+v, want %+v", *refresh, want)
	}
}

func codeRedeemedBy64AtOnce(t *testing.T, w *world) {
	code := w.code()
	w.do(&oauth.SaveCode{Code: code})
	RedeemAtOnce(t, []oauth.Store{w}, code, w.now)
}

// RedeemAtOnce has 64 goroutines redeem a saved code through the stores, which are open on one database, and checks that one
// gets tokens and that these end.
func RedeemAtOnce(t *testing.T, stores []oauth.Store, code oauth.AuthorizationCode, now time.Time) {
	t.Helper()
	const racers = 64
	redeems := make([]*oauth.Redeem, racers)
	errs := make(chan error, racers)
	var start, ended sync.WaitGroup
	start.Add(1)
	for i := range redeems {
		w := &world{now: now, user: &account.User{ID: code.UserID}, client: &oauth.Client{ID: code.ClientID}}
		redeems[i] = w.redeem(code.Hash, now)
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
		t.Errorf("got %d tokens revoked, want that of the winner", len(revoked))
	}
	for _, r := range redeems {
		_, err := stores[0].AccessToken(t.Context(), r.Access.Hash)
		if !errors.Is(err, oauth.ErrNotFound) {
			t.Errorf("token of outcome %d: got %v, want %v", r.Outcome, err, oauth.ErrNotFound)
		}
	}
}

func codeReplayEndsTheFamily(t *testing.T, w *world) {
	r, other := w.family(), w.family()
	next := w.rotate(r.Family, 1, w.now, 0)
	w.do(next)
	replay := w.redeem(r.Code, w.now.Add(48*time.Hour)) // long after the code itself expired
	w.do(replay)
	w.outcome("replay", replay.Outcome, oauth.OutcomeReused)
	w.revoked("replay", replay.Revoked, r.Access.Hash, next.Access.Hash)
	for hash, want := range map[oauth.Hash]bool{
		r.Access.Hash: false, next.Access.Hash: false, replay.Access.Hash: false, other.Access.Hash: true,
	} {
		w.alive("access token", hash, want)
	}
	refresh, err := w.RefreshToken(w.ctx, next.Refresh)
	w.must(err)
	if !refresh.Family.Revoked {
		t.Error("family: got live, want revoked")
	}
	again := w.redeem(r.Code, w.now)
	w.do(again)
	w.outcome("second replay", again.Outcome, oauth.OutcomeReused)
	w.revoked("second replay", again.Revoked)
}

func codeOfAnotherIsNotTaken(t *testing.T, w *world) {
	code := w.code()
	w.do(&oauth.SaveCode{Code: code})
	foreign, mistaken, right := w.redeem(code.Hash, w.now), w.redeem(code.Hash, w.now), w.redeem(code.Hash, w.now)
	foreign.Family.ClientID = w.newClient().ID
	mistaken.Family.UserID = w.newUser().ID
	replay := w.redeem(code.Hash, w.now)
	replay.Family.ClientID = foreign.Family.ClientID
	w.do(foreign, mistaken, right, replay)
	w.outcome("another client", foreign.Outcome, oauth.OutcomeGone)
	w.outcome("another user", mistaken.Outcome, oauth.OutcomeGone)
	w.outcome("its client", right.Outcome, oauth.OutcomeDone)
	w.outcome("another client's replay", replay.Outcome, oauth.OutcomeGone)
	w.alive("access token", right.Access.Hash, true)
}

func codeThatCannotBeRedeemedIsGone(t *testing.T, w *world) {
	code := w.code()
	w.do(&oauth.SaveCode{Code: code})
	disabled := *w.user
	disabled.Disabled = true
	w.must(w.UpdateUser(w.ctx, &disabled))
	for what, r := range map[string]*oauth.Redeem{
		"expired":          w.redeem(code.Hash, code.Expires),
		"unknown":          w.redeem(newHash(), w.now),
		"of disabled user": w.redeem(code.Hash, w.now),
	} {
		w.do(r)
		w.outcome(what, r.Outcome, oauth.OutcomeGone)
		w.alive(what, r.Access.Hash, false)
	}
	w.user.Version = disabled.Version
	w.must(w.UpdateUser(w.ctx, w.user))
	r := w.redeem(code.Hash, code.Expires.Add(-time.Millisecond))
	w.do(r)
	w.outcome("of a user who is enabled again", r.Outcome, oauth.OutcomeDone)
}

func codeWithoutRefreshToken(t *testing.T, w *world) {
	code := w.code()
	r := w.redeem(code.Hash, w.now)
	r.Refresh = nil
	w.do(&oauth.SaveCode{Code: code}, r)
	w.outcome("redeem", r.Outcome, oauth.OutcomeDone)
	replay := w.redeem(code.Hash, w.now)
	w.do(replay)
	w.revoked("replay", replay.Revoked, r.Access.Hash)
}

func tokenIsReadBack(t *testing.T, w *world) {
	const tokens = 100 // more than one statement takes
	issues := make([]oauth.Operation, tokens)
	for i := range issues {
		issues[i] = &oauth.Issue{Token: w.token()}
	}
	w.must(errors.Join(w.together(issues...)...))
	for _, op := range issues {
		want := op.(*oauth.Issue).Token
		got, err := w.AccessToken(w.ctx, want.Hash)
		w.must(err)
		if !reflect.DeepEqual(*got, want) {
			t.Fatalf("got %+v, want %+v", *got, want)
		}
	}
	_, err := w.AccessToken(w.ctx, newHash())
	w.gone("unknown access token", err, oauth.ErrNotFound)
}

func keysAreRotated(t *testing.T, w *world) {
	first, err := w.RotateKeys(w.ctx, w.now, time.Time{})
	w.must(err)
	if first.Current == [32]byte{} || first.Previous == [32]byte{} || first.Current == first.Previous || !first.Made.Equal(w.now) {
		t.Errorf("got keys made %v, two %t, want two made at %v", first.Made, first.Current != first.Previous, w.now)
	}
	later := w.now.Add(time.Hour)
	_, err = w.RotateKeys(w.ctx, later, w.now.Add(-1))
	w.gone("rotation while the previous key is in use", err, oauth.ErrKeysInUse)
	if kept, err := w.AccessTokenKeys(w.ctx); err != nil || kept != first {
		t.Errorf("after a refused rotation: got others, or %v", err)
	}
	var ended sync.WaitGroup
	var rotated atomic.Int32
	for range 8 {
		ended.Go(func() {
			second, err := w.RotateKeys(w.ctx, later, w.now)
			if err == nil && second.Previous == first.Current && second.Made.Equal(later) {
				rotated.Add(1)
			} else {
				w.gone("rotation at once with another", err, oauth.ErrKeysInUse)
			}
		})
	}
	ended.Wait()
	if got := rotated.Load(); got != 1 {
		t.Errorf("got %d rotations, want 1", got)
	}
}

func keysAreMadeOnce(t *testing.T, w *world) {
	const askers = 8
	keys := make([]oauth.Keys, askers)
	var ended sync.WaitGroup
	for i := range keys {
		ended.Go(func() {
			var err error
			if keys[i], err = w.AccessTokenKeys(w.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	ended.Wait()
	for _, k := range keys {
		if k != keys[0] || k.Current == [32]byte{} || k.Previous != [32]byte{} {
			t.Error("keys: got different ones, or none, want the same for all")
		}
	}
}
