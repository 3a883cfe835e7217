package token_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/token"
)

// cluster joins services by asks in memory. All partitions have one holder.
type cluster struct {
	nodes []*clusterNode

	size int // of nodes

	mu        sync.Mutex
	holder    int // index in nodes; -1 = nobody
	gone      int // index of a node without a row; -1 = none
	changed   chan struct{}
	epoch     int64
	claimed   int64
	asks      int
	version   int    // of frames that all nodes understand
	replying  func() // called before the reply of an ask arrives; nil = not
	confirms  int
	unknown   error // of Confirm
	confirmed func()
}

// clusterNode is a node, and its token.Peers.
type clusterNode struct {
	*fixture
	cluster *cluster
	index   int
	cutOff  bool // it reaches nobody
	lapsed  bool // it may not decide
}

// newCluster starts n services on one store. The first holds all partitions.
func newCluster(t *testing.T, n int, stale time.Duration) *cluster {
	t.Helper()
	c := &cluster{version: partition.Version, size: n, epoch: 1, claimed: 1, gone: -1, changed: make(chan struct{})}
	store := newStore(t)
	for i := range n {
		node := &clusterNode{cluster: c, index: i}
		node.fixture = start(t, store, func(config *token.Config) {
			config.OtherWriters, config.Peers, config.Stale = true, node, stale
		})
		c.nodes = append(c.nodes, node)
	}
	first := c.nodes[0]
	first.client, first.secret = first.register(t, oauth.Client{
		Name: "Shop", RedirectURIs: []string{"https://shop.example/cb"}, Scopes: oauth.UserScopes,
		Grants: oauth.AuthorizationCodeGrant | oauth.RefreshTokenGrant |
			oauth.ClientCredentialsGrant, DetailApproved: true,
	})
	for _, node := range c.nodes {
		node.client, node.secret = first.client, first.secret
	}
	c.confirms = 0
	return c
}

func (n *clusterNode) View() *partition.View {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	v := &partition.View{
		Self: fmt.Sprint(n.index), Up: n.cluster.size, Changed: n.cluster.changed,
		Version: n.cluster.version,
		Parts:   make([]partition.Part, partition.Count), Nodes: map[string]partition.Node{},
	}
	for i := range n.cluster.size {
		if i != n.cluster.gone {
			v.Nodes[fmt.Sprint(i)] = partition.Node{}
		}
	}
	part := partition.Part{
		Holder: fmt.Sprint(n.cluster.holder),
		Epoch:  n.cluster.epoch, Claimed: n.cluster.claimed, Mine: n.cluster.holder == n.index,
	}
	for i := range v.Parts {
		v.Parts[i] = part
	}
	return v
}

func (n *clusterNode) Decides(time.Time) bool {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return !n.lapsed
}

func (n *clusterNode) Ask(service byte, part int, body []byte, _ time.Time) ([]byte, int64, error) {
	n.cluster.mu.Lock()
	holder, cutOff := n.cluster.holder, n.cutOff || n.lapsed
	n.cluster.asks++
	n.cluster.mu.Unlock()
	switch {
	case holder < 0 || cutOff:
		return nil, 0, partition.ErrUnreachable
	case holder == n.index:
		return nil, 0, partition.ErrHere
	}
	type answer struct {
		status partition.Status
		epoch  int64
		body   []byte
	}
	answers := make(chan answer, 1)
	n.cluster.nodes[holder].HandlePeer(
		partition.Message{
			Kind: partition.Ask, Service: service, Partition: part, Body: body, From: fmt.Sprint(n.index),
		},
		func(status partition.Status, epoch int64, body []byte) {
			answers <- answer{status, epoch, body}
		})
	a := <-answers
	n.cluster.mu.Lock()
	replying := n.cluster.replying
	n.cluster.mu.Unlock()
	if replying != nil {
		replying()
	}
	if a.status != partition.Done {
		return nil, 0, partition.ErrBusy
	}
	return a.body, a.epoch, nil
}

func (n *clusterNode) AskNode(
	id string, service byte, part int, body []byte, _ time.Time,
) (reply []byte, err error) {
	n.cluster.mu.Lock()
	to, err := strconv.Atoi(id)
	away := err != nil || to == n.cluster.gone || n.cluster.nodes[to].cutOff || n.cutOff
	n.cluster.mu.Unlock()
	if away {
		return nil, partition.ErrUnreachable
	}
	n.cluster.nodes[to].HandlePeer(partition.Message{
		Kind: partition.AskNode, Service: service, Partition: part, Body: body, From: fmt.Sprint(n.index),
	}, func(_ partition.Status, _ int64, body []byte) { reply = body })
	return reply, nil
}

func (n *clusterNode) Confirm(context.Context) error {
	n.cluster.mu.Lock()
	n.cluster.confirms++
	confirmed, err := n.cluster.confirmed, n.cluster.unknown
	n.cluster.mu.Unlock()
	if confirmed != nil {
		confirmed()
	}
	return err
}

// change changes who holds the partitions.
func (c *cluster) change(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// move hands all partitions over to another node, as a holder that stops does.
func (c *cluster) move(to int) {
	from := c.nodes[c.holder]
	c.change(func() { c.holder = -1 })
	for part := range partition.Tokens {
		for i, counts := range from.ExportWindows(part) {
			c.nodes[to].ReceiveWindows(part, c.epoch+1, i == 0, counts)
		}
	}
	c.change(func() { c.holder, c.epoch = to, c.epoch+1 })
}

// claim makes another node the holder after the one before has failed.
func (c *cluster) claim(to int) {
	c.change(func() {
		c.gone, c.holder, c.epoch, c.claimed = c.holder, to, c.epoch+1, c.epoch+1
	})
}

// admit sends requests to the nodes in turn and returns how many were admitted, and the latest end
// of a window that was named.
func (c *cluster) admit(t *testing.T, bearer string, endpoint token.Endpoint, n int) (admitted int, reset int64) {
	t.Helper()
	for i := range n {
		got := c.nodes[i%len(c.nodes)].Admit(bearer, endpoint, time.Now())
		switch got.Verdict {
		case token.Admitted, token.InsufficientScope: // both are counted
			admitted++
		case token.RateLimited:
		default:
			t.Fatalf("got verdict %d, want the request admitted or limited", got.Verdict)
		}
		reset = max(reset, got.Rate.Reset)
	}
	return admitted, reset
}

// TestClusterCountsTogether uses two tokens at both endpoints over three nodes, for two windows.
func TestClusterCountsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		tokens := []string{c.nodes[0].newTokens(t).AccessToken, c.nodes[1].newTokens(t).AccessToken}
		for range 2 {
			for _, bearer := range tokens {
				opened := time.Now()
				for endpoint, want := range map[token.Endpoint]int{
					token.BasicProfile: 100, token.DetailedProfile: 50,
				} {
					got, reset := c.admit(t, bearer, endpoint, 200)
					if end := opened.Add(time.Minute).Unix(); got != want || reset < end || reset > end+1 {
						t.Errorf("got %d requests and the end %d, want %d and %d", got, reset, want, end)
					}
				}
			}
			wait(time.Minute)
		}
	})
}

// TestClusterAsksNoMoreAboutUsedWindow checks that a node which knows that a window is used up
// refuses by itself, and asks again when the holder is another one.
func TestClusterAsksNoMoreAboutUsedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		c.admit(t, bearer, token.BasicProfile, 202)
		before := c.asks
		if got, _ := c.admit(t, bearer, token.BasicProfile, 100); got != 0 || c.asks != before {
			t.Errorf("got %d requests and %d asks, want none", got, c.asks-before)
		}
		c.move(1)
		if got, _ := c.admit(t, bearer, token.BasicProfile, 100); got != 0 || c.asks == before {
			t.Errorf("got %d requests and %d asks, want no requests and an ask", got, c.asks-before)
		}
	})
}

// TestClusterMovesWindows moves the partitions between the requests of a window: to a node that
// knows the token, to one that does not, and on before it was asked.
func TestClusterMovesWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		total, end := 0, int64(0)
		for _, to := range []int{1, 2, 0, 1} {
			got, reset := c.admit(t, bearer, token.BasicProfile, 7)
			if end != 0 && reset != end {
				t.Errorf("got the end %d, want %d as before", reset, end)
			}
			total, end = total+got, reset
			c.move((to + 1) % 3)
			wait(time.Second)
			c.move(to)
		}
		got, _ := c.admit(t, bearer, token.BasicProfile, 200)
		if total += got; total != 100 {
			t.Errorf("got %d requests in a window, want 100", total)
		}
	})
}

// TestNodeHandsOverWhatItAllowedAlone has a node decide alone, then hold the partitions for a
// moment in which nobody uses the token.
func TestNodeHandsOverWhatItAllowedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		total, _ := c.admit(t, bearer, token.BasicProfile, 9)
		c.change(func() { c.nodes[2].cutOff = true })
		for range 100 {
			if c.nodes[2].Admit(bearer, token.BasicProfile, time.Now()).Verdict == token.Admitted {
				total++
			}
		}
		c.change(func() { c.nodes[2].cutOff = false })
		c.move(2)
		c.move(1)
		got, _ := c.admit(t, bearer, token.BasicProfile, 200)
		if total+got != 100 || total < 30 {
			t.Errorf("got %d and %d requests in a window, want 100", total, got)
		}
	})
}

// TestClusterRebuildsWindows has the holder fail. The next one learns from the others what it had
// counted, once, but not what others have not heard.
func TestClusterRebuildsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		c.version = 1 // without allowances: what all know is exact
		bearer := c.nodes[0].newTokens(t).AccessToken
		before, end := c.admit(t, bearer, token.BasicProfile, 60)
		wait(10 * time.Second)
		c.claim(1)
		after, reset := 0, int64(0)
		for i := range 200 { // the failed node gets none
			a := c.nodes[1+i%2].Admit(bearer, token.BasicProfile, time.Now())
			if a.Verdict == token.Admitted {
				after++
			}
			reset = a.Rate.Reset
		}
		if before != 60 || after != 40 || reset < end-1 || reset > end {
			t.Errorf("got %d, then %d requests and the end %d, want 60, 40 and %d", before, after, reset, end)
		}
		wait(50 * time.Second)
		if got, _ := c.admit(t, bearer, token.BasicProfile, 300); got != 100 {
			t.Errorf("got %d requests in the next window, want 100", got)
		}
	})
}

// TestClusterAllowsPartWithoutHolder has nobody to ask. Each of four nodes allows its part of what
// it knew to be left, and tells the next holder.
func TestClusterAllowsPartWithoutHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4, 0)
		c.version = 1 // without allowances: what all know is exact
		bearer := c.nodes[0].newTokens(t).AccessToken
		c.admit(t, bearer, token.BasicProfile, 40)
		c.change(func() { c.holder = -1 })
		synctest.Wait() // else a node may see the next holder only, after one that is still there
		got, _ := c.admit(t, bearer, token.BasicProfile, 400)
		// They knew 37, 38, 39 and 40 requests: floor(63/4)+floor(62/4)+floor(61/4)+floor(60/4).
		if want := 15 + 15 + 15 + 15; got != want {
			t.Errorf("got %d requests without a holder, want %d", got, want)
		}
		c.claim(1)
		wait(time.Second)
		if got, _ := c.admit(t, bearer, token.BasicProfile, 400); got != 0 {
			t.Errorf("got %d requests more, want none: 40 and 60 were reported", got)
		}
	})
}

// TestNodesReportToNewHolder has the holder of a used token fail, and lets two nodes decide alone
// for a while. The new holder hears of both at once, so that it allows no more than is left.
func TestNodesReportToNewHolder(t *testing.T) {
	for name, inUse := range map[string]bool{"token in use": true, "token unknown": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 4, 0)
				c.version = 1 // without allowances: what all know is exact
				bearer := c.nodes[0].newTokens(t).AccessToken
				allowed := func(node, n int) (admitted int) {
					for range n {
						if c.nodes[node].Admit(bearer, token.BasicProfile, time.Now()).Verdict == token.Admitted {
							admitted++
						}
					}
					return admitted
				}
				if inUse {
					allowed(1, 1)
				}
				total := allowed(2, 30)
				c.change(func() { c.holder = -1 })
				c.change(func() { c.holder, c.nodes[0].cutOff, c.nodes[2].cutOff, c.nodes[3].cutOff = 0, true, true, true })
				total += allowed(2, 100) + allowed(3, 100)
				c.change(func() { c.nodes[2].cutOff, c.nodes[3].cutOff = false, false })
				c.claim(1)
				wait(time.Second)
				total += allowed(1, 100)
				if inUse {
					total++
				}
				if total != 100 {
					t.Errorf("got %d requests, want 100 since the new holder knows of all", total)
				}
			})
		})
	}
}

// TestNodesReportWhenTheFailedHolderIsGone has nodes learn of the new holder first, and only then
// that the former one is gone.
func TestNodesReportWhenTheFailedHolderIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		c.version = 1 // without allowances: what all know is exact
		bearer := c.nodes[0].newTokens(t).AccessToken
		for range 30 {
			c.nodes[2].wantVerdict(t, "before", bearer, token.Admitted)
		}
		c.change(func() { c.holder, c.epoch, c.claimed = 1, c.epoch+1, c.epoch+1 })
		wait(200 * time.Millisecond)
		c.change(func() { c.gone = 0 })
		wait(200 * time.Millisecond)
		admitted := 0
		for range 100 {
			if c.nodes[1].Admit(bearer, token.BasicProfile, time.Now()).Verdict == token.Admitted {
				admitted++
			}
		}
		if admitted != 70 {
			t.Errorf("got %d requests at the new holder, want 70", admitted)
		}
	})
}

// TestAllowedAloneIsReportedOnce has a node ask many times at once after it was alone.
func TestAllowedAloneIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		total := 0
		c.change(func() { c.nodes[2].cutOff = true })
		for range 100 {
			if c.nodes[2].Admit(bearer, token.BasicProfile, time.Now()).Verdict == token.Admitted {
				total++
			}
		}
		c.change(func() {
			c.nodes[2].cutOff = false
			c.replying = func() { time.Sleep(time.Second) }
		})
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if c.nodes[2].Admit(bearer, token.BasicProfile, time.Now()).Verdict == token.Admitted {
					admitted.Add(1)
				}
			})
		}
		all.Wait()
		c.change(func() { c.replying = nil })
		rest, _ := c.admit(t, bearer, token.BasicProfile, 300)
		if got := total + int(admitted.Load()) + rest; got != 100 || total < 30 {
			t.Errorf("got %d alone, %d at once and %d requests then, want 100", total, admitted.Load(), rest)
		}
	})
}

// TestCountedRequestIsNotCountedAgain changes the user while the holder counts.
func TestCountedRequestIsNotCountedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		c.change(func() {
			c.replying = func() {
				for _, node := range c.nodes {
					if err := node.UserChanged(7, nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
		for left := 99; left > 95; left-- {
			got := c.nodes[1].Admit(bearer, token.BasicProfile, time.Now())
			if got.Verdict != token.Admitted || got.Rate.Remaining != left {
				t.Errorf("got verdict %d and %d left, want %d left", got.Verdict, got.Rate.Remaining, left)
			}
		}
	})
}

// TestUnknownTokenWithoutHolder uses a token that no node has seen while there is nobody to ask.
func TestUnknownTokenWithoutHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		c.change(func() { c.holder = -1 })
		first := c.nodes[0].Admit(bearer, token.BasicProfile, time.Now())
		if first.Rate.Limit != 100 || first.Rate.Remaining != 32 {
			t.Errorf("got %d of %d left, want 32 of 100: a third, less one", first.Rate.Remaining, first.Rate.Limit)
		}
		if got, _ := c.admit(t, bearer, token.BasicProfile, 600); got != 98 {
			t.Errorf("got %d requests more, want 98", got)
		}
	})
}

// TestNodeWithoutLeaseRefuses has a node lose its lease. It knows no longer what has ended.
func TestNodeWithoutLeaseRefuses(t *testing.T) {
	for _, c := range []struct {
		stale  time.Duration
		within token.Verdict
	}{{0, token.TryLater}, {30 * time.Second, token.Admitted}} {
		synctest.Test(t, func(t *testing.T) {
			nodes := newCluster(t, 2, c.stale).nodes
			bearer := nodes[0].newTokens(t).AccessToken
			nodes[1].wantVerdict(t, "with a lease", bearer, token.Admitted)
			nodes[1].cluster.change(func() { nodes[1].lapsed = true })
			nodes[1].fail(errors.New("away"))
			wait(5 * time.Second)
			nodes[1].wantVerdict(t, "without", bearer, c.within)
			wait(30 * time.Second)
			nodes[1].wantVerdict(t, "without for longer", bearer, token.TryLater)
		})
	}
}

// TestChangesAreConfirmed checks that no change returns before the other nodes have confirmed it,
// and that it fails when they have not.
func TestChangesAreConfirmed(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *fixture, *oauth.TokenResponse) error{
		"access token": func(t *testing.T, f *fixture, tokens *oauth.TokenResponse) error {
			return asError(f.Revoke(t.Context(), f.credentials(), tokens.AccessToken, time.Now()))
		},
		"refresh token": func(t *testing.T, f *fixture, tokens *oauth.TokenResponse) error {
			return asError(f.Revoke(t.Context(), f.credentials(), tokens.RefreshToken, time.Now()))
		},
		"consent": func(t *testing.T, f *fixture, _ *oauth.TokenResponse) error {
			return f.RevokeAll(t.Context(), &oauth.Revoke{
				Consent: &oauth.Grant{UserID: 7, ClientID: f.client.ID}})
		},
		"user": func(t *testing.T, f *fixture, _ *oauth.TokenResponse) error {
			f.disableInStore(true)
			return f.UserChanged(7, nil)
		},
		"client changed": func(t *testing.T, f *fixture, _ *oauth.TokenResponse) error {
			_, err := f.UpdateClient(t.Context(), f.client.ID, func(c *oauth.Client) error {
				c.Disabled = true
				return nil
			})
			return err
		},
		"secret added": func(t *testing.T, f *fixture, _ *oauth.TokenResponse) error {
			_, _, err := f.RotateSecret(t.Context(), f.client.ID, time.Now())
			return err
		},
		"client deleted": func(t *testing.T, f *fixture, _ *oauth.TokenResponse) error {
			return f.DeleteClient(t.Context(), f.client.ID)
		},
		"keys dropped": func(t *testing.T, f *fixture, _ *oauth.TokenResponse) error {
			_, err := f.RotateKeys(t.Context(), oauth.TokenKeys, true, time.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 2, 0)
				f := c.nodes[0].fixture
				tokens := f.newTokens(t)
				wait(2 * time.Second)
				committed := f.store.lastChange()
				c.confirmed = func() {
					if f.store.lastChange() == committed {
						t.Error("got a confirmation before the change was committed")
					}
				}
				c.unknown = errors.New("a node does not respond")
				if err := change(t, f, tokens); err == nil || c.confirms != 1 {
					t.Errorf("got %v after %d confirmations, want one and its error", err, c.confirms)
				}
			})
		})
	}
}

// TestRepeatedRevocationIsConfirmed revokes a token again whose revocation was not confirmed.
func TestRepeatedRevocationIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		f := c.nodes[0].fixture
		bearer := f.newTokens(t).AccessToken
		revoke := func() error {
			return asError(f.Revoke(t.Context(), f.credentials(), bearer, time.Now()))
		}
		c.unknown = errors.New("a node does not respond")
		for i := range 2 {
			if err := revoke(); err == nil || c.confirms != i+1 {
				t.Errorf("revocation %d: got %v after %d confirmations, want its error", i, err, c.confirms)
			}
		}
		c.unknown = nil
		if err := revoke(); err != nil {
			t.Error(err)
		}
	})
}

// TestChangesDoNotWaitForEachOther changes a client while the change of another waits for a node.
func TestChangesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		f := c.nodes[0].fixture
		other, _ := f.register(t, oauth.Client{Name: "Other", Grants: oauth.ClientCredentialsGrant})
		var slow atomic.Bool
		slow.Store(true)
		c.confirmed = func() {
			if slow.Swap(false) {
				time.Sleep(7 * time.Second)
			}
		}
		change := func(id string) error {
			_, err := f.UpdateClient(t.Context(), id, func(c *oauth.Client) error {
				c.Disabled = true
				return nil
			})
			return err
		}
		waiting := make(chan error, 1)
		go func() { waiting <- change(f.client.ID) }()
		synctest.Wait()
		began := time.Now()
		if err := change(other.ID); err != nil || time.Since(began) > time.Second {
			t.Errorf("got %v after %v, want the second change at once", err, time.Since(began))
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	})
}

// TestRevocationRepeatedElsewhereIsConfirmed revokes a token again before all nodes know of the
// first time, there and at another node: the response says that the token has ended on all nodes.
func TestRevocationRepeatedElsewhereIsConfirmed(t *testing.T) {
	for name, text := range map[string]func(*oauth.TokenResponse) string{
		"access token":  func(r *oauth.TokenResponse) string { return r.AccessToken },
		"refresh token": func(r *oauth.TokenResponse) string { return r.RefreshToken },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 2, 0)
				tokens := c.nodes[0].newTokens(t)
				c.unknown = errors.New("a node does not respond")
				for i, f := range []*fixture{c.nodes[0].fixture, c.nodes[0].fixture, c.nodes[1].fixture} {
					wait(2 * time.Second)
					err := asError(f.Revoke(t.Context(), f.credentials(), text(tokens), time.Now()))
					if err == nil || c.confirms != i+1 {
						t.Errorf("got %v after %d confirmations of %d requests, want an error and one each",
							err, c.confirms, i+1)
					}
				}
			})
		})
	}
}

// TestReuseIsConfirmed redeems a code again: its tokens have ended on all nodes then.
func TestReuseIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		f := c.nodes[0].fixture
		code := f.newCode(t)
		f.mustToken(t, f.codeRequest(code))
		if c.confirms != 0 {
			t.Errorf("got %d confirmations of a redemption, want none", c.confirms)
		}
		if _, fault := f.Token(t.Context(), f.codeRequest(code), time.Now()); fault == nil || c.confirms != 1 {
			t.Errorf("got %v after %d confirmations, want invalid_grant after one", fault, c.confirms)
		}
	})
}

// TestTokensOpenedForPeersAreBounded asks about a token whose client cannot be read.
func TestTokensOpenedForPeersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		f := c.nodes[0].fixture
		bearer := c.nodes[1].newTokens(t).AccessToken
		id, _, _ := oauth.PeekAccessToken(bearer)
		body := append(append([]byte{1}, id[:]...), 0, 0, 0, 0, 0)
		ask := partition.Message{Partition: int(id[0]), Body: append(body, bearer...)}
		if _, err := f.UpdateClient(t.Context(), f.client.ID, func(c *oauth.Client) error {
			c.Name = "Store"
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		f.store.onClientRead = func() { <-release }
		replies := map[partition.Status]int{}
		var mu sync.Mutex
		for range mailbox.Limit + 5 {
			f.HandlePeer(ask, func(status partition.Status, _ int64, _ []byte) {
				mu.Lock()
				defer mu.Unlock()
				replies[status]++
			})
		}
		synctest.Wait()
		mu.Lock()
		if replies[partition.Busy] != 5 || replies[partition.Done] != 0 {
			t.Errorf("got replies %v, want 5 that say busy", replies)
		}
		mu.Unlock()
		close(release)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if replies[partition.Done] != mailbox.Limit {
			t.Errorf("got replies %v, want all others done", replies)
		}
	})
}

// TestPeersMayNotMisleadHolder sends asks that no node sends.
func TestPeersMayNotMisleadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 0)
		bearer := c.nodes[0].newTokens(t).AccessToken
		// The kind, the ID and the endpoint, then the report and the text.
		ask := func(kind, endpoint byte, text string) []byte {
			body := append([]byte{kind}, make([]byte, len(oauth.TokenID{}))...)
			return append(append(body, endpoint, 0, 0, 0, 0), text...)
		}
		for name, body := range map[string][]byte{
			"empty": nil, "short": ask(1, 0, "")[:10], "unknown kind": ask(0, 0, bearer),
			"unknown endpoint": ask(1, 7, bearer), "garbage text": ask(1, 0, "gtat_garbage"),
			"another token's text": ask(1, 0, bearer), "long text": ask(1, 0, strings.Repeat("x", 300)),
			"no name": ask(3, 0, "")[:20], "a name and garbage": ask(3, 0, "\xff\xff"),
			"a name and another token's text": ask(3, 0, "\x01\x01\x01"+bearer),
			"close of an unknown token":       append(ask(4, 0, ""), 1), "short close": ask(4, 0, "")[:9],
			"close of an unknown endpoint":   append(ask(4, 9, ""), 1),
			"given back of an unknown token": append(ask(5, 0, ""), 1),
			"given back, short":              ask(5, 0, "")[:9], "given back, more than there is": append(ask(5, 0, ""), 255),
		} {
			replied := make(chan partition.Status, 1)
			c.nodes[0].HandlePeer(partition.Message{Partition: 0, Body: body},
				func(status partition.Status, _ int64, _ []byte) { replied <- status })
			if got := <-replied; got != partition.Done {
				t.Errorf("%s: got status %d, want a reply", name, got)
			}
		}
		if got, _ := c.admit(t, bearer, token.BasicProfile, 200); got != 100 {
			t.Errorf("got %d requests afterwards, want 100", got)
		}
	})
}
