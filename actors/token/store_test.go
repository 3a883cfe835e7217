package token_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// accountStore and others name the embedded fields, whose methods these tests do not call.
type (
	accountStore  = account.Store
	deviceStore   = oauth.DeviceStore
	resourceStore = oauth.ResourceStore
)

// fakeStore keeps records in memory. A test can pause its writer: operations queue up, and flush
// runs them in one batch. Its methods are also what other processes call that share it.
type fakeStore struct {
	accountStore
	deviceStore
	resourceStore

	writer   sync.Mutex // held while operations are executed and end, in their order
	mu       sync.Mutex
	clients  map[string]*oauth.Client
	codes    map[oauth.Hash]*oauth.AuthorizationCode
	families map[uuid.UUID]*oauth.Family
	refresh  map[oauth.Hash]*oauth.RefreshToken
	users    map[int64]*account.User
	keys     map[oauth.Purpose][]oauth.Key
	ended    map[oauth.TokenID]bool
	proofs   map[oauth.Hash]bool
	changes  []oauth.Change
	last     int64 // number of the last change
	paused   bool
	queue    []oauth.Operation
	writes   int // operations that were executed, but for those that only record events
	recorded []audit.Event
	epochs   int // epochs that were given

	writeError   error  // of all operations, which are not executed then
	readError    error  // of reads of records
	followError  error  // of Ends and Changes
	keysError    error  // of Keys
	onClientRead func() // called after a client was read, before the reader gets it
	onKeysRead   func() // called after the keys were read, before the reader gets them

	clientReads, userReads, keyReads, endsReads int
}

func newFakeStore() *fakeStore {
	s := &fakeStore{
		clients: map[string]*oauth.Client{}, codes: map[oauth.Hash]*oauth.AuthorizationCode{},
		families: map[uuid.UUID]*oauth.Family{}, refresh: map[oauth.Hash]*oauth.RefreshToken{},
		keys: map[oauth.Purpose][]oauth.Key{}, ended: map[oauth.TokenID]bool{},
		proofs: map[oauth.Hash]bool{},
	}
	s.users = map[int64]*account.User{7: {ID: 7, Name: "Ann", ServiceID: "s", Epoch: s.epoch(0)}}
	for _, purpose := range oauth.Purposes {
		s.keys[purpose] = []oauth.Key{{
			Purpose: purpose, Number: 1, Secret: [32]byte{1}, Made: time.Now().Add(-time.Hour),
		}}
	}
	return s
}

// RegisterClient implements oauth.Store.
func (s *fakeStore) RegisterClient(ctx context.Context, c *oauth.Client, _ int) error {
	return s.CreateClient(ctx, c)
}

// SettledClients implements oauth.Store.
func (s *fakeStore) SettledClients(
	ctx context.Context, after string, limit int,
) ([]*oauth.Client, error) {
	return s.Clients(ctx, after, limit)
}

// EndClients implements oauth.Store.
func (s *fakeStore) EndClients(context.Context, time.Time) ([]oauth.EndedClient, error) {
	return nil, nil
}

// UseAssertion implements oauth.Store.
func (s *fakeStore) UseAssertion(_ context.Context, replay oauth.Hash, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proofs[replay] {
		return oauth.ErrConflict
	}
	s.proofs[replay] = true
	return nil
}

// epoch returns the epoch after former.
func (s *fakeStore) epoch(former int64) int64 {
	s.epochs++
	return max(former+1, time.Now().UnixMicro())
}

// note tells other processes of a change. The store is locked.
func (s *fakeStore) note(c oauth.Change) {
	s.last++
	c.Number = s.last
	s.changes = append(s.changes, c)
}

// locked calls change under the store's lock.
func (s *fakeStore) locked(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Submit implements oauth.Store.
func (s *fakeStore) Submit(op oauth.Operation) {
	s.mu.Lock()
	s.queue = append(s.queue, op)
	paused := s.paused
	s.mu.Unlock()
	if !paused {
		s.flush()
	}
}

// pause queues operations until begin or flush.
func (s *fakeStore) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
}

// begin takes the queued operations, so that they can no longer be canceled, and ends the pause.
func (s *fakeStore) begin() []oauth.Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := slices.DeleteFunc(s.queue, func(op oauth.Operation) bool { return !op.Take() })
	s.queue, s.paused = nil, false
	return begun
}

// finish executes operations in order and reports their end.
func (s *fakeStore) finish(ops []oauth.Operation) {
	s.writer.Lock()
	defer s.writer.Unlock()
	s.mu.Lock()
	err := s.writeError
	for _, op := range ops {
		if err == nil {
			s.execute(op)
			if _, ok := op.(*oauth.Record); !ok {
				s.writes++
			}
		}
	}
	s.mu.Unlock()
	for _, op := range ops {
		op.Done(err)
	}
}

// flush begins and finishes the queued operations.
func (s *fakeStore) flush() { s.finish(s.begin()) }

func (s *fakeStore) execute(op oauth.Operation) {
	switch op := op.(type) {
	case *oauth.SaveCode:
		s.codes[op.Code.Hash] = &op.Code
	case *oauth.Redeem:
		s.redeem(op)
	case *oauth.Rotate:
		s.rotate(op)
	case *oauth.Revoke:
		s.revoke(op)
	case *oauth.Record:
		s.recorded = append(s.recorded, audit.Recorded(op.Context)...)
	}
}

func (s *fakeStore) revoke(op *oauth.Revoke) {
	switch {
	case op.Token != nil:
		if op.ByEpoch {
			s.newUserEpoch(op.Token.UserID)
			op.Ended = []oauth.End{{UserID: op.Token.UserID}}
			return
		}
		op.Ended = s.endToken(op.Token)
	case op.FamilyID != uuid.Nil:
		op.Ended = s.revokeFamily(op.FamilyID)
	case op.UserID != 0:
		s.newUserEpoch(op.UserID)
	case op.ClientID != "":
		changed := *s.clients[op.ClientID]
		changed.Epoch = s.epoch(changed.Epoch)
		s.clients[op.ClientID] = &changed
		s.note(oauth.Change{ClientID: op.ClientID})
	case op.Consent != nil:
		for id, f := range s.families {
			if f.UserID == op.Consent.UserID && f.ClientID == op.Consent.ClientID {
				op.Ended = append(op.Ended, s.revokeFamily(id)...)
			}
		}
	}
}

func (s *fakeStore) newUserEpoch(id int64) {
	s.changeUser(id, func(u *account.User) { u.Epoch = s.epoch(u.Epoch) })
}

// changeUser changes a user. The store is locked.
func (s *fakeStore) changeUser(id int64, change func(*account.User)) {
	changed := *s.users[id]
	change(&changed)
	s.users[id] = &changed
	s.note(oauth.Change{UserID: id})
}

func (s *fakeStore) endToken(t *oauth.TokenEnd) []oauth.End {
	if s.ended[t.ID] {
		return nil
	}
	s.ended[t.ID] = true
	return s.end(oauth.End{Token: t.ID, ClientID: t.ClientID, Expires: t.Expires})
}

func (s *fakeStore) end(e oauth.End) []oauth.End {
	s.note(oauth.Change{End: &e})
	return []oauth.End{e}
}

func (s *fakeStore) revokeFamily(id uuid.UUID) []oauth.End {
	f := s.families[id]
	if f.Revoked {
		return nil
	}
	f.Revoked = true
	return s.end(oauth.End{FamilyID: id, Expires: f.AccessExpires})
}

func (s *fakeStore) redeem(op *oauth.Redeem) {
	code := s.codes[op.Code]
	client, user := s.clients[code.ClientID], s.users[code.UserID]
	switch {
	case !code.Used.IsZero():
		op.Outcome, op.Ended = oauth.OutcomeReused, s.revokeFamily(code.FamilyID)
	case user == nil || user.Disabled || client == nil || !op.Now.Before(code.Expires):
		op.Outcome = oauth.OutcomeGone
	default:
		used, family := *code, op.Family
		used.Used, used.FamilyID = op.Now, family.ID
		s.codes[op.Code], s.families[family.ID] = &used, &family
		if op.Refresh != nil {
			s.refresh[*op.Refresh] = &oauth.RefreshToken{
				Hash: *op.Refresh, Generation: 1, Family: oauth.Family{ID: family.ID},
			}
		}
		op.Outcome = oauth.OutcomeDone
		op.Epochs = oauth.Epochs{Client: client.Epoch, User: user.Epoch}
	}
}

func (s *fakeStore) rotate(op *oauth.Rotate) {
	f := s.families[op.FamilyID]
	client, user := s.clients[f.ClientID], s.users[f.UserID]
	switch inGrace := op.Now.Sub(f.Advanced) < op.Grace; {
	case f.Revoked || !op.Now.Before(f.Expires) || user.Disabled || client == nil:
		op.Outcome = oauth.OutcomeGone
		return
	case op.Generation == f.Generation:
		f.Generation, f.Advanced = f.Generation+1, op.Now
	case op.Generation+1 != f.Generation || !inGrace:
		op.Outcome, op.Ended = oauth.OutcomeReused, s.revokeFamily(f.ID)
		return
	}
	f.Expires = op.Expires
	if op.AccessExpires.After(f.AccessExpires) {
		f.AccessExpires = op.AccessExpires
	}
	s.refresh[op.Refresh] = &oauth.RefreshToken{
		Hash: op.Refresh, Generation: f.Generation, Family: oauth.Family{ID: f.ID},
	}
	op.Outcome = oauth.OutcomeDone
	op.Epochs = oauth.Epochs{Client: client.Epoch, User: user.Epoch}
}

// put replaces a user, whose epoch stays.
func (s *fakeStore) put(u account.User) {
	s.locked(func() {
		u.Epoch = s.users[u.ID].Epoch
		s.users[u.ID] = &u
	})
}

// find returns a copy of a record, or oauth.ErrNotFound.
func find[K comparable, T any](s *fakeStore, records map[K]*T, key K) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readError != nil {
		return nil, s.readError
	}
	if r := records[key]; r != nil {
		found := *r
		return &found, nil
	}
	return nil, oauth.ErrNotFound
}

func (s *fakeStore) Client(_ context.Context, id string) (*oauth.Client, error) {
	c, err := find(s, s.clients, id)
	s.locked(func() { s.clientReads++ })
	if s.onClientRead != nil {
		s.onClientRead()
	}
	return c, err
}

func (s *fakeStore) AuthorizationCode(
	_ context.Context, hash oauth.Hash,
) (*oauth.AuthorizationCode, error) {
	return find(s, s.codes, hash)
}

func (s *fakeStore) RefreshToken(_ context.Context, hash oauth.Hash) (*oauth.RefreshToken, error) {
	found, err := find(s, s.refresh, hash)
	if err != nil {
		return nil, err
	}
	f, err := find(s, s.families, found.Family.ID)
	if err != nil {
		return nil, err
	}
	found.Family = *f
	return found, nil
}

// Keys implements oauth.Store.
func (s *fakeStore) Keys(_ context.Context, now time.Time) (keys []oauth.Key, err error) {
	s.mu.Lock()
	for _, purpose := range oauth.AllPurposes {
		keys = append(keys, s.liveKeys(purpose, now)...)
	}
	err = s.keysError
	onKeysRead := s.onKeysRead
	s.keyReads++
	s.mu.Unlock()
	if onKeysRead != nil {
		onKeysRead()
	}
	return keys, err
}

func (s *fakeStore) liveKeys(purpose oauth.Purpose, now time.Time) (live []oauth.Key) {
	for _, k := range s.keys[purpose] {
		if k.Expires.IsZero() || k.Expires.After(now) {
			live = append(live, k)
		}
	}
	return live
}

// ListKeys implements oauth.Store.
func (s *fakeStore) ListKeys(context.Context) (list []oauth.KeyInfo, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, purpose := range oauth.AllPurposes {
		for _, k := range s.keys[purpose] {
			list = append(list, oauth.KeyInfo{
				Purpose: purpose, Number: k.Number, Made: k.Made, Expires: k.Expires,
			})
		}
	}
	return list, nil
}

// RotateKeys implements oauth.Store. The first byte of a key's secret is its number.
func (s *fakeStore) RotateKeys(_ context.Context, r oauth.KeyRotation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	former := s.liveKeys(r.Purpose, r.Now)
	number := uint16(1)
	if len(former) > 0 {
		number = former[0].Number + 1
	}
	signing := r.Purpose.IsSigning() && len(former) > 0
	early := signing && former[0].Starts.After(r.Now) && !r.Starts.Before(former[0].Starts)
	switch {
	case r.Drop:
		former = nil
	case len(former) > 1 && !signing, signing && r.First, early:
		return oauth.ErrKeysInUse
	case len(former) > 0:
		former[0].Expires = r.Expires
	}
	made := oauth.Key{
		Purpose: r.Purpose, Number: number, Secret: [32]byte{byte(number), byte(number >> 8)},
		Made: r.Now, Private: r.Private, Starts: r.Starts,
	}
	s.keys[r.Purpose] = append([]oauth.Key{made}, former...)
	s.note(oauth.Change{Keys: r.Purpose})
	return s.writeError
}

// Ends implements oauth.Store.
func (s *fakeStore) Ends(
	_ context.Context, now time.Time,
) (last int64, ends []oauth.End, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endsReads++
	for _, c := range s.changes {
		if c.End != nil && c.End.Expires.After(now) {
			ends = append(ends, *c.End)
		}
	}
	return s.last, ends, s.followError
}

// Changes implements oauth.Store.
func (s *fakeStore) Changes(
	_ context.Context, after int64, limit int,
) (last int64, changes []oauth.Change, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes {
		if c.Number > after && len(changes) < limit {
			changes = append(changes, c)
		}
	}
	return s.last, changes, s.followError
}

// User implements account.Store.
func (s *fakeStore) User(_ context.Context, id int64) (*account.User, error) {
	s.locked(func() { s.userReads++ })
	u, err := find(s, s.users, id)
	if errors.Is(err, oauth.ErrNotFound) {
		return nil, account.ErrNotFound
	}
	return u, err
}

// CreateClient implements oauth.Store.
func (s *fakeStore) CreateClient(_ context.Context, c *oauth.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Epoch = s.epoch(c.Epoch)
	s.clients[c.ID] = c
	return s.writeError
}

// UpdateClient implements oauth.Store.
func (s *fakeStore) UpdateClient(_ context.Context, c *oauth.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeError == nil {
		s.clients[c.ID] = c
		s.note(oauth.Change{ClientID: c.ID})
	}
	return s.writeError
}

// DeleteClient implements oauth.Store.
func (s *fakeStore) DeleteClient(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[id] == nil {
		return oauth.ErrNotFound
	}
	delete(s.clients, id)
	s.note(oauth.Change{ClientID: id})
	return nil
}

func (s *fakeStore) Clients(
	_ context.Context, after string, limit int,
) (list []*oauth.Client, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.clients)) {
		if id > after && len(list) < limit {
			list = append(list, s.clients[id])
		}
	}
	return list, nil
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

// fixture is a Service on a fakeStore with one confidential client, which has all grants.
type fixture struct {
	*token.Service
	store  *fakeStore
	log    *logBuffer
	client *oauth.Client
	secret string

	stopped bool // the test has called Stop
}

func newFixture(t testing.TB, change func(*token.Config)) *fixture {
	t.Helper()
	f := start(t, newFakeStore(), change)
	f.client, f.secret = f.register(t, oauth.Client{
		Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant |
			oauth.ClientCredentialsGrant,
	})
	return f
}

// start starts a Service on a store.
func start(t testing.TB, store *fakeStore, change func(*token.Config)) *fixture {
	t.Helper()
	f := &fixture{store: store, log: &logBuffer{}}
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	config := token.Config{
		Actors: system,
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
	if change != nil {
		change(&config)
	}
	var err error
	if f.Service, err = token.New(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if f.stopped {
			return
		}
		if err := f.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return f
}

func (f *fixture) register(t testing.TB, c oauth.Client) (*oauth.Client, string) {
	t.Helper()
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
		Scopes: oauth.ViewUser,
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

// key returns the store's key with that number.
func (s *fakeStore) key(number uint16) *oauth.TokenKey {
	return oauth.NewTokenKey(&oauth.Key{
		Purpose: oauth.TokenKeys, Number: number, Secret: [32]byte{byte(number), byte(number >> 8)},
	})
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
	f.store.mu.Lock()
	now := time.Now().Unix()
	says := oauth.AccessToken{
		ClientID: f.client.ID, UserID: 7, Scopes: oauth.UserScopes, Issued: now, Expires: now + 3600,
		Epochs: oauth.Epochs{
			Client: f.store.clients[f.client.ID].Epoch, User: f.store.users[7].Epoch,
		},
	}
	number := f.store.keys[oauth.TokenKeys][0].Number
	f.store.mu.Unlock()
	if change != nil {
		change(&says)
	}
	return f.store.key(number).Seal(&says)
}
