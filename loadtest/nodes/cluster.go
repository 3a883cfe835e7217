package nodes

import (
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gatehouse/loadtest/lab"
	"gatehouse/providers/sqlstore/pgtest"
)

// Config says what a Cluster consists of.
type Config struct {
	Program  string   // the gatehouse program; lab.Build makes it
	Nodes    int      // processes at the start
	Cluster  bool     // false = the nodes share the database only
	Flags    []string // more flags of each node
	Upstream []string // flags of the simulator of the upstream; nil = lookups are not offered
	// Lines is called with each line that a node writes, from many goroutines; nil = none.
	Lines   func(node int, line string)
	Standby Standby // of PostgreSQL; nodes with one reach PostgreSQL without a link
}

// Standby says what happens to commits while a standby of PostgreSQL follows.
type Standby int

// The kinds of standbys.
const (
	NoStandby    Standby = iota
	Asynchronous         // a commit does not wait for it
	Synchronous          // a commit waits until it has it
)

// Cluster is a number of nodes with all that they need.
type Cluster struct {
	Operator Credentials // of an operator client
	Balancer *Balancer
	Upstream string // URL of the simulator; "" = none

	config    Config
	folder    string
	keyFile   string
	database  string // URL of the database without a link
	numbers   [2]int // second and third number of the IP addresses
	postgres  *pgtest.Server
	standby   *pgtest.Server // nil = none
	followed  *Link          // from the standby to postgres
	simulator *lab.Simulator

	mu    sync.Mutex
	nodes []*Node
}

// Credentials are a client's.
type Credentials struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// Start starts everything and waits until all nodes are ready. Close ends it.
func Start(ctx context.Context, config Config) (_ *Cluster, err error) {
	c, err := Prepare(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := c.StartAll(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Prepare starts everything but the nodes, and creates the database.
func Prepare(ctx context.Context, config Config) (_ *Cluster, err error) {
	c := &Cluster{config: config}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	// An IP address of its own for each listener: no port is taken by another program.
	c.numbers = [2]int{1 + rand.IntN(254), rand.IntN(256)}
	if c.folder, err = os.MkdirTemp("", "nodes"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	if err := c.writeKeyFile(); err != nil {
		return nil, fmt.Errorf("make a key file: %w", err)
	}
	if c.postgres, err = pgtest.NewServer(); err != nil {
		return nil, err
	}
	if c.database, err = c.postgres.CreateDatabase(); err != nil {
		return nil, err
	}
	if err := c.startStandby(); err != nil {
		return nil, err
	}
	if c.Balancer, err = NewBalancer(net.JoinHostPort(c.ip(0), publicPort)); err != nil {
		return nil, err
	}
	if err := c.createOperator(ctx); err != nil {
		return nil, err
	}
	if config.Upstream != nil {
		if c.simulator, err = (lab.Gatehouse{Program: config.Program}).Simulate(ctx,
			config.Upstream...); err != nil {
			return nil, err
		}
		c.Upstream = c.simulator.URL
	}
	for range config.Nodes {
		if _, err := c.Add(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// writeKeyFile makes a key file that all nodes share.
func (c *Cluster) writeKeyFile() error {
	c.keyFile = filepath.Join(c.folder, "gatehouse.key")
	key := make([]byte, 32)
	crand.Read(key)
	return os.WriteFile(c.keyFile, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600)
}

// ip returns the i-th IP address of this cluster.
func (c *Cluster) ip(i int) string {
	return fmt.Sprintf("127.%d.%d.%d", c.numbers[0], c.numbers[1], 1+i)
}

// Add adds a node that does not run yet.
func (c *Cluster) Add() (*Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.newNode(len(c.nodes))
	if err != nil {
		return nil, err
	}
	c.nodes = append(c.nodes, n)
	c.Balancer.Add(n.Name, net.JoinHostPort(n.ip, publicPort), n.Admin)
	return n, nil
}

// Nodes returns all nodes, also those that do not run.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// StartAll starts all nodes at the same time, and waits until they are ready and the balancer
// knows.
func (c *Cluster) StartAll(ctx context.Context) error {
	nodes := c.Nodes()
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = n.Start(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Balancer.await(ctx, len(nodes))
}

// StopPostgres ends the PostgreSQL server at once; ResumePostgres starts it again.
func (c *Cluster) StopPostgres() error { return c.postgres.Crash() }

// ResumePostgres starts the PostgreSQL server after StopPostgres.
func (c *Cluster) ResumePostgres() error { return c.postgres.Resume() }

// environment returns the settings of a gatehouse that reaches the database at that address.
func (c *Cluster) environment(database string) []string {
	to, err := url.Parse(c.database)
	if err != nil {
		panic(err) // never: the server made it
	}
	if c.standby == nil {
		to.Host = database
	}
	env := []string{"GATEHOUSE_DATABASE_URL=" + to.String(), "GATEHOUSE_KEY_FILE=" + c.keyFile,
		"GATEHOUSE_BASE_URL=" + c.Balancer.URL, "GATEHOUSE_ROLES=identity"}
	if c.config.Upstream != nil {
		env = append(env, "GATEHOUSE_ROLES=identity,geo", "IP_PROVIDER=ip-api",
			"IP_API_BASE="+c.Upstream)
	}
	return env
}

// gatehouse returns a program that reaches the database at that address.
func (c *Cluster) gatehouse(program, database string) lab.Gatehouse {
	return lab.Gatehouse{Program: program, Env: c.environment(database)}
}

// Command runs a gatehouse command on the database and returns what it prints.
func (c *Cluster) Command(ctx context.Context, args ...string) (stdout []byte, err error) {
	return c.gatehouse(c.config.Program, c.postgres.Address()).Run(ctx, args...)
}

func (c *Cluster) createOperator(ctx context.Context) error {
	text, err := c.Command(ctx, "init", "--json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &c.Operator); err != nil {
		return fmt.Errorf("read the operator: %w", err)
	}
	return nil
}

// Close ends all processes and removes the folder. Nodes that run are killed.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.Nodes() {
		errs = append(errs, n.close())
	}
	if c.Balancer != nil { // after the nodes: none of them holds a request any more
		errs = append(errs, c.Balancer.Close())
	}
	if c.simulator != nil {
		errs = append(errs, c.simulator.Kill())
	}
	if c.standby != nil {
		errs = append(errs, c.standby.Stop())
	}
	if c.followed != nil {
		errs = append(errs, c.followed.Close())
	}
	if c.postgres != nil {
		errs = append(errs, c.postgres.Stop())
	}
	if c.folder != "" {
		errs = append(errs, os.RemoveAll(c.folder))
	}
	return errors.Join(errs...)
}
