package stacktest_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/token"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// server starts a service on a PostgreSQL database that others share. Where services have several
// nodes, it is one node of a cluster, and the others that share the database are the other nodes.
func server(t *testing.T, database string, options ...stacktest.Option) *row {
	t.Helper()
	shared := []stacktest.Option{
		stacktest.Database(database, pgtest.KeyFile(t)),
		func(c *stack.Config) { c.Lookups = nil },
	}
	if stacktest.Nodes(t) > 1 {
		shared = append(shared, func(c *stack.Config) {
			c.Cluster = &stack.Cluster{Listen: "127.0.0.1:0"}
		})
	}
	return &row{stacktest.NewIdentity(t, append(shared, options...)...), t, "198.51.100.1"}
}

// verdict asks about a token. A live one counts as admitted also at its limit, since tests ask
// often.
func (r *row) verdict(bearer string, at time.Time) token.Verdict {
	got := r.Tokens.Admit(bearer, token.BasicProfile, at).Verdict
	if got == token.RateLimited {
		got = token.Admitted
	}
	return got
}

// wantVerdict waits until a service decides so about a token, and logs how long that took.
func (r *row) wantVerdict(what, bearer string, want token.Verdict) {
	r.t.Helper()
	begun := time.Now()
	eventually(r.t, func() bool { return r.verdict(bearer, time.Now()) == want }, what)
	r.t.Logf("%s: after %v", what, time.Since(begun).Round(time.Millisecond))
}

// ending is a way to end an access token.
type ending struct {
	name string
	end  func(r *row, c stacktest.Client, u int64, tokens pair, code string)
}

var endings = []ending{
	{"access token revoked", func(r *row, c stacktest.Client, _ int64, tokens pair, _ string) {
		r.post("/oauth/revoke", clientForm(c, "token", tokens.access)).is(r.t, 200)
	}},
	{"refresh token revoked", func(r *row, c stacktest.Client, _ int64, tokens pair, _ string) {
		r.post("/oauth/revoke", clientForm(c, "token", tokens.refresh)).is(r.t, 200)
	}},
	{"code replayed", func(r *row, c stacktest.Client, _ int64, _ pair, code string) {
		r.token(redemption(c, code)...).FailsAs(r.t, 400, "invalid_grant")
	}},
	{"refresh token reused", func(r *row, c stacktest.Client, _ int64, tokens pair, _ string) {
		next := r.token(renewal(c, tokens.refresh)...).tokens(r.t)
		next = r.token(renewal(c, next.refresh)...).tokens(r.t)
		r.token(renewal(c, tokens.refresh)...).FailsAs(r.t, 400, "invalid_grant")
		if got := r.verdict(next.access, time.Now()); got != token.TokenInvalid {
			r.t.Errorf("got verdict %d for the newest token of the family", got)
		}
	}},
	{"user's tokens revoked", func(r *row, _ stacktest.Client, u int64, _ pair, _ string) {
		stacktest.Must(r.t, r.Tokens.RevokeAll(r.t.Context(), &oauth.Revoke{UserID: u}))
	}},
	{"user's password reset", func(r *row, _ stacktest.Client, u int64, _ pair, _ string) {
		stacktest.Must(r.t, r.People.ResetPassword(r.t.Context(), u, "another horse and staple", time.Now()))
	}},
	{"user disabled", func(r *row, _ stacktest.Client, u int64, _ pair, _ string) {
		stacktest.Must(r.t, r.People.DisableUser(r.t.Context(), u, time.Now()))
	}},
	{"user deleted", func(r *row, _ stacktest.Client, u int64, _ pair, _ string) {
		stacktest.Must(r.t, r.People.DeleteUser(r.t.Context(), u, time.Now()))
	}},
	{"consent withdrawn", func(r *row, c stacktest.Client, u int64, _ pair, _ string) {
		grant := oauth.Grant{UserID: u, ClientID: c.ID}
		stacktest.Must(r.t, r.Tokens.RevokeAll(r.t.Context(), &oauth.Revoke{Consent: &grant}))
	}},
	{"client's tokens revoked", func(r *row, c stacktest.Client, _ int64, _ pair, _ string) {
		stacktest.Must(r.t, r.Tokens.RevokeAll(r.t.Context(), &oauth.Revoke{ClientID: c.ID}))
	}},
	{"client disabled", func(r *row, c stacktest.Client, _ int64, _ pair, _ string) {
		_, err := r.Tokens.UpdateClient(r.t.Context(), c.ID, func(c *oauth.Client) error {
			c.Disabled = true
			return nil
		})
		stacktest.Must(r.t, err)
	}},
	{"client deleted", func(r *row, c stacktest.Client, _ int64, _ pair, _ string) {
		stacktest.Must(r.t, r.Tokens.DeleteClient(r.t.Context(), c.ID))
	}},
}

func clientForm(c stacktest.Client, form ...string) []string {
	return append([]string{"client_id", c.ID, "client_secret", c.Secret}, form...)
}

// is checks a status.
func (a reply) is(t *testing.T, status int) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("got %d %s, want %d", a.Status, a.Body, status)
	}
}

// TestEndsReachAllProcesses ends a token in each way at one service, while another has it in use. A
// third one starts afterwards.
func TestEndsReachAllProcesses(t *testing.T) {
	database := pgtest.Migrated(t)
	noGrace := func(c *stack.Config) { c.Identity.Lifetimes.RefreshGrace = 0 }
	here, there := server(t, database, noGrace), server(t, database, noGrace)
	other := here.issue(here.client(), here.person(), oauth.ViewUser).access
	var ended []string
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			here, there := &row{here.IdentityStack, t, here.caller}, &row{there.IdentityStack, t, ""}
			c, u := here.client(), here.person()
			code := here.code(c, u, time.Now(), nil)
			tokens := here.token(redemption(c, code)...).tokens(t)
			ended = append(ended, tokens.access)
			for _, r := range []*row{here, there} {
				r.wantVerdict("before", tokens.access, token.Admitted)
			}
			e.end(here, c, u.ID, tokens, code)
			if got := here.verdict(tokens.access, time.Now()); got != token.TokenInvalid {
				t.Errorf("got verdict %d where the token was ended, want it refused at once", got)
			}
			there.wantVerdict("elsewhere", tokens.access, token.TokenInvalid)
		})
	}
	later := server(t, database, noGrace)
	for i, bearer := range ended {
		if got := later.verdict(bearer, time.Now()); got != token.TokenInvalid {
			t.Errorf("%s: got verdict %d after a start, want it refused", endings[i].name, got)
		}
	}
	all := []*row{here, there, later}
	for _, r := range all {
		if got := r.verdict(other, time.Now()); got != token.Admitted {
			t.Errorf("got verdict %d for another token, want it admitted", got)
		}
	}
	_, err := here.Tokens.RotateKeys(t.Context(), oauth.TokenKeys, true, time.Now())
	stacktest.Must(t, err)
	for _, r := range all {
		r.wantVerdict("keys dropped", other, token.TokenInvalid)
	}
}

// TestEndsReachProcessWithAnotherClock has one clock two seconds ahead of the database's other
// user, and then two behind.
func TestEndsReachProcessWithAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{2 * time.Second, -2 * time.Second} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			database := pgtest.Migrated(t)
			// One clock is moved for single calls, so the service may not take that for an outage.
			here := server(t, database, func(c *stack.Config) { c.Identity.Stale = 10 * time.Second })
			there := server(t, database)
			c, u := here.client(), here.user()
			now := func() time.Time { return time.Now().Add(ahead) }
			tokens := here.issueAt(now(), redemption(c, here.code(c, u, now(), nil)))
			there.wantVerdict("before", tokens.AccessToken, token.Admitted)
			stacktest.Must(t, here.Tokens.RevokeAll(t.Context(), &oauth.Revoke{UserID: u.ID}))
			there.wantVerdict("user's tokens revoked", tokens.AccessToken, token.TokenInvalid)

			next := here.issueAt(now(), redemption(c, here.code(c, u, now(), nil)))
			if got := there.verdict(next.AccessToken, time.Now()); got != token.Admitted {
				t.Errorf("got verdict %d for a token issued after the revocation, want it admitted", got)
			}
			credentials := oauth.Credentials{ClientID: c.ID, Secret: c.Secret}
			if fault := here.Tokens.Revoke(t.Context(), credentials, next.AccessToken, now()); fault != nil {
				t.Fatal(fault)
			}
			there.wantVerdict("revoked", next.AccessToken, token.TokenInvalid)
		})
	}
}

// TestRevocationsOfConcurrentProcesses has two services revoke tokens at once. Each applies the
// revocations of the other, in any order in which the rows commit.
func TestRevocationsOfConcurrentProcesses(t *testing.T) {
	database := pgtest.Migrated(t)
	both := []*row{server(t, database), server(t, database)}
	c := both[0].client()
	form := ownToken(c)
	var tokens [2][]string
	for i := range tokens {
		for range 200 {
			tokens[i] = append(tokens[i], both[i].issueAt(time.Now(), form).AccessToken)
		}
	}
	credentials := oauth.Credentials{ClientID: c.ID, Secret: c.Secret}
	var callers sync.WaitGroup
	for i, r := range both {
		for part := range 8 {
			callers.Go(func() {
				for n := part; n < len(tokens[i]); n += 8 {
					if fault := r.Tokens.Revoke(t.Context(), credentials, tokens[i][n],
						time.Now()); fault != nil {
						t.Error(fault)
					}
				}
			})
		}
	}
	callers.Wait()
	for i, r := range both {
		for _, bearer := range tokens[1-i] {
			eventually(t, func() bool { return r.verdict(bearer, time.Now()) == token.TokenInvalid },
				"a revocation by the other service")
		}
	}
}

// wire is a way to a database that can be cut.
type wire struct {
	ln net.Listener
	to string

	mu  sync.Mutex
	cut bool
	all map[net.Conn]bool
}

func newWire(t *testing.T, database string) (_ *wire, via string) {
	t.Helper()
	target, err := url.Parse(database)
	stacktest.Must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	stacktest.Must(t, err)
	w := &wire{ln: ln, to: target.Host, all: map[net.Conn]bool{}}
	var pumps sync.WaitGroup
	pumps.Go(func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			pumps.Go(func() { w.carry(from) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		w.set(true)
		pumps.Wait()
	})
	target.Host = ln.Addr().String()
	return w, target.String()
}

// carry connects a connection to the database until one of them ends.
func (w *wire) carry(from net.Conn) {
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		from.Close()
		return
	}
	w.mu.Lock()
	w.all[from], w.all[to] = true, true
	if w.cut {
		from.Close()
		to.Close()
	}
	w.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			io.Copy(pair[0], pair[1])
			from.Close()
			to.Close()
		})
	}
	both.Wait()
}

// set cuts the wire or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut = cut; cut {
		for conn := range w.all {
			conn.Close()
		}
		clear(w.all)
	}
}

// TestDatabaseIsAwayForOneProcess cuts one of two services from the database. It refuses all tokens
// until it is back, and then those that have ended meanwhile.
func TestDatabaseIsAwayForOneProcess(t *testing.T) {
	database := pgtest.Migrated(t)
	wire, via := newWire(t, database)
	here, there := server(t, database), server(t, via)
	c := here.client()
	kept, ended := here.issue(c, here.user(), oauth.ViewUser), here.issue(c, here.user(), oauth.ViewUser)
	for _, tokens := range []pair{kept, ended} {
		there.wantVerdict("before", tokens.access, token.Admitted)
	}
	wire.set(true)
	there.wantVerdict("cut off", kept.access, token.TryLater)
	a := there.profile(kept.access)
	a.is(t, 503)
	a.retryAfter(t)
	there.post("/oauth/introspect", clientForm(c, "token", kept.access)).is(t, 503)
	there.token(ownToken(c)...).is(t, 503)
	there.send("GET", there.AdminURL+"/readyz", "").is(t, 503)
	here.post("/oauth/revoke", clientForm(c, "token", ended.access)).is(t, 200)
	here.wantVerdict("connected", kept.access, token.Admitted)
	const outage = "access tokens are refused until changes by other processes can be read"
	lines := func() int { return len(there.Log.Records(outage)) }
	eventually(t, func() bool { return lines() > 0 }, "a line about the outage")
	wire.set(false)
	for {
		switch got := there.verdict(ended.access, time.Now()); got {
		case token.TokenInvalid:
			there.wantVerdict("connected again", kept.access, token.Admitted)
			if n := lines(); n != 1 {
				t.Errorf("got %d lines about the outage, want 1", n)
			}
			return
		case token.TryLater:
			time.Sleep(10 * time.Millisecond)
		default:
			t.Fatalf("got verdict %d for a token that was revoked during the outage", got)
		}
	}
}

// TestServiceGoesOnWithStaleKnowledge cuts a service that may go on for an hour from its database.
func TestServiceGoesOnWithStaleKnowledge(t *testing.T) {
	database := pgtest.Migrated(t)
	wire, via := newWire(t, database)
	here := server(t, database)
	there := server(t, via, func(c *stack.Config) { c.Identity.Stale = time.Hour })
	tokens := here.issue(here.client(), here.user(), oauth.ViewUser)
	there.wantVerdict("before", tokens.access, token.Admitted)
	wire.set(true)
	const warning = "changes by other processes cannot be read: tokens that they end are admitted"
	eventually(t, func() bool { return len(there.Log.Records(warning)) == 1 }, "a line about the outage")
	there.wantVerdict("cut off", tokens.access, token.Admitted)
	there.send("GET", there.AdminURL+"/readyz", "").is(t, 200)
	wire.set(false)
	eventually(t, func() bool {
		return len(there.Log.Records("changes by other processes can be read again")) == 1
	}, "a line about the end of the outage")
}

// TestStaleKnowledge looks at later times than the service knows of.
func TestStaleKnowledge(t *testing.T) {
	ends := 3 * time.Second
	if stacktest.Nodes(t) > 1 {
		ends = partition.LeaseTime // without Stale
	}
	for stale, refused := range map[time.Duration]time.Duration{
		0: ends, time.Hour: time.Hour + 3*time.Second,
	} {
		t.Run(fmt.Sprint(stale), func(t *testing.T) {
			r := server(t, pgtest.Migrated(t), func(c *stack.Config) {
				c.Identity.Stale, c.Identity.Lifetimes.AccessToken = stale, 3*time.Hour
			})
			c := r.client()
			tokens := r.issue(c, r.user(), oauth.ViewUser)
			r.wantVerdict("at first", tokens.access, token.Admitted)
			late := time.Now().Add(refused)
			if got := r.verdict(tokens.access, late.Add(-2*time.Second)); got != token.Admitted {
				t.Errorf("got verdict %d before the knowledge is too old, want %d", got, token.Admitted)
			}
			if got := r.verdict(tokens.access, late); got != token.TryLater {
				t.Errorf("got verdict %d when the knowledge is too old, want %d", got, token.TryLater)
			}
		})
	}
}

// TestRewrapBesideServerWithOldKeyFile wraps the keys under another file. A service that has only
// the old one goes on beside a new one, but cannot start again.
func TestRewrapBesideServerWithOldKeyFile(t *testing.T) {
	database, old := pgtest.Migrated(t), pgtest.KeyFile(t)
	r := server(t, database)
	c := r.client()
	before := r.issue(c, r.user(), oauth.ViewUser)
	next := filepath.Join(t.TempDir(), "next.key")
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("n", 32)))
	stacktest.Must(t, os.WriteFile(next, []byte(key), 0o600))
	config := sqlstore.Config{
		URL: database, KeyFiles: []string{old}, Logger: slog.New(slog.DiscardHandler),
	}
	n, err := sqlstore.Rewrap(t.Context(), config, next)
	if err != nil || n != len(oauth.Purposes) {
		t.Fatalf("got %d keys and %v, want all wrapped again", n, err)
	}
	other := r.issue(c, r.user(), oauth.ViewUser)
	there := server(t, database, stacktest.Database(database, next))
	there.wantVerdict("with the new file", before.access, token.Admitted)
	there.post("/oauth/revoke", clientForm(c, "token", other.access)).is(t, 200)
	r.wantVerdict("a change after the rewrap", other.access, token.TokenInvalid)
	r.wantVerdict("before", before.access, token.Admitted)
	r.wantVerdict("after", r.issue(c, r.user(), oauth.ViewUser).access, token.Admitted)
	if _, err := sqlstore.Open(t.Context(), config); !errors.Is(err, sqlstore.ErrKeyFile) {
		t.Errorf("got %v from a start with the old file, want %v", err, sqlstore.ErrKeyFile)
	}
	config.KeyFiles = []string{next}
	store, err := sqlstore.Open(t.Context(), config)
	stacktest.Must(t, err)
	stacktest.Must(t, store.Close())
}
