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

var challengeTests = map[string]func(*testing.T, *fixture){
	"ChallengeRoundTrip":              challengeRoundTrip,
	"UnknownChallenge":                unknownChallenge,
	"ChallengeAllowsFiveTries":        challengeAllowsFiveTries,
	"ChallengeCodeExpires":            challengeCodeExpires,
	"ChallengeIsTakenOnce":            challengeIsTakenOnce,
	"ChallengeCreatesUser":            challengeCreatesUser,
	"ChallengeStaysIfAddressIsTaken":  challengeStaysIfAddressIsTaken,
	"CodesOfOneRecipientAreLimited":   codesAreLimited,
	"ConcurrentCodesSendOne":          concurrentCodesSendOne,
	"EnteredCodeEndsSendInterval":     enteredCodeEndsSendInterval,
	"RecipientsAreLimitedSeparately":  recipientsAreLimitedSeparately,
	"SweepDeletesChallengesAndCounts": sweepDeletesChallenges,
}

// challenge returns a challenge for an address with a code sent at sent.
func (f *fixture) challenge(address string, sent time.Time) *account.Challenge {
	c := &account.Challenge{
		Hash: newHash(), Purpose: account.ForRegistration, Channel: account.Email, Address: address,
		UserID: f.user.ID, Name: "Ada 🧮",
		PasswordHash: "$argon2id$password", Message: account.RegisterCode,
		Ends: sent.Add(account.ChallengeLifetime),
	}
	c.Renew("$argon2id$"+address, sent)
	return c
}

// newChallenge inserts a challenge for an address.
func (f *fixture) newChallenge(address string) *account.Challenge {
	f.Helper()
	c := f.challenge(address, f.now)
	f.must(f.CreateChallenge(f.ctx, c))
	return c
}

func (f *fixture) sameChallenge(want *account.Challenge, again time.Time) {
	f.Helper()
	got, err := f.Challenge(f.ctx, want.Hash)
	f.must(err)
	kept := *want
	kept.Again = again
	if !reflect.DeepEqual(got, &kept) {
		f.Errorf("got %+v, want %+v", got, kept)
	}
}

// limited checks that no code may be sent before next.
func (f *fixture) limited(what string, err error, next time.Time) {
	f.Helper()
	var limit *account.SendLimitError
	if !errors.As(err, &limit) || !limit.Next.Equal(next) {
		f.Errorf("%s: got %v, want a limit until %v", what, err, next)
	}
}

func challengeRoundTrip(t *testing.T, f *fixture) {
	c := f.newChallenge("Ada@Example.org")
	f.sameChallenge(c, f.now.Add(30*time.Second))
	f.must(f.CountTry(f.ctx, c, f.now))
	c.Tries++
	f.sameChallenge(c, f.now.Add(30*time.Second))
	c.Renew("$argon2id$second", f.now.Add(time.Minute))
	f.must(f.RenewChallenge(f.ctx, c))
	f.sameChallenge(c, f.now.Add(90*time.Second))
	if c.Tries != 0 {
		t.Errorf("got %d tries of the new code, want 0", c.Tries)
	}
	late := *c
	late.Renew("$argon2id$third", f.now.Add(58*time.Minute))
	f.must(f.RenewChallenge(f.ctx, &late))
	if !late.Expires.Equal(c.Ends) {
		t.Errorf("got a code that expires at %v, want the end of the challenge, %v",
			late.Expires, c.Ends)
	}
}

func unknownChallenge(t *testing.T, f *fixture) {
	c := f.challenge("nobody@example.org", f.now)
	_, err := f.Challenge(f.ctx, c.Hash)
	f.wantError("read", err, account.ErrNotFound)
	f.wantError("renew", f.RenewChallenge(f.ctx, c), account.ErrNotFound)
	f.wantError("try", f.CountTry(f.ctx, c, f.now), account.ErrNotFound)
	f.wantError("take", f.TakeChallenge(f.ctx, c, nil, f.now), account.ErrNotFound)
	f.wantError("take for a user", f.TakeChallenge(f.ctx, c, f.fullUser(), f.now),
		account.ErrNotFound)
	f.must(f.UndoTry(f.ctx, c))
	_, err = f.UserByEmail(f.ctx, f.fullUser().Email)
	f.wantError("user", err, account.ErrNotFound)
	f.must(f.CreateChallenge(f.ctx, c)) // no code was counted so far
	ended := *c
	ended.Renew("x", c.Ends)
	f.wantError("renew an ended challenge", f.RenewChallenge(f.ctx, &ended), account.ErrNotFound)
	if err := f.CreateChallenge(f.ctx, f.challenge("a\x00b@example.org", f.now)); err == nil {
		t.Error("address with a NUL: got no error")
	}
}

func challengeAllowsFiveTries(t *testing.T, f *fixture) {
	c := f.newChallenge("ada@example.org")
	counted := f.race(16, func(int) error { return f.CountTry(f.ctx, c, f.now) })
	if counted != account.CodeTries {
		t.Errorf("got %d tries counted, want %d", counted, account.CodeTries)
	}
	f.must(f.UndoTry(f.ctx, c))
	f.must(f.CountTry(f.ctx, c, f.now))
	f.wantError("sixth try", f.CountTry(f.ctx, c, f.now), account.ErrNotFound)
	first := *c
	c.Renew("$argon2id$second", f.now.Add(time.Minute))
	f.must(f.RenewChallenge(f.ctx, c))
	f.wantError("try of the first code", f.CountTry(f.ctx, &first, c.Sent), account.ErrNotFound)
	f.wantError("take with the first code", f.TakeChallenge(f.ctx, &first, nil, c.Sent),
		account.ErrNotFound)
	f.must(f.UndoTry(f.ctx, &first))
	for range account.CodeTries {
		f.must(f.CountTry(f.ctx, c, c.Sent))
	}
	f.wantError("sixth try of the second code", f.CountTry(f.ctx, c, c.Sent), account.ErrNotFound)
}

// race calls do n times concurrently and returns the number of successes. The others must return
// ErrNotFound or a SendLimitError.
func (f *fixture) race(n int, do func(i int) error) (done int) {
	f.Helper()
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
			f.Error(err)
		}
	}
	return done
}

func challengeCodeExpires(_ *testing.T, f *fixture) {
	c := f.newChallenge("ada@example.org")
	f.must(f.CountTry(f.ctx, c, c.Expires.Add(-time.Millisecond)))
	f.wantError("try of an expired code", f.CountTry(f.ctx, c, c.Expires), account.ErrNotFound)
	f.wantError("take with an expired code", f.TakeChallenge(f.ctx, c, nil, c.Expires),
		account.ErrNotFound)
	f.must(f.TakeChallenge(f.ctx, c, nil, c.Expires.Add(-time.Millisecond)))
}

func challengeIsTakenOnce(t *testing.T, f *fixture) {
	c := f.newChallenge("ada@example.org")
	if taken := f.race(16, func(int) error {
		return f.TakeChallenge(f.ctx, c, nil, f.now)
	}); taken != 1 {
		t.Errorf("got it taken %d times, want 1", taken)
	}
	_, err := f.Challenge(f.ctx, c.Hash)
	f.wantError("taken challenge", err, account.ErrNotFound)
}

func challengeCreatesUser(t *testing.T, f *fixture) {
	c := f.newChallenge("Ada@Example.org")
	users := make([]*account.User, 16)
	made := f.race(len(users), func(i int) error {
		users[i] = f.fullUser()
		return f.TakeChallenge(f.ctx, c, users[i], f.now)
	})
	if made != 1 {
		t.Errorf("got %d users, want 1", made)
	}
	for _, u := range users {
		if u.ID != 0 {
			f.sameUser(u)
		}
	}
	if got, err := f.UserByEmail(f.ctx, c.Address); err != nil || got.ServiceID == "" {
		t.Errorf("got %+v, %v, want the new user", got, err)
	}
}

func challengeStaysIfAddressIsTaken(_ *testing.T, f *fixture) {
	f.must(f.CreateUser(f.ctx, f.fullUser()))
	c := f.newChallenge("Ada@Example.org")
	f.wantError("user with a taken address", f.TakeChallenge(f.ctx, c, f.fullUser(), f.now),
		account.ErrTaken)
	f.sameChallenge(c, f.now.Add(30*time.Second))
}

func codesAreLimited(_ *testing.T, f *fixture) {
	f.newChallenge("ada@example.org")
	at := func(d time.Duration) *account.Challenge {
		return f.challenge("ADA@example.ORG", f.now.Add(d))
	}
	f.limited("at once", f.CreateChallenge(f.ctx, at(0)), f.now.Add(30*time.Second))
	f.limited("too early", f.CreateChallenge(f.ctx, at(30*time.Second-time.Millisecond)),
		f.now.Add(30*time.Second))
	var last *account.Challenge
	for i := 1; i < account.SendsPerHour; i++ {
		last = at(time.Duration(i) * 30 * time.Second)
		f.must(f.CreateChallenge(f.ctx, last))
	}
	f.sameChallenge(last, f.now.Add(time.Hour))
	last.Renew("x", f.now.Add(30*time.Minute))
	f.limited("sixth in an hour", f.RenewChallenge(f.ctx, last), f.now.Add(time.Hour))
	for i := range account.SendsPerHour {
		f.must(f.CreateChallenge(f.ctx, at(2*time.Hour+time.Duration(i)*time.Minute)))
	}
	f.limited("eleventh in a day", f.CreateChallenge(f.ctx, at(23*time.Hour)),
		f.now.Add(24*time.Hour))
	f.must(f.CreateChallenge(f.ctx, at(24*time.Hour)))
}

func concurrentCodesSendOne(t *testing.T, f *fixture) {
	sent := f.race(16, func(int) error {
		return f.CreateChallenge(f.ctx, f.challenge("ada@example.org", f.now))
	})
	if sent != 1 {
		t.Errorf("got %d codes, want 1", sent)
	}
}

func enteredCodeEndsSendInterval(_ *testing.T, f *fixture) {
	for i := range account.SendsPerHour {
		c := f.challenge("ada@example.org", f.now.Add(time.Duration(i)*time.Second))
		f.must(f.CreateChallenge(f.ctx, c))
		f.must(f.TakeChallenge(f.ctx, c, nil, c.Sent))
	}
	f.limited("sixth in an hour", f.CreateChallenge(f.ctx,
		f.challenge("ada@example.org", f.now.Add(time.Minute))), f.now.Add(time.Hour))
}

func recipientsAreLimitedSeparately(_ *testing.T, f *fixture) {
	for i := range 3 {
		f.newChallenge(fmt.Sprintf("ada%d@example.org", i))
	}
	sms := f.challenge("ada0@example.org", f.now)
	sms.Channel = account.SMS
	f.must(f.CreateChallenge(f.ctx, sms))
}

func sweepDeletesChallenges(_ *testing.T, f *fixture) {
	c := f.newChallenge("ada@example.org")
	f.sweep(c.Ends.Add(-time.Millisecond), 0)
	f.sweep(c.Ends, 1)
	_, err := f.Challenge(f.ctx, c.Hash)
	f.wantError("challenge", err, account.ErrNotFound)
	f.limited("after the challenge was swept",
		f.CreateChallenge(f.ctx, f.challenge("ada@example.org", f.now)), f.now.Add(30*time.Second))
	f.sweep(f.now.Add(24*time.Hour), 1)
	f.newChallenge("ada@example.org")
}
