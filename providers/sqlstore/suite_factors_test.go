package sqlstore_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var factorTests = map[string]func(*testing.T, *fixture){
	"PendingSignInIsTakenOnce":  pendingSignInIsTakenOnce,
	"TrustEndsWithCredentials":  trustEndsWithCredentials,
	"FactorGuessesAreLimited":   factorGuessesAreLimited,
	"ConcurrentFactorGuesses":   concurrentFactorGuesses,
	"SweepDeletesFactors":       sweepDeletesFactors,
	"SessionKeepsFactor":        sessionKeepsFactor,
	"FactorKeysAreKept":         factorKeysAreKept,
	"AccountEndsWithItsFactors": accountEndsWithFactors,
}

func (f *fixture) pendingSignIn(ends time.Time) *account.PendingSignIn {
	f.Helper()
	p := &account.PendingSignIn{
		Hash: newHash(), Browser: newHash(), UserID: f.user.ID, State: newHash(),
		Way: account.PasswordWay, Means: "password", Known: true, PasswordHash: "$hash", Ends: ends,
	}
	f.must(f.CreatePendingSignIn(f.ctx, p))
	return p
}

func pendingSignInIsTakenOnce(t *testing.T, f *fixture) {
	p := f.pendingSignIn(f.now.Add(time.Minute))
	got, err := f.PendingSignIn(f.ctx, p.Hash)
	if err != nil || *got != *p {
		t.Fatalf("got %+v, %v, want %+v", got, err, p)
	}
	f.must(f.ConfirmPendingSignIn(f.ctx, p.Hash))
	if got, err = f.PendingSignIn(f.ctx, p.Hash); err != nil || !got.Confirmed {
		t.Errorf("got %+v, %v, want it confirmed", got, err)
	}
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() { errs[i] = f.TakePendingSignIn(f.ctx, p.Hash) })
	}
	wait.Wait()
	taken := 0
	for _, err := range errs {
		if err == nil {
			taken++
		} else if !errors.Is(err, account.ErrNotFound) {
			t.Errorf("got %v, want account.ErrNotFound", err)
		}
	}
	if taken != 1 {
		t.Errorf("taken %d times, want once", taken)
	}
	if err := f.ConfirmPendingSignIn(f.ctx, p.Hash); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("got %v, want account.ErrNotFound", err)
	}
}

func (f *fixture) trustedBrowser(ends time.Time) *account.TrustedBrowser {
	f.Helper()
	b := &account.TrustedBrowser{Hash: newHash(), UserID: f.user.ID, Ends: ends}
	f.must(f.TrustBrowser(f.ctx, b))
	return b
}

func trustEndsWithCredentials(t *testing.T, f *fixture) {
	b, p := f.trustedBrowser(f.now.Add(time.Hour)), f.pendingSignIn(f.now.Add(time.Minute))
	f.must(f.ChangeCredentials(f.ctx, f.user, account.CredentialChange{}))
	got, err := f.TrustedBrowser(f.ctx, b.Hash)
	if err != nil || *got != *b {
		t.Errorf("after another change: got %+v, %v, want %+v", got, err, b)
	}
	_, err = f.CountFactor(f.ctx, account.FactorGuess{ID: 1, UserID: f.user.ID, At: f.now})
	f.must(err)
	f.must(f.ChangeCredentials(f.ctx, f.user,
		account.CredentialChange{EndTrust: true, EndSessions: true, FreeFactors: true}))
	_, trust := f.TrustedBrowser(f.ctx, b.Hash)
	_, pending := f.PendingSignIn(f.ctx, p.Hash)
	counts, err := f.FactorGuesses(f.ctx, f.user.ID, f.now)
	if !errors.Is(trust, account.ErrNotFound) || !errors.Is(pending, account.ErrNotFound) ||
		err != nil || counts.All() != 0 {
		t.Errorf("got %v, %v, %+v, %v, want nothing left", trust, pending, counts, err)
	}
}

func factorGuessesAreLimited(t *testing.T, f *fixture) {
	guess := func(id int64, own, confirmed bool, after time.Duration) error {
		_, err := f.CountFactor(f.ctx, account.FactorGuess{ID: id, UserID: f.user.ID, Own: own,
			Confirmed: confirmed, At: f.now.Add(after)})
		return err
	}
	for i := range int64(account.FactorsNoticed) {
		f.must(guess(i, false, false, 0))
	}
	var limit *account.GuessLimitError
	if err := guess(100, false, false, time.Hour); !errors.As(err, &limit) ||
		!limit.Next.Equal(f.now.Add(account.FactorWindow)) {
		t.Errorf("unknown: got %v, want a limit for a day", err)
	}
	for i := range int64(account.FactorsPerDay) {
		f.must(guess(200+i, true, false, 0))
		if i < account.FactorsPerDay-account.FactorsNoticed {
			f.must(guess(300+i, false, true, 0))
		}
	}
	for _, own := range []bool{false, true} {
		if err := guess(400, own, true, time.Hour); !errors.As(err, &limit) {
			t.Errorf("own %v: got %v, want a limit", own, err)
		}
	}
	f.must(f.UndoFactor(f.ctx, account.FactorGuess{ID: 200, UserID: f.user.ID}))
	f.must(guess(401, true, false, time.Hour))
	f.must(guess(402, false, false, account.FactorWindow))
}

func concurrentFactorGuesses(t *testing.T, f *fixture) {
	var wait sync.WaitGroup
	errs := make([]error, 3*account.FactorsNoticed)
	for i := range errs {
		wait.Go(func() {
			_, errs[i] = f.CountFactor(f.ctx, account.FactorGuess{ID: int64(i), UserID: f.user.ID, At: f.now})
		})
	}
	wait.Wait()
	n := len(slices.DeleteFunc(errs, func(err error) bool { return err != nil }))
	if n != account.FactorsNoticed {
		t.Errorf("got %d attempts, want %d", n, account.FactorsNoticed)
	}
}

func sweepDeletesFactors(t *testing.T, f *fixture) {
	p, b := f.pendingSignIn(f.now), f.trustedBrowser(f.now)
	later, stays := f.pendingSignIn(f.now.Add(time.Hour)), f.trustedBrowser(f.now.Add(time.Hour))
	_, err := f.CountFactor(f.ctx, account.FactorGuess{ID: 1, UserID: f.user.ID,
		At: f.now.Add(-account.FactorWindow)})
	f.must(err)
	_, err = f.Sweep(f.ctx, f.now)
	f.must(err)
	_, one := f.PendingSignIn(f.ctx, p.Hash)
	_, two := f.TrustedBrowser(f.ctx, b.Hash)
	if !errors.Is(one, account.ErrNotFound) || !errors.Is(two, account.ErrNotFound) {
		t.Errorf("got %v and %v, want both swept", one, two)
	}
	_, one = f.PendingSignIn(f.ctx, later.Hash)
	_, two = f.TrustedBrowser(f.ctx, stays.Hash)
	f.must(errors.Join(one, two))
	counts, err := f.FactorGuesses(f.ctx, f.user.ID, f.now.Add(-time.Hour))
	f.must(err)
	if counts.All() != 0 {
		t.Errorf("got %+v, want the attempt of yesterday swept", counts)
	}
}

func sessionKeepsFactor(t *testing.T, f *fixture) {
	s := f.newSession(f.now)
	s.Factored, s.AMR = f.now.Add(time.Minute), []string{"otp", "sms", "mfa"}
	f.must(f.ProveSession(f.ctx, s))
	got, err := f.Session(f.ctx, s.Hash)
	if err != nil || !got.Factored.Equal(s.Factored) || !slices.Equal(got.AMR, s.AMR) ||
		!got.UsedFactor(time.Hour, f.now) || !got.HasTwoFactors() {
		t.Errorf("got %+v, %v, want %+v", got, err, s)
	}
}

// factorKeysAreKept rotates in every way that drops the keys of other purposes.
func factorKeysAreKept(t *testing.T, f *fixture) {
	for i, drop := range []bool{false, true, false} {
		f.must(f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.FactorKeys, Now: f.now, Drop: drop,
			Expires: f.now}))
		if n := len(f.keys(oauth.FactorKeys, f.now.Add(time.Hour))); n != i+2 {
			t.Errorf("after %d rotations: got %d keys, want all", i+1, n)
		}
	}
	_, err := f.Sweep(f.ctx, f.now.Add(1000*time.Hour))
	f.must(err)
	keys := f.keys(oauth.FactorKeys, f.now.Add(1000*time.Hour))
	if len(keys) != 4 || keys[0].Number != 4 || !keys[0].Expires.IsZero() {
		t.Errorf("after the clean-up: got %v, want all 4, the newest first", keys)
	}
}

func accountEndsWithFactors(t *testing.T, f *fixture) {
	u := f.newUser()
	p := &account.PendingSignIn{Hash: newHash(), UserID: u.ID, Ends: f.now.Add(time.Hour)}
	b := &account.TrustedBrowser{Hash: newHash(), UserID: u.ID, Ends: f.now.Add(time.Hour)}
	_, err := f.CountFactor(f.ctx, account.FactorGuess{ID: 1, UserID: u.ID, At: f.now})
	f.must(errors.Join(err, f.CreatePendingSignIn(f.ctx, p), f.TrustBrowser(f.ctx, b)))
	f.must(f.DeleteUser(f.ctx, u.ID, [32]byte{}))
	_, one := f.PendingSignIn(f.ctx, p.Hash)
	_, two := f.TrustedBrowser(f.ctx, b.Hash)
	if !errors.Is(one, account.ErrNotFound) || !errors.Is(two, account.ErrNotFound) {
		t.Errorf("got %v and %v, want both gone", one, two)
	}
}
