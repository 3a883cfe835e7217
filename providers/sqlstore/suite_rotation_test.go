package sqlstore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

var rotationTests = map[string]func(*testing.T, *fixture){
	"RotationAdvancesFamily":            rotationAdvancesFamily,
	"RotationWithinGracePeriod":         rotationWithinGrace,
	"RotationReuseRevokesFamily":        rotationReuseRevokesFamily,
	"RotationOfEndedFamilyIsGone":       rotationOfEndedFamily,
	"ConcurrentRotationsAdvanceOnce":    concurrentRotations,
	"RotationByDisabledUserIsGone":      rotationByDisabledUser,
	"RotationReuseByDisabledUser":       rotationReuseByDisabledUser,
	"GracePeriodBeginsWithAdvance":      gracePeriodBeginsWithAdvance,
	"RotationOfFutureGenerationIsReuse": rotationOfFutureGeneration,
	"RotationNeverLowersAccessExpiry":   rotationNeverLowersAccessExpiry,
	"RotationRepeatsAreLimited":         rotationRepeatsAreLimited,
}

func rotationAdvancesFamily(t *testing.T, f *fixture) {
	r := f.family()
	now := f.now.Add(time.Hour)
	next := f.rotate(r.Family, 1, now, 0)
	f.do(next)
	f.outcome("rotate", next.Outcome, oauth.OutcomeDone)
	got, err := f.RefreshToken(f.ctx, next.Refresh)
	f.must(err)
	if got.Generation != 2 || got.Family.Generation != 2 || !got.Family.Advanced.Equal(now) ||
		!got.Family.Expires.Equal(next.Expires) {
		t.Errorf("got %+v, want generation 2, advanced %v, expires %v", got, now, next.Expires)
	}
	if !got.Family.Ends.Equal(r.Family.Ends) {
		t.Errorf("end of the family: got %v, want %v", got.Family.Ends, r.Family.Ends)
	}
	f.alive("access token before", first(r), true)
	f.alive("access token", issued(r.Family, next.Epochs), true)
	if want := now.Add(time.Hour); !got.Family.AccessExpires.Equal(want) {
		t.Errorf("access tokens expire: got %v, want %v", got.Family.AccessExpires, want)
	}
	old, err := f.RefreshToken(f.ctx, *r.Refresh)
	f.must(err)
	if old.Generation != 1 || old.Family.Generation != 2 {
		t.Errorf("token before: got generation %d of %d, want 1 of 2", old.Generation,
			old.Family.Generation)
	}
}

func rotationWithinGrace(t *testing.T, f *fixture) {
	const grace = 10 * time.Second
	r := f.family()
	first := f.rotate(r.Family, 1, f.now, grace)
	second := f.rotate(r.Family, 1, f.now.Add(grace-time.Millisecond), grace)
	f.do(first, second)
	f.outcome("repeat", second.Outcome, oauth.OutcomeDone)
	for _, hash := range []oauth.Hash{first.Refresh, second.Refresh} {
		got, err := f.RefreshToken(f.ctx, hash)
		f.must(err)
		if got.Generation != 2 || got.Family.Generation != 2 {
			t.Errorf("got generation %d of %d, want 2 of 2", got.Generation, got.Family.Generation)
		}
	}
	sibling := f.rotate(r.Family, 2, f.now.Add(time.Minute), grace)
	f.do(sibling)
	f.outcome("next", sibling.Outcome, oauth.OutcomeDone)
	older := f.rotate(r.Family, 1, f.now.Add(time.Minute), grace)
	f.do(older)
	f.outcome("two generations old", older.Outcome, oauth.OutcomeReused)
}

func gracePeriodBeginsWithAdvance(t *testing.T, f *fixture) {
	const grace = 10 * time.Second
	r := f.family()
	repeat := f.rotate(r.Family, 1, f.now.Add(8*time.Second), grace)
	late := f.rotate(r.Family, 1, f.now.Add(12*time.Second), grace)
	f.do(f.rotate(r.Family, 1, f.now, grace), repeat, late)
	f.outcome("repeat", repeat.Outcome, oauth.OutcomeDone)
	f.outcome("repeat after the grace period", late.Outcome, oauth.OutcomeReused)
}

func rotationReuseRevokesFamily(t *testing.T, f *fixture) {
	const grace = 10 * time.Second
	for what, late := range map[string]struct{ after, grace time.Duration }{
		"after the grace period": {grace + time.Millisecond, grace},
		"at its end":             {grace, grace},
		"without a grace period": {0, 0},
	} {
		r, other := f.family(), f.family()
		next := f.rotate(r.Family, 1, f.now, late.grace)
		reuse := f.rotate(r.Family, 1, f.now.Add(late.after), late.grace)
		f.do(next, reuse)
		f.outcome(what, reuse.Outcome, oauth.OutcomeReused)
		end := f.familyEnd(r.Family)
		f.ended(what, reuse.Ended, end)
		f.alive(what, issued(r.Family, next.Epochs), false)
		f.alive("other family", first(other), true)
		again := f.rotate(r.Family, 2, f.now, late.grace)
		f.do(again)
		f.outcome("the current token after that", again.Outcome, oauth.OutcomeGone)
		_, err := f.RefreshToken(f.ctx, reuse.Refresh)
		f.wantError("refresh token of the reuse", err, oauth.ErrNotFound)
	}
}

func rotationOfEndedFamily(t *testing.T, f *fixture) {
	r := f.family()
	unknown := r.Family
	unknown.ID = uuid.New()
	idle, old := f.rotate(r.Family, 1, r.Family.Expires, 0), f.rotate(r.Family, 2, r.Family.Ends, 0)
	oldStep := f.rotate(r.Family, 1, r.Family.Expires.Add(-time.Millisecond), 0)
	oldStep.Expires = r.Family.Ends.Add(time.Hour)
	for _, test := range []struct {
		what string
		op   *oauth.Rotate
		want oauth.Outcome
	}{
		{"unknown family", f.rotate(unknown, 1, f.now, 0), oauth.OutcomeGone},
		{"idle expiry", idle, oauth.OutcomeGone},
		{"just before idle expiry", oldStep, oauth.OutcomeDone},
		{"at the family's end", old, oauth.OutcomeGone},
		{"an old token after the family's end", f.rotate(r.Family, 7, r.Family.Ends, 0), oauth.OutcomeGone},
	} {
		f.do(test.op)
		f.outcome(test.what, test.op.Outcome, test.want)
		f.ended(test.what, test.op.Ended)
	}
}

func concurrentRotations(t *testing.T, f *fixture) {
	r := f.family()
	ops := make([]oauth.Operation, 64)
	for i := range ops {
		ops[i] = f.rotate(r.Family, 1, f.now, time.Minute)
	}
	for _, err := range f.submit(ops...)() {
		f.must(err)
	}
	done := 0
	for _, op := range ops {
		outcome := op.(*oauth.Rotate).Outcome
		if outcome != oauth.OutcomeDone {
			f.outcome("rotate", outcome, oauth.OutcomeRepeated)
			continue
		}
		done++
		got, err := f.RefreshToken(f.ctx, op.(*oauth.Rotate).Refresh)
		f.must(err)
		if got.Generation != 2 || got.Family.Generation != 2 {
			t.Fatalf("got generation %d of %d, want 2 of 2", got.Generation, got.Family.Generation)
		}
	}
	if want := 1 + oauth.MaxRepeats; done != want {
		t.Errorf("got tokens %d times, want %d", done, want)
	}
}

// rotationRepeatsAreLimited repeats the use of a replaced token within the grace period. That ends
// nothing, and each generation has repeats of its own.
func rotationRepeatsAreLimited(t *testing.T, f *fixture) {
	const grace = time.Minute
	r := f.family()
	for generation := range int64(3) {
		next := f.rotate(r.Family, generation+1, f.now, grace)
		f.do(next)
		f.outcome("rotate", next.Outcome, oauth.OutcomeDone)
		for i := range oauth.MaxRepeats + 2 {
			want := oauth.OutcomeDone
			if i >= oauth.MaxRepeats {
				want = oauth.OutcomeRepeated
			}
			repeat := f.rotate(r.Family, generation+1, f.now.Add(time.Second), grace)
			f.do(repeat)
			f.outcome("repeat", repeat.Outcome, want)
			f.ended("repeat", repeat.Ended)
			if want == oauth.OutcomeRepeated {
				_, err := f.RefreshToken(f.ctx, repeat.Refresh)
				f.wantError("refresh token of a refused repeat", err, oauth.ErrNotFound)
			}
		}
		f.alive("access token", issued(r.Family, next.Epochs), true)
	}
	disabled := *f.user
	disabled.Disabled = true
	f.must(f.UpdateUser(f.ctx, &disabled))
	gone := f.rotate(r.Family, 3, f.now, grace)
	f.do(gone)
	f.outcome("repeat by a disabled user", gone.Outcome, oauth.OutcomeGone)
}

func rotationByDisabledUser(t *testing.T, f *fixture) {
	r := f.family()
	disabled := *f.user
	disabled.Disabled = true
	f.must(f.UpdateUser(f.ctx, &disabled))
	current, previous := f.rotate(r.Family, 1, f.now, 0), f.rotate(r.Family, 1, f.now, time.Minute)
	f.do(current, previous)
	f.outcome("current", current.Outcome, oauth.OutcomeGone)
	f.outcome("with grace", previous.Outcome, oauth.OutcomeGone)
	f.user.Version = disabled.Version
	f.must(f.UpdateUser(f.ctx, f.user))
	next := f.rotate(r.Family, 1, f.now, time.Minute)
	f.do(next)
	f.outcome("user is enabled again", next.Outcome, oauth.OutcomeDone)
	disabled.Version = f.user.Version
	f.must(f.UpdateUser(f.ctx, &disabled))
	repeat := f.rotate(r.Family, 1, f.now, time.Minute)
	f.do(repeat)
	f.outcome("previous within grace", repeat.Outcome, oauth.OutcomeGone)
}

func rotationReuseByDisabledUser(t *testing.T, f *fixture) {
	r := f.family()
	next := f.rotate(r.Family, 1, f.now, 0)
	f.do(next)
	disabled := *f.user
	disabled.Disabled = true
	f.must(f.UpdateUser(f.ctx, &disabled))
	reuse := f.rotate(r.Family, 1, f.now, 0)
	f.do(reuse)
	f.outcome("reuse", reuse.Outcome, oauth.OutcomeReused)
	f.ended("reuse", reuse.Ended, f.familyEnd(r.Family))
}

func rotationOfFutureGeneration(t *testing.T, f *fixture) {
	r := f.family()
	op := f.rotate(r.Family, 2, f.now, time.Minute)
	f.do(op)
	f.outcome("future generation", op.Outcome, oauth.OutcomeReused)
}

func rotationNeverLowersAccessExpiry(t *testing.T, f *fixture) {
	const grace = time.Minute
	r := f.family()
	for i, step := range []struct {
		generation   int64
		expires      time.Duration
		wantInterval time.Duration
	}{
		{1, time.Minute, time.Hour},
		{1, 2 * time.Hour, 2 * time.Hour}, // repeated within the grace period
		{2, 3 * time.Hour, 3 * time.Hour},
		{2, time.Hour, 3 * time.Hour}, // repeated
	} {
		next := f.rotate(r.Family, step.generation, f.now, grace)
		next.AccessExpires = f.now.Add(step.expires)
		f.do(next)
		f.outcome("rotate", next.Outcome, oauth.OutcomeDone)
		got, err := f.RefreshToken(f.ctx, next.Refresh)
		f.must(err)
		if want := f.now.Add(step.wantInterval); !got.Family.AccessExpires.Equal(want) {
			t.Errorf("step %d: got %v, want %v", i+1, got.Family.AccessExpires, want)
		}
	}
}
