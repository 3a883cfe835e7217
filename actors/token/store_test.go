package token_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
)

// accountStore names the embedded field, whose methods these tests do not call.
type accountStore = account.Store

// fakeStore keeps records in memory. A test can pause its writer: operations queue up, and flush
// runs them in one batch.
type fakeStore struct {
	accountStore

	mu       sync.Mutex
	clients  map[string]*oauth.Client
	codes    map[oauth.Hash]*oauth.AuthorizationCode
	families map[string]*oauth.Family
	refresh  map[oauth.Hash]*oauth.RefreshToken
	access   map[oauth.Hash]*oauth.AccessToken
	users    map[int64]*account.User
	paused   bool
	queue    []oauth.Operation
	writes   int // operations that were executed

	writeError   error  // of all operations, which are not executed then
	readError    error  // of all reads
	onClientRead func() // called after a client was read, before the reader gets it

	keys      oauth.Keys // after a rotation
	keysInUse bool       // a rotation is refused
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		clients: map[string]*oauth.Client{}, codes: map[oauth.Hash]*oauth.AuthorizationCode{},
		families: map[string]*oauth.Family{},
		refresh:  map[oauth.Hash]*oauth.RefreshToken{}, access: map[oauth.Hash]*oauth.AccessToken{},
		users: map[int64]*account.User{7: {ID: 7, Name: "Ann", ServiceID: "s"}},
	}
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
	s.mu.Lock()
	err := s.writeError
	for _, op := range ops {
		if err == nil {
			s.execute(op)
			s.writes++
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
	case *oauth.Issue:
		s.access[op.Token.Hash] = &op.Token
	case *oauth.Redeem:
		s.redeem(op)
	case *oauth.Rotate:
		s.rotate(op)
	case *oauth.Revoke:
		if op.Access != nil {
			op.Revoked = s.deleteTokens(func(t *oauth.AccessToken) bool {
				return t.Hash == *op.Access
			})
		} else {
			op.Revoked = s.revokeFamily(op.FamilyID)
		}
	}
}

func (s *fakeStore) redeem(op *oauth.Redeem) {
	code := s.codes[op.Code]
	switch {
	case !code.Used.IsZero():
		op.Outcome, op.Revoked = oauth.OutcomeReused, s.revokeFamily(code.FamilyID)
	case s.users[code.UserID] == nil || s.users[code.UserID].Disabled ||
		!op.Now.Before(code.Expires):
		op.Outcome = oauth.OutcomeGone
	default:
		used, family := *code, op.Family
		used.Used, used.FamilyID = op.Now, family.ID
		s.codes[op.Code], s.families[family.ID] = &used, &family
		s.access[op.Access.Hash] = &op.Access
		if op.Refresh != nil {
			s.refresh[*op.Refresh] = &oauth.RefreshToken{
				Hash:       *op.Refresh,
				Generation: 1,
				Family:     oauth.Family{ID: family.ID},
			}
		}
		op.Outcome = oauth.OutcomeDone
	}
}

func (s *fakeStore) rotate(op *oauth.Rotate) {
	f := s.families[op.FamilyID]
	switch inGrace := op.Now.Sub(f.Advanced) < op.Grace; {
	case f.Revoked || !op.Now.Before(f.Expires) || s.users[f.UserID].Disabled:
		op.Outcome = oauth.OutcomeGone
		return
	case op.Generation == f.Generation:
		f.Generation, f.Advanced = f.Generation+1, op.Now
	case op.Generation+1 != f.Generation || !inGrace:
		op.Outcome, op.Revoked = oauth.OutcomeReused, s.revokeFamily(f.ID)
		return
	}
	f.Expires = op.Expires
	s.access[op.Access.Hash] = &op.Access
	s.refresh[op.Refresh] = &oauth.RefreshToken{
		Hash:       op.Refresh,
		Generation: f.Generation,
		Family:     oauth.Family{ID: f.ID},
	}
	op.Outcome = oauth.OutcomeDone
}

func (s *fakeStore) revokeFamily(id string) []oauth.Hash {
	s.families[id].Revoked = true
	return s.deleteTokens(func(t *oauth.AccessToken) bool { return t.FamilyID == id })
}

// deleteTokens deletes the access tokens that match and returns their hashes.
func (s *fakeStore) deleteTokens(match func(*oauth.AccessToken) bool) (hashes []oauth.Hash) {
	for hash, row := range s.access {
		if match(row) {
			delete(s.access, hash)
			hashes = append(hashes, hash)
		}
	}
	return hashes
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

func (s *fakeStore) AccessToken(_ context.Context, hash oauth.Hash) (*oauth.AccessToken, error) {
	return find(s, s.access, hash)
}

func (s *fakeStore) AccessTokenKeys(context.Context) (oauth.Keys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys != (oauth.Keys{}) {
		return s.keys, nil
	}
	return oauth.Keys{Current: [32]byte{1}}, nil
}

func (s *fakeStore) RotateKeys(_ context.Context, now, _ time.Time) (oauth.Keys, error) {
	if s.keysInUse {
		return oauth.Keys{}, oauth.ErrKeysInUse
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = oauth.Keys{Current: [32]byte{2}, Previous: [32]byte{1}, Made: now}
	return s.keys, nil
}

func (s *fakeStore) User(_ context.Context, id int64) (*account.User, error) {
	u, err := find(s, s.users, id)
	if err != nil {
		return nil, account.ErrNotFound
	}
	return u, nil
}

func (s *fakeStore) CreateClient(_ context.Context, c *oauth.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c.ID] = c
	return s.writeError
}

func (s *fakeStore) UpdateClient(_ context.Context, c *oauth.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeError == nil {
		s.clients[c.ID] = c
	}
	return s.writeError
}

func (s *fakeStore) DeleteClient(_ context.Context, id string) ([]oauth.Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[id] == nil {
		return nil, oauth.ErrNotFound
	}
	delete(s.clients, id)
	return s.deleteTokens(func(t *oauth.AccessToken) bool { return t.ClientID == id }), nil
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

// fixture is a Service on a fakeStore with one confidential client, which has all grants.
type fixture struct {
	*token.Service
	store  *fakeStore
	log    *strings.Builder
	client *oauth.Client
	secret string

	stopped bool // the test has called Stop
}

func newFixture(t testing.TB, change func(*token.Config)) *fixture {
	t.Helper()
	f := &fixture{store: newFakeStore(), log: &strings.Builder{}}
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
	f.client, f.secret = f.register(t, oauth.Client{
		Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant |
			oauth.ClientCredentialsGrant,
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
