package lookup_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/partition"
)

// cluster is nodes in one process, with a table of holders and a ledger.
type cluster struct {
	t     *testing.T
	delay time.Duration // of a message, one way

	mu      sync.Mutex
	nodes   map[string]*node
	names   []string
	rows    [partition.Count]partition.Part // Holder and Epoch
	numbers [2]int64
	epochs  [2]int64
	usages  [2]geo.Usage
	fail    error // of the ledger
	refused int   // writes
}

// node is a node of a cluster: the Peers of its Service.
type node struct {
	*lookup.Service
	cluster *cluster
	id      string

	mu     sync.Mutex
	view   *partition.View
	change chan struct{}
	cut    bool         // no message passes
	frozen bool         // its View does not change, and messages pass
	asks   atomic.Int64 // sent
	casts  atomic.Int64
}

// newCluster starts n nodes that use one upstream. The first holds all partitions.
func newCluster(t *testing.T, n int, p geo.Provider, options ...func(*lookup.Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, delay: 2 * time.Millisecond, nodes: map[string]*node{}}
	for i := range n {
		id := fmt.Sprintf("node-%d", i)
		c.names = append(c.names, id)
		c.nodes[id] = &node{cluster: c, id: id, change: make(chan struct{})}
	}
	for i := range c.rows {
		c.rows[i] = partition.Part{Holder: c.names[0], Epoch: 1}
	}
	c.publish(false)
	for _, id := range c.names {
		node := c.nodes[id]
		shared := func(config *lookup.Config) { config.Peers, config.Ledger = node, c }
		node.Service = start(t, p, append(options, shared)...)
	}
	return c
}

// publish gives all nodes that are not frozen a View of the rows. moving says that the partition of
// lookups is being handed over.
func (c *cluster) publish(moving bool) {
	for _, n := range c.nodes {
		v := &partition.View{Self: n.id, Up: len(c.nodes), Nodes: map[string]partition.Node{}}
		for _, id := range c.names {
			v.Nodes[id] = partition.Node{ID: id, Egress: "default"}
		}
		v.Parts = slices.Clone(c.rows[:])
		for i := range v.Parts {
			v.Parts[i].Mine = v.Parts[i].Holder == n.id
			v.Parts[i].Moving = moving && i == partition.Lookups && v.Parts[i].Mine
		}
		n.mu.Lock()
		if !n.frozen {
			changed := n.change
			n.change = make(chan struct{})
			v.Changed, n.view = n.change, v
			close(changed)
		}
		n.mu.Unlock()
	}
}

// hold makes a node the holder of all partitions.
func (c *cluster) hold(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.rows {
		c.rows[i] = partition.Part{Holder: id, Epoch: c.rows[i].Epoch + 1}
	}
	c.publish(false)
}

// spread gives the partitions to the nodes in turn.
func (c *cluster) spread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.rows {
		c.rows[i] = partition.Part{Holder: c.names[i%len(c.names)], Epoch: c.rows[i].Epoch + 1}
	}
	c.publish(false)
}

// move hands all partitions over to a node, which takes a while.
func (c *cluster) move(id string, takes time.Duration) {
	c.mu.Lock()
	c.publish(true)
	c.mu.Unlock()
	time.Sleep(takes)
	c.hold(id)
}

// SpendBudget implements lookup.Ledger as sqlstore does.
func (c *cluster) SpendBudget(
	_ context.Context, row partition.Row, e geo.Endpoint, number int64, u geo.Usage,
) (bool, error) {
	time.Sleep(c.delay)
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.rows[partition.Lookups]
	switch {
	case c.fail != nil:
		return false, c.fail
	case row != partition.Row{Name: "geo/default", Holder: held.Holder, Epoch: held.Epoch}:
		c.refused++
		return false, nil
	case row.Epoch > c.epochs[e], row.Epoch == c.epochs[e] && number > c.numbers[e]:
		c.epochs[e], c.numbers[e], c.usages[e] = row.Epoch, number, u
	}
	return true, nil
}

// Budgets implements lookup.Ledger.
func (c *cluster) Budgets(_ context.Context, name string) ([2]geo.Usage, error) {
	time.Sleep(c.delay)
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != "geo/default" {
		c.t.Errorf("got the budget of %q read", name)
	}
	return c.usages, c.fail
}

// setCut cuts the node off from the others, or connects it again.
func (n *node) setCut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

func (n *node) isCut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut
}

// freeze keeps the node's View as it is: it does not learn of another holder.
func (n *node) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen = true
}

// View implements lookup.Peers.
func (n *node) View() *partition.View {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view
}

// Ask implements lookup.Peers.
func (n *node) Ask(
	service byte, part int, body []byte, until time.Time,
) ([]byte, int64, error) {
	n.asks.Add(1)
	for {
		view := n.View()
		p := view.Parts[part]
		if p.Mine && !p.Moving {
			return nil, p.Epoch, partition.ErrHere
		}
		to := n.cluster.nodes[p.Holder]
		if !p.Moving && (to == nil || to.isCut() || n.isCut()) {
			return nil, 0, partition.ErrUnreachable
		}
		if !p.Moving {
			status, epoch, reply, err := n.send(to, service, part, body, until)
			if err != nil || status == partition.Done {
				return reply, epoch, err
			}
			if status == partition.Busy {
				return nil, 0, partition.ErrBusy
			}
		}
		select {
		case <-view.Changed:
		case <-time.After(time.Until(until)):
			return nil, 0, partition.ErrUnreachable
		}
	}
}

type answer struct {
	status partition.Status
	epoch  int64
	body   []byte
}

func (n *node) send(
	to *node, service byte, part int, body []byte, until time.Time,
) (partition.Status, int64, []byte, error) {
	answers := make(chan answer, 1)
	time.AfterFunc(n.cluster.delay, func() {
		m := partition.Message{
			Kind: partition.Ask, Service: service, Partition: part, Body: slices.Clone(body),
		}
		to.HandlePeer(m, func(status partition.Status, epoch int64, body []byte) {
			time.AfterFunc(n.cluster.delay, func() {
				if !to.isCut() {
					answers <- answer{status, epoch, body}
				}
			})
		})
	})
	select {
	case a := <-answers:
		return a.status, a.epoch, a.body, nil
	case <-time.After(time.Until(until)):
		return 0, 0, nil, partition.ErrUnreachable
	}
}

// Cast implements lookup.Peers.
func (n *node) Cast(service byte, body []byte) {
	n.casts.Add(1)
	if n.isCut() {
		return
	}
	for _, id := range n.cluster.names {
		if to := n.cluster.nodes[id]; to != n && !to.isCut() {
			time.AfterFunc(n.cluster.delay, func() {
				to.HandlePeer(partition.Message{
					Kind: partition.Cast, Service: service, Body: slices.Clone(body),
				}, nil)
			})
		}
	}
}

func (c *cluster) at(i int) *node { return c.nodes[c.names[i]] }

// TestClusterSharesBudget has misses arrive at all nodes in turn: together they get what one node
// would, and the upstream never refuses.
func TestClusterSharesBudget(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  float64 // misses a second
		least float64 // of them served
	}{
		{"5 a second", 5, 0.99},
		{"24 a second", 24, 0.95},
		{"40 a second", 40, 0.6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := freeTier()
				nodes := newCluster(t, 3, u)
				var served atomic.Int64
				calls := poisson(c.rate, 90*time.Second, func(n int) {
					began := time.Now()
					o := lookUp(nodes.at(n%3).Service, nth(n))
					switch {
					case o.Err == nil:
						served.Add(1)
					case o.Err.Code != geo.CodeRateLimited || o.Err.RetryAfter <= 0:
						t.Errorf("got %v, want rate_limited with the time to come back", o.Err)
					}
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("a caller waited %v", took)
					}
				})
				singles, batches, violations := u.counts()
				t.Logf("%d misses: %d served, %d singles, %d batches", calls, served.Load(), singles,
					batches)
				if got := float64(served.Load()) / float64(calls); got < c.least {
					t.Errorf("got %.3f served, want %.3f", got, c.least)
				}
				if violations > 0 {
					t.Errorf("got %d requests on an empty budget, want 0", violations)
				}
			})
		})
	}
}

// TestClusterUsesWholeBudget has more misses than the budget allows: each window of the upstream is
// used up to 95 % and never exceeded.
func TestClusterUsesWholeBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		nodes := newCluster(t, 3, u, func(c *lookup.Config) { c.LookupTimeout = 20 * time.Second })
		const minutes = 5
		poisson(35, minutes*time.Minute, func(n int) {
			q := nth(n)
			if n%8 == 0 {
				q = domain(n)
			}
			lookUp(nodes.at(n%3).Service, q)
		})
		singles, batches, violations := u.counts()
		// A window is a second longer than the upstream's, whose rest is told in whole seconds.
		const least = 0.95
		if float64(singles) < least*45*minutes || float64(batches) < least*15*minutes {
			t.Errorf("got %d singles and %d batches in %d minutes, want %.0f %% of 45 and 15 each",
				singles, batches, minutes, least*100)
		}
		if violations > 0 {
			t.Errorf("got %d requests on an empty budget, want 0", violations)
		}
	})
}

// TestSuccessorRespectsWindow kills the holder at random times, also in the middle of bursts. The
// next one goes on with the rest of the window.
func TestSuccessorRespectsWindow(t *testing.T) {
	for seed := range 4 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := freeTier()
				u.latency = func() time.Duration { return time.Duration(20+seed*60) * time.Millisecond }
				nodes := newCluster(t, 3, u)
				var wg sync.WaitGroup
				wg.Go(func() {
					for i := range 2 {
						time.Sleep(time.Duration(1+seed*7%61)*time.Second +
							time.Duration(seed)*37*time.Millisecond)
						nodes.at(i).setCut(true)
						time.Sleep(6 * time.Second)
						nodes.at(i).freeze()
						nodes.hold(nodes.names[i+1])
					}
				})
				var served atomic.Int64
				calls := poisson(12, 3*time.Minute, func(n int) {
					if lookUp(nodes.at(2).Service, nth(n)).Err == nil {
						served.Add(1)
					}
					if n%8 == 0 {
						lookUp(nodes.at(n/8%2).Service, domain(n)) // also at the dead ones
					}
				})
				wg.Wait()
				if singles, batches, violations := u.counts(); violations > 0 {
					t.Errorf("got %d requests of %d singles and %d batches on an empty budget, want 0",
						violations, singles, batches)
				}
				if got := float64(served.Load()) / float64(calls); got < 0.6 {
					t.Errorf("got %.3f served, want 0.6", got)
				}
			})
		})
	}
}

// TestFormerHolderSendsNothing freezes the holder's knowledge and gives its row to another node.
func TestFormerHolderSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		nodes := newCluster(t, 2, u)
		former := nodes.at(0)
		if o := lookUp(former.Service, nth(1)); o.Err != nil {
			t.Fatal(o.Err)
		}
		former.freeze()
		nodes.hold(nodes.names[1])
		o := lookUp(former.Service, nth(2))
		if o.Err == nil || o.Err.Code != geo.CodeProviderUnreachable {
			t.Errorf("got %+v, want %s", o, geo.CodeProviderUnreachable)
		}
		if singles, batches, _ := u.counts(); singles+batches != 1 {
			t.Errorf("got %d requests, want the first alone", singles+batches)
		}
		if nodes.refused != 1 {
			t.Errorf("got %d writes refused, want one: the node knows then", nodes.refused)
		}
	})
}

// TestUnwrittenBudgetIsNotSpent has the database fail: nothing is sent that a successor would not
// know of.
func TestUnwrittenBudgetIsNotSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		nodes := newCluster(t, 2, u)
		if o := lookUp(nodes.at(1).Service, nth(1)); o.Err != nil {
			t.Fatal(o.Err)
		}
		setFail := func(err error) {
			nodes.mu.Lock()
			nodes.fail = err
			nodes.mu.Unlock()
		}
		setFail(fmt.Errorf("no database"))
		for i := range 2 {
			o := lookUp(nodes.at(i).Service, nth(2+i))
			if o.Err == nil || o.Err.Code != geo.CodeProviderUnreachable {
				t.Errorf("got %+v, want %s", o, geo.CodeProviderUnreachable)
			}
		}
		nodes.hold(nodes.names[1]) // it cannot read what is left
		time.AfterFunc(2*time.Second, func() { setFail(nil) })
		if o := lookUp(nodes.at(0).Service, nth(9)); o.Err != nil {
			t.Errorf("got %v, want the result once the database is back", o.Err)
		}
		if singles, batches, _ := u.counts(); singles+batches != 2 {
			t.Errorf("got %d requests, want 2", singles+batches)
		}
	})
}

// TestHandOverLosesNoLookup moves the partition to and fro under load, among nodes that all get
// requests.
func TestHandOverLosesNoLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		nodes := newCluster(t, 3, u)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 24 {
				time.Sleep(11 * time.Second)
				nodes.move(nodes.names[(i+1)%3], 200*time.Millisecond)
			}
		})
		var failed, limited atomic.Int64
		calls := poisson(10, 5*time.Minute, func(n int) {
			switch o := lookUp(nodes.at(n%3).Service, nth(n)); {
			case o.Err == nil:
			case o.Err.Code == geo.CodeRateLimited:
				limited.Add(1)
			default:
				failed.Add(1)
			}
		})
		wg.Wait()
		singles, batches, violations := u.counts()
		t.Logf("%d misses: %d limited, %d singles, %d batches", calls, limited.Load(), singles,
			batches)
		if violations > 0 || failed.Load() > 0 {
			t.Errorf("got %d requests on an empty budget and %d failures, want none",
				violations, failed.Load())
		}
		if got := float64(limited.Load()) / float64(calls); got > 0.05 {
			t.Errorf("got %.3f of the misses limited, want fewer", got)
		}
	})
}

// TestAnswersAreEverywhere looks a query up at each node: one fetches it, all others hit.
func TestAnswersAreEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		notFound := geo.Answer{Err: &geo.Error{
			Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound,
		}}
		u.answer = func(q geo.Query) geo.Answer {
			if q == nth(7) {
				return notFound
			}
			return located(q)
		}
		nodes := newCluster(t, 3, u)
		for _, q := range []geo.Query{nth(1), nth(7), domain(3)} {
			fetched := time.Now()
			first := lookUp(nodes.at(2).Service, q)
			if first.Entry == nil || first.Cached {
				t.Fatalf("%v: got %+v, want a miss with an answer", q, first)
			}
			time.Sleep(30 * time.Second)
			for i := range 3 {
				o := lookUp(nodes.at(i).Service, q)
				if !o.Cached || string(o.Entry.Body) != string(first.Entry.Body) ||
					o.Entry.Source() != geo.SourceUpstream || o.Entry.TTL() != first.Entry.TTL() {
					t.Errorf("%v at %d: got %+v, want a hit with the same answer", q, i, o)
				}
				if age := o.Entry.Age(time.Now()); age < 29 || age > 30 {
					t.Errorf("%v at %d: got age %d, want that since %v", q, i, age, fetched)
				}
				if (o.Err == nil) != (first.Err == nil) || o.Err != nil && *o.Err != *first.Err {
					t.Errorf("%v at %d: got %v, want %v", q, i, o.Err, first.Err)
				}
			}
		}
		if singles, batches, _ := u.counts(); singles+batches != 3 {
			t.Errorf("got %d requests, want 3", singles+batches)
		}
	})
}

// TestBulkIsOneAsk looks up many queries at a node that is not the holder.
func TestBulkIsOneAsk(t *testing.T) {
	for _, c := range []struct{ queries, asks, batches int }{{50, 1, 1}, {200, 1, 2}, {450, 3, 5}} {
		synctest.Test(t, func(t *testing.T) {
			u := freeTier()
			nodes := newCluster(t, 2, u)
			queries := make([]geo.Query, c.queries)
			for i := range queries {
				queries[i] = nth(i)
			}
			for i, o := range lookUpAll(nodes.at(1).Service, caller, queries) {
				if o.Err != nil {
					t.Errorf("query %d: got %v", i, o.Err)
				} else if !o.Entry.IsFor(queries[i].String()) {
					t.Errorf("query %d: got the answer to another one", i)
				}
			}
			_, batches, _ := u.counts()
			asks, casts := nodes.at(1).asks.Load(), nodes.at(0).casts.Load()
			if int(asks) != c.asks || batches > c.batches || int(casts) != batches {
				t.Errorf("%d queries: got %d asks, %d batches and %d casts, want %d, %d at most, and as many",
					c.queries, asks, batches, casts, c.asks, c.batches)
			}
		})
	}
}

// TestHolderUnreachable cuts the holder off: no other node sends until it is the holder. Each uses
// its files, or has the caller wait as long as the caller may.
func TestHolderUnreachable(t *testing.T) {
	for _, test := range []struct {
		name  string
		files bool
		next  time.Duration // when another node is the holder; 0 = none is
		least time.Duration // that the caller waits
		most  time.Duration
	}{
		{"files", true, 0, 0, 100 * time.Millisecond},
		{"no files", false, 0, 4 * time.Second, 5 * time.Second},
		{"no files, another holder", false, 3 * time.Second, 3 * time.Second, 3500 * time.Millisecond},
		{"no files, the holder is back", false, -2 * time.Second, 2 * time.Second, 2500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, offline := freeTier(), commercialTierOf(time.Millisecond)
				offline.terms.Source = geo.SourceMMDB
				nodes := newCluster(t, 2, u, func(c *lookup.Config) {
					if test.files {
						c.Fallback = offline
					}
				})
				nodes.at(0).setCut(true)
				switch {
				case test.next > 0:
					time.AfterFunc(test.next, func() { nodes.hold(nodes.names[1]) })
				case test.next < 0:
					time.AfterFunc(-test.next, func() { nodes.at(0).setCut(false) })
				}
				began := time.Now()
				o := lookUp(nodes.at(1).Service, nth(1))
				took := time.Since(began)
				switch {
				case took < test.least || took > test.most:
					t.Errorf("got the outcome after %v, want it after %v to %v", took, test.least, test.most)
				case test.files && (o.Err != nil || o.Entry.Source() != geo.SourceMMDB):
					t.Errorf("got %+v, want a result of the files", o)
				case test.next != 0 && (o.Err != nil || o.Entry.Source() != geo.SourceUpstream):
					t.Errorf("got %+v, want a result of the upstream", o)
				case !test.files && test.next == 0 && (o.Err == nil ||
					o.Err.Code != geo.CodeProviderUnreachable || o.Err.RetryAfter == 0):
					t.Errorf("got %+v, want %s", o, geo.CodeProviderUnreachable)
				}
				if singles, batches, _ := u.counts(); test.next == 0 && singles+batches != 0 {
					t.Errorf("got %d requests, want none", singles+batches)
				}
				nodes.at(0).setCut(false)
				if o := lookUp(nodes.at(1).Service, nth(2)); o.Err != nil ||
					o.Entry.Source() != geo.SourceUpstream {
					t.Errorf("afterwards: got %+v, want a result of the upstream", o)
				}
			})
		})
	}
}

// TestAskerTimesOut has the upstream respond later than a caller at another node waits.
func TestAskerTimesOut(t *testing.T) {
	for name, cut := range map[string]bool{"slow upstream": false, "holder fails meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := freeTier()
				u.latency = func() time.Duration { return 4 * time.Second }
				nodes := newCluster(t, 2, u, func(c *lookup.Config) { c.LookupTimeout = 2 * time.Second })
				began := time.Now()
				if cut {
					time.AfterFunc(time.Second, func() { nodes.at(0).setCut(true) })
				}
				o := lookUp(nodes.at(1).Service, nth(1))
				if o.Err == nil || o.Err.Code != geo.CodeProviderUnreachable {
					t.Errorf("got %+v, want %s", o, geo.CodeProviderUnreachable)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("a caller waited %v", took)
				}
			})
		})
	}
}

// TestBulkTimesOutInPart has one of two queries take too long: the other one is answered.
func TestBulkTimesOutInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		var exchanges atomic.Int64
		u.latency = func() time.Duration {
			if exchanges.Add(1) == 1 {
				return 50 * time.Millisecond
			}
			return 10 * time.Second
		}
		nodes := newCluster(t, 2, u)
		began := time.Now()
		got := lookUpAll(nodes.at(1).Service, caller, []geo.Query{nth(1), domain(1)})
		if (got[0].Err == nil) == (got[1].Err == nil) {
			t.Errorf("got %+v, want the result of one of them", got)
		}
		for _, o := range got {
			if o.Err != nil && o.Err.Code != geo.CodeProviderUnreachable {
				t.Errorf("got %v, want %s", o.Err, geo.CodeProviderUnreachable)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a caller waited %v", took)
		}
	})
}

// TestReplyComesInTime asks the holder for a caller who has waited elsewhere before: the reply has
// to arrive with what there is by then.
func TestReplyComesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := freeTier()
		u.latency = func() time.Duration { return 2 * time.Second }
		nodes := newCluster(t, 2, u)
		began, replied := time.Now(), make(chan struct{})
		nodes.at(0).HandlePeer(partition.Message{
			Kind: partition.Ask, Service: partition.ServiceLookups, Partition: partition.Lookups,
			Body: []byte(`{"Caller":"192.0.2.1/32","Left":1000000000,"Queries":["20.0.0.1"]}`),
		}, func(status partition.Status, epoch int64, body []byte) {
			took := time.Since(began)
			if status != partition.Done || epoch != 1 || took < 900*time.Millisecond || took >= time.Second {
				t.Errorf("got %d, %d, %s after %v, want a reply just in time", status, epoch, body, took)
			}
			close(replied)
		})
		<-replied
	})
}

// TestPeerWithoutReply asks and tells a node what it cannot handle.
func TestPeerWithoutReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newCluster(t, 2, freeTier())
		ask := func(n *node, part int, body string) (status partition.Status, reply []byte) {
			m := partition.Message{Kind: partition.Ask, Partition: part, Body: []byte(body)}
			replies := 0
			n.HandlePeer(m, func(s partition.Status, _ int64, b []byte) {
				status, reply = s, b
				replies++
			})
			if replies != 1 {
				t.Errorf("got %d replies at once, want 1", replies)
			}
			n.HandlePeer(m, nil)
			return status, reply
		}
		const good = `{"Queries":["20.0.0.1"]}`
		for _, c := range []struct {
			node, part int
			body       string
			want       partition.Status
		}{
			{0, partition.Lookups, "{", partition.Done},
			{0, 7, good, partition.Elsewhere},
			{0, -1, good, partition.Elsewhere},
			{0, partition.Count, good, partition.Elsewhere},
			{1, partition.Lookups, good, partition.Elsewhere},
		} {
			if got, reply := ask(nodes.at(c.node), c.part, c.body); got != c.want || reply != nil {
				t.Errorf("node %d, partition %d, %s: got %d, %q, want %d", c.node, c.part, c.body, got,
					reply, c.want)
			}
		}
	})
}

// TestErrorsAreTheSame compares errors at the holder and at another node.
func TestErrorsAreTheSame(t *testing.T) {
	for name, fail := range map[string]error{
		"forbidden": geo.ErrForbidden, "throttled": geo.ErrThrottled, "broken": fmt.Errorf("broken"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := freeTier()
				u.fail = func(geo.Endpoint) error { return fail }
				nodes := newCluster(t, 2, u, func(c *lookup.Config) { c.Breaker.Failures = 1 })
				for i := range 4 { // until the breaker is open, or both budgets are known to be empty
					lookUp(nodes.at(0).Service, nth(i))
				}
				here, there := lookUp(nodes.at(0).Service, nth(5)), lookUp(nodes.at(1).Service, nth(6))
				if here.Err == nil || there.Err == nil || *here.Err != *there.Err {
					t.Errorf("got %+v at another node, want %+v", there.Err, here.Err)
				}
			})
		})
	}
}

// TestQueriesHaveHolders uses an upstream without a budget: the holder of each query fetches it,
// and it is fetched once however many nodes are asked. What the holder has is a hit at all nodes.
func TestQueriesHaveHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := commercialTier()
		nodes := newCluster(t, 3, u)
		nodes.spread()
		queries := make([]geo.Query, 50)
		for i := range queries {
			queries[i] = nth(i)
		}
		for i := range 3 {
			for j, o := range lookUpAll(nodes.at(i).Service, caller, queries) {
				if o.Err != nil || !o.Entry.IsFor(queries[j].String()) {
					t.Errorf("query %d at node %d: got %+v, want its result", j, i, o)
				}
				if want := i > 0; o.Cached != want {
					t.Errorf("query %d at node %d: got a hit: %v, want %v", j, i, o.Cached, want)
				}
			}
			if asks := nodes.at(i).asks.Load(); asks > 2 {
				t.Errorf("got %d asks of one request, want one to each other node", asks)
			}
		}
		for i := range 3 {
			for j, o := range lookUpAll(nodes.at(i).Service, caller, queries) {
				if !o.Cached {
					t.Errorf("query %d at node %d: got %+v, want a hit", j, i, o)
				}
			}
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		if most := slices.Max(slices.Collect(maps.Values(u.items))); len(u.items) != 50 || most != 1 {
			t.Errorf("got %d queries sent, one of them %d times, want 50, each once", len(u.items), most)
		}
	})
}

// TestQueryWithoutHolder cuts nodes off that hold queries: each node fetches them itself.
func TestQueryWithoutHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newCluster(t, 3, commercialTier())
		nodes.spread()
		nodes.at(0).setCut(true)
		for i := range 3 {
			queries := make([]geo.Query, 50)
			for j := range queries {
				queries[j] = nth(i*50 + j)
			}
			for _, o := range lookUpAll(nodes.at(i).Service, caller, queries) {
				if o.Err != nil {
					t.Errorf("node %d: got %v", i, o.Err)
				}
			}
		}
	})
}

// TestFilesNeedNoPeers uses offline files as the only provider.
func TestFilesNeedNoPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := commercialTierOf(time.Millisecond)
		files.terms.Source = geo.SourceMMDB
		nodes := newCluster(t, 2, files)
		if o := lookUp(nodes.at(1).Service, nth(1)); o.Err != nil {
			t.Error(o.Err)
		}
		if asks := nodes.at(1).asks.Load(); asks != 0 {
			t.Errorf("got %d asks, want none", asks)
		}
	})
}

// TestCallerHasOneShare has a caller flood all nodes: its limit counts the lookups at all of them,
// and leaves room for another caller.
func TestCallerHasOneShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newCluster(t, 3, freeTier(), func(c *lookup.Config) { c.CallerLimit = 100 })
		var limited atomic.Int64
		poisson(20, 30*time.Second, func(n int) {
			if o := lookUp(nodes.at(n%3).Service, nth(n)); o.Err != nil {
				limited.Add(1)
			}
		})
		if got := limited.Load(); got < 400 {
			t.Errorf("got %d lookups of one caller limited, want all beyond 100", got)
		}
		other := netip.MustParseAddr("192.0.2.9")
		if o := lookUpFor(nodes.at(1).Service, other, nth(1_000_000)); o.Err != nil {
			t.Errorf("another caller: got %v, want a result", o.Err)
		}
	})
}
