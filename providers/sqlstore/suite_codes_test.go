package sqlstore_test

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var codeTests = map[string]func(*testing.T, *fixture){
	"CodeRoundTrip":                   codeRoundTrip,
	"RedeemCode":                      redeemCode,
	"CodeReplayRevokesFamily":         codeReplayRevokesFamily,
	"CodeOfAnotherClientOrUserIsGone": codeOfAnother,
	"ExpiredUnknownOrDisabledIsGone":  codeIsGone,
	"CodeWithoutRefreshToken":         codeWithoutRefreshToken,
	"RedeemReturnsEpochs":             redeemReturnsEpochs,
	"CodeOfFormerEpochIsGone":         codeOfFormerEpoch,
}

// codeOfFormerEpoch saves codes for which the user and the client were read before all their tokens
// ended.
func codeOfFormerEpoch(t *testing.T, f *fixture) {
	for what, end := range map[string]*oauth.Revoke{
		"user": {UserID: f.user.ID}, "client": {ClientID: f.client.ID},
	} {
		before := f.code()
		f.do(end, &oauth.SaveCode{Code: before})
		late := f.redeem(before.Hash, f.now)
		f.do(late)
		f.outcome("code of a "+what+" that was read before", late.Outcome, oauth.OutcomeGone)
		f.family() // with a code that is issued after the end
	}
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
	f.alive("access token", first(r), true)
	refresh, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	want := oauth.RefreshToken{Hash: *r.Refresh, Generation: 1, Family: r.Family}
	if !reflect.DeepEqual(*refresh, want) {
		t.Errorf("refresh token: got %+v, want %+v", *refresh, want)
	}
}

// redeemConcurrently redeems a saved code 16 times concurrently, through stores on one database. It
// checks that one redemption gets tokens, and that the others revoke them.
func redeemConcurrently(t *testing.T, stores []oauth.Store, code oauth.AuthorizationCode,
	now time.Time) {
	t.Helper()
	const racers = 16
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
	var ends []oauth.End
	for _, r := range redeems {
		outcomes[r.Outcome]++
		ends = append(ends, r.Ended...)
		if r.Outcome == oauth.OutcomeDone {
			winner = r
		}
	}
	if outcomes[oauth.OutcomeDone] != 1 || outcomes[oauth.OutcomeReused] != racers-1 {
		t.Fatalf("got outcomes %v, want 1 done and %d reused", outcomes, racers-1)
	}
	if len(ends) != 1 || ends[0].FamilyID != winner.Family.ID {
		t.Errorf("got %d ends, want that of the winner's family", len(ends))
	}
	_, stored, err := stores[0].Ends(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	if n := slices.IndexFunc(stored, func(e oauth.End) bool {
		return e.FamilyID == winner.Family.ID
	}); n < 0 {
		t.Errorf("got %d stored ends, want that of the winner's family too", len(stored))
	}
}

func codeReplayRevokesFamily(t *testing.T, f *fixture) {
	r, other := f.family(), f.family()
	next := f.rotate(r.Family, 1, f.now, 0)
	f.do(next)
	replay := f.redeem(r.Code, f.now.Add(48*time.Hour)) // long after the code itself expired
	f.do(replay)
	f.outcome("replay", replay.Outcome, oauth.OutcomeReused)
	f.ended("replay", replay.Ended, f.familyEnd(r.Family))
	f.alive("first access token", first(r), false)
	f.alive("next access token", issued(r.Family, next.Epochs), false)
	f.alive("another family's access token", first(other), true)
	refresh, err := f.RefreshToken(f.ctx, next.Refresh)
	f.must(err)
	if !refresh.Family.Revoked {
		t.Error("family: got live, want revoked")
	}
	again := f.redeem(r.Code, f.now)
	f.do(again)
	f.outcome("second replay", again.Outcome, oauth.OutcomeReused)
	f.ended("second replay", again.Ended)
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
	f.alive("access token", first(right), true)
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
		if r.Epochs != (oauth.Epochs{}) {
			t.Errorf("%s: got epochs for an access token", what)
		}
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
	f.ended("replay", replay.Ended, f.familyEnd(r.Family))
}

func redeemReturnsEpochs(t *testing.T, f *fixture) {
	for what, raise := range map[string]func(){
		"created":            func() {},
		"user has a new one": func() { f.do(&oauth.Revoke{UserID: f.user.ID}) },
		"client too":         func() { f.do(&oauth.Revoke{ClientID: f.client.ID}) },
	} {
		raise()
		r := f.family()
		rotate := f.rotate(r.Family, 1, f.now, time.Minute)
		repeat := f.rotate(r.Family, 1, f.now, time.Minute)
		f.do(rotate, repeat)
		want := f.epochs()
		for i, got := range []oauth.Epochs{r.Epochs, rotate.Epochs, repeat.Epochs} {
			if got != want || got.User == 0 || got.Client == 0 {
				t.Errorf("%s, operation %d: got %+v, want %+v", what, i, got, want)
			}
		}
	}
}
