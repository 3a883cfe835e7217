package limits_test

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/partition"
	"gatehouse/actors/ratelimit"
	"gatehouse/providers/cluster/limits"
)

// node is a node of a cluster in one process, with a throttle and a pacer of its own.
type node struct {
	nodes    []*node
	id       string
	view     partition.View
	limits   *limits.Limits
	throttle ratelimit.Limiter[netip.Addr]
	pacer    ratelimit.Limiter[string]

	mu   sync.Mutex
	cut  bool
	asks int
}

// cluster returns n nodes that hold the partitions in turn.
func cluster(n int) []*node {
	nodes := make([]*node, n)
	for i := range nodes {
		nodes[i] = &node{nodes: nodes, id: fmt.Sprint(i), view: partition.View{
			Self: fmt.Sprint(i), Parts: make([]partition.Part, partition.Count),
		}}
		for p := range nodes[i].view.Parts {
			nodes[i].view.Parts[p] = partition.Part{Holder: fmt.Sprint(p % n), Epoch: 7, Mine: p%n == i}
		}
		l := limits.New(nodes[i])
		nodes[i].limits = l
		nodes[i].throttle = ratelimit.ShareThrottle(l, "wrong_secrets",
			ratelimit.NewThrottle(10, time.Minute, 1_000))
		nodes[i].pacer = ratelimit.SharePacer(l, "guesses",
			ratelimit.NewPacer[string](3, time.Minute, 1_000),
			func(s string) []byte { return []byte(s) },
			func(text []byte) (string, bool) { return string(text), true })
	}
	return nodes
}

// View implements limits.Peers.
func (n *node) View() *partition.View { return &n.view }

// Ask implements limits.Peers.
func (n *node) Ask(service byte, part int, body []byte, _ time.Time) ([]byte, int64, error) {
	n.mu.Lock()
	n.asks++
	cut := n.cut
	n.mu.Unlock()
	to := n.nodes[part%len(n.nodes)]
	to.mu.Lock()
	cut = cut || to.cut
	to.mu.Unlock()
	time.Sleep(time.Millisecond)
	if cut {
		return nil, 0, partition.ErrUnreachable
	}
	if to == n {
		return nil, 0, partition.ErrHere
	}
	m := partition.Message{
		Kind: partition.Ask, Service: service, Partition: part, Body: slices.Clone(body),
	}
	var got []byte
	var at partition.Status
	to.limits.HandlePeer(m, func(status partition.Status, _ int64, body []byte) {
		at, got = status, body
	})
	if at != partition.Done {
		return nil, 0, partition.ErrUnreachable
	}
	return got, 7, nil
}

// setCut cuts all nodes off from each other, or connects them.
func setCut(nodes []*node, cut bool) {
	for _, n := range nodes {
		n.mu.Lock()
		n.cut = cut
		n.mu.Unlock()
	}
}

// attempts returns how many of many attempts at the nodes in turn are let through.
func attempts(nodes []*node, caller func(i int) netip.Addr) (n int) {
	for i := range 60 * len(nodes) {
		if nodes[i%len(nodes)].throttle.Take(caller(i), time.Now()) == 0 {
			n++
		}
	}
	return n
}

func v4(int) netip.Addr { return netip.MustParseAddr("192.0.2.1") }

// from returns callers of a network: i is the last of the bytes that differ.
func from(at int) func(i int) netip.Addr {
	return func(i int) netip.Addr {
		b := netip.MustParseAddr("2001:db8::1").As16()
		b[at] = byte(i)
		return netip.AddrFrom16(b)
	}
}

// TestOneBurstOverAllNodes has an attacker use all nodes in turn.
func TestOneBurstOverAllNodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		caller func(i int) netip.Addr
		want   int
	}{
		{"IPv4", v4, 10},
		{"IPv6 /64", from(15), 10},
		{"IPv6 /56", from(7), 20},
		{"IPv6 /48", from(6), 40},
		{"no address", func(int) netip.Addr { return netip.Addr{} }, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := cluster(3)
				if got := attempts(nodes, c.caller); got != c.want {
					t.Errorf("got %d attempts, want %d", got, c.want)
				}
				wait := nodes[1].throttle.Take(c.caller(1), time.Now())
				if wait <= 0 || wait > time.Minute {
					t.Errorf("got a wait of %v, want one of the next minute", wait)
				}
				time.Sleep(wait)
				if wait := nodes[2].throttle.Take(c.caller(1), time.Now()); wait != 0 {
					t.Errorf("after the wait: got another of %v", wait)
				}
			})
		})
	}
}

// TestUnreachableHolder cuts all nodes off: each counts alone.
func TestUnreachableHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(3)
		setCut(nodes, true)
		if got := attempts(nodes, v4); got != 30 {
			t.Errorf("got %d attempts, want 10 at each node", got)
		}
		for _, n := range nodes {
			n.throttle.Forgive(v4(0)) // counted there
			time.Sleep(time.Second)
			synctest.Wait()
			if wait := n.throttle.Take(v4(0), time.Now()); wait != 0 {
				t.Errorf("after one was forgiven: got a wait of %v", wait)
			}
		}
	})
}

// TestForgivenAttempts has people sign in at all nodes: those who succeed are never limited.
func TestForgivenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(3)
		for i := range 1_000 {
			n := nodes[i%3]
			if wait := n.throttle.Take(v4(0), time.Now()); wait != 0 {
				t.Fatalf("attempt %d: got a wait of %v", i, wait)
			}
			n.throttle.Forgive(v4(0))
			time.Sleep(10 * time.Millisecond) // Forgive does not wait
		}
		if got := attempts(nodes, v4); got != 10 {
			t.Errorf("got %d attempts afterwards, want 10", got)
		}
	})
}

// TestManyForgiven forgives more at once than may be under way.
func TestManyForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(2)
		callers := make([]netip.Addr, 1_000)
		for i := range callers {
			callers[i] = netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)})
			for range 10 {
				nodes[0].throttle.Take(callers[i], time.Now())
			}
		}
		for _, caller := range callers {
			nodes[0].throttle.Forgive(caller)
		}
		time.Sleep(time.Second)
		for i, caller := range callers {
			if wait := nodes[1].throttle.Take(caller, time.Now()); wait != 0 {
				t.Fatalf("caller %d: got a wait of %v", i, wait)
			}
		}
	})
}

// TestKeysOfPacer counts each key over all nodes, and not those of another limit.
func TestKeysOfPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(3)
		for key := range 50 {
			allowed := 0
			for i := range 30 {
				if nodes[i%3].pacer.Take(fmt.Sprint(key), time.Now()) == 0 {
					allowed++
				}
			}
			if allowed != 3 {
				t.Errorf("key %d: got %d attempts, want 3", key, allowed)
			}
		}
		if nodes[0].asks == 0 || nodes[0].asks == 50*10 {
			t.Errorf("got %d asks of 500 attempts, want those for the keys of other nodes", nodes[0].asks)
		}
	})
}

// FuzzHandlePeer sends a node what no node sends.
func FuzzHandlePeer(f *testing.F) {
	f.Add(0, []byte("\x0dwrong_secrets\x01\xc0\x00\x02\x01"))
	f.Add(0, []byte("\x07guesses\x02key"))
	f.Add(0, []byte("\x0dwrong_secrets\x01\xc0\x00"))
	f.Add(257, []byte("\xff"))
	f.Add(-1, []byte(nil))
	n := cluster(1)[0]
	f.Fuzz(func(t *testing.T, part int, body []byte) {
		replies := 0
		m := partition.Message{Kind: partition.Ask, Partition: part, Body: body}
		n.limits.HandlePeer(m, func(partition.Status, int64, []byte) { replies++ })
		if replies != 1 {
			t.Errorf("got %d replies, want 1", replies)
		}
		n.limits.HandlePeer(m, nil)
	})
}
