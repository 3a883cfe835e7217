package sqlstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// TestConformance runs each test of the suite with an empty store of both databases, those of a
// cluster with PostgreSQL only. The files suite_…_test.go have the tests.
func TestConformance(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			suites := []map[string]func(*testing.T, *fixture){
				codeTests, rotationTests, revocationTests, changeTests, keyTests, orderTests,
				clientTests, userTests, sessionTests, challengeTests, guessTests, sweepTests,
				auditTests, leaseTests, deviceTests, assertionTests, resourceTests, logoutTests,
				registrationTests, factorTests, providerTests, searchTests, groupTests,
			}
			if d.name == "PostgreSQL" {
				suites = append(suites, clusterTests, budgetTests)
			}
			for _, suite := range suites {
				for name, test := range suite {
					t.Run(name, func(t *testing.T) {
						ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
						t.Cleanup(cancel)
						url := d.make(t)
						store := open(t, sqlstore.Config{URL: url, SweepInterval: time.Hour,
							AuditKeep: 400 * 24 * time.Hour})
						f := &fixture{T: t, Store: store, ctx: ctx, url: url,
							now: time.Now().UTC().Truncate(time.Millisecond)}
						f.user, f.client = f.newUser(), f.newClient()
						test(t, f)
					})
				}
			}
		})
	}
}

// fixture is a Store with a user and a client.
type fixture struct {
	*testing.T
	*sqlstore.Store
	ctx    context.Context
	url    string // of the database
	now    time.Time
	user   *account.User
	client *oauth.Client
}

func (f *fixture) newUser() *account.User {
	f.Helper()
	u := &account.User{Name: "Ada", Created: f.now, Updated: f.now}
	f.must(f.CreateUser(f.ctx, u))
	return u
}

func (f *fixture) newClient() *oauth.Client {
	f.Helper()
	c := &oauth.Client{ID: uuid.NewString(), Name: "App", Created: f.now}
	f.must(f.CreateClient(f.ctx, c))
	return c
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// endedTokens is must for the end of a session. It returns whether tokens have ended.
func (f *fixture) endedTokens(tokens bool, err error) bool {
	f.Helper()
	f.must(err)
	return tokens
}

func newHash() (h oauth.Hash) {
	rand.Read(h[:])
	return h
}

// submit submits operations and returns a function that waits for their ends.
func (f *fixture) submit(ops ...oauth.Operation) (wait func() []error) {
	ends := make([]chan error, len(ops))
	for i, op := range ops {
		ends[i] = make(chan error, 1)
		op.OnDone(func(err error) { ends[i] <- err })
	}
	for _, op := range ops {
		f.Submit(op)
	}
	return func() []error {
		f.Helper()
		errs := make([]error, len(ops))
		for i, end := range ends {
			select {
			case errs[i] = <-end:
			case <-f.ctx.Done():
				f.Fatalf("operation %d of %d has not ended", i+1, len(ops))
			}
		}
		return errs
	}
}

// do executes operations in order. It fails the test if one of them fails.
func (f *fixture) do(ops ...oauth.Operation) {
	f.Helper()
	f.must(errors.Join(f.submit(ops...)()...))
}

// inOneBatch executes operations in one batch: it blocks the writer until all of them are queued.
func (f *fixture) inOneBatch(ops ...oauth.Operation) []error {
	f.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	first := &oauth.SaveCode{Code: f.code()}
	first.OnDone(func(error) { close(held); <-hold })
	f.Submit(first)
	<-held
	wait := f.submit(ops...)
	close(hold)
	return wait()
}

// access is what the Store's users know of an access token.
type access struct {
	end      oauth.TokenEnd
	userID   int64
	familyID uuid.UUID
	epochs   oauth.Epochs
}

// newTokenID returns the ID of a new access token.
func newTokenID() (id oauth.TokenID) {
	rand.Read(id[:])
	return id
}

// machine returns an access token of the fixture's client, without a user.
func (f *fixture) machine() access {
	f.Helper()
	client, err := f.Client(f.ctx, f.client.ID)
	f.must(err)
	return access{end: oauth.TokenEnd{ID: newTokenID(), ClientID: client.ID,
		Expires: f.now.Add(time.Hour)}, epochs: oauth.Epochs{Client: client.Epoch}}
}

// issued returns the access token that is sealed after a redemption or rotation.
func issued(family oauth.Family, epochs oauth.Epochs) access {
	return access{end: oauth.TokenEnd{ID: newTokenID(), ClientID: family.ClientID,
		Expires: family.AccessExpires}, userID: family.UserID, familyID: family.ID, epochs: epochs}
}

// first returns the access token of a redemption.
func first(r *oauth.Redeem) access { return issued(r.Family, r.Epochs) }

// code returns a code that is issued now, for the fixture's user and client.
func (f *fixture) code() oauth.AuthorizationCode {
	return oauth.AuthorizationCode{
		Epochs: f.epochs(),
		Hash:   newHash(), ClientID: f.client.ID, UserID: f.user.ID,
		RedirectURI: "https://app.example/back?a=b", Scopes: oauth.ViewUser,
		DefaultScopes: true, CodeChallenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		Expires: f.now.Add(time.Minute), Details: details,
	}
}

// details are those of codes and families.
var details = oauth.GrantDetails{
	AuthTime: 1_800_000_000, AMR: []string{"pwd", "otp"}, SID: "a session", Nonce: `"n" <0>`,
	Targets: oauth.Targets{{Resource: 1, Scopes: 3}, {Resource: 65535}},
}

// epochs returns the epochs of the fixture's user and client, 0 for one that was deleted.
func (f *fixture) epochs() (now oauth.Epochs) {
	f.Helper()
	if client, err := f.Client(f.ctx, f.client.ID); !errors.Is(err, oauth.ErrNotFound) {
		f.must(err)
		now.Client = client.Epoch
	}
	if user, err := f.User(f.ctx, f.user.ID); !errors.Is(err, account.ErrNotFound) {
		f.must(err)
		now.User = user.Epoch
	}
	return now
}

// redeem returns the redemption of a code for the fixture's user and client.
func (f *fixture) redeem(code oauth.Hash, now time.Time) *oauth.Redeem {
	refresh := newHash()
	family := oauth.Family{
		ID: uuid.New(), ClientID: f.client.ID, UserID: f.user.ID, Scopes: oauth.ViewUser,
		Generation: 1, Advanced: now, AccessExpires: now.Add(time.Hour),
		Expires: now.Add(24 * time.Hour), Ends: now.Add(72 * time.Hour), Details: details,
	}
	return &oauth.Redeem{Code: code, Now: now, Family: family, Refresh: &refresh}
}

// family saves and redeems a code for the fixture's user and client.
func (f *fixture) family() *oauth.Redeem {
	f.Helper()
	code := f.code()
	r := f.redeem(code.Hash, f.now)
	f.do(&oauth.SaveCode{Code: code}, r)
	f.outcome("redeem", r.Outcome, oauth.OutcomeDone)
	return r
}

// rotate returns the rotation of a refresh token.
func (f *fixture) rotate(family oauth.Family, generation int64, now time.Time,
	grace time.Duration) *oauth.Rotate {
	return &oauth.Rotate{
		FamilyID: family.ID, Grant: oauth.Grant{UserID: family.UserID, ClientID: family.ClientID},
		Generation: generation, Now: now, Grace: grace,
		Expires: now.Add(24 * time.Hour), AccessExpires: now.Add(time.Hour), Refresh: newHash(),
	}
}

// familyRevocation returns the revocation of a family.
func familyRevocation(family oauth.Family) *oauth.Revoke {
	return &oauth.Revoke{FamilyID: family.ID,
		Grant: oauth.Grant{UserID: family.UserID, ClientID: family.ClientID}}
}

func (f *fixture) outcome(what string, got, want oauth.Outcome) {
	f.Helper()
	if got != want {
		f.Errorf("%s: got outcome %d, want %d", what, got, want)
	}
}

// alive checks whether an access token is accepted: its client and user exist and have no later
// epoch, and neither the token nor its family has ended.
func (f *fixture) alive(what string, token access, want bool) {
	f.Helper()
	if got := f.accepts(token); got != want {
		f.Errorf("%s: got alive %t, want %t", what, got, want)
	}
}

func (f *fixture) accepts(token access) bool {
	f.Helper()
	client, err := f.Client(f.ctx, token.end.ClientID)
	if errors.Is(err, oauth.ErrNotFound) {
		return false
	}
	f.must(err)
	if client.Epoch > token.epochs.Client {
		return false
	}
	if token.userID != 0 {
		user, err := f.User(f.ctx, token.userID)
		if errors.Is(err, account.ErrNotFound) {
			return false
		}
		f.must(err)
		if user.Epoch > token.epochs.User {
			return false
		}
	}
	_, ends, err := f.Ends(f.ctx, f.now)
	f.must(err)
	return !slices.ContainsFunc(ends, func(e oauth.End) bool {
		return e.Token == token.end.ID && e.Token != oauth.TokenID{} ||
			e.FamilyID == token.familyID && e.FamilyID != uuid.Nil
	})
}

// familyEnd returns the end of a family whose last access token expires in an hour.
func (f *fixture) familyEnd(family oauth.Family) oauth.End {
	return oauth.End{FamilyID: family.ID, Expires: f.now.Add(time.Hour)}
}

// ended checks what an operation reported as ended, in any order.
func (f *fixture) ended(what string, got []oauth.End, want ...oauth.End) {
	f.Helper()
	left := map[oauth.End]int{}
	for _, end := range want {
		left[end]++
	}
	for _, end := range got {
		left[end]--
	}
	for end, n := range left {
		if n != 0 {
			f.Errorf("%s: got %+v %d times less than wanted", what, end, n)
		}
	}
}

// wantError fails the test unless err wraps want.
func (f *fixture) wantError(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: got %v, want %v", what, err, want)
	}
}
