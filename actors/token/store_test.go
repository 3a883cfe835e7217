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

// restOfAccounts is what these tests do not need of a store.
type restOfAccounts = account.Store

// heldStore is a store whose writer the test can hold: operations wait then, and go out together.
type heldStore struct {
	restOfAccounts

	mu       sync.Mutex
	clients  map[string]*oauth.Client
	codes    map[oauth.Hash]*oauth.AuthorizationCode
	families map[string]*oauth.Family
	refresh  map[oauth.Hash]*oauth.RefreshToken
	access   map[oauth.Hash]*oauth.AccessToken
	users    map[int64]*account.User
	held     bool
	waiting  []oauth.Operation
	writes   int    // operations that were executed
	failing  error  // what operations end with instead
	readable error  // what reads end with instead
	between  func() // runs between the read of a client and its answer

	keys      oauth.Keys // once rotated
	keysInUse bool
}

func newHeldStore() *heldStore {
	return &heldStore{
		clients: map[string]*oauth.Client{}, codes: map[oauth.Hash]*oauth.AuthorizationCode{}, families: map[string]*oauth.Family{},
		refresh: map[oauth.Hash]*oauth.RefreshToken{}, access: map[oauth.Hash]*oauth.AccessToken{},
		users: map[int64]*account.User{7: {ID: 7, Name: "Ann", ServiceID: "s"}},
	}
}

// Submit implements oauth.Store.
func (s *heldStore) Submit(op oauth.Operation) {
	s.mu.Lock()
	s.waiting = append(s.waiting, op)
	held := s.held
	s.mu.Unlock()
	if !held {
		s.flush()
	}
}

// hold keeps operations waiting until flush.
func (s *heldStore) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

// take begins what waits; end executes it in order and tells of it.
func (s *heldStore) take() []oauth.Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := slices.DeleteFunc(s.waiting, func(op oauth.Operation) bool { return !op.Take() })
	s.waiting, s.held = nil, false
	return taken
}

func (s *heldStore) end(ops []oauth.Operation) {
	s.mu.Lock()
	err := s.failing
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

func (s *heldStore) flush() { s.end(s.take()) }

func (s *heldStore) execute(op oauth.Operation) {
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
			op.Revoked = s.drop(func(t *oauth.AccessToken) bool { return t.Hash == *op.Access })
		} else {
			op.Revoked = s.endFamily(op.FamilyID)
		}
	}
}

func (s *heldStore) redeem(op *oauth.Redeem) {
	code := s.codes[op.Code]
	switch {
	case !code.Used.IsZero():
		op.Outcome, op.Revoked = oauth.OutcomeReused, s.endFamily(code.FamilyID)
	case s.users[code.UserID] == nil || s.users[code.UserID].Disabled || !op.Now.Before(code.Expires):
		op.Outcome = oauth.OutcomeGone
	default:
		used, family := *code, op.Family
		used.Used, used.FamilyID = op.Now, family.ID
		s.codes[op.Code], s.families[family.ID], s.access[op.Access.Hash] = &used, &family, &op.Access
		if op.Refresh != nil {
			s.refresh[*op.Refresh] = &oauth.RefreshToken{Hash: *op.Refresh, Generation: 1, Family: oauth.Family{ID: family.ID}}
		}
		op.Outcome = oauth.OutcomeDone
	}
}

func (s *heldStore) rotate(op *oauth.Rotate) {
	f := s.families[op.FamilyID]
	switch graced := op.Now.Sub(f.Advanced) < op.Grace; {
	case f.Revoked || !op.Now.Before(f.Expires) || s.users[f.UserID].Disabled:
		op.Outcome = oauth.OutcomeGone
		return
	case op.Generation == f.Generation:
		f.Generation, f.Advanced = f.Generation+1, op.Now
	case op.Generation+1 != f.Generation || !graced:
		op.Outcome, op.Revoked = oauth.OutcomeReused, s.endFamily(f.ID)
		return
	}
	f.Expires = op.Expires
	s.access[op.Access.Hash] = &op.Access
	s.refresh[op.Refresh] = &oauth.RefreshToken{Hash: op.Refresh, Generation: f.Generation, Family: oauth.Family{ID: f.ID}}
	op.Outcome = oauth.OutcomeDone
}

func (s *heldStore) endFamily(id string) []oauth.Hash {
	s.families[id].Revoked = true
	return s.drop(func(t *oauth.AccessToken) bool { return t.FamilyID == id })
}

func (s *heldStore) drop(ends func(*oauth.AccessToken) bool) (hashes []oauth.Hash) {
	for hash, bearer := range s.access {
		if ends(bearer) {
			delete(s.access, hash)
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

func find[K comparable, T any](s *heldStore, records map[K]*T, key K) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readable != nil {
		return nil, s.readable
	}
	if r := records[key]; r != nil {
		found := *r
		return &found, nil
	}
	return nil, oauth.ErrNotFound
}

func (s *heldStore) Client(_ context.Context, id string) (*oauth.Client, error) {
	c, err := find(s, s.clients, id)
	if s.between != nil {
		s.between()
	}
	return c, err
}

func (s *heldStore) AuthorizationCode(_ context.Context, hash oauth.Hash) (*oauth.AuthorizationCode, error) {
	return find(s, s.codes, hash)
}

func (s *heldStore) RefreshToken(_ context.Context, hash oauth.Hash) (*oauth.RefreshToken, error) {
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

func (s *heldStore) AccessToken(_ context.Context, hash oauth.Hash) (*oauth.AccessToken, error) {
	return find(s, s.access, hash)
}

func (s *heldStore) AccessTokenKeys(context.Context) (oauth.Keys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys != (oauth.Keys{}) {
		return s.keys, nil
	}
	return oauth.Keys{Current: [32]byte{1}}, nil
}

func (s *heldStore) RotateKeys(_ context.Context, now, _ time.Time) (oauth.Keys, error) {
	if s.keysInUse {
		return oauth.Keys{}, oauth.ErrKeysInUse
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = oauth.Keys{Current: [32]byte{2}, Previous: [32]byte{1}, Made: now}
	return s.keys, nil
}

func (s *heldStore) User(_ context.Context, id int64) (*account.User, error) {
	u, err := find(s, s.users, id)
	if err != nil {
		return nil, account.ErrNotFound
	}
	return u, nil
}

func (s *heldStore) CreateClient(_ context.Context, c *oauth.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c.ID] = c
	return s.failing
}

func (s *heldStore) UpdateClient(_ context.Context, c *oauth.Client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == nil {
		s.clients[c.ID] = c
	}
	return s.failing
}

func (s *heldStore) DeleteClient(_ context.Context, id string) ([]oauth.Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[id] == nil {
		return nil, oauth.ErrNotFound
	}
	delete(s.clients, id)
	return s.drop(func(t *oauth.AccessToken) bool { return t.ClientID == id }), nil
}

func (s *heldStore) Clients(_ context.Context, after string, limit int) (list []*oauth.Client, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.clients)) {
		if id > after && len(list) < limit {
			list = append(list, s.clients[id])
		}
	}
	return list, nil
}

// fixture is an Identity on a vault, with a confidential client that may do everything a client may.
type fixture struct {
	*token.Service
	store  *heldStore
	log    *strings.Builder
	client *oauth.Client
	secret string

	stopped bool // by the test itself
}

func newFixture(t testing.TB, change func(*token.Config)) *fixture {
	t.Helper()
	h := &fixture{store: newHeldStore(), log: &strings.Builder{}}
	system := mailbox.NewSystem()
	t.Cleanup(system.Shutdown)
	config := token.Config{
		Actors: system,
		Tokens: h.store, Accounts: h.store, Logger: slog.New(slog.NewTextHandler(h.log, nil)),
		Metrics: prometheus.NewRegistry(),
		Lifetimes: oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: 24 * time.Hour,
			RefreshFamily: 48 * time.Hour, RefreshGrace: 10 * time.Second},
	}
	if change != nil {
		change(&config)
	}
	var err error
	if h.Service, err = token.New(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if h.stopped {
			return
		}
		if err := h.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	h.client, h.secret = h.register(t, oauth.Client{
		Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant | oauth.ClientCredentialsGrant,
	})
	return h
}

func (h *fixture) register(t testing.TB, c oauth.Client) (*oauth.Client, string) {
	t.Helper()
	created, secret, err := h.CreateClient(t.Context(), c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return created, secret
}

func (h *fixture) credentials() oauth.Credentials {
	return oauth.Credentials{ClientID: h.client.ID, Secret: h.secret}
}

// code returns a new code of the user 7 for view-user, without PKCE.
func (h *fixture) code(t testing.TB) string {
	t.Helper()
	code, fault := h.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: h.client.ID, UserID: 7,
		RedirectURI: "https://shop.example/cb", Scopes: oauth.ViewUser}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

func (h *fixture) codeRequest(code string) *oauth.TokenRequest {
	return &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.AuthorizationCodeGrant, Code: code,
		RedirectURI: "https://shop.example/cb"}
}

func (h *fixture) refreshRequest(refresh string) *oauth.TokenRequest {
	return &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.RefreshTokenGrant, RefreshToken: refresh}
}

// tokens returns the answer to a code.
func (h *fixture) tokens(t testing.TB) *oauth.TokenResponse {
	t.Helper()
	return h.must(t, h.codeRequest(h.code(t)))
}

func (h *fixture) must(t testing.TB, r *oauth.TokenRequest) *oauth.TokenResponse {
	t.Helper()
	answer, fault := h.Token(t.Context(), r, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return answer
}

// wantFault exchanges what must be refused.
func (h *fixture) wantFault(t testing.TB, what string, r *oauth.TokenRequest, want oauth.Code) *oauth.Error {
	t.Helper()
	answer, fault := h.Token(t.Context(), r, time.Now())
	if answer != nil || fault == nil || fault.Code != want {
		t.Errorf("%s: got %+v, %v, want %s", what, answer, fault, want)
		return &oauth.Error{}
	}
	return fault
}

func (h *fixture) wantVerdict(t testing.TB, what, bearer string, want token.Verdict) {
	t.Helper()
	if got := h.Admit(bearer, token.BasicProfile, time.Now()).Verdict; got != want {
		t.Errorf("%s: got verdict %d, want %d", what, got, want)
	}
}
