package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

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
	first, second := f.redeem(code.Hash, f.now), f.redeem(code.Hash, f.now)
	f.must(errors.Join(f.inOneBatch(&oauth.SaveCode{Code: code}, first, second)...))
	f.outcome("first", first.Outcome, oauth.OutcomeDone)
	f.outcome("second", second.Outcome, oauth.OutcomeReused)
	f.revoked("second", second.Revoked, first.Access.Hash)
	f.alive("access token", first.Access.Hash, false)
}

func batchOfRotateReuseRevoke(t *testing.T, f *fixture) {
	r := f.family()
	rotate, reuse := f.rotate(r.Family, 1, f.now, 0), f.rotate(r.Family, 1, f.now, 0)
	revoke, after := &oauth.Revoke{FamilyID: r.Family.ID}, f.rotate(r.Family, 2, f.now, 0)
	f.must(errors.Join(f.inOneBatch(rotate, reuse, revoke, after)...))
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	f.outcome("reuse", reuse.Outcome, oauth.OutcomeReused)
	f.revoked("reuse", reuse.Revoked, r.Access.Hash, rotate.Access.Hash)
	f.revoked("revoke", revoke.Revoked)
	f.outcome("rotate afterwards", after.Outcome, oauth.OutcomeGone)
	f.alive("access token", rotate.Access.Hash, false)
	f.alive("access token", after.Access.Hash, false)
}

func batchOfRevokeThenRotate(t *testing.T, f *fixture) {
	r := f.family()
	rotate, revoke, after := f.rotate(r.Family, 1, f.now,
		0), &oauth.Revoke{UserID: f.user.ID}, f.rotate(r.Family, 2, f.now, 0)
	f.must(errors.Join(f.inOneBatch(rotate, revoke, after)...))
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	f.revoked("revoke", revoke.Revoked, r.Access.Hash, rotate.Access.Hash)
	f.outcome("rotate afterwards", after.Outcome, oauth.OutcomeGone)
}

func batchSeesEarlierOperations(t *testing.T, f *fixture) {
	code, direct := f.code(), f.token()
	redeem := f.redeem(code.Hash, f.now)
	rotate := f.rotate(redeem.Family, 1, f.now, 0)
	revokeToken, revoke := &oauth.Revoke{Access: &direct.Hash},
		&oauth.Revoke{FamilyID: redeem.Family.ID}
	f.must(errors.Join(f.inOneBatch(
		&oauth.SaveCode{Code: code}, &oauth.Issue{Token: direct}, redeem, rotate,
		revokeToken, revoke)...))
	f.outcome("redeem", redeem.Outcome, oauth.OutcomeDone)
	f.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	f.revoked("revoke token", revokeToken.Revoked, direct.Hash)
	f.revoked("revoke family", revoke.Revoked, redeem.Access.Hash, rotate.Access.Hash)
}

func batchWithBadOperation(t *testing.T, f *fixture) {
	r, good := f.family(), &oauth.Issue{Token: f.token()}
	bad := &oauth.Issue{Token: r.Access} // exists already
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
	f.alive("issued token", good.Token.Hash, true)
	f.alive("rotated token", rotate.Access.Hash, true)
}

func cancelledInQueue(t *testing.T, f *fixture) {
	code := f.code()
	f.do(&oauth.SaveCode{Code: code})
	cancelled, after := f.redeem(code.Hash, f.now), f.redeem(code.Hash, f.now)
	cancelled.OnDone(func(error) { t.Error("cancelled operation: got a call of OnDone") })
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.Issue{Token: f.token()}
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
	first := &oauth.Issue{Token: f.token()}
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
	deadline := time.Now().Add(300 * time.Millisecond)
	for range 8 {
		t.Run("reader", func(t *testing.T) {
			t.Parallel()
			for time.Now().Before(deadline) {
				token := f.token()
				f.do(&oauth.Issue{Token: token})
				if _, err := f.AccessToken(context.Background(), token.Hash); err != nil {
					t.Fatal(err)
				}
				f.do(&oauth.Revoke{Access: &token.Hash})
				_, err := f.AccessToken(context.Background(), token.Hash)
				if !errors.Is(err, oauth.ErrNotFound) {
					t.Fatalf("got %v, want %v", err, oauth.ErrNotFound)
				}
			}
		})
	}
}
