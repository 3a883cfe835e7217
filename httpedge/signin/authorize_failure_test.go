package signin_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore"
)

// failingAccounts is a store of accounts whose consents can be made to fail; nil = not.
type failingAccounts struct {
	account.Store
	reads, writes atomic.Pointer[error]
}

func (s *failingAccounts) Consent(ctx context.Context, userID int64,
	clientID string) (*account.Consent, error) {
	if err := s.reads.Load(); err != nil {
		return nil, *err
	}
	return s.Store.Consent(ctx, userID, clientID)
}

func (s *failingAccounts) GrantConsent(ctx context.Context, c *account.Consent,
	before time.Time) error {
	if err := s.writes.Load(); err != nil {
		return *err
	}
	return s.Store.GrantConsent(ctx, c, before)
}

// failingCodes is a store whose operations on codes and tokens can be made to fail; nil = not.
type failingCodes struct {
	oauth.Store
	failing atomic.Pointer[error]
}

func (s *failingCodes) Submit(op oauth.Operation) {
	if err := s.failing.Load(); err != nil {
		op.Done(*err)
		return
	}
	s.Store.Submit(op)
}

// lateCodes is a store that has something happen before the next code is saved.
type lateCodes struct {
	oauth.Store
	before atomic.Pointer[func()] // nil = nothing
}

func (s *lateCodes) Submit(op oauth.Operation) {
	if _, ok := op.(*oauth.SaveCode); ok {
		if before := s.before.Swap(nil); before != nil {
			(*before)()
		}
	}
	s.Store.Submit(op)
}

// TestNoCodeAfterNewPassword changes the password while a stranger's session has a code issued.
func TestNoCodeAfterNewPassword(t *testing.T) {
	codes := &lateCodes{}
	st := stacktest.NewIdentity(t, func(c *stack.Config) {
		c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
			codes.Store = s
			return codes, s
		}
	})
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	consent := b.SignIn(c.Request(), rosa)
	change := func() {
		u, err := st.Store.UserByEmail(t.Context(), rosa)
		if err == nil {
			u.PasswordHash = "new"
			err = st.Store.ChangeCredentials(t.Context(), u, account.CredentialChange{EndTokens: true})
		}
		if err != nil {
			t.Error(err)
		}
	}
	codes.before.Store(&change)
	b.Send(consent, "decision", "allow").Shows(t, 200, "/login")
}

// A full disk does not fill the log as well.
func TestFailedRequestsAreLoggedOnce(t *testing.T) {
	accounts := &failingAccounts{}
	st := stacktest.NewIdentity(t, func(c *stack.Config) {
		c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
			accounts.Store = s
			return s, accounts
		}
	})
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	b := st.NewBrowser(t)
	b.SignIn(c.Request(), rosa)
	full := errors.New("disk full")
	accounts.reads.Store(&full)
	for range 30 {
		b.Get("/oauth/authorize?"+c.Request("skip_account_chooser", "true").Encode()).FailsWith(t, st,
			"server_error")
	}
	first := 0
	for line := range strings.Lines(st.Log.String()) {
		if strings.Contains(line, "disk full") && !strings.Contains(line, `"more":`) {
			first++
		}
	}
	if first != 1 {
		t.Errorf("got %d lines about 30 failed requests, want 1 and counts", first)
	}
}

// TestAuthorizeServerErrors fails after the redirect URI was found to be the client's, with what
// passes and what does not.
func TestAuthorizeServerErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("disk full"), "server_error"},
		{context.DeadlineExceeded, "temporarily_unavailable"},
		{oauth.ErrUnknownOutcome, "temporarily_unavailable"},
	} {
		t.Run(test.err.Error(), func(t *testing.T) {
			accounts, codes := &failingAccounts{}, &failingCodes{}
			st := stacktest.NewIdentity(t, func(c *stack.Config) {
				c.Identity.Stores = func(s *sqlstore.Store) (oauth.Store, account.Store) {
					accounts.Store, codes.Store = s, s
					return codes, accounts
				}
			})
			c := st.NewClient(t, nil)
			st.NewUser(t, "Rosa", rosa)
			b := st.NewBrowser(t)

			consent := b.SignIn(c.Request(), rosa)
			accounts.writes.Store(&test.err)
			b.Send(consent, "decision", "allow").FailsWith(t, st, test.want)
			accounts.writes.Store(nil)

			consent = b.SignIn(c.Request("prompt", "login"), rosa)
			codes.failing.Store(&test.err)
			b.Send(consent, "decision", "allow").FailsWith(t, st, test.want)
			codes.failing.Store(nil)

			accounts.reads.Store(&test.err)
			b.Get("/oauth/authorize?"+c.Request("skip_account_chooser", "true").Encode()).FailsWith(
				t, st, test.want)
			if p := b.Get("/oauth/authorize?" +
				c.Request("redirect_uri", "https://elsewhere.example/").Encode()); p.Status != 400 {
				t.Errorf("got %d for a redirect URI of nobody, want 400", p.Status)
			}
		})
	}
}
