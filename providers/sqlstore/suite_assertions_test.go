package sqlstore_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

var assertionTests = map[string]func(*testing.T, *fixture){
	"AssertionIsUsedOnce":     assertionOnce,
	"AssertionIsRedeemedOnce": assertionRedeem,
	"SweepForgetsAssertions":  assertionSweep,
	"AssertionRaceHasOneUser": assertionRace,
}

func assertionOnce(_ *testing.T, f *fixture) {
	replay := newHash()
	f.must(f.UseAssertion(f.ctx, replay, f.now.Add(time.Minute)))
	f.wantError("again", f.UseAssertion(f.ctx, replay, f.now.Add(time.Hour)), oauth.ErrConflict)
	f.must(f.UseAssertion(f.ctx, newHash(), f.now.Add(time.Minute)))
}

// assertionRedeem redeems codes that are made for an assertion, in one transaction and in several.
func assertionRedeem(t *testing.T, f *fixture) {
	replay := newHash()
	redeem := func() *oauth.Redeem {
		code := f.code()
		op := f.redeem(code.Hash, f.now)
		op.Assertion = &oauth.UsedAssertion{Replay: replay, Expires: f.now.Add(time.Minute), Code: code}
		return op
	}
	winner, second, later := redeem(), redeem(), redeem()
	f.do(winner, second)
	f.do(later)
	f.outcome("first", winner.Outcome, oauth.OutcomeDone)
	f.alive("its access token", first(winner), true)
	for what, op := range map[string]*oauth.Redeem{"second": second, "later": later} {
		f.outcome(what, op.Outcome, oauth.OutcomeUsed)
		if _, err := f.AuthorizationCode(f.ctx, op.Code); !errors.Is(err, oauth.ErrNotFound) {
			t.Errorf("%s: got error %v for its code, want none kept", what, err)
		}
	}
	f.wantError("as a client's", f.UseAssertion(f.ctx, replay, f.now.Add(time.Hour)), oauth.ErrConflict)
}

func assertionSweep(_ *testing.T, f *fixture) {
	replay, expires := newHash(), f.now.Add(time.Minute)
	f.must(f.UseAssertion(f.ctx, replay, expires))
	f.sweep(expires.Add(time.Minute-time.Millisecond), 0)
	f.wantError("kept", f.UseAssertion(f.ctx, replay, expires), oauth.ErrConflict)
	f.sweep(expires.Add(time.Minute), 1)
	f.must(f.UseAssertion(f.ctx, replay, expires))
}

func assertionRace(t *testing.T, f *fixture) {
	const racers = 16
	replay, errs := newHash(), make([]error, racers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f.UseAssertion(f.ctx, replay, f.now.Add(time.Minute)) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, oauth.ErrConflict) {
			t.Fatal(err)
		}
	}
	if won != 1 {
		t.Errorf("got %d uses of an assertion, want 1", won)
	}
}
