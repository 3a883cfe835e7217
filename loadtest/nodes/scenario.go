package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Lab says how scenarios run.
type Lab struct {
	Program string // the gatehouse program
	Old     string // an older one; "" = none
	Cluster bool   // false = nodes that share the database only, which meet few promises
	Tokens  int    // tokens whose windows are counted
	Length  time.Duration
	Workers int
	Rounds  int           // ends
	Active  int           // tokens in use in the scenario of many tokens
	Seed    uint64        // of random faults; 0 = a random one
	Faults  time.Duration // in which random faults begin
	Log     func(format string, args ...any)
}

// Scenario measures one promise.
type Scenario struct {
	Name string
	What string // what happens meanwhile, for a table
	Run  func(ctx context.Context, l *Lab) (result string, err error)
}

// Scenarios are all scenarios. An error of Run means that a promise is not kept, or that the
// measurement failed.
var Scenarios = []Scenario{
	{"steady-3", "three nodes, nothing happens", steady(3)},
	{"steady-5", "five nodes, nothing happens", steady(5)},
	{"join-leave", "a node joins, another leaves by SIGTERM", joinLeave},
	{"rolling", "each node restarts in turn", rolling},
	{"versions", "each node changes to the next version and back", versions},
	{"kill", "one node of three ends by kill -9", kill},
	{"freeze", "one node of three is frozen for 6 s", freeze},
	{"held", "a user is disabled while a frozen node holds requests", held},
	{"cut-database", "one node is cut from PostgreSQL for 10 s", cutDatabase},
	{"cut-peer", "two nodes are cut from each other for 10 s", cutPeer},
	{"cut-half", "bytes from one node to another are lost for 10 s", cutHalf},
	{"cut-all", "one node is cut from PostgreSQL and from the others for 10 s", cutAll},
	{"database-stop", "PostgreSQL is away for 10 s, GATEHOUSE_STALE is 0", databaseStop("0s")},
	{"database-stale", "PostgreSQL is away for 10 s, GATEHOUSE_STALE is 30s", databaseStop("30s")},
	{"failover", "PostgreSQL is killed, its synchronous standby promoted", failover(Synchronous)},
	{"failover-lost", "the same with an asynchronous standby that lacks commits",
		failover(Asynchronous)},
	{"ends", "tokens are revoked and users disabled at one node", ends},
	{"ends-churn", "the same while nodes join, leave and freeze", endsChurn},
	{"random-faults", "nodes, links and PostgreSQL fail at random", randomFaults},
	{"lookups", "20 misses a second share one free tier", lookups(20, false)},
	{"lookups-full", "40 misses a second share one free tier", lookups(40, false)},
	{"lookups-kill", "the same, and the holder ends by kill -9", lookups(40, true)},
	{"many", "many tokens in use, one node of three ends by kill -9", many},
	{"hop", "latency and CPU time of a request, at the holder and elsewhere", hop},
}

func (l *Lab) start(ctx context.Context, n int, config Config) (*Cluster, error) {
	config.Program, config.Nodes, config.Cluster = l.Program, n, l.Cluster
	return Start(ctx, config)
}

// events are what happens during a load of that length.
type events func(ctx context.Context, c *Cluster, length time.Duration) error

// windows runs events on n nodes during a load, and returns what the windows say.
func (l *Lab) windows(ctx context.Context, config Config, n, each int, length time.Duration,
	timeout time.Duration, do events) (t *Tally, s Summary, err error) {
	c, err := l.start(ctx, n, config)
	if err != nil {
		return nil, s, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.Balancer.Timeout.Store(int64(timeout))
	tokens, err := c.Tokens(ctx, l.Tokens, max(1, l.Tokens/3))
	if err != nil {
		return nil, s, err
	}
	t = NewTally(len(tokens))
	var failed error
	var happening sync.WaitGroup
	happening.Go(func() { failed = do(ctx, c, length) })
	Load{Tokens: tokens, Each: each, Length: length, Workers: l.Workers}.Run(ctx, c.Balancer, t.Note)
	happening.Wait()
	if err := errors.Join(ctx.Err(), failed); err != nil {
		return t, s, err
	}
	return t, t.Summary(), nil
}

// exactly checks that all windows are exact.
func (l *Lab) exactly(ctx context.Context, n int, do events) (string, error) {
	_, s, err := l.windows(ctx, Config{}, n, 3*Limit/2, l.Length, defaultTimeout, do)
	if err != nil {
		return "", err
	}
	return s.String(), s.CheckExact()
}

// crashBound is what 99 of 100 tokens get at most in the window of a crash: nobody knows what the
// holder has admitted since it was last asked.
const crashBound = Limit + Limit/10

// bounded checks the bounds of a failure: no token above twice its limit, and 99 of 100 at most
// that much. The requests are as many as would show double limits.
func (l *Lab) bounded(ctx context.Context, most int, do events) (string, error) {
	_, s, err := l.windows(ctx, Config{}, 3, 9*Limit/4, l.Length, frozenTimeout, do)
	if err != nil {
		return "", err
	}
	return s.String(), s.CheckBounded(most)
}

// frozenTimeout is how long the balancer waits for a node that may be frozen.
const frozenTimeout = 2 * time.Second

func nothing(context.Context, *Cluster, time.Duration) error { return nil }

func steady(n int) func(context.Context, *Lab) (string, error) {
	return func(ctx context.Context, l *Lab) (string, error) { return l.exactly(ctx, n, nothing) }
}

func joinLeave(ctx context.Context, l *Lab) (string, error) {
	return l.exactly(ctx, 3, func(ctx context.Context, c *Cluster, length time.Duration) error {
		pause(ctx, length*3/10)
		n, err := c.Add()
		if err != nil {
			return err
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
		l.Log("a node has joined")
		pause(ctx, length/5)
		err = c.Nodes()[1].Stop()
		l.Log("a node has left")
		return err
	})
}

func rolling(ctx context.Context, l *Lab) (string, error) {
	return l.exactly(ctx, 3, func(ctx context.Context, c *Cluster, length time.Duration) error {
		pause(ctx, length/5)
		for _, n := range c.Nodes() {
			began := time.Now()
			if err := errors.Join(n.Stop(), n.Start(ctx), c.Balancer.await(ctx, 3)); err != nil {
				return err
			}
			l.Log("%s has restarted in %v", n.Name, time.Since(began).Round(time.Millisecond))
			pause(ctx, length/20)
		}
		return nil
	})
}

// kill checks in addition that windows are exact again after one window.
func kill(ctx context.Context, l *Lab) (string, error) {
	length := 2*windowLength + l.Length/2
	var killed time.Time
	t, s, err := l.windows(ctx, Config{}, 3, 440, length, frozenTimeout,
		func(ctx context.Context, c *Cluster, _ time.Duration) error {
			pause(ctx, l.Length*4/10)
			killed = time.Now()
			return c.Nodes()[1].Kill()
		})
	if err != nil {
		return "", err
	}
	for _, w := range t.Windows() {
		if w.First.After(killed.Add(windowLength)) && (w.Admitted > Limit || w.Jump > 1) {
			err = fmt.Errorf("a window is not exact after one window: %+v", w)
		}
	}
	return s.String(), errors.Join(s.CheckBounded(crashBound), err)
}

const (
	freezeTime = 6 * time.Second
	cutTime    = 10 * time.Second
)

func freeze(ctx context.Context, l *Lab) (string, error) {
	during := func(ctx context.Context, c *Cluster, length time.Duration) error {
		pause(ctx, length*3/10)
		n := c.Nodes()[1]
		if err := n.Freeze(); err != nil {
			return err
		}
		pause(ctx, freezeTime)
		if err := n.Thaw(); err != nil {
			return err
		}
		began := time.Now()
		err := c.Balancer.await(ctx, 3)
		l.Log("ready %v after the thaw", time.Since(began).Round(time.Millisecond))
		return err
	}
	return l.bounded(ctx, crashBound, during)
}

// cutBound is what a token gets at most while two nodes cannot reach each other and both live: its
// limit from the holder, and a third of it from each other node of three.
const cutBound = Limit + 2*(Limit/3)

// cut returns the events that cut some links for a time and heal them.
func (l *Lab) cut(cut func(nodes []*Node)) events {
	return func(ctx context.Context, c *Cluster, length time.Duration) error {
		pause(ctx, length*3/10)
		cut(c.Nodes())
		pause(ctx, cutTime)
		for _, n := range c.Nodes() {
			n.Database.Heal()
			n.Peers.Heal()
		}
		began := time.Now()
		err := c.Balancer.await(ctx, 3)
		l.Log("all are ready %v after the links", time.Since(began).Round(time.Millisecond))
		return err
	}
}

func cutDatabase(ctx context.Context, l *Lab) (string, error) {
	return l.bounded(ctx, cutBound, l.cut(func(n []*Node) { n[1].Database.CutBoth("") }))
}

func cutPeer(ctx context.Context, l *Lab) (string, error) {
	return l.bounded(ctx, cutBound, l.cut(func(n []*Node) {
		n[1].Peers.CutBoth(n[2].Name)
		n[2].Peers.CutBoth(n[1].Name)
	}))
}

func cutHalf(ctx context.Context, l *Lab) (string, error) {
	return l.bounded(ctx, cutBound, l.cut(func(n []*Node) {
		n[2].Peers.Cut(n[1].Name, ToTarget)
		n[1].Peers.Cut(n[2].Name, FromTarget)
	}))
}

func cutAll(ctx context.Context, l *Lab) (string, error) {
	return l.bounded(ctx, cutBound, l.cut(func(n []*Node) {
		n[1].Database.CutBoth("")
		n[1].Peers.CutBoth("")
		n[0].Peers.CutBoth(n[1].Name)
		n[2].Peers.CutBoth(n[1].Name)
	}))
}

// pause sleeps until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (l *Lab) ends(ctx context.Context, together int,
	meanwhile func(context.Context, *Cluster) error) (_ string, err error) {
	c, err := l.start(ctx, 3, Config{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tokens, err := c.Tokens(ctx, l.Rounds, l.Rounds)
	if err != nil {
		return "", err
	}
	nodes := c.Nodes()
	churn := together > 1
	e := &Ends{Cluster: c, At: nodes[0], Used: nodes[1:], Workers: 64, Tokens: tokens,
		Together: together, Churn: churn, Log: l.Log}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	var happening sync.WaitGroup
	happening.Go(func() { failed = meanwhile(running, c) })
	got, err := e.Run(ctx)
	stop()
	happening.Wait()
	if err := errors.Join(err, failed, ctx.Err()); err != nil {
		return "", err
	}
	return got.String(), got.Check(churn)
}

func ends(ctx context.Context, l *Lab) (string, error) {
	return l.ends(ctx, 1, func(context.Context, *Cluster) error { return nil })
}

// churnTogether is how many tokens end at the same time while nodes freeze: each end waits until
// the lease of a frozen node is over.
const churnTogether = 25

// endsChurn lets nodes join, leave and freeze until all rounds are over. The one where access ends
// stays.
func endsChurn(ctx context.Context, l *Lab) (string, error) {
	return l.ends(ctx, churnTogether, func(ctx context.Context, c *Cluster) error {
		joiner, err := c.Add()
		if err != nil {
			return err
		}
		nodes := c.Nodes()
		patient := context.WithoutCancel(ctx)
		for ctx.Err() == nil {
			pause(ctx, time.Second)
			err := errors.Join(
				l.say("a node joins", l.restart(patient, joiner)), l.say("a node leaves", nodes[1].Stop()),
				l.say("it comes back", l.restart(patient, nodes[1])),
				l.say("a node freezes", nodes[2].Freeze()))
			pause(ctx, freezeTime)
			if err := errors.Join(err, nodes[2].Thaw(), joiner.Stop()); err != nil {
				return err
			}
		}
		return nil
	})
}

// restart starts a node. As a service manager does, it tries again if the machine is too busy for
// the start.
func (l *Lab) restart(ctx context.Context, n *Node) (err error) {
	for range 3 {
		if err = n.Start(ctx); err == nil {
			return nil
		}
		l.Log("%v", err)
	}
	return err
}

// say logs what has happened.
func (l *Lab) say(what string, err error) error {
	if err == nil {
		l.Log("%s", what)
	}
	return err
}

// heldRequests is the number of requests that a frozen node holds, one a connection.
const heldRequests = 20

// held disables a user while a frozen node holds requests with one of the user's tokens. None of
// them may be admitted after the thaw.
func held(ctx context.Context, l *Lab) (_ string, err error) {
	c, err := l.start(ctx, 3, Config{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tokens, err := c.Tokens(ctx, 1, 1)
	if err != nil {
		return "", err
	}
	nodes := c.Nodes()
	ends, err := newEnder(ctx, c, nodes[0])
	if err != nil {
		return "", err
	}
	to := newDirect(nodes[1], endTimeout)
	var opened sync.WaitGroup
	responses := make([]Response, heldRequests)
	// All connections are open and their requests admitted before the freeze.
	for i := range responses {
		opened.Go(func() { responses[i] = newAsker(to).ask(tokens[0].Text) })
	}
	opened.Wait()
	for _, r := range responses {
		if r.Status != http.StatusOK {
			return "", fmt.Errorf("got status %d before the freeze, want 200", r.Status)
		}
	}
	if err := nodes[1].Freeze(); err != nil {
		return "", err
	}
	var asked sync.WaitGroup
	for i := range responses {
		asked.Go(func() { responses[i] = newAsker(to).ask(tokens[0].Text) })
	}
	pause(ctx, time.Second)
	began := time.Now()
	err = ends.disable(ctx, tokens[0].User)
	took := time.Since(began)
	pause(ctx, 500*time.Millisecond)
	err = errors.Join(err, nodes[1].Thaw())
	asked.Wait()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return "", err
	}
	statuses := map[int]int{}
	for _, r := range responses {
		statuses[r.Status]++
	}
	text := fmt.Sprintf("response to the change after %v; held requests by status %v",
		took.Round(time.Millisecond), statuses)
	if statuses[http.StatusOK]+statuses[http.StatusTooManyRequests] > 0 || took > 7*time.Second {
		return text, errors.New("a request was admitted after the response, or it took longer than 7 s")
	}
	return text, nil
}
