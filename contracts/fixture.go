package contracts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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
	*stack.Stack // the first node
	nodes        []*node
	store        *busyStore                                                  // of the first node
	cluster      *Cluster                                                    // nil = there is one node
	stored       func(context.Context, *oauth.Client) (*oauth.Client, error) // Config.Client
	chooser      *chooser

	caller   string // source address of requests; "" = as their headers say
	decision string // of the person at the browser; "" = there is no browser
	busy     bool   // the store is busy from the next request on

	client  *oauth.Client // of later states; nil = none yet
	secret  string        // its secret; "" for a public client
	user    *account.User // of later states; nil = none yet
	values  map[string]any
	settled map[string]settled // key: state and arguments
	tokens  standIns
	// operator is the last access token with the scope server-operations; "" = there is none.
	operator string

	service stack.Config // of each node
	folder  string       // of the database; removed by close
	end     context.CancelFunc
}

// node is one process of a fixture.
type node struct {
	*stack.Stack
	base   *url.URL // of the public listener
	admin  *url.URL // of the admin listener
	store  *busyStore
	served chan error
}

// fixtures counts the fixtures of the process, which distinguishes their values.
var fixtures atomic.Int64

// newFixture starts a fixture that holds nothing yet. issuer is the base URL that clients know.
func newFixture(ctx context.Context, issuer string, config Config) (f *fixture, err error) {
	f = &fixture{values: map[string]any{"fixture": fixtures.Add(1), "issuer": issuer}, settled: map[string]settled{}, tokens: standIns{},
		cluster: config.Cluster, stored: config.Client, chooser: newChooser(config.Cluster)}
	f.end = func() {}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a fixture: %w", err), f.close())
			f = nil
		}
	}()
	if f.folder, err = os.MkdirTemp("", "gatehouse-contract-"); err != nil {
		return f, err
	}
	if err := os.WriteFile(f.keyFile(), nil, 0o600); err != nil {
		return f, err
	}
	database, err := f.database()
	if err != nil {
		return f, fmt.Errorf("create a database: %w", err)
	}
	f.service = f.config(issuer, database, config.Log)
	return f, f.start(ctx)
}

// start starts the nodes.
func (f *fixture) start(ctx context.Context) error {
	serving, end := context.WithCancel(context.Background())
	f.end = end
	service := f.service
	for range f.chooser.nodes {
		n, err := f.startNode(ctx, service)
		if err != nil {
			return err
		}
		go func() { n.served <- n.Serve(serving) }()
		lookups := *service.Lookups // the other nodes use the upstream of the first one
		lookups.Upstream.Base = n.UpstreamURL
		service.Lookups = &lookups
	}
	f.Stack, f.store = f.nodes[0].Stack, f.nodes[0].store
	return f.join(ctx)
}

// restart stops the nodes and starts them with other settings, on the same database.
func (f *fixture) restart(ctx context.Context, change func(*stack.Config)) error {
	if err := f.stop(); err != nil {
		return err
	}
	identity := *f.service.Identity
	f.service.Identity = &identity
	change(&f.service)
	return f.start(ctx)
}

// keyFile is the file with the API keys of lookups: none, so that every key is wrong.
func (f *fixture) keyFile() string { return filepath.Join(f.folder, "lookup-keys") }

// database returns an empty database.
func (f *fixture) database() (c sqlstore.Config, err error) {
	if f.cluster != nil {
		c, err = f.cluster.Database()
		c.Migrate = true
		return c, err
	}
	empty, err := emptyDatabase()
	if err != nil {
		return c, err
	}
	file := filepath.Join(f.folder, "gatehouse.db")
	return sqlstore.Config{URL: "sqlite:" + file}, errors.Join(
		os.WriteFile(file, empty.database, 0o600),
		os.WriteFile(sqlstore.DefaultKeyFile("sqlite:"+file), empty.key, 0o600))
}

// startNode starts a node and adds it to f.nodes.
func (f *fixture) startNode(ctx context.Context, c stack.Config) (n *node, err error) {
	n = &node{served: make(chan error, 1)}
	identity := *c.Identity
	identity.Stores = func(store *sqlstore.Store) (oauth.Store, account.Store) {
		n.store = &busyStore{Store: store}
		return n.store, n.store
	}
	c.Identity = &identity
	if n.Stack, err = stack.Start(ctx, c); err != nil {
		return nil, err
	}
	var adminErr error
	n.base, err = url.Parse(n.URL)
	n.admin, adminErr = url.Parse(n.AdminURL)
	if err := errors.Join(err, adminErr); err != nil {
		return nil, errors.Join(err, n.Stack.Close())
	}
	f.nodes = append(f.nodes, n)
	return n, nil
}

// config returns the defaults of gatehouse serve with a simulated upstream and limits that a busy
// machine does not reach. Loopback is a trusted proxy, so that a pact can set the caller's address.
func (f *fixture) config(issuer string, database sqlstore.Config, log io.Writer) stack.Config {
	c := stack.Defaults()
	c.Listen, c.AdminListen, c.Issuer = "127.0.0.1:0", "127.0.0.1:0", issuer
	c.TrustedProxies = []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	}
	c.ReadTimeout, c.WriteTimeout, c.DrainTimeout = time.Minute, time.Minute, stopTimeout
	c.MaxConnections = 256
	c.Log, c.LogText = log, true
	c.Lookups.Upstream = ipapi.Config{Tier: ipapi.Sim}
	c.Lookups.Reverse.Server, c.Lookups.KeyFile = "", f.keyFile()
	c.Lookups.CacheEntries, c.Lookups.Timeout, c.Lookups.Concurrency = 1000, time.Minute, 4
	c.Lookups.Breaker.Failures, c.Lookups.Breaker.Cooldown = breakerFailures, 30*time.Second
	c.Identity.Database = database
	c.Identity.Database.WriteTimeout = time.Minute
	c.Identity.Hasher = account.NewHasher(account.CheapCost())
	if f.cluster != nil {
		c.Cluster = &stack.Cluster{Listen: "127.0.0.1:0"}
	}
	return c
}

// stop stops the nodes.
func (f *fixture) stop() (err error) {
	f.end()
	ended := make(chan error)
	for _, n := range f.nodes {
		go func() { ended <- errors.Join(<-n.served, n.Close()) }()
	}
	for range f.nodes {
		err = errors.Join(err, <-ended)
	}
	f.nodes = nil
	return err
}

// close stops everything. It is called once.
func (f *fixture) close() error { return errors.Join(f.stop(), os.RemoveAll(f.folder)) }

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

// emptyDatabase returns a database with the newest schema, secret keys and a key for RS256, and no
// other rows. It runs the migrations and makes the keys once: copying their result is cheaper.
var emptyDatabase = sync.OnceValues(func() (c contents, err error) {
	folder, err := os.MkdirTemp("", "gatehouse-contract-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "gatehouse.db")
	config := stack.Defaults()
	config.Listen, config.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	config.Lookups, config.Log = nil, io.Discard
	config.Identity.Database = sqlstore.Config{URL: "sqlite:" + file, Migrate: true}
	st, err := stack.Start(context.Background(), config)
	if err != nil {
		return c, err
	}
	if err := st.Close(); err != nil {
		return c, err
	}
	if c.database, err = os.ReadFile(file); err != nil {
		return c, err
	}
	c.key, err = os.ReadFile(sqlstore.DefaultKeyFile("sqlite:" + file))
	return c, err
})
