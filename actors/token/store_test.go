package token_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// hookedStore is the real store on SQLite, with the user 7 and no client. A test can pause its
// writer, count, and have its methods fail. Its methods are also what other processes call that
// share it.
type hookedStore struct {
	*sqlstore.Store
	t    testing.TB
	file string

	mu       sync.Mutex
	paused   bool
	queue    []oauth.Operation
	writes   int // operations, but for those that only record events
	recorded []audit.Event

	writeError   error  // of all operations, which are not executed then, and after others
	readError    error  // of reads of records
	followError  error  // of Ends and Changes
	keysError    error  // of Keys
	onClientRead func() // called after a client was read, before the reader gets it
	onGrantRead  func() // called before a code or a refresh token is read
	onKeysRead   func() // called after the keys were read, before the reader gets them

	userReads, keyReads, endsReads int
}

func newStore(t testing.TB) *hookedStore {
	t.Helper()
	s := &hookedStore{t: t, file: sqlitetest.File(t)}
	s.exec("UPDATE counters SET value = 6 WHERE name = 'user'")
	s.exec("UPDATE keys SET made = $1, starts = starts / made * $1", time.Now().UnixMilli())
	var err error
	s.Store, err = sqlstore.Open(context.Background(), sqlstore.Config{URL: "sqlite:" + s.file,
		Migrate: true, Logger: slog.New(slog.DiscardHandler), SweepInterval: time.Hour,
		WriteTimeout: time.Minute}) // of a busy machine
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	ann := account.User{Name: "Ann", Email: "ann@example.com"}
	if err := s.CreateUser(context.Background(), &ann); err != nil || ann.ID != 7 {
		t.Fatalf("got user %d, %v, want 7", ann.ID, err)
	}
	return s
}

// exec changes rows that no method of the store changes so.
func (s *hookedStore) exec(text string, args ...any) {
	s.t.Helper()
	db, err := sql.Open("sqlite", s.file)
	if err == nil {
		defer db.Close()
		_, err = db.Exec(text, args...)
	}
	if err != nil {
		s.t.Errorf("%s: %v", text, err)
	}
}

// locked calls f under the lock of the hooks.
func (s *hookedStore) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Submit implements oauth.Store.
func (s *hookedStore) Submit(op oauth.Operation) {
	s.mu.Lock()
	err, paused := s.writeError, s.paused
	switch record, ok := op.(*oauth.Record); {
	case ok:
		s.recorded = append(s.recorded, audit.Recorded(record.Context)...)
	case paused:
		s.queue = append(s.queue, op)
	case err == nil:
		s.writes++
	}
	s.mu.Unlock()
	switch {
	case paused:
	case err == nil:
		s.Store.Submit(op)
	case op.Take():
		op.Done(err)
	}
}

// pause queues operations until begin or flush.
func (s *hookedStore) pause() { s.locked(func() { s.paused = true }) }

// unpause ends the pause and returns what was queued.
func (s *hookedStore) unpause() (queue []oauth.Operation) {
	s.locked(func() { queue, s.queue, s.paused = s.queue, nil, false })
	return queue
}

// begin takes the queued redemptions and revocations of families, so that they can no longer be
// canceled, and ends the pause.
func (s *hookedStore) begin() []oauth.Operation {
	return slices.DeleteFunc(s.unpause(), func(op oauth.Operation) bool { return !op.Take() })
}

// finish executes what was begun, as copies, since the store does not take an operation again. When
// it returns, the operations have ended.
func (s *hookedStore) finish(begun []oauth.Operation) {
	for _, op := range begun {
		var err error
		switch op := op.(type) {
		case *oauth.Redeem:
			c := &oauth.Redeem{Code: op.Code, Now: op.Now, Family: op.Family, Refresh: op.Refresh}
			err = s.perform(c)
			op.ExchangeResult = c.ExchangeResult
		case *oauth.Revoke:
			c := &oauth.Revoke{FamilyID: op.FamilyID, Grant: op.Grant}
			err = s.perform(c)
			op.Ended = c.Ended
		}
		op.Done(err)
	}
}

// flush ends the pause and executes the queued operations.
func (s *hookedStore) flush() {
	for _, op := range s.unpause() {
		s.Submit(op)
	}
}

// perform executes an operation, as another process does.
func (s *hookedStore) perform(op oauth.Operation) error {
	done := make(chan error, 1)
	op.OnDone(func(err error) { done <- err })
	s.Store.Submit(op)
	return <-done
}

func (s *hookedStore) mustPerform(op oauth.Operation) {
	s.t.Helper()
	if err := s.perform(op); err != nil {
		s.t.Error(err)
	}
}

// changeUser changes user 7, as another process does.
func (s *hookedStore) changeUser(change func(*account.User)) {
	s.t.Helper()
	err := oauth.ErrConflict
	for errors.Is(err, oauth.ErrConflict) || errors.Is(err, account.ErrConflict) {
		var u *account.User
		if u, err = s.Store.User(context.Background(), 7); err == nil {
			change(u)
			err = s.UpdateUser(context.Background(), u)
		}
	}
	if err != nil {
		s.t.Errorf("change user: %v", err)
	}
}

// epochs returns the epoch of user 7, as a session has it.
func (s *hookedStore) epochs() oauth.Epochs {
	s.t.Helper()
	u, err := s.Store.User(context.Background(), 7)
	if err != nil {
		s.t.Fatal(err)
	}
	return oauth.Epochs{User: u.Epoch}
}

// noteUsers notes n changes of user 8, whom nobody knows.
func (s *hookedStore) noteUsers(n int) {
	s.t.Helper()
	s.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
INSERT INTO changes (number, kind, subject, client_id, user_id, expires)
SELECT value + i, 'user', '8', '', 0, $2 FROM n, counters WHERE name = 'change'`,
		n, time.Now().Add(oauth.ChangesKept).UnixMilli())
	s.exec("UPDATE counters SET value = value + $1 WHERE name = 'change'", n)
}

// lastChange returns the number of the last change.
func (s *hookedStore) lastChange() int64 {
	s.t.Helper()
	last, _, err := s.Store.Changes(context.Background(), math.MaxInt64, 0)
	if err != nil {
		s.t.Error(err)
	}
	return last
}

// failed returns the error that the test has set for reads of records.
func (s *hookedStore) failed() (err error) {
	s.locked(func() { err = s.readError })
	return err
}

// Client implements oauth.Store.
func (s *hookedStore) Client(ctx context.Context, id string) (*oauth.Client, error) {
	if err := s.failed(); err != nil {
		return nil, err
	}
	c, err := s.Store.Client(ctx, id)
	if s.onClientRead != nil {
		s.onClientRead()
	}
	return c, err
}

// AuthorizationCode implements oauth.Store.
func (s *hookedStore) AuthorizationCode(
	ctx context.Context, hash oauth.Hash,
) (*oauth.AuthorizationCode, error) {
	if s.onGrantRead != nil {
		s.onGrantRead()
	}
	if err := s.failed(); err != nil {
		return nil, err
	}
	return s.Store.AuthorizationCode(ctx, hash)
}

// RefreshToken implements oauth.Store.
func (s *hookedStore) RefreshToken(
	ctx context.Context, hash oauth.Hash,
) (*oauth.RefreshToken, error) {
	if s.onGrantRead != nil {
		s.onGrantRead()
	}
	if err := s.failed(); err != nil {
		return nil, err
	}
	return s.Store.RefreshToken(ctx, hash)
}

// User implements account.Store.
func (s *hookedStore) User(ctx context.Context, id int64) (*account.User, error) {
	s.locked(func() { s.userReads++ })
	if err := s.failed(); err != nil {
		return nil, err
	}
	return s.Store.User(ctx, id)
}

// Keys implements oauth.Store.
func (s *hookedStore) Keys(ctx context.Context, now time.Time) ([]oauth.Key, error) {
	keys, err := s.Store.Keys(ctx, now)
	var onKeysRead func()
	s.locked(func() {
		s.keyReads++
		onKeysRead = s.onKeysRead
		if s.keysError != nil {
			err = s.keysError
		}
	})
	if onKeysRead != nil {
		onKeysRead()
	}
	return keys, err
}

// RotateKeys implements oauth.Store.
func (s *hookedStore) RotateKeys(ctx context.Context, r oauth.KeyRotation) error {
	return cmp.Or(s.Store.RotateKeys(ctx, r), s.writeError)
}

// DeleteClient implements oauth.Store.
func (s *hookedStore) DeleteClient(ctx context.Context, id string) error {
	return cmp.Or(s.Store.DeleteClient(ctx, id), s.writeError)
}

// Ends implements oauth.Store.
func (s *hookedStore) Ends(
	ctx context.Context, now time.Time,
) (last int64, ends []oauth.End, err error) {
	s.locked(func() {
		s.endsReads++
		err = s.followError
	})
	if err != nil {
		return 0, nil, err
	}
	return s.Store.Ends(ctx, now)
}

// Changes implements oauth.Store.
func (s *hookedStore) Changes(
	ctx context.Context, after int64, limit int,
) (last int64, changes []oauth.Change, err error) {
	s.locked(func() { err = s.followError })
	if err != nil {
		return after, nil, err
	}
	return s.Store.Changes(ctx, after, limit)
}

// logBuffer keeps what is logged. It may be read while others write.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

// String returns what was logged.
func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// fixture is a Service on a hookedStore with one confidential client, which has all grants.
type fixture struct {
	*token.Service
	store  *hookedStore
	log    *logBuffer
	client *oauth.Client
	secret string

	system  *actor.ActorSystem
	change  func(*token.Config)
	stopped bool // the test has called Stop
}

func newFixture(t testing.TB, change func(*token.Config)) *fixture {
	t.Helper()
	f := start(t, newStore(t), change)
	f.client, f.secret = f.register(t, oauth.Client{
		Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant |
			oauth.ClientCredentialsGrant,
	})
	return f
}

// start starts a Service on a store.
func start(t testing.TB, store *hookedStore, change func(*token.Config)) *fixture {
	t.Helper()
	f := &fixture{store: store, log: &logBuffer{}, system: mailbox.NewSystem(), change: change}
	t.Cleanup(f.system.Shutdown)
	f.start(t)
	t.Cleanup(func() { f.stop(t) })
	return f
}

// start starts the Service.
func (f *fixture) start(t testing.TB) {
	t.Helper()
	config := token.Config{
		Actors: f.system,
		Tokens: f.store, Accounts: f.store, Logger: slog.New(slog.NewTextHandler(f.log, nil)),
		Metrics: prometheus.NewRegistry(),
		Lifetimes: oauth.Lifetimes{
			Code:          time.Minute,
			AccessToken:   time.Hour,
			RefreshToken:  24 * time.Hour,
			RefreshFamily: 48 * time.Hour,
			RefreshGrace:  10 * time.Second,
		},
	}
	if f.change != nil {
		f.change(&config)
	}
	var err error
	if f.Service, err = token.New(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	f.stopped = false
}

// stop stops the Service, unless it has stopped.
func (f *fixture) stop(t testing.TB) {
	t.Helper()
	if f.stopped {
		return
	}
	f.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := f.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// sleep stops some processes, and starts them again after a time. A time of hours costs less so, as
// a process that runs has things to do in each second.
func sleep(t testing.TB, processes []*fixture, d time.Duration) {
	t.Helper()
	for _, f := range processes {
		f.stop(t)
	}
	time.Sleep(d)
	for _, f := range processes {
		f.start(t)
	}
}

func (f *fixture) register(t testing.TB, c oauth.Client) (*oauth.Client, string) {
	t.Helper()
	c.ID, c.Secrets = "", nil // of a copied client
	created, secret, err := f.CreateClient(t.Context(), c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return created, secret
}

func (f *fixture) credentials() oauth.Credentials {
	return oauth.Credentials{ClientID: f.client.ID, Secret: f.secret}
}

// newCode returns a new authorization code of user 7 for view-user, without PKCE.
func (f *fixture) newCode(t testing.TB) string {
	t.Helper()
	code, fault := f.IssueCode(t.Context(), oauth.AuthorizationCode{
		ClientID: f.client.ID, UserID: 7, RedirectURI: "https://shop.example/cb",
		Scopes: oauth.ViewUser, Epochs: f.store.epochs(),
	}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

// ownRequest requests a token for the client itself.
func (f *fixture) ownRequest() *oauth.TokenRequest {
	return &oauth.TokenRequest{Credentials: f.credentials(), Grant: oauth.ClientCredentialsGrant}
}

func (f *fixture) codeRequest(code string) *oauth.TokenRequest {
	return &oauth.TokenRequest{
		Credentials: f.credentials(),
		Grant:       oauth.AuthorizationCodeGrant,
		Code:        code,
		RedirectURI: "https://shop.example/cb",
	}
}

func (f *fixture) refreshRequest(refresh string) *oauth.TokenRequest {
	return &oauth.TokenRequest{
		Credentials:  f.credentials(),
		Grant:        oauth.RefreshTokenGrant,
		RefreshToken: refresh,
	}
}

// newTokens redeems a new code.
func (f *fixture) newTokens(t testing.TB) *oauth.TokenResponse {
	t.Helper()
	return f.mustToken(t, f.codeRequest(f.newCode(t)))
}

func (f *fixture) mustToken(t testing.TB, r *oauth.TokenRequest) *oauth.TokenResponse {
	t.Helper()
	response, fault := f.Token(t.Context(), r, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return response
}

// wantFault serves a token request that must be refused with the error code want.
func (f *fixture) wantFault(
	t testing.TB, what string, r *oauth.TokenRequest, want oauth.Code,
) *oauth.Error {
	t.Helper()
	response, fault := f.Token(t.Context(), r, time.Now())
	if response != nil || fault == nil || fault.Code != want {
		t.Errorf("%s: got %+v, %v, want %s", what, response, fault, want)
		return &oauth.Error{}
	}
	return fault
}

func (f *fixture) wantVerdict(t testing.TB, what, bearer string, want token.Verdict) {
	t.Helper()
	if got := f.Admit(bearer, token.BasicProfile, time.Now()).Verdict; got != want {
		t.Errorf("%s: got verdict %d, want %d", what, got, want)
	}
}

func (f *fixture) updateClient(t *testing.T, change func(*oauth.Client)) {
	t.Helper()
	_, err := f.UpdateClient(t.Context(), f.client.ID, func(c *oauth.Client) error {
		change(c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// key returns the store's key of tokens with that number, or one that it does not have.
func (s *hookedStore) key(number uint16) *oauth.TokenKey {
	s.t.Helper()
	keys, err := s.Store.Keys(context.Background(), time.Time{})
	if err != nil {
		s.t.Error(err)
	}
	for _, key := range keys {
		if key.Purpose == oauth.TokenKeys && key.Number == number {
			return oauth.NewTokenKey(&key)
		}
	}
	return oauth.NewTokenKey(&oauth.Key{Purpose: oauth.TokenKeys, Number: number})
}

// open returns what an access token says.
func (f *fixture) open(t testing.TB, bearer string) oauth.AccessToken {
	t.Helper()
	_, number, _ := oauth.PeekAccessToken(bearer)
	says, ok := f.store.key(number).Open(bearer)
	if !ok {
		t.Fatalf("got the token %q, which key %d has not sealed", bearer, number)
	}
	return says
}

// seal seals an access token of the client and user 7 for an hour, as another process does. It has
// their epochs of now, unless change sets others.
func (f *fixture) seal(change func(*oauth.AccessToken)) string {
	now := time.Now().Unix()
	client, err := f.store.Store.Client(context.Background(), f.client.ID)
	if err != nil {
		f.store.t.Fatal(err)
	}
	says := oauth.AccessToken{
		ClientID: f.client.ID, UserID: 7, Scopes: oauth.UserScopes, Issued: now, Expires: now + 3600,
		Epochs: f.store.epochs(),
	}
	says.Epochs.Client = client.Epoch
	if change != nil {
		change(&says)
	}
	keys, err := f.store.Store.Keys(context.Background(), time.Time{})
	i := slices.IndexFunc(keys, func(k oauth.Key) bool { return k.Purpose == oauth.TokenKeys })
	if err != nil || i < 0 {
		f.store.t.Fatalf("got keys %v, %v, want one of tokens", keys, err)
	}
	return oauth.NewTokenKey(&keys[i]).Seal(&says)
}
