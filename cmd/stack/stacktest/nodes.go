package stacktest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/cmd/stack"
	"gatehouse/loadtest/lab/balancer"
	"gatehouse/providers/sqlstore/pgtest"
)

// nodesVariable makes the service of each test a cluster of so many nodes on one PostgreSQL
// database, behind a balancer that sends each request to another node.
const nodesVariable = "STACKTEST_NODES"

// settleTimeout only keeps a test from hanging.
const settleTimeout = time.Minute

// Run runs the tests of a package. alone are the names of tests of one node by their nature, with the
// reasons: they are left out where services have several nodes, and the output names them.
func Run(m *testing.M, alone map[string]string) int {
	if err := prepareRun(alone); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func prepareRun(alone map[string]string) error {
	if err := errors.Join(FixDate(), checkNames(alone)); err != nil {
		return err
	}
	flag.Parse()
	n, err := nodes()
	if err != nil || n == 1 || len(alone) == 0 {
		return err
	}
	skip := flag.Lookup("test.skip")
	var patterns []string
	if before := skip.Value.String(); before != "" {
		patterns = append(patterns, before)
	}
	for _, name := range slices.Sorted(maps.Keys(alone)) {
		fmt.Printf("only with one node: %s: %s\n", name, alone[name])
		patterns = append(patterns, "^"+strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^")+"$")
	}
	return skip.Value.Set(strings.Join(patterns, "|"))
}

// checkNames returns an error if a test is named that the package in the working directory does not
// have.
func checkNames(alone map[string]string) error {
	if len(alone) == 0 {
		return nil
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		return err
	}
	var source []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read the names of tests: %w", err)
		}
		source = append(source, text...)
	}
	for name := range alone {
		test, _, _ := strings.Cut(name, "/")
		if !bytes.Contains(source, []byte("\nfunc "+test+"(t *testing.T)")) {
			return fmt.Errorf("the package has no test %s, which runs with one node only", test)
		}
	}
	return nil
}

// nodes returns how many nodes a service consists of.
func nodes() (int, error) {
	text := os.Getenv(nodesVariable)
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("got %s=%q, want a number of nodes", nodesVariable, text)
	}
	return n, nil
}

// Nodes returns how many nodes a service of a test consists of.
func Nodes(t testing.TB) int {
	t.Helper()
	n, err := nodes()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// useDatabase makes c use a database that nodes can share: an empty one, unless it has one.
func useDatabase(t testing.TB, c *stack.Config) {
	t.Helper()
	if c.Identity == nil { // the test needs lookups only, but a cluster has a database
		c.Identity = stack.Defaults().Identity
		c.Identity.Hasher = account.NewHasher(account.CheapCost())
		c.Identity.Database.URL = "sqlite:"
	}
	if strings.HasPrefix(c.Identity.Database.URL, "sqlite:") {
		c.Identity.Database.URL = pgtest.Migrated(t)
		c.Identity.Database.KeyFiles = []string{pgtest.KeyFile(t)}
	}
}

// startNodes starts n nodes. A balancer stands in front of their public listeners, and one in front
// of their admin listeners.
func (st *Stack) startNodes(t testing.TB, config stack.Config, n int) {
	t.Helper()
	if config.Listen != "127.0.0.1:0" || config.Public != nil || config.CertFile != "" ||
		config.AdminCertFile != "" {
		t.Fatal("got a listener that no balancer stands in front of: the test is one of one node")
	}
	seed := rand.Uint64()
	chooser := balancer.NewChooser(n, seed)
	public, admin := listenBalanced(t, chooser), listenBalanced(t, chooser)
	st.URL, st.AdminURL = "http://"+public.Address(), "http://"+admin.Address()
	if config.Localhost {
		st.URL = strings.Replace(st.URL, "127.0.0.1", "localhost", 1)
	}
	if config.Issuer == "" {
		config.Issuer = st.URL
	}
	var addresses, admins []string
	for i := range n {
		config.Cluster = &stack.Cluster{Listen: "127.0.0.1:0", Name: strconv.Itoa(i)}
		node, err := stack.Start(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		st.use(node)
		addresses, admins = append(addresses, node.Listen), append(admins, node.AdminListen)
		if lookups := config.Lookups; lookups != nil && node.UpstreamURL != "" {
			shared := *lookups // the other nodes use the simulator of the first one
			shared.Upstream.Base = node.UpstreamURL
			config.Lookups = &shared
		}
	}
	st.Stack = st.nodes[0]
	public.Start(addresses)
	admin.Start(admins)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the %d nodes got %v requests, by seed %d", n, chooser.Counts(), seed)
		}
	})
}

// listenBalanced returns a balancer that is closed at the end of the test.
func listenBalanced(t testing.TB, chooser *balancer.Chooser) *balancer.Balancer {
	t.Helper()
	b, err := balancer.Listen(chooser)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// settle waits until each node is ready and holds its share of the partitions.
func (st *Stack) settle(t testing.TB) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, node := range st.nodes {
		st.await(t, node.AdminURL+"/readyz", func() bool {
			response, err := client.Get(node.AdminURL + "/readyz")
			return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
		})
	}
	st.await(t, "shares of the partitions", func() bool { return settled(st.cluster(t)) })
	st.Log.forget() // the requests above
}

func (st *Stack) await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(settleTimeout); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s:\n%s", settleTimeout, what, st.Log)
		}
	}
}

// cluster reads the rows of the cluster.
func (st *Stack) cluster(t testing.TB) partition.Reading {
	t.Helper()
	r, err := st.Store.ReadCluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// settled reports whether each partition has the holder that it ought to have.
func settled(r partition.Reading) bool {
	var ids []string
	for _, node := range r.Nodes {
		if node.State != partition.Up {
			return false
		}
		ids = append(ids, node.ID)
	}
	return len(r.Partitions) == partition.Count &&
		!slices.ContainsFunc(r.Partitions, func(row partition.Row) bool {
			return row.Holder != partition.Target(row.Name, ids)
		})
}

// CounterOf returns the node that counts the requests of an access token. A test that has requests
// counted at other times than now calls its token service.
func (st *Stack) CounterOf(t testing.TB, bearer string) *stack.Stack {
	t.Helper()
	if len(st.nodes) == 1 {
		return st.Stack
	}
	id, _, ok := oauth.PeekAccessToken(bearer)
	if !ok {
		t.Fatal("got no access token")
	}
	r := st.cluster(t)
	row := slices.IndexFunc(r.Partitions, func(row partition.Row) bool {
		return row.Name == partition.Name(int(id[0]))
	})
	node := slices.IndexFunc(r.Nodes, func(n partition.Node) bool {
		return n.ID == r.Partitions[row].Holder
	})
	i, err := strconv.Atoi(r.Nodes[node].Name)
	if err != nil {
		t.Fatal(err)
	}
	return st.nodes[i]
}

// CloseStores closes the database connections of each node while it runs.
func (st *Stack) CloseStores(t testing.TB) {
	t.Helper()
	for _, node := range st.nodes {
		if err := node.Store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
