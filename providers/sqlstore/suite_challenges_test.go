package sqlstore_test

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
	"LastMessageHasLongCode":          lastMessageHasLongCode,
	"UnsentLongCodeIsReplaced":        longCodeThatWasNotSentIsReplaced,
	"RenewalKeepsCode":                renewalKeepsCode,
	"KnownBrowsersHaveOwnLimits":      knownBrowsersHaveLimitsOfTheirOwn,
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
	c.Requester[0] = 1
	c.Renew("$argon2id$"+address, sent)
	return c
}

// create inserts a challenge whose message has no long code.
func (f *fixture) create(c *account.Challenge) error {
	plan, err := f.CreateChallenge(f.ctx, c, newHash())
	if err == nil && plan != account.SendCode {
		f.Errorf("create: got plan %d, want %d", plan, account.SendCode)
	}
	return err
}

// renew is create for another code.
func (f *fixture) renew(c *account.Challenge) error {
	plan, err := f.RenewChallenge(f.ctx, c, newHash())
	if err == nil && plan != account.SendCode {
		f.Errorf("renew: got plan %d, want %d", plan, account.SendCode)
	}
	return err
}

// newChallenge inserts a challenge for an address.
func (f *fixture) newChallenge(address string) *account.Challenge {
	f.Helper()
	c := f.challenge(address, f.now)
	f.must(f.create(c))
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
	f.must(f.renew(c))
	f.sameChallenge(c, f.now.Add(90*time.Second))
	if c.Tries != 0 {
		t.Errorf("got %d tries of the new code, want 0", c.Tries)
	}
	late := *c
	late.Renew("$argon2id$third", f.now.Add(58*time.Minute))
	f.must(f.renew(&late))
	if !late.Expires.Equal(c.Ends) {
		t.Errorf("got a code that expires at %v, want the end of the challenge, %v",
			late.Expires, c.Ends)
	}
}

func unknownChallenge(t *testing.T, f *fixture) {
	c := f.challenge("nobody@example.org", f.now)
	_, err := f.Challenge(f.ctx, c.Hash)
	f.wantError("read", err, account.ErrNotFound)
	f.wantError("renew", f.renew(c), account.ErrNotFound)
	f.wantError("try", f.CountTry(f.ctx, c, f.now), account.ErrNotFound)
	f.wantError("take", f.TakeChallenge(f.ctx, c, nil, f.now), account.ErrNotFound)
	f.wantError("take for a user", f.TakeChallenge(f.ctx, c, f.fullUser(), f.now),
		account.ErrNotFound)
	f.must(f.UndoTry(f.ctx, c))
	_, err = f.UserByEmail(f.ctx, f.fullUser().Email)
	f.wantError("user", err, account.ErrNotFound)
	f.must(f.create(c)) // no code was counted so far
	ended := *c
	ended.Renew("x", c.Ends)
	f.wantError("renew an ended challenge", f.renew(&ended), account.ErrNotFound)
	if err := f.create(f.challenge("a\x00b@example.org", f.now)); err == nil {
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
	f.must(f.renew(c))
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
	f.limited("at once", f.create(at(0)), f.now.Add(30*time.Second))
	f.limited("too early", f.create(at(30*time.Second-time.Millisecond)),
		f.now.Add(30*time.Second))
	var last *account.Challenge
	for i := 1; i < account.StrangerPerHour; i++ {
		last = at(time.Duration(i) * 30 * time.Second)
		f.must(f.create(last))
	}
	f.sameChallenge(last, f.now.Add(time.Hour))
	last.Renew("x", f.now.Add(30*time.Minute))
	f.limited("fourth in an hour", f.renew(last), f.now.Add(time.Hour))
	f.must(f.create(at(2 * time.Hour)))
	f.plan("fifth in a day", at(3*time.Hour), account.SendLongCode)
	f.plan("sixth in a day", at(3*time.Hour), account.SendNothing)
	f.plan("seventh in a day", at(24*time.Hour-time.Millisecond), account.SendNothing)
	f.plan("after a day", at(24*time.Hour), account.SendLongCode)
	f.plan("after two days", at(48*time.Hour), account.SendCode)
}

// plan creates c and returns the hash of its long code.
func (f *fixture) plan(what string, c *account.Challenge, want account.Plan) [32]byte {
	f.Helper()
	longCode := newHash()
	plan, err := f.CreateChallenge(f.ctx, c, longCode)
	f.must(err)
	if plan != want || (c.CodeHash == "") != (want != account.SendCode) {
		f.Errorf("%s: got plan %d and code %q, want plan %d", what, plan, c.CodeHash, want)
	}
	return longCode
}

// useUp uses up the day's messages of strangers, each from a caller of its own. It returns the last
// challenge and the hash of its long code.
func (f *fixture) useUp(address string) (last *account.Challenge, longCode [32]byte) {
	f.Helper()
	for i := range account.StrangersPerDay {
		last = f.challenge(address, f.now.Add(time.Duration(i)*time.Second))
		last.Requester[1] = byte(i)
		want := account.SendCode
		if i == account.StrangersPerDay-1 {
			want = account.SendLongCode
		}
		longCode = f.plan(fmt.Sprintf("stranger %d", i+1), last, want)
	}
	return last, longCode
}

func (f *fixture) hasLongCode(what string, c *account.Challenge, longCode [32]byte, now time.Time,
	want bool) {
	f.Helper()
	got, err := f.HasLongCode(f.ctx, c.Recipient(), longCode, now)
	f.must(err)
	if got != want {
		f.Errorf("%s: got %t for a long code, want %t", what, got, want)
	}
}

func lastMessageHasLongCode(_ *testing.T, f *fixture) {
	last, longCode := f.useUp("ada@example.org")
	day := last.Sent.Add(account.LongCodeLifetime)
	f.hasLongCode("at once", last, longCode, last.Sent, true)
	f.hasLongCode("within a day", last, longCode, day.Add(-time.Millisecond), true)
	f.hasLongCode("after a day", last, longCode, day, false)
	f.hasLongCode("another", last, newHash(), last.Sent, false)
	f.hasLongCode("another recipient", f.challenge("eve@example.org", f.now), longCode, last.Sent,
		false)
	own := f.challenge("ada@example.org", f.now.Add(time.Minute))
	f.plan("the owner", own, account.SendNothing)
	f.sameChallenge(own, own.Sent.Add(account.SendInterval))
	own.LongCode = newHash()
	f.wantError("take with another long code", f.TakeChallenge(f.ctx, own, nil, own.Sent),
		account.ErrNotFound)
	own = f.challenge("ada@example.org", f.now.Add(2*time.Minute))
	f.plan("the owner again", own, account.SendNothing)
	own.LongCode = longCode
	if taken := f.race(16, func(int) error {
		return f.TakeChallenge(f.ctx, own, nil, own.Sent)
	}); taken != 1 {
		f.Errorf("got it taken %d times, want 1", taken)
	}
	f.hasLongCode("used", last, longCode, last.Sent, false)
	next := f.challenge("ada@example.org", f.now.Add(3*time.Minute))
	f.plan("after it was entered", next, account.SendLongCode)
	f.plan("after that", f.challenge("ada@example.org", f.now.Add(4*time.Minute)),
		account.SendNothing)
}

func longCodeThatWasNotSentIsReplaced(_ *testing.T, f *fixture) {
	last, longCode := f.useUp("ada@example.org")
	f.must(f.FreeSend(f.ctx, last.Recipient(), longCode))
	f.hasLongCode("not sent", last, longCode, last.Sent, false)
	f.plan("the next", f.challenge("ada@example.org", f.now.Add(time.Minute)),
		account.SendLongCode)
}

// renewalKeepsCode requests another code after strangers have used up the day's messages.
func renewalKeepsCode(t *testing.T, f *fixture) {
	own := f.newChallenge("ada@example.org")
	for i := range account.StrangersPerDay - 1 {
		c := f.challenge("ada@example.org", f.now)
		c.Requester[1] = byte(1 + i)
		_, err := f.CreateChallenge(f.ctx, c, newHash())
		f.must(err)
	}
	renewed := *own
	renewed.Renew("$argon2id$second", f.now.Add(time.Minute))
	plan, err := f.RenewChallenge(f.ctx, &renewed, newHash())
	f.must(err)
	if plan != account.SendNothing {
		t.Errorf("got plan %d, want %d", plan, account.SendNothing)
	}
	f.must(f.CountTry(f.ctx, own, renewed.Sent))
	f.must(f.TakeChallenge(f.ctx, own, nil, renewed.Sent))
}

func knownBrowsersHaveLimitsOfTheirOwn(_ *testing.T, f *fixture) {
	f.useUp("ada@example.org")
	known := func(d time.Duration) *account.Challenge {
		c := f.challenge("ada@example.org", f.now.Add(d))
		c.Requester = account.KnownBrowsers
		return c
	}
	for i := range account.KnownPerHour {
		f.must(f.create(known(time.Duration(i) * 30 * time.Second)))
	}
	f.limited("sixth in an hour", f.create(known(time.Minute*10)), f.now.Add(time.Hour))
	for i := range account.KnownPerHour - 1 {
		f.must(f.create(known(time.Hour*2 + time.Duration(i)*30*time.Second)))
	}
	f.plan("tenth in a day", known(3*time.Hour), account.SendLongCode)
	f.plan("eleventh in a day", known(4*time.Hour), account.SendNothing)
}

func concurrentCodesSendOne(t *testing.T, f *fixture) {
	sent := f.race(16, func(int) error {
		return f.create(f.challenge("ada@example.org", f.now))
	})
	if sent != 1 {
		t.Errorf("got %d codes, want 1", sent)
	}
}

func enteredCodeEndsSendInterval(_ *testing.T, f *fixture) {
	for i := range account.StrangerPerHour {
		c := f.challenge("ada@example.org", f.now.Add(time.Duration(i)*time.Second))
		f.must(f.create(c))
		f.must(f.TakeChallenge(f.ctx, c, nil, c.Sent))
	}
	f.limited("fourth in an hour",
		f.create(f.challenge("ada@example.org", f.now.Add(time.Minute))), f.now.Add(time.Hour))
}

func recipientsAreLimitedSeparately(_ *testing.T, f *fixture) {
	for i := range 3 {
		f.newChallenge(fmt.Sprintf("ada%d@example.org", i))
	}
	sms := f.challenge("ada0@example.org", f.now)
	sms.Channel = account.SMS
	f.must(f.create(sms))
}

func sweepDeletesChallenges(_ *testing.T, f *fixture) {
	c := f.newChallenge("ada@example.org")
	f.sweep(c.Ends.Add(-time.Millisecond), 0)
	f.sweep(c.Ends, 1)
	_, err := f.Challenge(f.ctx, c.Hash)
	f.wantError("challenge", err, account.ErrNotFound)
	f.limited("after the challenge was swept",
		f.create(f.challenge("ada@example.org", f.now)), f.now.Add(30*time.Second))
	f.sweep(f.now.Add(24*time.Hour), 1)
	f.newChallenge("ada@example.org")
}
