package sqlstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

var errInjected = errors.New("injected")

// faulty is a Store with a user, whose statements can fail on demand.
type faulty struct {
	*testing.T
	*sqlstore.Store
	user *account.User
	seen []string         // statements of the last batch
	fail func(n int) bool // reports whether its n-th statement fails; nil = none fails
}

func newFaulty(t *testing.T, url string) *faulty {
	f := &faulty{T: t, Store: open(t, sqlstore.Config{URL: url, SweepInterval: time.Hour}),
		user: &account.User{Name: "Ada", Email: "ada@example.com"}}
	if err := f.CreateUser(t.Context(), f.user); err != nil {
		t.Fatal(err)
	}
	err := sqlstore.SetFault(t.Context(), f.Store, func(statement string) error {
		if statement == "ROLLBACK" {
			return nil
		}
		f.seen = append(f.seen, statement)
		if f.fail != nil && f.fail(len(f.seen)) {
			return errInjected
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// scenario holds operations that are executed in one batch.
type scenario struct {
	saved           *oauth.SaveCode
	redeem, replay  *oauth.Redeem
	rotate, reuse   *oauth.Rotate
	revoke          *oauth.Revoke
	survivor, other *oauth.Redeem
}

// prepare saves the code and the two families that a scenario needs.
func (f *faulty) prepare() *scenario {
	s := &scenario{saved: save(), redeem: f.redeem(), survivor: f.redeem(), other: f.redeem()}
	for _, r := range []*oauth.Redeem{s.redeem, s.survivor, s.other} {
		f.save(r)
	}
	f.must(s.survivor)
	f.must(s.other)
	s.replay = &oauth.Redeem{Code: s.redeem.Code, Now: s.redeem.Now, Family: s.redeem.Family}
	s.replay.Family.ID = uuid.New()
	s.rotate, s.reuse = f.rotation(s.survivor), f.rotation(s.survivor)
	s.revoke = &oauth.Revoke{FamilyID: s.other.Family.ID,
		Grant: oauth.Grant{UserID: f.user.ID, ClientID: "app"}}
	return s
}

func (f *faulty) redeem() *oauth.Redeem {
	now, refresh := time.Now(), newHash()
	return &oauth.Redeem{
		Code: newHash(), Now: now, Refresh: &refresh,
		Family: oauth.Family{
			ID: uuid.New(), ClientID: "app", UserID: f.user.ID, Generation: 1,
			Expires: now.Add(time.Hour), Ends: now.Add(time.Hour),
			AccessExpires: now.Add(time.Hour),
		},
	}
}

func (f *faulty) rotation(r *oauth.Redeem) *oauth.Rotate {
	return &oauth.Rotate{
		FamilyID: r.Family.ID, Grant: oauth.Grant{UserID: f.user.ID, ClientID: "app"},
		Generation: 1, Now: r.Now, Expires: r.Family.Expires,
		AccessExpires: r.Family.AccessExpires, Refresh: newHash(),
	}
}

func (f *faulty) save(r *oauth.Redeem) {
	f.must(&oauth.SaveCode{Code: oauth.AuthorizationCode{
		Hash: r.Code, ClientID: "app", UserID: f.user.ID, Expires: r.Now.Add(time.Minute),
		Epochs: oauth.Epochs{User: f.user.Epoch},
	}})
}

func (f *faulty) must(op oauth.Operation) {
	f.Helper()
	if err := submit(f.T, f, op); err != nil {
		f.Fatal(err)
	}
}

func (s *scenario) operations() []oauth.Operation {
	return []oauth.Operation{s.saved, s.redeem, s.replay, s.rotate, s.reuse, s.revoke}
}

// run executes the scenario in one batch. Its n-th statement fails if fail(n) is true.
func (f *faulty) run(s *scenario, fail func(n int) bool) []error {
	f.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	first := save()
	first.OnDone(func(error) {
		f.seen, f.fail = nil, fail
		close(held)
		<-hold
	})
	f.Submit(first)
	<-held
	ops := s.operations()
	ends := make([]chan error, len(ops))
	for i, op := range ops {
		ends[i] = make(chan error, 1)
		op.OnDone(func(err error) {
			if i == len(ops)-1 {
				f.fail = nil
			}
			ends[i] <- err
		})
		f.Submit(op)
	}
	close(hold)
	errs := make([]error, len(ops))
	for i, end := range ends {
		select {
		case errs[i] = <-end:
		case <-time.After(5 * time.Minute):
			f.Fatalf("operation %d has not ended", i+1)
		}
	}
	f.must(save()) // later writes succeed
	return errs
}

func (f *faulty) checkHappened(s *scenario) {
	f.Helper()
	if s.redeem.Outcome != oauth.OutcomeDone || s.replay.Outcome != oauth.OutcomeReused ||
		s.rotate.Outcome != oauth.OutcomeDone || s.reuse.Outcome != oauth.OutcomeReused {
		f.Errorf("got outcomes %d %d %d %d, want done, reused, done, reused", s.redeem.Outcome,
			s.replay.Outcome, s.rotate.Outcome, s.reuse.Outcome)
	}
	for what, test := range map[string]struct {
		got  []oauth.End
		want oauth.Family
	}{
		"replay": {s.replay.Ended, s.redeem.Family}, "reuse": {s.reuse.Ended, s.survivor.Family},
		"revoke": {s.revoke.Ended, s.other.Family},
	} {
		if len(test.got) != 1 || test.got[0].FamilyID != test.want.ID {
			f.Errorf("%s: got ends %+v, want that of the family", what, test.got)
		}
	}
	f.checkStored(s, true)
}

func (f *faulty) checkDidNotHappen(s *scenario) {
	f.Helper()
	f.checkStored(s, false)
	again := &oauth.Redeem{Code: s.redeem.Code, Now: s.redeem.Now, Family: s.redeem.Family,
		Refresh: s.redeem.Refresh}
	f.must(again)
	if again.Outcome != oauth.OutcomeDone {
		f.Errorf("code after a batch without effect: got outcome %d, want done", again.Outcome)
	}
	next := f.rotation(s.survivor)
	f.must(next)
	if next.Outcome != oauth.OutcomeDone {
		f.Errorf("refresh token after a batch without effect: got outcome %d, want done",
			next.Outcome)
	}
}

// checkStored checks whether the code of the scenario is stored, and one end of each family.
func (f *faulty) checkStored(s *scenario, want bool) {
	f.Helper()
	_, err := f.AuthorizationCode(f.Context(), s.saved.Code.Hash)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		f.Fatal(err)
	}
	if got := err == nil; got != want {
		f.Errorf("code: got it stored %t, want %t", got, want)
	}
	_, ends, err := f.Ends(f.Context(), time.Now())
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range []*oauth.Redeem{s.redeem, s.survivor, s.other} {
		n := 0
		for _, end := range ends {
			if end.FamilyID == r.Family.ID {
				n++
			}
		}
		if got := n == 1; got != want || n > 1 {
			f.Errorf("family: got %d ends, want one %t", n, want)
		}
	}
}

// TestEachStatementFails runs a batch once for each of its statements, which fails once.
func TestEachStatementFails(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			f := newFaulty(t, d.make(t))
			s := f.prepare()
			if err := errors.Join(f.run(s, nil)...); err != nil {
				t.Fatal(err)
			}
			f.checkHappened(s)
			statements := slices.Clone(f.seen[:1+slices.Index(f.seen, "COMMIT")])
			if len(statements) < 12 || !strings.HasPrefix(statements[0], "BEGIN") {
				t.Fatalf("got %d statements, want at least 12 from BEGIN to COMMIT",
					len(statements))
			}
			for i, statement := range statements {
				s := f.prepare()
				err := errors.Join(f.run(s, func(n int) bool { return n == i+1 })...)
				if statement == "COMMIT" {
					if !errors.Is(err, errInjected) {
						t.Errorf("COMMIT fails: got %v, want %v", err, errInjected)
					}
					if got, want := errors.Is(err,
						oauth.ErrUnknownOutcome), d.name == "PostgreSQL"; got != want {
						t.Errorf("COMMIT fails: got unknown outcome %t, want %t", got, want)
					}
					f.checkDidNotHappen(s)
					continue
				}
				if err != nil {
					t.Errorf("statement %d fails once, %s: got %v, want none", i+1, statement, err)
				}
				f.checkHappened(s)
			}
		})
	}
}

// TestEachCommitFails makes the batch fail, and then the commit of each single operation.
func TestEachCommitFails(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			f := newFaulty(t, d.make(t))
			s := f.prepare()
			errs := f.run(s, func(n int) bool { return n == 2 || f.seen[n-1] == "COMMIT" })
			for i, err := range errs {
				if !errors.Is(err, errInjected) {
					t.Errorf("operation %d: got %v, want %v", i+1, err, errInjected)
				}
			}
			f.checkDidNotHappen(s)
		})
	}
}

// TestLostDatabaseFailsAll makes every BEGIN fail.
func TestLostDatabaseFailsAll(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			f := newFaulty(t, d.make(t))
			s := f.prepare()
			errs := f.run(s, func(n int) bool { return strings.HasPrefix(f.seen[n-1], "BEGIN") })
			for i, err := range errs {
				if !errors.Is(err, errInjected) {
					t.Errorf("operation %d: got %v, want %v", i+1, err, errInjected)
				}
			}
			f.checkDidNotHappen(s)
		})
	}
}
