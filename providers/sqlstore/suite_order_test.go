package sqlstore_test

import (
	"context"
	"errors"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var orderTests = map[string]func(*testing.T, *fixture){
	"BatchOfTwoRedemptionsHasOneWinner":    batchOfTwoRedemptions,
	"BatchOfRotateReuseRevoke":             batchOfRotateReuseRevoke,
	"BatchOfRevokeThenRotate":              batchOfRevokeThenRotate,
	"OperationSeesEarlierOnesOfBatch":      batchSeesEarlierOperations,
	"OnlyBadOperationOfBatchFails":         batchWithBadOperation,
	"OperationCancelledInQueueHasNoEffect": cancelledInQueue,
	"CallWithEndedContextHasNoEffect":      endedContext,
	"ReadYourWrites":                       readYourWrites,
}

func batchOfTwoRedemptions(t *testing.T, f *fixture) {
	code := f.code()
	redeemed, second := f.redeem(code.Hash, f.now), f.redeem(code.Hash, f.now)
	f.must(errors.Join(f.inOneBatch(&oauth.SaveCode{Code: code}, redeemed, second)...))
	f.outcome("first", redeemed.Outcome, oauth.OutcomeDone)
	f.outcome("second", second.Outcome, oauth.OutcomeReused)
	f.ended("second", second.Ended, f.familyEnd(redeemed.Family))
	f.alive("access token", first(redeemed), false)
}

func batchOfRotateReuseRevoke(t *testing.T, f *fixture) {
	r := f.family()
	rotate, reuse := f.rotate(r.Family, 1, f.now, 0), f.rotate(r.Family, 1, f.now, 0)
	revoke, after := familyRevocation(r.Family), f.rotate(r.Family, 2, f.now, 0)
	f.must(errors.Join(f.inOneBatch(rotate, reuse, revoke, after)...))
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	f.outcome("reuse", reuse.Outcome, oauth.OutcomeReused)
	f.ended("reuse", reuse.Ended, f.familyEnd(r.Family))
	f.ended("revoke", revoke.Ended)
	f.outcome("rotate afterwards", after.Outcome, oauth.OutcomeGone)
	f.alive("access token", issued(r.Family, rotate.Epochs), false)
}

func batchOfRevokeThenRotate(t *testing.T, f *fixture) {
	r := f.family()
	rotate, revoke, after := f.rotate(r.Family, 1, f.now,
		0), &oauth.Revoke{UserID: f.user.ID}, f.rotate(r.Family, 2, f.now, 0)
	f.must(errors.Join(f.inOneBatch(rotate, revoke, after)...))
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	f.ended("revoke", revoke.Ended)
	f.alive("access token", issued(r.Family, rotate.Epochs), false)
	f.outcome("rotate afterwards", after.Outcome, oauth.OutcomeGone)
}

func batchSeesEarlierOperations(t *testing.T, f *fixture) {
	code, direct := f.code(), f.machine()
	redeem := f.redeem(code.Hash, f.now)
	rotate := f.rotate(redeem.Family, 1, f.now, 0)
	revokeToken, again := &oauth.Revoke{Token: &direct.end}, &oauth.Revoke{Token: &direct.end}
	revoke := familyRevocation(redeem.Family)
	f.must(errors.Join(f.inOneBatch(&oauth.SaveCode{Code: code}, redeem, rotate, revokeToken,
		again, revoke)...))
	f.outcome("redeem", redeem.Outcome, oauth.OutcomeDone)
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	f.ended("revoke token", revokeToken.Ended, tokenEnd(direct))
	f.ended("revoke token again", again.Ended)
	f.ended("revoke family", revoke.Ended, f.familyEnd(redeem.Family))
}

func batchWithBadOperation(t *testing.T, f *fixture) {
	r, good := f.family(), &oauth.SaveCode{Code: f.code()}
	bad := &oauth.SaveCode{Code: f.code()}
	bad.Code.Hash = r.Code // exists already
	rotate, code := f.rotate(r.Family, 1, f.now, 0), f.code()
	save, redeem := &oauth.SaveCode{Code: code}, f.redeem(code.Hash, f.now)
	errs := f.inOneBatch(good, rotate, bad, save, redeem)
	for i, err := range errs {
		if wantBad := i == 2; (err != nil) != wantBad {
			t.Errorf("operation %d: got %v, want an error %t", i+1, err, wantBad)
		}
	}
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	f.outcome("redeem", redeem.Outcome, oauth.OutcomeDone)
	_, err := f.AuthorizationCode(f.ctx, good.Code.Hash)
	f.must(err)
	f.alive("rotated token", issued(r.Family, rotate.Epochs), true)
}

func cancelledInQueue(t *testing.T, f *fixture) {
	code := f.code()
	f.do(&oauth.SaveCode{Code: code})
	cancelled, after := f.redeem(code.Hash, f.now), f.redeem(code.Hash, f.now)
	cancelled.OnDone(func(error) { t.Error("cancelled operation: got a call of OnDone") })
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.SaveCode{Code: f.code()}
	first.OnDone(func(error) { close(held); <-hold })
	f.Submit(first)
	<-held
	f.Submit(cancelled)
	wait := f.submit(after)
	if !cancelled.Cancel() {
		t.Error("cancel: got false, want true")
	}
	close(hold)
	f.must(errors.Join(wait()...))
	f.outcome("the next operation", after.Outcome, oauth.OutcomeDone)
	if after.Cancel() {
		t.Error("cancel of an ended operation: got true, want false")
	}
}

func endedContext(t *testing.T, f *fixture) {
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.SaveCode{Code: f.code()}
	first.OnDone(func(error) { close(held); <-hold })
	f.Submit(first)
	<-held
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	err := f.CreateUser(ctx, &account.User{Name: "Bob", Email: "bob@example.org"})
	f.wantError("create user", err, context.Canceled)
	close(hold)
	f.newUser()
	_, err = f.UserByEmail(f.ctx, "bob@example.org")
	f.wantError("user of the cancelled call", err, account.ErrNotFound)
}

func readYourWrites(t *testing.T, f *fixture) {
	for range 8 {
		t.Run("reader", func(t *testing.T) {
			t.Parallel()
			for range 10 {
				code := f.code()
				f.do(&oauth.SaveCode{Code: code})
				if _, err := f.AuthorizationCode(context.Background(), code.Hash); err != nil {
					t.Fatal(err)
				}
				f.do(f.redeem(code.Hash, f.now))
				got, err := f.AuthorizationCode(context.Background(), code.Hash)
				if err != nil || got.Used.IsZero() {
					t.Fatalf("got %+v, error %v, want it used", got, err)
				}
			}
		})
	}
}
