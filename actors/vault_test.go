package actors_test

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

	"gatehouse/actors"
	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// restOfAccounts is what these tests do not need of a store.
type restOfAccounts = account.Store

// vault is a store whose writer the test can hold: operations wait then, and go out together.
type vault struct {
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

func newVault() *vault {
	return &vault{
		clients: map[string]*oauth.Client{}, codes: map[oauth.Hash]*oauth.AuthorizationCode{}, families: map[string]*oauth.Family{},
		refresh: map[oauth.Hash]*oauth.RefreshToken{}, access: map[oauth.Hash]*oauth.AccessToken{},
		users: map[int64]*account.User{7: {ID: 7, Name: "Ann", ServiceID: "s"}},
	}
}

// Submit implements oauth.Store.
func (v *vault) Submit(op oauth.Operation) {
	v.mu.Lock()
	v.waiting = append(v.waiting, op)
	held := v.held
	v.mu.Unlock()
	if !held {
		v.flush()
	}
}

// hold keeps operations waiting until flush.
func (v *vault) hold() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = true
}

// take begins what waits; end executes it in order and tells of it.
func (v *vault) take() []oauth.Operation {
	v.mu.Lock()
	defer v.mu.Unlock()
	taken := slices.DeleteFunc(v.waiting, func(op oauth.Operation) bool { return !op.Take() })
	v.waiting, v.held = nil, false
	return taken
}

func (v *vault) end(ops []oauth.Operation) {
	v.mu.Lock()
	err := v.failing
	for _, op := range ops {
		if err == nil {
			v.execute(op)
			v.writes++
		}
	}
	v.mu.Unlock()
	for _, op := range ops {
		op.Done(err)
	}
}

func (v *vault) flush() { v.end(v.take()) }

func (v *vault) execute(op oauth.Operation) {
	switch op := op.(type) {
	case *oauth.SaveCode:
		v.codes[op.Code.Hash] = &op.Code
	case *oauth.Issue:
		v.access[op.Token.Hash] = &op.Token
	case *oauth.Redeem:
		v.redeem(op)
	case *oauth.Rotate:
		v.rotate(op)
	case *oauth.Revoke:
		if op.Access != nil {
			op.Revoked = v.drop(func(t *oauth.AccessToken) bool { return t.Hash == *op.Access })
		} else {
			op.Revoked = v.endFamily(op.FamilyID)
		}
	}
}

func (v *vault) redeem(op *oauth.Redeem) {
	code := v.codes[op.Code]
	switch {
	case !code.Used.IsZero():
		op.Outcome, op.Revoked = oauth.OutcomeReused, v.endFamily(code.FamilyID)
	case v.users[code.UserID] == nil || v.users[code.UserID].Disabled || !op.Now.Before(code.Expires):
		op.Outcome = oauth.OutcomeGone
	default:
		used, family := *code, op.Family
		used.Used, used.FamilyID = op.Now, family.ID
		v.codes[op.Code], v.families[family.ID], v.access[op.Access.Hash] = &used, &family, &op.Access
		if op.Refresh != nil {
			v.refresh[*op.Refresh] = &oauth.RefreshToken{Hash: *op.Refresh, Generation: 1, Family: oauth.Family{ID: family.ID}}
		}
		op.Outcome = oauth.OutcomeDone
	}
}

func (v *vault) rotate(op *oauth.Rotate) {
	f := v.families[op.FamilyID]
	switch graced := op.Now.Sub(f.Advanced) < op.Grace; {
	case f.Revoked || !op.Now.Before(f.Expires) || v.users[f.UserID].Disabled:
		op.Outcome = oauth.OutcomeGone
		return
	case op.Generation == f.Generation:
		f.Generation, f.Advanced = f.Generation+1, op.Now
	case op.Generation+1 != f.Generation || !graced:
		op.Outcome, op.Revoked = oauth.OutcomeReused, v.endFamily(f.ID)
		return
	}
	f.Expires = op.Expires
	v.access[op.Access.Hash] = &op.Access
	v.refresh[op.Refresh] = &oauth.RefreshToken{Hash: op.Refresh, Generation: f.Generation, Family: oauth.Family{ID: f.ID}}
	op.Outcome = oauth.OutcomeDone
}

func (v *vault) endFamily(id string) []oauth.Hash {
	v.families[id].Revoked = true
	return v.drop(func(t *oauth.AccessToken) bool { return t.FamilyID == id })
}

func (v *vault) drop(ends func(*oauth.AccessToken) bool) (hashes []oauth.Hash) {
	for hash, token := range v.access {
		if ends(token) {
			delete(v.access, hash)
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

func find[K comparable, T any](v *vault, records map[K]*T, key K) (*T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.readable != nil {
		return nil, v.readable
	}
	if r := records[key]; r != nil {
		found := *r
		return &found, nil
	}
	return nil, oauth.ErrNotFound
}

func (v *vault) Client(_ context.Context, id string) (*oauth.Client, error) {
	c, err := find(v, v.clients, id)
	if v.between != nil {
		v.between()
	}
	return c, err
}

func (v *vault) AuthorizationCode(_ context.Context, hash oauth.Hash) (*oauth.AuthorizationCode, error) {
	return find(v, v.codes, hash)
}

func (v *vault) RefreshToken(_ context.Context, hash oauth.Hash) (*oauth.RefreshToken, error) {
	token, err := find(v, v.refresh, hash)
	if err != nil {
		return nil, err
	}
	f, err := find(v, v.families, token.Family.ID)
	if err != nil {
		return nil, err
	}
	token.Family = *f
	return token, nil
}

func (v *vault) AccessToken(_ context.Context, hash oauth.Hash) (*oauth.AccessToken, error) {
	return find(v, v.access, hash)
}

func (v *vault) AccessTokenKeys(context.Context) (oauth.Keys, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.keys != (oauth.Keys{}) {
		return v.keys, nil
	}
	return oauth.Keys{Current: [32]byte{1}}, nil
}

func (v *vault) RotateKeys(_ context.Context, now, _ time.Time) (oauth.Keys, error) {
	if v.keysInUse {
		return oauth.Keys{}, oauth.ErrKeysInUse
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys = oauth.Keys{Current: [32]byte{2}, Previous: [32]byte{1}, Made: now}
	return v.keys, nil
}

func (v *vault) User(_ context.Context, id int64) (*account.User, error) {
	u, err := find(v, v.users, id)
	if err != nil {
		return nil, account.ErrNotFound
	}
	return u, nil
}

func (v *vault) CreateClient(_ context.Context, c *oauth.Client) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[c.ID] = c
	return v.failing
}

func (v *vault) UpdateClient(_ context.Context, c *oauth.Client) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failing == nil {
		v.clients[c.ID] = c
	}
	return v.failing
}

func (v *vault) DeleteClient(_ context.Context, id string) ([]oauth.Hash, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.clients[id] == nil {
		return nil, oauth.ErrNotFound
	}
	delete(v.clients, id)
	return v.drop(func(t *oauth.AccessToken) bool { return t.ClientID == id }), nil
}

func (v *vault) Clients(_ context.Context, after string, limit int) (list []*oauth.Client, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(v.clients)) {
		if id > after && len(list) < limit {
			list = append(list, v.clients[id])
		}
	}
	return list, nil
}

// house is an Identity on a vault, with a confidential client that may do everything a client may.
type house struct {
	*actors.Identity
	vault  *vault
	log    *strings.Builder
	client *oauth.Client
	secret string

	stopped bool // by the test itself
}

func build(t testing.TB, change func(*actors.IdentityConfig)) *house {
	t.Helper()
	h := &house{vault: newVault(), log: &strings.Builder{}}
	config := actors.IdentityConfig{
		Tokens: h.vault, Accounts: h.vault, Session: time.Hour, Logger: slog.New(slog.NewTextHandler(h.log, nil)),
		Metrics: prometheus.NewRegistry(),
		Lifetimes: oauth.Lifetimes{Code: time.Minute, AccessToken: time.Hour, RefreshToken: 24 * time.Hour,
			RefreshFamily: 48 * time.Hour, RefreshGrace: 10 * time.Second},
	}
	if change != nil {
		change(&config)
	}
	var err error
	if h.Identity, err = actors.NewIdentity(t.Context(), config); err != nil {
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

func (h *house) register(t testing.TB, c oauth.Client) (*oauth.Client, string) {
	t.Helper()
	created, secret, err := h.CreateClient(t.Context(), c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return created, secret
}

func (h *house) credentials() oauth.Credentials {
	return oauth.Credentials{ClientID: h.client.ID, Secret: h.secret}
}

// code returns a new code of the user 7 for view-user, without PKCE.
func (h *house) code(t testing.TB) string {
	t.Helper()
	code, fault := h.IssueCode(t.Context(), oauth.AuthorizationCode{ClientID: h.client.ID, UserID: 7,
		RedirectURI: "https://shop.example/cb", Scopes: oauth.ViewUser}, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return code
}

func (h *house) codeRequest(code string) *oauth.TokenRequest {
	return &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.AuthorizationCodeGrant, Code: code,
		RedirectURI: "https://shop.example/cb"}
}

func (h *house) refreshRequest(token string) *oauth.TokenRequest {
	return &oauth.TokenRequest{Credentials: h.credentials(), Grant: oauth.RefreshTokenGrant, RefreshToken: token}
}

// tokens returns the answer to a code.
func (h *house) tokens(t testing.TB) *oauth.TokenResponse {
	t.Helper()
	return h.must(t, h.codeRequest(h.code(t)))
}

func (h *house) must(t testing.TB, r *oauth.TokenRequest) *oauth.TokenResponse {
	t.Helper()
	answer, fault := h.Exchange(t.Context(), r, time.Now())
	if fault != nil {
		t.Fatal(fault)
	}
	return answer
}

// wantFault exchanges what must be refused.
func (h *house) wantFault(t testing.TB, what string, r *oauth.TokenRequest, want oauth.Code) *oauth.Error {
	t.Helper()
	answer, fault := h.Exchange(t.Context(), r, time.Now())
	if answer != nil || fault == nil || fault.Code != want {
		t.Errorf("%s: got %+v, %v, want %s", what, answer, fault, want)
		return &oauth.Error{}
	}
	return fault
}

func (h *house) wantVerdict(t testing.TB, what, token string, want actors.Verdict) {
	t.Helper()
	if got := h.Admit(token, actors.BasicProfile, time.Now()).Verdict; got != want {
		t.Errorf("%s: got verdict %d, want %d", what, got, want)
	}
}
