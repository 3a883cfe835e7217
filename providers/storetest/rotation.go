package storetest

import (
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

var rotationTests = map[string]func(*testing.T, *world){
	"RotationAdvancesTheFamily":           rotationAdvances,
	"RotationRepeatsWithinGrace":          rotationRepeatsWithinGrace,
	"RotationReuseEndsTheFamily":          rotationReuseEndsTheFamily,
	"RotationOfWhatHasEndedIsGone":        rotationOfWhatHasEndedIsGone,
	"RotationBy64AtOnceAdvancesOnce":      rotationBy64AtOnce,
	"RotationByDisabledUserIsGone":        rotationByDisabledUser,
	"RotationReuseBeatsADisabledUser":     rotationReuseBeatsDisabled,
	"RotationGraceIsCountedFromAdvance":   rotationGraceFromAdvance,
	"RotationOfATokenFromTheFutureEndsIt": rotationFromTheFuture,
}

func rotationAdvances(t *testing.T, w *world) {
	r := w.family()
	now := w.now.Add(time.Hour)
	next := w.rotate(r.Family, 1, now, 0)
	w.do(next)
	w.outcome("rotate", next.Outcome, oauth.OutcomeDone)
	got, err := w.RefreshToken(w.ctx, next.Refresh)
	w.must(err)
	if got.Generation != 2 || got.Family.Generation != 2 || !got.Family.Advanced.Equal(now) || !got.Family.Expires.Equal(next.Expires) {
		t.Errorf("got %+v, want generation 2, advanced %v, expires %v", got, now, next.Expires)
	}
	if !got.Family.Ends.Equal(r.Family.Ends) {
		t.Errorf("end of the family: got %v, want %v", got.Family.Ends, r.Family.Ends)
	}
	w.alive("access token before", r.Access.Hash, true)
	w.alive("access token", next.Access.Hash, true)
	old, err := w.RefreshToken(w.ctx, *r.Refresh)
	w.must(err)
	if old.Generation != 1 || old.Family.Generation != 2 {
		t.Errorf("token before: got generation %d of %d, want 1 of 2", old.Generation, old.Family.Generation)
	}
}

func rotationRepeatsWithinGrace(t *testing.T, w *world) {
	const grace = 10 * time.Second
	r := w.family()
	first := w.rotate(r.Family, 1, w.now, grace)
	second := w.rotate(r.Family, 1, w.now.Add(grace-time.Millisecond), grace)
	w.do(first, second)
	w.outcome("repeat", second.Outcome, oauth.OutcomeDone)
	for _, hash := range []oauth.Hash{first.Refresh, second.Refresh} {
		got, err := w.RefreshToken(w.ctx, hash)
		w.must(err)
		if got.Generation != 2 || got.Family.Generation != 2 {
			t.Errorf("got generation %d of %d, want 2 of 2", got.Generation, got.Family.Generation)
		}
	}
	sibling := w.rotate(r.Family, 2, w.now.Add(time.Minute), grace)
	w.do(sibling)
	w.outcome("next", sibling.Outcome, oauth.OutcomeDone)
	older := w.rotate(r.Family, 1, w.now.Add(time.Minute), grace)
	w.do(older)
	w.outcome("two generations old", older.Outcome, oauth.OutcomeReused)
}

func rotationGraceFromAdvance(t *testing.T, w *world) {
	const grace = 10 * time.Second
	r := w.family()
	repeat := w.rotate(r.Family, 1, w.now.Add(8*time.Second), grace)
	late := w.rotate(r.Family, 1, w.now.Add(12*time.Second), grace)
	w.do(w.rotate(r.Family, 1, w.now, grace), repeat, late)
	w.outcome("repeat", repeat.Outcome, oauth.OutcomeDone)
	w.outcome("repeat that a repeat must not have prolonged", late.Outcome, oauth.OutcomeReused)
}

func rotationReuseEndsTheFamily(t *testing.T, w *world) {
	const grace = 10 * time.Second
	for what, late := range map[string]struct{ after, grace time.Duration }{
		"after the grace time": {grace + time.Millisecond, grace},
		"at its end":           {grace, grace},
		"without grace":        {0, 0},
	} {
		r, other := w.family(), w.family()
		next := w.rotate(r.Family, 1, w.now, late.grace)
		reuse := w.rotate(r.Family, 1, w.now.Add(late.after), late.grace)
		w.do(next, reuse)
		w.outcome(what, reuse.Outcome, oauth.OutcomeReused)
		w.revoked(what, reuse.Revoked, r.Access.Hash, next.Access.Hash)
		w.alive(what, next.Access.Hash, false)
		w.alive(what, reuse.Access.Hash, false)
		w.alive("other family", other.Access.Hash, true)
		again := w.rotate(r.Family, 2, w.now, late.grace)
		w.do(again)
		w.outcome("the current token then", again.Outcome, oauth.OutcomeGone)
		_, err := w.RefreshToken(w.ctx, reuse.Refresh)
		w.gone("refused refresh token", err, oauth.ErrNotFound)
	}
}

func rotationOfWhatHasEndedIsGone(t *testing.T, w *world) {
	r := w.family()
	unknown := r.Family
	unknown.ID = "4b8e3c2a-0000-4000-8000-000000000000"
	idle, old := w.rotate(r.Family, 1, r.Family.Expires, 0), w.rotate(r.Family, 2, r.Family.Ends, 0)
	oldStep := w.rotate(r.Family, 1, r.Family.Expires.Add(-time.Millisecond), 0)
	oldStep.Expires = r.Family.Ends.Add(time.Hour)
	for _, test := range []struct {
		what string
		op   *oauth.Rotate
		want oauth.Outcome
	}{
		{"unknown family", w.rotate(unknown, 1, w.now, 0), oauth.OutcomeGone},
		{"not used for too long", idle, oauth.OutcomeGone},
		{"just in time", oldStep, oauth.OutcomeDone},
		{"at the family's end", old, oauth.OutcomeGone},
		{"an old token after the family's end", w.rotate(r.Family, 7, r.Family.Ends, 0), oauth.OutcomeGone},
	} {
		w.do(test.op)
		w.outcome(test.what, test.op.Outcome, test.want)
		w.revoked(test.what, test.op.Revoked)
	}
}

func rotationBy64AtOnce(t *testing.T, w *world) {
	r := w.family()
	ops := make([]oauth.Operation, 64)
	for i := range ops {
		ops[i] = w.rotate(r.Family, 1, w.now, time.Minute)
	}
	for _, err := range w.submit(ops...)() {
		w.must(err)
	}
	for _, op := range ops {
		w.outcome("rotate", op.(*oauth.Rotate).Outcome, oauth.OutcomeDone)
		got, err := w.RefreshToken(w.ctx, op.(*oauth.Rotate).Refresh)
		w.must(err)
		if got.Generation != 2 || got.Family.Generation != 2 {
			t.Fatalf("got generation %d of %d, want 2 of 2", got.Generation, got.Family.Generation)
		}
	}
}

func rotationByDisabledUser(t *testing.T, w *world) {
	r := w.family()
	disabled := *w.user
	disabled.Disabled = true
	w.must(w.UpdateUser(w.ctx, &disabled))
	current, previous := w.rotate(r.Family, 1, w.now, 0), w.rotate(r.Family, 1, w.now, time.Minute)
	w.do(current, previous)
	w.outcome("current", current.Outcome, oauth.OutcomeGone)
	w.outcome("with grace", previous.Outcome, oauth.OutcomeGone)
	w.user.Version = disabled.Version
	w.must(w.UpdateUser(w.ctx, w.user))
	next := w.rotate(r.Family, 1, w.now, time.Minute)
	w.do(next)
	w.outcome("of a user who is enabled again", next.Outcome, oauth.OutcomeDone)
	disabled.Version = w.user.Version
	w.must(w.UpdateUser(w.ctx, &disabled))
	repeat := w.rotate(r.Family, 1, w.now, time.Minute)
	w.do(repeat)
	w.outcome("previous within grace", repeat.Outcome, oauth.OutcomeGone)
}

func rotationReuseBeatsDisabled(t *testing.T, w *world) {
	r := w.family()
	next := w.rotate(r.Family, 1, w.now, 0)
	w.do(next)
	disabled := *w.user
	disabled.Disabled = true
	w.must(w.UpdateUser(w.ctx, &disabled))
	reuse := w.rotate(r.Family, 1, w.now, 0)
	w.do(reuse)
	w.outcome("reuse", reuse.Outcome, oauth.OutcomeReused)
	w.revoked("reuse", reuse.Revoked, r.Access.Hash, next.Access.Hash)
}

func rotationFromTheFuture(t *testing.T, w *world) {
	r := w.family()
	op := w.rotate(r.Family, 2, w.now, time.Minute)
	w.do(op)
	w.outcome("a generation that was never reached", op.Outcome, oauth.OutcomeReused)
}
