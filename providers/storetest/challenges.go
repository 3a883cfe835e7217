package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
)

var challengeTests = map[string]func(*testing.T, *world){
	"ChallengeIsReadBackAndRenewed":         challengeIsReadBack,
	"ChallengeThatIsNotThere":               challengeThatIsNotThere,
	"ChallengeIsTriedFiveTimes":             challengeIsTriedFiveTimes,
	"ChallengeIsTriedWhileItsCodeIsGood":    challengeIsTriedInTime,
	"ChallengeIsTakenOnce":                  challengeIsTakenOnce,
	"ChallengeMakesItsUser":                 challengeMakesItsUser,
	"ChallengeWhoseUserIsTakenStays":        challengeOfTakenUserStays,
	"CodesForOneRecipientAreLimited":        codesAreLimited,
	"CodesAtOnceAreOne":                     codesAtOnceAreOne,
	"CodesThatWereEnteredNeedNoInterval":    enteredCodesNeedNoInterval,
	"CodesForDifferentRecipientsAreApart":   codesAreApart,
	"SweepTakesChallengesAndWhatWasCounted": sweepTakesChallenges,
}

// challenge returns a challenge for an address whose code is sent at the time.
func (w *world) challenge(address string, sent time.Time) *account.Challenge {
	c := &account.Challenge{
		Hash: newHash(), Purpose: account.ForRegistration, Channel: account.Email, Address: address, UserID: w.user.ID, Name: "Ada 🧮",
		PasswordHash: "$argon2id$password", Message: account.RegisterCode, Ends: sent.Add(account.ChallengeLifetime),
	}
	c.Renew("$argon2id$"+address, sent)
	return c
}

// asked keeps a challenge for an address.
func (w *world) asked(address string) *account.Challenge {
	w.Helper()
	c := w.challenge(address, w.now)
	w.must(w.CreateChallenge(w.ctx, c))
	return c
}

func (w *world) sameChallenge(want *account.Challenge, again time.Time) {
	w.Helper()
	got, err := w.Challenge(w.ctx, want.Hash)
	w.must(err)
	kept := *want
	kept.Again = again
	if !reflect.DeepEqual(got, &kept) {
		w.Errorf("got %+v, want %+v", got, kept)
	}
}

// limited checks that no code may be sent before next.
func (w *world) limited(what string, err error, next time.Time) {
	w.Helper()
	var limit *account.SendLimitError
	if !errors.As(err, &limit) || !limit.Next.Equal(next) {
		w.Errorf("%s: got %v, want a limit until %v", what, err, next)
	}
}

func challengeIsReadBack(t *testing.T, w *world) {
	c := w.asked("Ada@Example.org")
	w.sameChallenge(c, w.now.Add(30*time.Second))
	w.must(w.CountTry(w.ctx, c, w.now))
	c.Tries++
	w.sameChallenge(c, w.now.Add(30*time.Second))
	c.Renew("$argon2id$second", w.now.Add(time.Minute))
	w.must(w.RenewChallenge(w.ctx, c))
	w.sameChallenge(c, w.now.Add(90*time.Second))
	if c.Tries != 0 {
		t.Errorf("got %d tries of the new code, want 0", c.Tries)
	}
	late := *c
	late.Renew("$argon2id$third", w.now.Add(58*time.Minute))
	w.must(w.RenewChallenge(w.ctx, &late))
	if !late.Expires.Equal(c.Ends) {
		t.Errorf("got a code that is good until %v, want the end of the challenge, %v", late.Expires, c.Ends)
	}
}

func challengeThatIsNotThere(t *testing.T, w *world) {
	c := w.challenge("nobody@example.org", w.now)
	_, err := w.Challenge(w.ctx, c.Hash)
	w.gone("read", err, account.ErrNotFound)
	w.gone("renew", w.RenewChallenge(w.ctx, c), account.ErrNotFound)
	w.gone("try", w.CountTry(w.ctx, c, w.now), account.ErrNotFound)
	w.gone("take", w.TakeChallenge(w.ctx, c, nil, w.now), account.ErrNotFound)
	w.gone("take for a user", w.TakeChallenge(w.ctx, c, w.fullUser(), w.now), account.ErrNotFound)
	w.must(w.UndoTry(w.ctx, c))
	_, err = w.UserByEmail(w.ctx, w.fullUser().Email)
	w.gone("user", err, account.ErrNotFound)
	w.must(w.CreateChallenge(w.ctx, c)) // nothing of that was counted as sent
	ended := *c
	ended.Renew("x", c.Ends)
	w.gone("renew what has ended", w.RenewChallenge(w.ctx, &ended), account.ErrNotFound)
	if err := w.CreateChallenge(w.ctx, w.challenge("a\x00b@example.org", w.now)); err == nil {
		t.Error("address that holds a NUL: got no error")
	}
}

func challengeIsTriedFiveTimes(t *testing.T, w *world) {
	c := w.asked("ada@example.org")
	counted := w.race(16, func(int) error { return w.CountTry(w.ctx, c, w.now) })
	if counted != account.CodeTries {
		t.Errorf("got %d tries counted, want %d", counted, account.CodeTries)
	}
	w.must(w.UndoTry(w.ctx, c))
	w.must(w.CountTry(w.ctx, c, w.now))
	w.gone("sixth try", w.CountTry(w.ctx, c, w.now), account.ErrNotFound)
	first := *c
	c.Renew("$argon2id$second", w.now.Add(time.Minute))
	w.must(w.RenewChallenge(w.ctx, c))
	w.gone("try of the former code", w.CountTry(w.ctx, &first, c.Sent), account.ErrNotFound)
	w.gone("the former code", w.TakeChallenge(w.ctx, &first, nil, c.Sent), account.ErrNotFound)
	w.must(w.UndoTry(w.ctx, &first))
	for range account.CodeTries {
		w.must(w.CountTry(w.ctx, c, c.Sent))
	}
	w.gone("sixth try of the second", w.CountTry(w.ctx, c, c.Sent), account.ErrNotFound)
}

// race has n callers do the same at once and returns how many succeed; the others must find nothing, or a limit.
func (w *world) race(n int, do func(i int) error) (done int) {
	w.Helper()
	errs := make([]error, n)
	var ended sync.WaitGroup
	for i := range errs {
		ended.Go(func() { errs[i] = do(i) })
	}
	ended.Wait()
	for _, err := range errs {
		var limit *account.SendLimitError
		switch {
		case err == nil:
			done++
		case !errors.As(err, &limit) && !errors.Is(err, account.ErrNotFound):
			w.Error(err)
		}
	}
	return done
}

func challengeIsTriedInTime(_ *testing.T, w *world) {
	c := w.asked("ada@example.org")
	w.must(w.CountTry(w.ctx, c, c.Expires.Add(-time.Millisecond)))
	w.gone("try of an expired code", w.CountTry(w.ctx, c, c.Expires), account.ErrNotFound)
	w.gone("an expired code", w.TakeChallenge(w.ctx, c, nil, c.Expires), account.ErrNotFound)
	w.must(w.TakeChallenge(w.ctx, c, nil, c.Expires.Add(-time.Millisecond)))
}

func challengeIsTakenOnce(t *testing.T, w *world) {
	c := w.asked("ada@example.org")
	if taken := w.race(16, func(int) error { return w.TakeChallenge(w.ctx, c, nil, w.now) }); taken != 1 {
		t.Errorf("got it taken %d times, want 1", taken)
	}
	_, err := w.Challenge(w.ctx, c.Hash)
	w.gone("taken challenge", err, account.ErrNotFound)
}

func challengeMakesItsUser(t *testing.T, w *world) {
	c := w.asked("Ada@Example.org")
	users := make([]*account.User, 16)
	made := w.race(len(users), func(i int) error {
		users[i] = w.fullUser()
		return w.TakeChallenge(w.ctx, c, users[i], w.now)
	})
	if made != 1 {
		t.Errorf("got %d users, want 1", made)
	}
	for _, u := range users {
		if u.ID != 0 {
			w.sameUser(u)
		}
	}
	if got, err := w.UserByEmail(w.ctx, c.Address); err != nil || got.ServiceID == "" {
		t.Errorf("got %+v, %v, want the new user", got, err)
	}
}

func challengeOfTakenUserStays(_ *testing.T, w *world) {
	w.must(w.CreateUser(w.ctx, w.fullUser()))
	c := w.asked("Ada@Example.org")
	w.gone("user with an address that is taken", w.TakeChallenge(w.ctx, c, w.fullUser(), w.now), account.ErrTaken)
	w.sameChallenge(c, w.now.Add(30*time.Second))
}

func codesAreLimited(_ *testing.T, w *world) {
	w.asked("ada@example.org")
	at := func(d time.Duration) *account.Challenge { return w.challenge("ADA@example.ORG", w.now.Add(d)) }
	w.limited("at once", w.CreateChallenge(w.ctx, at(0)), w.now.Add(30*time.Second))
	w.limited("too early", w.CreateChallenge(w.ctx, at(30*time.Second-time.Millisecond)), w.now.Add(30*time.Second))
	var last *account.Challenge
	for i := 1; i < account.SendsPerHour; i++ {
		last = at(time.Duration(i) * 30 * time.Second)
		w.must(w.CreateChallenge(w.ctx, last))
	}
	w.sameChallenge(last, w.now.Add(time.Hour))
	last.Renew("x", w.now.Add(30*time.Minute))
	w.limited("sixth in an hour", w.RenewChallenge(w.ctx, last), w.now.Add(time.Hour))
	for i := range account.SendsPerHour {
		w.must(w.CreateChallenge(w.ctx, at(2*time.Hour+time.Duration(i)*time.Minute)))
	}
	w.limited("eleventh in a day", w.CreateChallenge(w.ctx, at(23*time.Hour)), w.now.Add(24*time.Hour))
	w.must(w.CreateChallenge(w.ctx, at(24*time.Hour)))
}

func codesAtOnceAreOne(t *testing.T, w *world) {
	sent := w.race(16, func(int) error { return w.CreateChallenge(w.ctx, w.challenge("ada@example.org", w.now)) })
	if sent != 1 {
		t.Errorf("got %d codes, want 1", sent)
	}
}

func enteredCodesNeedNoInterval(_ *testing.T, w *world) {
	for i := range account.SendsPerHour {
		c := w.challenge("ada@example.org", w.now.Add(time.Duration(i)*time.Second))
		w.must(w.CreateChallenge(w.ctx, c))
		w.must(w.TakeChallenge(w.ctx, c, nil, c.Sent))
	}
	w.limited("sixth in an hour", w.CreateChallenge(w.ctx, w.challenge("ada@example.org", w.now.Add(time.Minute))), w.now.Add(time.Hour))
}

func codesAreApart(_ *testing.T, w *world) {
	for i := range 3 {
		w.asked(fmt.Sprintf("ada%d@example.org", i))
	}
	sms := w.challenge("ada0@example.org", w.now)
	sms.Channel = account.SMS
	w.must(w.CreateChallenge(w.ctx, sms))
}

func sweepTakesChallenges(_ *testing.T, w *world) {
	c := w.asked("ada@example.org")
	w.sweep(c.Ends.Add(-time.Millisecond), 0)
	w.sweep(c.Ends, 1)
	_, err := w.Challenge(w.ctx, c.Hash)
	w.gone("challenge", err, account.ErrNotFound)
	w.limited("after the challenge was swept", w.CreateChallenge(w.ctx, w.challenge("ada@example.org", w.now)), w.now.Add(30*time.Second))
	w.sweep(w.now.Add(24*time.Hour), 1)
	w.asked("ada@example.org")
}
