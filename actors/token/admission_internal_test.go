package token

import (
	"context"
	"errors"
	"fmt"
	"io"
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

type (
	tokenStore  = oauth.Store
	personStore = account.Store
)

// readStore is a store that holds what admission reads, with a hook between a read and its answer.
type readStore struct {
	tokenStore
	personStore

	mu      sync.Mutex
	tokens  map[oauth.Hash]oauth.AccessToken
	clients map[string]*oauth.Client
	users   map[int64]*account.User
	reads   atomic.Int64 // of access tokens
	failing error
	after   func() // called when an access token has been read, before the reader gets it
}

func newReadStore() *readStore {
	return &readStore{
		tokens: map[oauth.Hash]oauth.AccessToken{},
		clients: map[string]*oauth.Client{
			"app": {ID: "app", Scopes: oauth.UserScopes, DetailApproved: true},
			"new": {ID: "new", Scopes: oauth.UserScopes},
			"ops": {ID: "ops", Scopes: oauth.ServerOperations, Operator: true},
		},
		users: map[int64]*account.User{7: {ID: 7, Name: "Ann", ServiceID: "s"}},
	}
}

func (s *readStore) AccessTokenKeys(context.Context) (oauth.Keys, error) {
	return oauth.Keys{Current: [32]byte{1}}, nil
}

func (s *readStore) AccessToken(_ context.Context, hash oauth.Hash) (*oauth.AccessToken, error) {
	s.reads.Add(1)
	s.mu.Lock()
	token, ok := s.tokens[hash]
	after, failing := s.after, s.failing
	s.mu.Unlock()
	if after != nil {
		after()
	}
	if failing != nil {
		return nil, failing
	}
	if !ok {
		return nil, oauth.ErrNotFound
	}
	return &token, nil
}

func (s *readStore) Client(_ context.Context, id string) (*oauth.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.clients[id]; ok {
		return c, nil
	}
	return nil, oauth.ErrNotFound
}

func (s *readStore) User(_ context.Context, id int64) (*account.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.users[id]; ok {
		copied := *u
		return &copied, nil
	}
	return nil, account.ErrNotFound
}

func (s *readStore) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// fixture is an Identity on a shelf.
type fixture struct {
	*Service
	store *readStore
}

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	d := &fixture{store: newReadStore()}
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	config := Config{
		Actors: system, Tokens: d.store, Accounts: d.store, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Metrics:   prometheus.NewRegistry(),
		Lifetimes: oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: time.Hour, RefreshFamily: time.Hour},
	}
	if change != nil {
		change(&config)
	}
	var err error
	if d.Service, err = New(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return d
}

// token makes an access token of the user 7, or of nobody when it can be used for operations, that lasts an hour.
func (d *fixture) token(client string, scopes oauth.Scopes) string {
	token := d.keys.newAccessToken(time.Now().Add(time.Hour), time.Now())
	row := oauth.AccessToken{Hash: oauth.HashOf(token), ClientID: client, Scopes: scopes, UserID: 7,
		Issued: time.Now(), Expires: time.Now().Add(time.Hour).Truncate(time.Second)}
	if scopes&oauth.UserScopes == 0 {
		row.UserID = 0
	}
	d.store.change(func() { d.store.tokens[row.Hash] = row })
	return token
}

// revoke does what a revocation does: the store first, then the actors.
func (d *fixture) revoke(token string) {
	hash := oauth.HashOf(token)
	d.store.change(func() { delete(d.store.tokens, hash) })
	d.forget([]oauth.Hash{hash})
}

func (d *fixture) actors() int { return int(d.directory.size.Load()) }

func wantVerdict(t *testing.T, what string, got Admission, want Verdict) {
	t.Helper()
	if got.Verdict != want {
		t.Errorf("%s: got verdict %d, want %d", what, got.Verdict, want)
	}
}

func TestVerdicts(t *testing.T) {
	const both = oauth.ViewUser | oauth.DetailUser
	d := newFixture(t, nil)
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
		{"of another key", foreign.NewAccessToken(hour), BasicProfile, TokenInvalid},
		{"genuine but unknown", d.keys.newAccessToken(hour, time.Now()), BasicProfile, TokenInvalid},
		{"genuine, unknown and expired", d.keys.newAccessToken(time.Now().Add(-time.Second), time.Now()), BasicProfile, TokenExpired},
		{"basic", d.token("app", oauth.ViewUser), BasicProfile, Admitted},
		{"basic with the other scope", d.token("app", oauth.DetailUser), BasicProfile, InsufficientScope},
		{"detailed", d.token("app", both), DetailedProfile, Admitted},
		{"detailed without the scope", d.token("app", oauth.ViewUser), DetailedProfile, InsufficientScope},
		{"detailed without approval", d.token("new", both), DetailedProfile, UnapprovedScope},
		{"detailed without both", d.token("new", oauth.ViewUser), DetailedProfile, InsufficientScope},
		{"basic without approval", d.token("new", both), BasicProfile, Admitted},
		{"basic of nobody", d.token("ops", 0), BasicProfile, InsufficientScope},
		{"operations at a profile", d.token("ops", oauth.ServerOperations), DetailedProfile, InsufficientScope},
		{"operations", d.token("ops", oauth.ServerOperations), adminAPI, Admitted},
		{"operations of a client that is no operator", d.token("app", oauth.ServerOperations), adminAPI, InsufficientScope},
		{"operations with a user's scopes", d.token("app", both), adminAPI, InsufficientScope},
	} {
		got := d.Admit(c.token, c.endpoint, time.Now())
		wantVerdict(t, c.name, got, c.want)
		counted := c.want != TokenInvalid && c.want != TokenExpired && c.endpoint != adminAPI
		if limit := limitOf[min(c.endpoint, DetailedProfile)]; counted && (got.Rate.Limit != limit || got.Rate.Remaining != limit-1) {
			t.Errorf("%s: got rate %+v, want one counted", c.name, got.Rate)
		}
		if !counted && got.Rate.Limit != 0 {
			t.Errorf("%s: got rate %+v, want none", c.name, got.Rate)
		}
		if (got.Profile != nil) != (c.want == Admitted && c.endpoint != adminAPI) {
			t.Errorf("%s: got profile %s", c.name, got.Profile)
		}
	}
	d.store.mu.Lock()
	known := len(d.store.tokens)
	d.store.mu.Unlock()
	if d.actors() != known {
		t.Errorf("got %d actors, want one for each of the %d known tokens", d.actors(), known)
	}
}

func TestProfilesOfBothTiers(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.UserScopes)
	u := d.store.users[7]
	if got := d.Admit(token, BasicProfile, time.Now()).Profile; string(got) != string(u.AppendBasic(nil)) {
		t.Errorf("got %s", got)
	}
	if got := d.Admit(token, DetailedProfile, time.Now()).Profile; string(got) != string(u.AppendDetailed(nil)) {
		t.Errorf("got %s", got)
	}
}

// TestLimitsAreExact asks with 64 goroutines at once, far more often than the limits allow, in two windows.
func TestLimitsAreExact(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.UserScopes)
	start := time.Now()
	for _, window := range []time.Duration{0, time.Minute} {
		for endpoint, want := range limitOf {
			var admitted, refused atomic.Int64
			var callers sync.WaitGroup
			for g := range 64 {
				callers.Go(func() {
					for i := range 10 {
						switch a := d.Admit(token, Endpoint(endpoint), start.Add(window+time.Duration(g+i)*time.Millisecond)); a.Verdict {
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
				t.Errorf("endpoint %d: got %d admitted and %d refused, want %d and the rest", endpoint, admitted.Load(), refused.Load(), want)
			}
		}
	}
	if got := d.store.reads.Load(); got != 1 {
		t.Errorf("got %d reads of the token, want 1", got)
	}
}

// TestRefusalsInScopeAreCounted holds that a 403 counts and a 429 comes before it.
func TestRefusalsInScopeAreCounted(t *testing.T) {
	d := newFixture(t, nil)
	now := time.Now()
	for name, token := range map[string]string{"scope": d.token("app", oauth.ViewUser), "approval": d.token("new", oauth.UserScopes)} {
		for i := range 60 {
			a := d.Admit(token, DetailedProfile, now)
			if (a.Verdict == RateLimited) != (i >= 50) {
				t.Fatalf("%s, request %d: got verdict %d", name, i+1, a.Verdict)
			}
		}
	}
}

// TestUnknownTokensMakeNoActor asks with a revoked token from many goroutines.
func TestUnknownTokensMakeNoActor(t *testing.T) {
	d := newFixture(t, nil)
	token := d.keys.newAccessToken(time.Now().Add(time.Hour), time.Now())
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() { wantVerdict(t, "unknown", d.Admit(token, BasicProfile, time.Now()), TokenInvalid) })
	}
	callers.Wait()
	if d.actors() != 0 {
		t.Errorf("got %d actors, want none", d.actors())
	}
}

func TestARevokedTokenIsRefusedAtOnce(t *testing.T) {
	d := newFixture(t, nil)
	var tokens []string
	for range 600 {
		token := d.token("app", oauth.ViewUser)
		wantVerdict(t, "before", d.Admit(token, BasicProfile, time.Now()), Admitted)
		tokens = append(tokens, token)
	}
	var hashes []oauth.Hash
	for _, token := range tokens[1:] {
		hash := oauth.HashOf(token)
		hashes = append(hashes, hash)
		d.store.change(func() { delete(d.store.tokens, hash) })
	}
	d.forget(hashes)
	for _, token := range tokens[1:] {
		wantVerdict(t, "revoked", d.Admit(token, BasicProfile, time.Now()), TokenInvalid)
	}
	wantVerdict(t, "the other", d.Admit(tokens[0], BasicProfile, time.Now()), Admitted)
	if d.actors() != 1 {
		t.Errorf("got %d actors, want 1", d.actors())
	}
}

// TestRevocationBetweenReadAndInsert ends a token when its row has been read and is not yet in the directory.
func TestRevocationBetweenReadAndInsert(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.ViewUser)
	once := sync.OnceFunc(func() { d.revoke(token) })
	d.store.after = func() { once() }
	wantVerdict(t, "revoked while it was loaded", d.Admit(token, BasicProfile, time.Now()), TokenInvalid)
	if got := d.store.reads.Load(); got != 2 || d.actors() != 0 {
		t.Errorf("got %d reads and %d actors, want 2 and none", got, d.actors())
	}
}

// TestChangeDuringReadIsReadAgain changes a user and a client when their rows have been read.
func TestChangeDuringReadIsReadAgain(t *testing.T) {
	d := newFixture(t, nil)
	reads := 0
	d.users.read = func(ctx context.Context, id int64) (user, error) {
		u, err := d.readUser(ctx, id)
		if reads++; reads == 1 {
			d.store.change(func() { d.store.users[7].Disabled = true })
			d.UserChanged(7, nil)
		}
		return u, err
	}
	wantVerdict(t, "user disabled during the read", d.Admit(d.token("app", oauth.ViewUser), BasicProfile, time.Now()), TokenInvalid)
	if reads != 2 {
		t.Errorf("got %d reads, want 2", reads)
	}
}

// TestRecordIsDroppedWhenUnused also makes sure that a record in use is kept.
func TestRecordIsDroppedWhenUnused(t *testing.T) {
	r := records[int64, user]{read: func(context.Context, int64) (user, error) { return user{}, nil }}
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

// TestChangesReachATokenInUse disables and enables user and client, approves the client and renames the user.
func TestChangesReachATokenInUse(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.UserScopes)
	wantVerdict(t, "at first", d.Admit(token, BasicProfile, time.Now()), Admitted)
	user := func(change func(*account.User)) {
		d.store.change(func() { change(d.store.users[7]) })
		d.UserChanged(7, nil)
	}
	user(func(u *account.User) { u.Disabled = true })
	a := d.Admit(token, BasicProfile, time.Now())
	wantVerdict(t, "user disabled", a, TokenInvalid)
	wantVerdict(t, "user disabled, again", d.Admit(token, BasicProfile, time.Now()), TokenInvalid)
	user(func(u *account.User) { u.Disabled, u.Name = false, "Bea" })
	a = d.Admit(token, BasicProfile, time.Now())
	wantVerdict(t, "user enabled", a, Admitted)
	if string(a.Profile) != string(d.store.users[7].AppendBasic(nil)) || a.Rate.Remaining != 98 {
		t.Errorf("got %s and %d left, want the new name and 98 left: a 401 is not counted", a.Profile, a.Rate.Remaining)
	}
	d.store.change(func() { delete(d.store.users, 7) })
	d.UserChanged(7, nil)
	wantVerdict(t, "user deleted", d.Admit(token, BasicProfile, time.Now()), TokenInvalid)
	if d.actors() != 0 {
		t.Errorf("got %d actors, want none", d.actors())
	}
}

// TestAsksAgainstStopsAndSweeps lets actors leave under those who ask: every ask is answered, and rightly.
func TestAsksAgainstStopsAndSweeps(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.ViewUser)
	hash := oauth.HashOf(token)
	now := time.Now()
	var callers, leavers sync.WaitGroup
	ended := make(chan struct{})
	leavers.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if a := d.directory.find(&hash); a != nil {
				a.mailbox.Tell(&sweep{now: now.Add(2 * time.Hour)})
			}
			d.forget([]oauth.Hash{hash})
		}
	})
	for range 16 {
		callers.Go(func() {
			for range 2000 {
				if a := d.Admit(token, BasicProfile, now); a.Verdict != Admitted && a.Verdict != RateLimited {
					t.Errorf("got verdict %d, want admitted or limited", a.Verdict)
					return
				}
			}
		})
	}
	callers.Wait()
	close(ended)
	leavers.Wait()
	d.revoke(token)
	wantVerdict(t, "revoked", d.Admit(token, BasicProfile, now), TokenInvalid)
}

// TestASharedStoreIsReadAgain changes the rows behind the back of the process, as another one does.
func TestASharedStoreIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, func(c *Config) { c.Shared = true })
		token := d.token("app", oauth.ViewUser)
		for range 10 {
			wantVerdict(t, "at first", d.Admit(token, BasicProfile, time.Now()), Admitted)
		}
		if got := d.store.reads.Load(); got != 1 {
			t.Errorf("got %d reads within a second, want 1", got)
		}
		d.store.change(func() { d.store.users[7].Disabled = true })
		time.Sleep(1001 * time.Millisecond)
		wantVerdict(t, "disabled elsewhere", d.Admit(token, BasicProfile, time.Now()), TokenInvalid)
		d.store.change(func() { d.store.users[7].Disabled = false })
		time.Sleep(1001 * time.Millisecond)
		if a := d.Admit(token, BasicProfile, time.Now()); a.Verdict != Admitted || a.Rate.Remaining != 89 {
			t.Errorf("got %+v, want the window kept over all reads", a)
		}
		d.store.change(func() { clear(d.store.tokens) })
		time.Sleep(1001 * time.Millisecond)
		wantVerdict(t, "revoked elsewhere", d.Admit(token, BasicProfile, time.Now()), TokenInvalid)
		if d.actors() != 0 {
			t.Errorf("got %d actors, want none", d.actors())
		}
	})
}

func TestAFailingStore(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.ViewUser)
	d.store.failing = fmt.Errorf("disk on fire")
	wantVerdict(t, "failing", d.Admit(token, BasicProfile, time.Now()), TryLater)
	d.store.failing = nil
	wantVerdict(t, "again", d.Admit(token, BasicProfile, time.Now()), Admitted)
}

// TestSilentStoreReleasesRequestsAtTheirDeadline has a store that does not respond for ten seconds.
func TestSilentStoreReleasesRequestsAtTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		d.store.after = func() { time.Sleep(10 * time.Second) }
		start := time.Now()
		var callers sync.WaitGroup
		for range 100 {
			token := d.token("app", oauth.ViewUser)
			for range 2 {
				callers.Go(func() { wantVerdict(t, "silent", d.Admit(token, BasicProfile, start), TryLater) })
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
	d := newFixture(t, nil)
	token := d.token("app", oauth.ViewUser)
	d.Admit(token, BasicProfile, time.Now())
	d.stopped.Store(true)
	wantVerdict(t, "stopped", d.Admit(token, BasicProfile, time.Now()), TryLater)
}

// TestRevokedActorHasStopped asks an actor after its token was revoked.
func TestRevokedActorHasStopped(t *testing.T) {
	d := newFixture(t, nil)
	token := d.token("app", oauth.ViewUser)
	wantVerdict(t, "in use", d.Admit(token, BasicProfile, time.Now()), Admitted)
	hash := oauth.HashOf(token)
	a := d.directory.find(&hash)
	d.revoke(token)
	if _, _, err := d.askToken(a, BasicProfile, time.Now()); !errors.Is(err, mailbox.ErrStopped) {
		t.Errorf("got %v, want %v", err, mailbox.ErrStopped)
	}
	if _, known := d.config.Actors.ProcessRegistry.Get(a.mailbox.PID()); known {
		t.Error("got the actor kept by the library")
	}
}

// TestOneLoadForAllWhoAsk holds the read up until all have come.
func TestOneLoadForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		d.store.after = func() { time.Sleep(100 * time.Millisecond) }
		token := d.token("app", oauth.ViewUser)
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() { wantVerdict(t, "loading", d.Admit(token, BasicProfile, time.Now()), Admitted) })
		}
		callers.Wait()
		if got := d.store.reads.Load(); got != 1 {
			t.Errorf("got %d reads, want 1", got)
		}
	})
}

// TestLoadsAreFew holds reads up and counts how many are under way.
func TestLoadsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, nil)
		var under, most atomic.Int64
		d.store.after = func() {
			n := under.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(100 * time.Millisecond)
			under.Add(-1)
		}
		var callers sync.WaitGroup
		for range 500 {
			token := d.token("app", oauth.ViewUser)
			callers.Go(func() { wantVerdict(t, "loading", d.Admit(token, BasicProfile, time.Now()), Admitted) })
		}
		callers.Wait()
		if most.Load() != loadLimit {
			t.Errorf("got %d reads at once, want %d", most.Load(), loadLimit)
		}
	})
}

// TestADirectoryShrinks when most of its actors have left.
func TestADirectoryShrinks(t *testing.T) {
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
