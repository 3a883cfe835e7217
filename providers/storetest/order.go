package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var orderTests = map[string]func(*testing.T, *world){
	"BatchOfTwoRedemptionsHasOneWinner": batchOfTwoRedemptions,
	"BatchOfRotateReuseRevoke":          batchOfRotateReuseRevoke,
	"BatchOfRevokeThenRotate":           batchOfRevokeThenRotate,
	"BatchSeesWhatCameBefore":           batchSeesWhatCameBefore,
	"BatchWithABadMemberFailsItAlone":   batchWithABadMember,
	"CancelledWhileQueuedHasNoEffect":   cancelledWhileQueued,
	"CallerThatLeavesHasNoEffect":       callerThatLeaves,
	"WriteIsReadByEveryReader":          writeIsRead,
}

func batchOfTwoRedemptions(t *testing.T, w *world) {
	code := w.code()
	first, second := w.redeem(code.Hash, w.now), w.redeem(code.Hash, w.now)
	w.must(errors.Join(w.together(&oauth.SaveCode{Code: code}, first, second)...))
	w.outcome("first", first.Outcome, oauth.OutcomeDone)
	w.outcome("second", second.Outcome, oauth.OutcomeReused)
	w.revoked("second", second.Revoked, first.Access.Hash)
	w.alive("access token", first.Access.Hash, false)
}

func batchOfRotateReuseRevoke(t *testing.T, w *world) {
	r := w.family()
	rotate, reuse := w.rotate(r.Family, 1, w.now, 0), w.rotate(r.Family, 1, w.now, 0)
	revoke, after := &oauth.Revoke{FamilyID: r.Family.ID}, w.rotate(r.Family, 2, w.now, 0)
	w.must(errors.Join(w.together(rotate, reuse, revoke, after)...))
	w.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	w.outcome("reuse", reuse.Outcome, oauth.OutcomeReused)
	w.revoked("reuse", reuse.Revoked, r.Access.Hash, rotate.Access.Hash)
	w.revoked("revoke", revoke.Revoked)
	w.outcome("rotate afterwards", after.Outcome, oauth.OutcomeGone)
	w.alive("access token", rotate.Access.Hash, false)
	w.alive("access token", after.Access.Hash, false)
}

func batchOfRevokeThenRotate(t *testing.T, w *world) {
	r := w.family()
	rotate, revoke, after := w.rotate(r.Family, 1, w.now, 0), &oauth.Revoke{UserID: w.user.ID}, w.rotate(r.Family, 2, w.now, 0)
	w.must(errors.Join(w.together(rotate, revoke, after)...))
	w.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	w.revoked("revoke", revoke.Revoked, r.Access.Hash, rotate.Access.Hash)
	w.outcome("rotate afterwards", after.Outcome, oauth.OutcomeGone)
}

func batchSeesWhatCameBefore(t *testing.T, w *world) {
	code, direct := w.code(), w.token()
	redeem := w.redeem(code.Hash, w.now)
	rotate := w.rotate(redeem.Family, 1, w.now, 0)
	end, revoke := &oauth.Revoke{Access: &direct.Hash}, &oauth.Revoke{FamilyID: redeem.Family.ID}
	w.must(errors.Join(w.together(
		&oauth.SaveCode{Code: code}, &oauth.Issue{Token: direct}, redeem, rotate, end, revoke)...))
	w.outcome("redeem", redeem.Outcome, oauth.OutcomeDone)
	w.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	w.revoked("revoke token", end.Revoked, direct.Hash)
	w.revoked("revoke family", revoke.Revoked, redeem.Access.Hash, rotate.Access.Hash)
}

func batchWithABadMember(t *testing.T, w *world) {
	r, good := w.family(), &oauth.Issue{Token: w.token()}
	bad := &oauth.Issue{Token: r.Access} // is there already
	rotate, code := w.rotate(r.Family, 1, w.now, 0), w.code()
	save, redeem := &oauth.SaveCode{Code: code}, w.redeem(code.Hash, w.now)
	errs := w.together(good, rotate, bad, save, redeem)
	for i, err := range errs {
		if wantBad := i == 2; (err != nil) != wantBad {
			t.Errorf("member %d: got %v, want an error %t", i+1, err, wantBad)
		}
	}
	w.outcome("rotate", rotate.Outcome, oauth.OutcomeDone)
	w.outcome("redeem", redeem.Outcome, oauth.OutcomeDone)
	w.alive("good member's token", good.Token.Hash, true)
	w.alive("rotated token", rotate.Access.Hash, true)
}

func cancelledWhileQueued(t *testing.T, w *world) {
	code := w.code()
	w.do(&oauth.SaveCode{Code: code})
	cancelled, after := w.redeem(code.Hash, w.now), w.redeem(code.Hash, w.now)
	cancelled.OnDone(func(error) { t.Error("cancelled operation: got an end") })
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.Issue{Token: w.token()}
	first.OnDone(func(error) { close(held); <-hold })
	w.Submit(first)
	<-held
	w.Submit(cancelled)
	wait := w.submit(after)
	if !cancelled.Cancel() {
		t.Error("cancel: got refused, want accepted")
	}
	close(hold)
	w.must(errors.Join(wait()...))
	w.outcome("the one behind it", after.Outcome, oauth.OutcomeDone)
	if after.Cancel() {
		t.Error("cancel of what has ended: got accepted, want refused")
	}
}

func callerThatLeaves(t *testing.T, w *world) {
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.Issue{Token: w.token()}
	first.OnDone(func(error) { close(held); <-hold })
	w.Submit(first)
	<-held
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	err := w.CreateUser(ctx, &account.User{Name: "Bob", Email: "bob@example.org"})
	w.gone("create user", err, context.Canceled)
	close(hold)
	w.newUser()
	_, err = w.UserByEmail(w.ctx, "bob@example.org")
	w.gone("user that was not waited for", err, account.ErrNotFound)
}

func writeIsRead(t *testing.T, w *world) {
	deadline := time.Now().Add(300 * time.Millisecond)
	for range 8 {
		t.Run("reader", func(t *testing.T) {
			t.Parallel()
			for time.Now().Before(deadline) {
				token := w.token()
				w.do(&oauth.Issue{Token: token})
				if _, err := w.AccessToken(context.Background(), token.Hash); err != nil {
					t.Fatal(err)
				}
				w.do(&oauth.Revoke{Access: &token.Hash})
				_, err := w.AccessToken(context.Background(), token.Hash)
				if !errors.Is(err, oauth.ErrNotFound) {
					t.Fatalf("got %v, want %v", err, oauth.ErrNotFound)
				}
			}
		})
	}
}
