package token

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	tokenStore
	accountStore

	mu      sync.Mutex
	tokens  map[oauth.Hash]oauth.AccessToken
	clients map[string]*oauth.Client
	users   map[int64]*account.User
	reads   atomic.Int64 // of access tokens

	readError   error  // of access tokens
	onTokenRead func() // called after an access token was read, before the reader gets it
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		tokens: map[oauth.Hash]oauth.AccessToken{},
		clients: map[string]*oauth.Client{
			"app": {ID: "app", Scopes: oauth.UserScopes, DetailApproved: true},
			"new": {ID: "new", Scopes: oauth.UserScopes},
			"ops": {ID: "ops", Scopes: oauth.ServerOperations, Operator: true},
		},
		users: map[int64]*account.User{7: {ID: 7, Name: "Ann", ServiceID: "s"}},
	}
}

func (s *fakeStore) AccessTokenKeys(context.Context) (oauth.Keys, error) {
	return oauth.Keys{Current: [32]byte{1}}, nil
}

func (s *fakeStore) AccessToken(_ context.Context, hash oauth.Hash) (*oauth.AccessToken, error) {
	s.reads.Add(1)
	s.mu.Lock()
	token, ok := s.tokens[hash]
	onTokenRead, readError := s.onTokenRead, s.readError
	s.mu.Unlock()
	if onTokenRead != nil {
		onTokenRead()
	}
	if readError != nil {
		return nil, readError
	}
	if !ok {
		return nil, oauth.ErrNotFound
	}
	return &token, nil
}

func (s *fakeStore) Client(_ context.Context, id string) (*oauth.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.clients[id]; ok {
		return c, nil
	}
	return nil, oauth.ErrNotFound
}

func (s *fakeStore) User(_ context.Context, id int64) (*account.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.users[id]; ok {
		copied := *u
		return &copied, nil
	}
	return nil, account.ErrNotFound
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
	token := f.keys.newAccessToken(time.Now().Add(time.Hour), time.Now())
	row := oauth.AccessToken{Hash: oauth.HashOf(token), ClientID: client, Scopes: scopes, UserID: 7,
		Issued: time.Now(), Expires: time.Now().Add(time.Hour).Truncate(time.Second)}
	if scopes&oauth.UserScopes == 0 {
		row.UserID = 0
	}
	f.store.change(func() { f.store.tokens[row.Hash] = row })
	return token
}

// revoke revokes a token as Service does: first in the store, then its actor.
func (f *fixture) revoke(token string) {
	hash := oauth.HashOf(token)
	f.store.change(func() { delete(f.store.tokens, hash) })
	f.forget([]oauth.Hash{hash})
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
	foreign := oauth.Keys{Current: [32]byte{2}}
	hour := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name     string
		token    string
		endpoint Endpoint
		want     Verdict
	}{
		{"no token", "", BasicProfile, TokenInvalid},
		{"garbage", "gtat_garbage", BasicProfile, TokenInvalid},
		{"signed by another key", foreign.NewAccessToken(hour), BasicProfile, TokenInvalid},
		{"valid signature, unknown", f.keys.newAccessToken(hour, time.Now()), BasicProfile, TokenInvalid},
		{"valid signature, unknown, expired", f.keys.newAccessToken(time.Now().Add(-time.Second), time.Now()), BasicProfile, TokenExpired},
		{"basic", f.token("app", oauth.ViewUser), BasicProfile, Admitted},
		{"basic with the other scope", f.token("app", oauth.DetailUser), BasicProfile, InsufficientScope},
		{"detailed", f.token("app", both), DetailedProfile, Admitted},
		{"detailed without the scope", f.token("app", oauth.ViewUser), DetailedProfile, InsufficientScope},
		{"detailed without approval", f.token("new", both), DetailedProfile, UnapprovedScope},
		{"detailed without both", f.token("new", oauth.ViewUser), DetailedProfile, InsufficientScope},
		{"basic without approval", f.token("new", both), BasicProfile, Admitted},
		{"basic without a user", f.token("ops", 0), BasicProfile, InsufficientScope},
		{"operations at a profile", f.token("ops", oauth.ServerOperations), DetailedProfile, InsufficientScope},
		{"operations", f.token("ops", oauth.ServerOperations), adminAPI, Admitted},
		{"operations of a client that is no operator", f.token("app", oauth.ServerOperations), adminAPI, InsufficientScope},
		{"operations with a user's scopes", f.token("app", both), adminAPI, InsufficientScope},
	} {
		got := f.Admit(c.token, c.endpoint, time.Now())
		wantVerdict(t, c.name, got, c.want)
		counted := c.want != TokenInvalid && c.want != TokenExpired && c.endpoint != adminAPI
		limit := limitOf[min(c.endpoint, DetailedProfile)]
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
	f.store.mu.Lock()
	known := len(f.store.tokens)
	f.store.mu.Unlock()
	if f.actors() != known {
		t.Errorf("got %d actors, want one for each of the %d known tokens", f.actors(), known)
	}
}

func TestAdmitReturnsProfile(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.UserScopes)
	u := f.store.users[7]
	for endpoint, want := range map[Endpoint][]byte{
		BasicProfile: u.AppendBasic(nil), DetailedProfile: u.AppendDetailed(nil),
	} {
		if got := f.Admit(token, endpoint, time.Now()).Profile; !bytes.Equal(got, want) {
			t.Errorf("endpoint %d: got %s, want %s", endpoint, got, want)
		}
	}
}

// TestRateLimitIsExact sends many more requests than each limit allows, from 64 goroutines, in two
// windows.
func TestRateLimitIsExact(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.UserScopes)
	start := time.Now()
	for _, window := range []time.Duration{0, time.Minute} {
		for endpoint, want := range limitOf {
			var admitted, refused atomic.Int64
			var callers sync.WaitGroup
			for g := range 64 {
				callers.Go(func() {
					for i := range 10 {
						now := start.Add(window + time.Duration(g+i)*time.Millisecond)
						switch f.Admit(token, Endpoint(endpoint), now).Verdict {
						case Admitted:
							admitted.Add(1)
						case RateLimited:
							refused.Add(1)
						}
					}
				})
			}
			callers.Wait()
			if admitted.Load() != int64(want) || admitted.Load()+refused.Load() != 640 {
				t.Errorf("endpoint %d: got %d admitted and %d refused, want %d and the rest",
					endpoint, admitted.Load(), refused.Load(), want)
			}
		}
	}
	if got := f.store.reads.Load(); got != 1 {
		t.Errorf("got %d reads of the token, want 1", got)
	}
}

// TestForbiddenRequestsCountAgainstLimit checks that a 403 counts, and that 429 takes precedence.
func TestForbiddenRequestsCountAgainstLimit(t *testing.T) {
	f := newFixture(t, nil)
	now := time.Now()
	for name, token := range map[string]string{"scope": f.token("app", oauth.ViewUser),
		"approval": f.token("new", oauth.UserScopes)} {
		for i := range 60 {
			a := f.Admit(token, DetailedProfile, now)
			if (a.Verdict == RateLimited) != (i >= 50) {
				t.Fatalf("%s, request %d: got verdict %d", name, i+1, a.Verdict)
			}
		}
	}
}

// TestUnknownTokenCreatesNoActor sends one unknown token from many goroutines.
func TestUnknownTokenCreatesNoActor(t *testing.T) {
	f := newFixture(t, nil)
	token := f.keys.newAccessToken(time.Now().Add(time.Hour), time.Now())
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() { f.wantVerdict(t, "unknown", token, TokenInvalid) })
	}
	callers.Wait()
	if f.actors() != 0 {
		t.Errorf("got %d actors, want none", f.actors())
	}
}

func TestRevokedTokenIsRefusedAtOnce(t *testing.T) {
	f := newFixture(t, nil)
	var tokens []string
	for range 600 {
		token := f.token("app", oauth.ViewUser)
		f.wantVerdict(t, "before", token, Admitted)
		tokens = append(tokens, token)
	}
	var hashes []oauth.Hash
	for _, token := range tokens[1:] {
		hash := oauth.HashOf(token)
		hashes = append(hashes, hash)
		f.store.change(func() { delete(f.store.tokens, hash) })
	}
	f.forget(hashes)
	for _, token := range tokens[1:] {
		f.wantVerdict(t, "revoked", token, TokenInvalid)
	}
	f.wantVerdict(t, "the other", tokens[0], Admitted)
	if f.actors() != 1 {
		t.Errorf("got %d actors, want 1", f.actors())
	}
}

// TestRevocationDuringLoad revokes a token after its row was read and before its actor is in the
// directory.
func TestRevocationDuringLoad(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	once := sync.OnceFunc(func() { f.revoke(token) })
	f.store.onTokenRead = func() { once() }
	f.wantVerdict(t, "revoked while it was loaded", token, TokenInvalid)
	if got := f.store.reads.Load(); got != 2 || f.actors() != 0 {
		t.Errorf("got %d reads and %d actors, want 2 and none", got, f.actors())
	}
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
			f.UserChanged(7, nil)
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
	kept, _, err := r.load(t.Context(), 1, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.load(t.Context(), 2, time.Time{}); err != nil {
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
		f.UserChanged(7, nil)
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
	f.UserChanged(7, nil)
	f.wantVerdict(t, "user deleted", token, TokenInvalid)
	if f.actors() != 0 {
		t.Errorf("got %d actors, want none", f.actors())
	}
}

// TestAdmitWhileActorsStop stops a token's actor all the time while many goroutines send requests.
func TestAdmitWhileActorsStop(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	hash := oauth.HashOf(token)
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
			if a := f.directory.find(&hash); a != nil {
				a.Tell(&sweep{now: now.Add(2 * time.Hour)})
			}
			f.forget([]oauth.Hash{hash})
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

// TestSharedStoreIsReadAgain changes rows without a call of Service, as another process does.
func TestSharedStoreIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Shared = true })
		token := f.token("app", oauth.ViewUser)
		for range 10 {
			f.wantVerdict(t, "at first", token, Admitted)
		}
		if got := f.store.reads.Load(); got != 1 {
			t.Errorf("got %d reads within a second, want 1", got)
		}
		f.store.change(func() { f.store.users[7].Disabled = true })
		time.Sleep(1001 * time.Millisecond)
		f.wantVerdict(t, "disabled elsewhere", token, TokenInvalid)
		f.store.change(func() { f.store.users[7].Disabled = false })
		time.Sleep(1001 * time.Millisecond)
		a := f.Admit(token, BasicProfile, time.Now())
		if a.Verdict != Admitted || a.Rate.Remaining != 89 {
			t.Errorf("got %+v, want the window kept after each read", a)
		}
		f.store.change(func() { clear(f.store.tokens) })
		time.Sleep(1001 * time.Millisecond)
		f.wantVerdict(t, "revoked elsewhere", token, TokenInvalid)
		if f.actors() != 0 {
			t.Errorf("got %d actors, want none", f.actors())
		}
	})
}

func TestStoreErrorIsNotCached(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	f.store.readError = errors.New("disk full")
	f.wantVerdict(t, "failing", token, TryLater)
	f.store.readError = nil
	f.wantVerdict(t, "again", token, Admitted)
}

// TestLoadTimeout uses a store that responds after ten seconds.
func TestLoadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.store.onTokenRead = func() { time.Sleep(10 * time.Second) }
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
		time.Sleep(10 * time.Second) // the reads end
	})
}

func TestAdmitAfterStop(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	f.Admit(token, BasicProfile, time.Now())
	f.stopped.Store(true)
	f.wantVerdict(t, "stopped", token, TryLater)
}

// TestRevokedActorHasStopped asks an actor directly after its token was revoked.
func TestRevokedActorHasStopped(t *testing.T) {
	f := newFixture(t, nil)
	token := f.token("app", oauth.ViewUser)
	f.wantVerdict(t, "in use", token, Admitted)
	hash := oauth.HashOf(token)
	a := f.directory.find(&hash)
	f.revoke(token)
	if _, _, err := f.askToken(a, BasicProfile, time.Now()); !errors.Is(err, mailbox.ErrStopped) {
		t.Errorf("got %v, want %v", err, mailbox.ErrStopped)
	}
	if _, known := f.config.Actors.ProcessRegistry.Get(a.PID()); known {
		t.Error("got the actor kept by the library")
	}
}

// TestConcurrentRequestsShareLoad sends 64 requests with one token while its row is read.
func TestConcurrentRequestsShareLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.store.onTokenRead = func() { time.Sleep(100 * time.Millisecond) }
		token := f.token("app", oauth.ViewUser)
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() { f.wantVerdict(t, "loading", token, Admitted) })
		}
		callers.Wait()
		if got := f.store.reads.Load(); got != 1 {
			t.Errorf("got %d reads, want 1", got)
		}
	})
}

// TestConcurrentLoadsAreLimited counts the concurrent reads of a slow store.
func TestConcurrentLoadsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var under, most atomic.Int64
		f.store.onTokenRead = func() {
			n := under.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(100 * time.Millisecond)
			under.Add(-1)
		}
		var callers sync.WaitGroup
		for range 500 {
			token := f.token("app", oauth.ViewUser)
			callers.Go(func() { f.wantVerdict(t, "loading", token, Admitted) })
		}
		callers.Wait()
		if most.Load() != loadLimit {
			t.Errorf("got %d reads at once, want %d", most.Load(), loadLimit)
		}
	})
}

// TestDirectoryShrinks removes most actors from a directory.
func TestDirectoryShrinks(t *testing.T) {
	d := newDirectory()
	all := map[oauth.Hash]*tokenActor{}
	for i := range 1000 {
		hash := oauth.Hash{0: 1, 8: byte(i), 9: byte(i >> 8)}
		all[hash] = &tokenActor{hash: hash}
		addActor(t, d, all[hash])
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
		if d.find(&a.hash) != a || all[a.hash] != a {
			t.Error("got another actor after the map was made anew")
		}
	}
}
