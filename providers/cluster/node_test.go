package cluster_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/providers/cluster"
)

const service = 9

// keys are the keys of the authority, which a test can rotate.
type keys struct {
	mu   sync.Mutex
	list []oauth.Key
}

func newKeys(seeds ...byte) *keys {
	k := &keys{}
	k.set(seeds...)
	return k
}

func (k *keys) set(seeds ...byte) {
	list := make([]oauth.Key, len(seeds))
	for i, seed := range seeds {
		list[i].Secret = [32]byte{seed}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = list
}

func (k *keys) get() []oauth.Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list
}

// member is a node of a test. Its service replies with the partition and body of each ask.
type member struct {
	*cluster.Node
	first  *partition.View // from before it has joined
	store  *store
	asked  atomic.Int64
	casts  chan string
	reload atomic.Int64
	follow atomic.Int64
	counts sync.Map    // of partitions that were received
	broken atomic.Bool // its services apply no changes
}

// config returns the settings of a node.
func config(r *rows, k *keys) (cluster.Config, *store) {
	s := &store{rows: r}
	c := cluster.Config{Store: s, Listen: "127.0.0.1:0", Name: "test", Version: "v1",
		Egress: "here", Authority: k.get}
	if testing.Verbose() {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c, s
}

// start starts a node that is stopped at the end of the test. It suspects no other node only
// because the machine is busy.
func start(tb testing.TB, r *rows, k *keys, change ...func(*cluster.Config)) *member {
	tb.Helper()
	return startWith(tb, r, k, 5*time.Minute, change...)
}

// startWith starts a node that waits for replies for so long; 0 = as in use.
func startWith(tb testing.TB, r *rows, k *keys, patience time.Duration,
	change ...func(*cluster.Config)) *member {
	tb.Helper()
	c, s := config(r, k)
	for _, f := range change {
		f(&c)
	}
	n, err := newNode(tb, c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(n.Stop)
	if patience > 0 {
		n.BePatient(patience)
	}
	m := &member{Node: n, first: n.View(), store: s, casts: make(chan string, 100)}
	n.Handle(service, m.handle)
	n.Start(cluster.Services{
		Follow: func(context.Context) (int64, error) {
			if m.broken.Load() {
				return 0, errCut
			}
			m.follow.Add(1)
			return r.lastChange(), nil
		},
		Reload: func(context.Context) (int64, error) { m.reload.Add(1); return r.lastChange(), nil },
		Export: func(part int) [][]byte {
			return [][]byte{fmt.Appendf(nil, "counts of %d", part)}
		},
		ReceiveCounts: func(part int, epoch int64, first bool, counts []byte) {
			m.counts.Store(part, string(counts))
		},
	})
	return m
}

func (m *member) handle(ask partition.Message,
	reply func(partition.Status, int64, []byte)) {
	if reply == nil {
		m.casts <- string(ask.Body)
		return
	}
	m.asked.Add(1)
	p := m.View().Parts[ask.Partition]
	body := binary.AppendUvarint(nil, uint64(ask.Partition))
	reply(partition.Done, p.Epoch, append(body, ask.Body...))
}

// eventually waits until f returns "", and fails the test with what it returned last.
func eventually(tb testing.TB, f func() string) {
	tb.Helper()
	last := ""
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if last = f(); last == "" {
			return
		}
	}
	tb.Fatal(last)
}

// settled waits until all members see each other up, and each partition has a holder among them.
func settled(tb testing.TB, members ...*member) {
	tb.Helper()
	eventually(tb, func() string {
		ids := []string{}
		for _, m := range members {
			ids = append(ids, m.View().Self)
		}
		for i, m := range members {
			v := m.View()
			if v.Up != len(members) || len(v.Nodes) != len(members) || !m.Decides(time.Now()) {
				return fmt.Sprintf("node %d sees %d of %d nodes up", i, v.Up, len(v.Nodes))
			}
			held := 0
			for j, p := range v.Parts {
				if p.Mine {
					held++
				}
				if p.Moving || !slices.Contains(ids, p.Holder) {
					return fmt.Sprintf("partition %d: node %d sees %+v", j, i, p)
				}
				if holder := members[slices.Index(ids, p.Holder)]; !holder.View().Parts[j].Mine {
					return fmt.Sprintf("partition %d: node %d sees %+v", j, i, p)
				}
			}
			if held < partition.Tokens/len(members)/2 {
				return fmt.Sprintf("node %d holds %d partitions", i, held)
			}
		}
		return ""
	})
}

// other returns a partition that m does not hold.
func other(tb testing.TB, m, holder *member) int {
	tb.Helper()
	v := m.View()
	for i := range v.Parts {
		if v.Parts[i].Holder == holder.View().Self {
			return i
		}
	}
	tb.Fatal("got no partition of the other node")
	return 0
}

func soon() time.Time { return time.Now().Add(time.Minute) }

func TestAsksGoToTheHolder(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	for i := range partition.Count {
		for _, m := range []*member{a, b} {
			body, epoch, err := m.Ask(service, i, []byte("hello"), soon())
			if m.View().Parts[i].Mine {
				if !errors.Is(err, partition.ErrHere) {
					t.Fatalf("partition %d of the node: got %v, want %v", i, err, partition.ErrHere)
				}
				continue
			}
			want := string(append(binary.AppendUvarint(nil, uint64(i)), "hello"...))
			if err != nil || string(body) != want || epoch != m.View().Parts[i].Epoch {
				t.Fatalf("partition %d: got %q, epoch %d, %v", i, body, epoch, err)
			}
		}
	}
	select {
	case <-a.first.Changed:
	default:
		t.Error("who follows the views since the start of the node has heard of none")
	}
}

func TestAsksGoToANode(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	own := other(t, a, a) // b need not hold what it is asked about
	body, err := a.AskNode(b.View().Self, service, own, []byte("hello"), soon())
	if want := string(append(binary.AppendUvarint(nil, uint64(own)), "hello"...)); string(body) != want || err != nil {
		t.Errorf("got %q, %v, want %q", body, err, want)
	}
	if _, err := a.AskNode("gone", service, own, nil, soon()); !errors.Is(err, partition.ErrUnreachable) {
		t.Errorf("got %v of a node that is gone, want %v", err, partition.ErrUnreachable)
	}
}
