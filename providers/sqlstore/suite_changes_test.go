package sqlstore_test

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var changeTests = map[string]func(*testing.T, *fixture){
	"EachKindOfChange":         eachKindOfChange,
	"CreationIsNoChange":       creationIsNoChange,
	"FailedOperationsTellNone": failedOperationsTellNone,
	"ChangesInPages":           changesInPages,
	"EndsAreThoseNotExpired":   endsNotExpired,
}

// lastChange returns the number of the last change.
func (f *fixture) lastChange() int64 {
	f.Helper()
	last, _, err := f.Changes(f.ctx, 0, 0)
	f.must(err)
	return last
}

// changed checks the changes above a number. The Number of those wanted is not compared.
func (f *fixture) changed(what string, after int64, want ...oauth.Change) {
	f.Helper()
	last, got, err := f.Changes(f.ctx, after, 1000)
	f.must(err)
	if last != after+int64(len(want)) {
		f.Errorf("%s: got last number %d, want %d", what, last, after+int64(len(want)))
	}
	for i := range want {
		want[i].Number = after + 1 + int64(i)
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		f.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func eachKindOfChange(t *testing.T, f *fixture) {
	user, client := oauth.Change{UserID: f.user.ID}, oauth.Change{ClientID: f.client.ID}
	token := f.machine()
	ended := func(end oauth.End) oauth.Change { return oauth.Change{End: &end} }
	family, consented, reused, replayed := f.family(), f.family(), f.family(), f.family()
	f.do(f.rotate(reused.Family, 1, f.now, 0))
	for _, step := range []struct {
		what string
		do   func() error
		want []oauth.Change
	}{
		{"update user", func() error { return f.UpdateUser(f.ctx, f.user) }, []oauth.Change{user}},
		{"update client", func() error { return f.UpdateClient(f.ctx, f.client) },
			[]oauth.Change{client}},
		{"revoke token", f.running(&oauth.Revoke{Token: &token.end}),
			[]oauth.Change{ended(tokenEnd(token))}},
		{"revoke family", f.running(familyRevocation(family.Family)),
			[]oauth.Change{ended(f.familyEnd(family.Family))}},
		{"reuse", f.running(f.rotate(reused.Family, 1, f.now, 0)),
			[]oauth.Change{ended(f.familyEnd(reused.Family))}},
		{"replay", f.running(f.redeem(replayed.Code, f.now)),
			[]oauth.Change{ended(f.familyEnd(replayed.Family))}},
		{"revoke consent", f.running(&oauth.Revoke{Consent: &oauth.Grant{UserID: f.user.ID,
			ClientID: f.client.ID}}), []oauth.Change{ended(f.familyEnd(consented.Family))}},
		{"revoke user", f.running(&oauth.Revoke{UserID: f.user.ID}), []oauth.Change{user}},
		{"revoke client", f.running(&oauth.Revoke{ClientID: f.client.ID}), []oauth.Change{client}},
		{"replace password", func() error {
			return f.ChangeCredentials(f.ctx, f.user, account.CredentialChange{EndTokens: true})
		}, []oauth.Change{user}},
		{"rotate keys", func() error {
			return f.RotateKeys(f.ctx, oauth.KeyRotation{Purpose: oauth.FormKeys, Now: f.now,
				Expires: f.now.Add(time.Hour)})
		}, []oauth.Change{{Keys: oauth.FormKeys}}},
		{"delete client", func() error { return f.DeleteClient(f.ctx, f.client.ID) },
			[]oauth.Change{client}},
		{"delete user", func() error { return f.DeleteUser(f.ctx, f.user.ID, [32]byte{}) },
			[]oauth.Change{user}},
	} {
		before := f.lastChange()
		f.must(step.do())
		f.changed(step.what, before, step.want...)
	}
}

// running returns a function that executes an operation.
func (f *fixture) running(op oauth.Operation) func() error {
	return func() error { return f.submit(op)()[0] }
}

func creationIsNoChange(t *testing.T, f *fixture) {
	r := f.family()
	f.do(f.rotate(r.Family, 1, f.now, 0))
	f.newUser()
	f.changed("creation", 0)
}

func failedOperationsTellNone(t *testing.T, f *fixture) {
	stale, unknown := *f.user, *f.client
	stale.Version++
	unknown.ID = uuid.NewString()
	for _, err := range []error{f.UpdateUser(f.ctx, &stale), f.UpdateClient(f.ctx, &unknown),
		f.DeleteClient(f.ctx, unknown.ID), f.DeleteUser(f.ctx, 4711, [32]byte{})} {
		if err == nil {
			t.Error("got no error")
		}
	}
	good := f.machine()
	bad := &oauth.SaveCode{Code: f.code()}
	f.do(&oauth.SaveCode{Code: bad.Code})
	errs := f.inOneBatch(&oauth.Revoke{Token: &good.end}, bad)
	if errs[0] != nil || errs[1] == nil {
		t.Errorf("got errors %v, want one of the second", errs)
	}
	end := tokenEnd(good)
	f.changed("after a batch that was executed again", 0, oauth.Change{End: &end})
}

func changesInPages(t *testing.T, f *fixture) {
	var ops []oauth.Operation
	var want []oauth.Change
	for i := range 50 {
		token := f.machine()
		end := tokenEnd(token)
		ops = append(ops, &oauth.Revoke{Token: &token.end})
		want = append(want, oauth.Change{Number: int64(i + 1), End: &end})
	}
	f.must(errors.Join(f.inOneBatch(ops...)...))
	var got []oauth.Change
	for after := int64(0); ; after = got[len(got)-1].Number {
		last, page, err := f.Changes(f.ctx, after, 7)
		f.must(err)
		if last != int64(len(ops)) || len(page) > 7 {
			t.Fatalf("got last number %d and %d changes, want %d and at most 7", last, len(page),
				len(ops))
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d changes, want all %d in order", len(got), len(want))
	}
	if last, page, err := f.Changes(f.ctx, 4711, 7); err != nil || last != 50 || len(page) != 0 {
		t.Errorf("after an unknown number: got %d, %d changes, error %v, want 50 and none", last,
			len(page), err)
	}
}

func endsNotExpired(t *testing.T, f *fixture) {
	token, long := f.machine(), f.machine()
	long.end.Expires = f.now.Add(3 * time.Hour)
	r := f.family()
	f.do(&oauth.Revoke{Token: &token.end}, &oauth.Revoke{Token: &long.end},
		familyRevocation(r.Family), &oauth.Revoke{UserID: f.user.ID})
	all := []oauth.End{tokenEnd(token), tokenEnd(long), f.familyEnd(r.Family)}
	for at, want := range map[time.Time][]oauth.End{
		f.now:                                   all,
		f.now.Add(time.Hour - time.Millisecond): all,
		f.now.Add(time.Hour):                    {tokenEnd(long)},
		f.now.Add(3 * time.Hour):                nil,
	} {
		last, ends, err := f.Ends(f.ctx, at)
		f.must(err)
		if last != 4 {
			t.Errorf("last number: got %d, want 4", last)
		}
		f.ended("ends", ends, want...)
	}
}

// numberInOrder ends access tokens concurrently, through stores on one database. It checks that
// somebody who reads the changes above the last number, again and again, sees each of them once.
func numberInOrder(t *testing.T, stores []oauth.Store, clientID string) {
	t.Helper()
	const writers, each = 6, 20
	wrote := make(chan struct{}, 1)
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for range each {
				op := &oauth.Revoke{Token: &oauth.TokenEnd{ID: newTokenID(), ClientID: clientID,
					Expires: time.Now().Add(time.Hour)}}
				done := make(chan error, 1)
				op.OnDone(func(err error) { done <- err })
				stores[i%len(stores)].Submit(op)
				if err := <-done; err != nil {
					t.Error(err)
					return
				}
				notify(wrote)
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	after, err := int64(0), error(nil)
	if after, _, err = stores[0].Changes(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	begin, seen := after, int64(0)
	for ended := false; ; {
		select {
		case <-written:
			ended = true
		case <-wrote: // while others write
		}
		last, changes, err := stores[0].Changes(t.Context(), after, writers*each+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.Number <= after || c.Number > last {
				t.Errorf("got number %d, want one from %d to %d", c.Number, after+1, last)
			}
			after = c.Number
			seen++
		}
		if last != after || seen != after-begin {
			t.Fatalf("got %d changes up to %d of %d, want all since %d", seen, after, last, begin)
		}
		if ended {
			break
		}
	}
	<-written
}
