package contracts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/sqlstore"
)

// What gatehouse serve runs with.
var (
	lifetimes       = stack.Defaults().Identity.Lifetimes
	sessionLifetime = stack.Defaults().Identity.SessionTTL
)

// stopTimeout limits the shutdown of a fixture. A busy machine needs seconds.
const stopTimeout = time.Minute

// fixture is one running service with its own database and simulated upstream. It holds what the
// states of one interaction have created. Its states are set up one at a time.
type fixture struct {
	*stack.Stack
	base  *url.URL // of the public listener
	store *busyStore

	caller   string // source address of requests; "" = as their headers say
	decision string // of the person at the browser; "" = there is no browser
	busy     bool   // the store is busy from the next request on

	client  *oauth.Client // of later states; nil = none yet
	secret  string        // its secret; "" for a public client
	user    *account.User // of later states; nil = none yet
	values  map[string]any
	settled map[string]settled // key: state and arguments
	tokens  standIns

	folder string // of the database; removed by close
	end    context.CancelFunc
	served chan error
}

// newFixture starts a fixture that holds nothing yet. issuer is the base URL that clients know. log
// gets the service's log.
func newFixture(ctx context.Context, issuer string, log io.Writer) (f *fixture, err error) {
	f = &fixture{values: map[string]any{}, settled: map[string]settled{}, tokens: standIns{},
		served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a fixture: %w", err), os.RemoveAll(f.folder))
		}
	}()
	if f.folder, err = os.MkdirTemp("", "gatehouse-contract-"); err != nil {
		return nil, err
	}
	empty, err := emptyDatabase()
	if err != nil {
		return nil, fmt.Errorf("create a database: %w", err)
	}
	file := filepath.Join(f.folder, "gatehouse.db")
	if err := errors.Join(os.WriteFile(file, empty.database, 0o600),
		os.WriteFile(sqlstore.DefaultKeyFile("sqlite:"+file), empty.key, 0o600)); err != nil {
		return nil, err
	}
	if f.Stack, err = stack.Start(ctx, f.config(issuer, file, log)); err != nil {
		return nil, err
	}
	if f.base, err = url.Parse(f.URL); err != nil {
		return nil, errors.Join(err, f.Stack.Close())
	}
	serving, end := context.WithCancel(context.Background())
	f.end = end
	go func() { f.served <- f.Serve(serving) }()
	return f, nil
}

// config returns the defaults of gatehouse serve with a simulated upstream and limits that a busy
// machine does not reach. Loopback is a trusted proxy, so that a pact can set the caller's address.
func (f *fixture) config(issuer, file string, log io.Writer) stack.Config {
	c := stack.Defaults()
	c.Listen, c.AdminListen, c.Issuer = "127.0.0.1:0", "127.0.0.1:0", issuer
	c.TrustedProxies = []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	}
	c.ReadTimeout, c.WriteTimeout, c.DrainTimeout = time.Minute, time.Minute, stopTimeout
	c.MaxConnections = 256
	c.Log, c.LogText = log, true
	c.Lookups.Upstream = ipapi.Config{Tier: ipapi.Sim}
	c.Lookups.Reverse.Server = ""
	c.Lookups.CacheEntries, c.Lookups.Timeout, c.Lookups.Concurrency = 1000, time.Minute, 4
	c.Lookups.Breaker.Failures, c.Lookups.Breaker.Cooldown = breakerFailures, 30*time.Second
	c.Identity.Database = sqlstore.Config{URL: "sqlite:" + file}
	c.Identity.Hasher = account.NewHasher(account.CheapCost())
	c.Identity.Stores = func(store *sqlstore.Store) (oauth.Store, account.Store) {
		f.store = &busyStore{Store: store}
		return f.store, f.store
	}
	return c
}

// close stops everything. It is called once.
func (f *fixture) close() error {
	f.end()
	return errors.Join(<-f.served, f.Stack.Close(), os.RemoveAll(f.folder))
}

// prepare gets the fixture and the request ready for each other.
func (f *fixture) prepare(r *http.Request) error {
	if f.busy {
		if err := f.becomeBusy(r); err != nil {
			return err
		}
	}
	return f.tokens.replace(r)
}

// contents are those of a database and its key file.
type contents struct{ database, key []byte }

// emptyDatabase returns a database with the newest schema and secret keys, and no other rows. It
// runs the migrations once: copying their result is cheaper.
var emptyDatabase = sync.OnceValues(func() (c contents, err error) {
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "gatehouse.db")
	store, err := sqlstore.Open(context.Background(),
		sqlstore.Config{URL: "sqlite:" + file, Migrate: true, Exclusive: true,
			Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return c, err
	}
	if err := store.Close(); err != nil {
		return c, err
	}
	if c.database, err = os.ReadFile(file); err != nil {
		return c, err
	}
	c.key, err = os.ReadFile(sqlstore.DefaultKeyFile("sqlite:" + file))
	return c, err
})
