package token

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// These name the embedded fields, whose methods the tests do not call.
type (
	tokenStore   = oauth.Store
	accountStore = account.Store
)

// fakeStore has the records that an admission reads.
type fakeStore struct {
	claims []oauth.Claim
	tokenStore
	accountStore

	mu      sync.Mutex
	clients map[string]*oauth.Client
	users   map[int64]*account.User
	reads   atomic.Int64 // of users

	readError  error                 // of users
	onUserRead func(context.Context) // called after a user was read, before the reader gets it
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		clients: map[string]*oauth.Client{
			"app": {ID: "app", Scopes: oauth.UserScopes, DetailApproved: true},
			"new": {ID: "new", Scopes: oauth.UserScopes},
			"ops": {ID: "ops", Scopes: oauth.ServerOperations, Operator: true},
		},
		users: map[int64]*account.User{7: {ID: 7, Name: "Ann", ServiceID: "s"}},
	}
}

func (s *fakeStore) Claims(context.Context) ([]oauth.Claim, error) { return s.claims, nil }

func (s *fakeStore) Keys(context.Context, time.Time) (keys []oauth.Key, err error) {
	for _, purpose := range oauth.Purposes {
		key := oauth.Key{Purpose: purpose, Number: 1, Secret: [32]byte{1}, Made: time.Now(),
			Starts: time.Now()}
		if purpose.IsSigning() {
			key.Private = fakePrivateKey()
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (s *fakeStore) NeedKeys(context.Context, map[oauth.Purpose]time.Duration) error { return nil }

// fakePrivateKey returns a key pair that is quick to make.
var fakePrivateKey = sync.OnceValue(func() string {
	private, err := oauth.NewPrivateKey(oauth.ES256Keys)
	if err != nil {
		panic(err)
	}
	return private
})

func (s *fakeStore) EndClients(context.Context, time.Time) ([]oauth.EndedClient, error) {
	return nil, nil
}

func (s *fakeStore) Ends(context.Context, time.Time) (int64, []oauth.End, error) {
	return 0, nil, nil
}

func (s *fakeStore) Client(_ context.Context, id string) (*oauth.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.clients[id]; ok {
		copied := *c
		return &copied, nil
	}
	return nil, oauth.ErrNotFound
}

func (s *fakeStore) User(ctx context.Context, id int64) (*account.User, error) {
	s.reads.Add(1)
	s.mu.Lock()
	u, ok := s.users[id]
	onUserRead, readError := s.onUserRead, s.readError
	var copied account.User
	if ok {
		copied = *u
	}
	s.mu.Unlock()
	if onUserRead != nil {
		onUserRead(ctx)
	}
	switch {
	case readError != nil:
		return nil, readError
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !ok:
		return nil, account.ErrNotFound
	}
	return &copied, nil
}

func (s *fakeStore) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// fixture is a Service on a fakeStore.
type fixture struct {
	*Service
	store *fakeStore
}

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{store: newFakeStore()}
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	config := Config{
		Actors: system, Tokens: f.store, Accounts: f.store,
		Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Lifetimes: oauth.Lifetimes{
			Code:          time.Minute,
			AccessToken:   time.Hour,
			RefreshToken:  time.Hour,
			RefreshFamily: time.Hour,
		},
	}
	if change != nil {
		change(&config)
	}
	var err error
	if f.Service, err = New(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := f.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return f
}

// token creates an access token that expires in an hour. It belongs to user 7, or to no user if it
// has no scope of a user.
func (f *fixture) token(client string, scopes oauth.Scopes) string {
	now := time.Now().Unix()
	says := oauth.AccessToken{ClientID: client, Scopes: scopes, Issued: now, Expires: now + 3600}
	if scopes&oauth.UserScopes != 0 {
		says.UserID = 7
	}
	return f.keys.seal(&says, false, time.Now())
}

// revoke ends a token as Service does when the store has acknowledged it.
func (f *fixture) revoke(token string) { f.ended.add(endOf(token)) }

func endOf(token string) *oauth.End {
	return &oauth.End{Token: idOf(token), ClientID: "app", Expires: time.Now().Add(time.Hour)}
}

func idOf(token string) oauth.TokenID {
	id, _, _ := oauth.PeekAccessToken(token)
	return id
}

// actor returns the actor of a token; nil when there is none.
func (f *fixture) actor(token string) *tokenActor {
	id := idOf(token)
	return f.directory.find(&id)
}

func (f *fixture) actors() int { return int(f.directory.size.Load()) }

// wantVerdict sends a request for the basic profile.
func (f *fixture) wantVerdict(t *testing.T, what, token string, want Verdict) {
	t.Helper()
	wantVerdict(t, what, f.Admit(token, BasicProfile, time.Now()), want)
}

func wantVerdict(t *testing.T, what string, got Admission, want Verdict) {
	t.Helper()
	if got.Verdict != want {
		t.Errorf("%s: got verdict %d, want %d", what, got.Verdict, want)
	}
}

func TestVerdicts(t *testing.T) {
	const both = oauth.ViewUser | oauth.DetailUser
	f := newFixture(t, nil)
	other := oauth.NewTokenKey(&oauth.Key{Number: 1, Secret: [32]byte{2}})
	unknown := oauth.NewTokenKey(&oauth.Key{Number: 2, Secret: [32]byte{1}})
	now := time.Now().Unix()
	said := func(change func(*oauth.AccessToken)) *oauth.AccessToken {
		says := oauth.AccessToken{
			ClientID: "app", UserID: 7, Scopes: both, Issued: now - 10, Expires: now + 3600,
		}
		change(&says)
		return &says
	}
	asIs := said(func(*oauth.AccessToken) {})
	genuine := 0
	seal := func(change func(*oauth.AccessToken)) string {
		return f.keys.seal(said(change), false, time.Now())
	}
	for _, c := range []struct {
		name     string
		token    string
		endpoint Endpoint
		want     Verdict
	}{
		{"no token", "", BasicProfile, TokenInvalid},
		{"garbage", "gtat_garbage", BasicProfile, TokenInvalid},
		{"sealed by another key", other.Seal(asIs), BasicProfile, TokenInvalid},
		{"sealed by an unknown key", unknown.Seal(asIs), BasicProfile, TokenInvalid},
		{"unknown client", seal(func(t *oauth.AccessToken) { t.ClientID = "x" }), BasicProfile, TokenInvalid},
		{"unknown user", seal(func(t *oauth.AccessToken) { t.UserID = 8 }), BasicProfile, TokenInvalid},
		{"expired", seal(func(t *oauth.AccessToken) { t.Expires = now - 1 }), BasicProfile, TokenExpired},
		{"expired, unknown client", seal(func(t *oauth.AccessToken) { t.ClientID, t.Expires = "x", now-1 }), BasicProfile, TokenExpired},
		{"basic", f.token("app", oauth.ViewUser), BasicProfile, Admitted},
		{"basic with the other scope", f.token("app", oauth.DetailUser), BasicProfile, InsufficientScope},
		{"detailed", f.token("app", both), DetailedProfile, Admitted},
		{"detailed without the scope", f.token("app", oauth.ViewUser), DetailedProfile, InsufficientScope},
		{"detailed without approval", f.token("new", both), DetailedProfile, UnapprovedScope},
		{"detailed without both", f.token("new", oauth.ViewUser), DetailedProfile, InsufficientScope},
		{"basic without approval", f.token("new", both), BasicProfile, Admitted},
		{"basic without a user", f.token("ops", 0), BasicProfile, InsufficientScope},
		{"operations at a profile", f.token("ops", oauth.ServerOperations), DetailedProfile, InsufficientScope},
		{"userinfo", f.token("app", oauth.ViewUser|oauth.OpenID), UserInfo, Admitted},
		{"userinfo without openid", f.token("app", both), UserInfo, InsufficientScope},
		{"userinfo without a user", f.token("ops", 0), UserInfo, InsufficientScope},
		{"operations", f.token("ops", oauth.ServerOperations), adminAPI, Admitted},
		{"operations of a client that is no operator", f.token("app", oauth.ServerOperations), adminAPI, InsufficientScope},
		{"operations with a user's scopes", f.token("app", both), adminAPI, InsufficientScope},
	} {
		got := f.Admit(c.token, c.endpoint, time.Now())
		wantVerdict(t, c.name, got, c.want)
		if c.want != TokenInvalid && c.want != TokenExpired {
			genuine++
		}
		counted := c.want != TokenInvalid && c.want != TokenExpired && c.endpoint != adminAPI
		limit := limitOf[min(int(c.endpoint), len(limitOf)-1)]
		if counted && (got.Rate.Limit != limit || got.Rate.Remaining != limit-1) {
			t.Errorf("%s: got rate %+v, want one counted", c.name, got.Rate)
		}
		if !counted && got.Rate.Limit != 0 {
			t.Errorf("%s: got rate %+v, want none", c.name, got.Rate)
		}
		if (got.Profile != nil) != (c.want == Admitted && c.endpoint != adminAPI) {
			t.Errorf("%s: got profile %s", c.name, got.Profile)
		}
	}
	if f.actors() != genuine {
		t.Errorf("got %d actors, want one for each of the %d genuine tokens", f.actors(), genuine)
	}
}

// TestRefusedTokenCreatesNoActor sends a token of an unknown client from many goroutines.
func TestRefusedTokenCreatesNoActor(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("x", oauth.ViewUser)
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() { f.wantVerdict(t, "unknown", token, TokenInvalid) })
	}
	callers.Wait()
	if f.actors() != 0 {
		t.Errorf("got %d actors, want none", f.actors())
	}
}

// TestRevocationDuringLoad revokes a token while its user is read.
func TestRevocationDuringLoad(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	f.store.onUserRead = func(context.Context) { f.revoke(token) }
	f.wantVerdict(t, "revoked while it was loaded", token, TokenInvalid)
}

// TestUserChangedDuringReadIsReadAgain disables a user after the row was read and before it is
// used.
func TestUserChangedDuringReadIsReadAgain(t *testing.T) {
	f := newFixture(t, nil)
	reads := 0
	f.users.read = func(ctx context.Context, id int64) (user, error) {
		u, err := f.readUser(ctx, id)
		if reads++; reads == 1 {
			f.store.change(func() { f.store.users[7].Disabled = true })
			if err := f.UserChanged(7, nil); err != nil {
				t.Error(err)
			}
		}
		return u, err
	}
	f.wantVerdict(t, "user disabled during the read", f.token("app", oauth.ViewUser), TokenInvalid)
	if reads != 2 {
		t.Errorf("got %d reads, want 2", reads)
	}
}

// TestUnusedRecordIsDropped also checks that a record in use is kept.
func TestUnusedRecordIsDropped(t *testing.T) {
	r := records[int64, user]{
		read: func(context.Context, int64) (user, error) { return user{}, nil },
	}
	kept, _, err := r.load(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.load(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for r.find(2) != nil {
		runtime.GC()
	}
	if r.find(1) != kept {
		t.Error("got a record dropped that is in use")
	}
	runtime.KeepAlive(kept)
}

// TestChangesReachTokenInUse disables, enables, renames and deletes the user of a token in use.
func TestChangesReachTokenInUse(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.UserScopes)
	f.wantVerdict(t, "at first", token, Admitted)
	user := func(change func(*account.User)) {
		f.store.change(func() { change(f.store.users[7]) })
		if err := f.UserChanged(7, nil); err != nil {
			t.Error(err)
		}
	}
	user(func(u *account.User) { u.Disabled = true })
	a := f.Admit(token, BasicProfile, time.Now())
	wantVerdict(t, "user disabled", a, TokenInvalid)
	f.wantVerdict(t, "user disabled, again", token, TokenInvalid)
	user(func(u *account.User) { u.Disabled, u.Name = false, "Bea" })
	a = f.Admit(token, BasicProfile, time.Now())
	wantVerdict(t, "user enabled", a, Admitted)
	if string(a.Profile) != string(f.store.users[7].AppendBasic(nil)) || a.Rate.Remaining != 98 {
		t.Errorf("got %s and %d left, want the new name and 98 left: a 401 is not counted",
			a.Profile, a.Rate.Remaining)
	}
	f.store.change(func() { delete(f.store.users, 7) })
	if err := f.UserChanged(7, nil); err != nil {
		t.Error(err)
	}
	f.wantVerdict(t, "user deleted", token, TokenInvalid)
}

// TestAdmitWhileActorsStop stops a token's actor all the time while many goroutines send requests.
func TestAdmitWhileActorsStop(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	now := time.Now()
	var callers, stoppers sync.WaitGroup
	ended := make(chan struct{})
	stoppers.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if a := f.actor(token); a != nil {
				a.Tell(&sweep{now: now.Add(2 * time.Hour)})
			}
			if a := f.actor(token); a != nil && f.directory.remove(a) {
				a.Stop()
			}
		}
	})
	for range 16 {
		callers.Go(func() {
			for range 2000 {
				a := f.Admit(token, BasicProfile, now)
				if a.Verdict != Admitted && a.Verdict != RateLimited {
					t.Errorf("got verdict %d, want admitted or limited", a.Verdict)
					return
				}
			}
		})
	}
	callers.Wait()
	close(ended)
	stoppers.Wait()
	f.revoke(token)
	wantVerdict(t, "revoked", f.Admit(token, BasicProfile, now), TokenInvalid)
}

func TestStoreErrorIsNotCached(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	f.store.readError = errors.New("disk full")
	f.wantVerdict(t, "failing", token, TryLater)
	f.store.readError = nil
	f.wantVerdict(t, "again", token, Admitted)
}

// TestLoadTimeout uses a store that does not respond before the read's deadline.
func TestLoadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.store.onUserRead = func(ctx context.Context) { <-ctx.Done() }
		start := time.Now()
		var callers sync.WaitGroup
		for range 100 {
			token := f.token("app", oauth.ViewUser)
			for range 2 {
				callers.Go(func() {
					wantVerdict(t, "silent", f.Admit(token, BasicProfile, start),
						TryLater)
				})
			}
		}
		callers.Wait()
		if took := time.Since(start); took != loadTimeout {
			t.Errorf("got responses after %v, want %v", took, loadTimeout)
		}
	})
}

func TestAdmitAfterStop(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	f.Admit(token, BasicProfile, time.Now())
	f.stopped.Store(true)
	f.wantVerdict(t, "stopped", token, TryLater)
}

// TestSweptActorHasStopped asks an actor directly after it was swept.
func TestSweptActorHasStopped(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	f.wantVerdict(t, "in use", token, Admitted)
	a := f.actor(token)
	a.Tell(&sweep{now: time.Now().Add(2 * time.Hour)})
	if _, _, err := f.askToken(a, BasicProfile, time.Now()); !errors.Is(err, mailbox.ErrStopped) {
		t.Errorf("got %v, want %v", err, mailbox.ErrStopped)
	}
	if _, known := f.config.Actors.ProcessRegistry.Get(a.PID()); known {
		t.Error("got the actor kept by the library")
	}
	f.wantVerdict(t, "again", token, Admitted)
}

// TestOneActorForEachToken uses one token from many goroutines at once: one actor is left.
func TestOneActorForEachToken(t *testing.T) {
	f := newFixture(t, nil)
	for range 200 {
		before := f.actors()
		token := f.token("app", oauth.ViewUser)
		var callers sync.WaitGroup
		for range 16 {
			callers.Go(func() { f.wantVerdict(t, "first use", token, Admitted) })
		}
		callers.Wait()
		a := f.Admit(token, BasicProfile, time.Now())
		if f.actors() != before+1 || a.Rate.Remaining != 100-17 {
			t.Fatalf("got %d more actors and %d left, want 1 and 83", f.actors()-before, a.Rate.Remaining)
		}
	}
	a, _ := f.clientActors.find("app")
	if got := a.active.Load(); got != 200 {
		t.Errorf("got %d actors counted for the client, want 200", got)
	}
}

// TestConcurrentRequestsShareLoad sends requests with 64 tokens while their user is read.
func TestConcurrentRequestsShareLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.store.onUserRead = func(context.Context) { time.Sleep(100 * time.Millisecond) }
		var callers sync.WaitGroup
		for range 64 {
			token := f.token("app", oauth.ViewUser)
			callers.Go(func() { f.wantVerdict(t, "loading", token, Admitted) })
		}
		callers.Wait()
		if got := f.store.reads.Load(); got != 1 {
			t.Errorf("got %d reads, want 1", got)
		}
	})
}

// TestDirectoryShrinks removes most actors from a directory.
func TestDirectoryShrinks(t *testing.T) {
	d := newDirectory(DefaultMaxActive)
	all := map[oauth.TokenID]*tokenActor{}
	for i := range 1000 {
		id := oauth.TokenID{0: 1, 8: byte(i), 9: byte(i >> 8)}
		all[id] = addActor(t, d, id)
	}
	for _, a := range all {
		if len(d.members(1, nil)) > 10 && !d.remove(a) {
			t.Fatal("got an actor that is not there")
		}
	}
	left := d.members(1, nil)
	if len(left) != 10 || d.shards[1].peak >= 64 || d.size.Load() != 10 {
		t.Errorf("got %d actors of a peak of %d, want 10 of a few", len(left), d.shards[1].peak)
	}
	if got := len(d.index.Load().buckets); got != leastBuckets {
		t.Errorf("got %d buckets, want %d", got, leastBuckets)
	}
	for _, a := range left {
		if d.find(&a.id) != a || all[a.id] != a {
			t.Error("got another actor after the map was made anew")
		}
	}
}

// TestEveryBitOfTokenCounts changes each bit of a token that is in use: it is refused, and the
// token's window is not touched.
func TestEveryBitOfTokenCounts(t *testing.T) {
	f := newFixture(t, nil)
	token, now := f.token("app", oauth.UserScopes), time.Now()
	wantVerdict(t, "before", f.Admit(token, BasicProfile, now), Admitted)
	a := f.actor(token)
	changed := []byte(token)
	for i := range changed {
		for bit := range 8 {
			changed[i] ^= 1 << bit
			if a.is(string(changed)) {
				t.Errorf("got the actor's token with bit %d of byte %d changed", bit, i)
			}
			wantVerdict(t, "changed", f.Admit(string(changed), BasicProfile, now), TokenInvalid)
			changed[i] ^= 1 << bit
		}
	}
	for _, other := range []string{token[:len(token)-1], token + "A", token + "\n", " " + token} {
		wantVerdict(t, "another length", f.Admit(other, BasicProfile, now), TokenInvalid)
	}
	got := f.Admit(token, BasicProfile, now)
	if got.Verdict != Admitted || got.Rate.Remaining != 98 || f.actors() != 1 {
		t.Errorf("got %+v and %d actors, want 98 left and 1", got, f.actors())
	}
}

// TestRecordsAreForgotten drops an owner of records that uses one, as a service does: nothing else may
// keep it in memory.
func TestRecordsAreForgotten(t *testing.T) {
	type owner struct {
		records[int, any]
		used *record[int, any]
	}
	made := func() weak.Pointer[owner] {
		o := &owner{}
		o.used = o.use(1)
		return weak.Make(o)
	}()
	for range 100 {
		if runtime.GC(); made.Value() == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("got an owner that is still in memory, want it to be collected")
}
