package cluster_test

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/partition"
	"gatehouse/providers/cluster"
)

// load asks for all partitions of token until stop is called, and returns the errors.
func load(m *member, each time.Duration) (stop func() (asked int, failed []error)) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	asked := 0
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; ; i += 4 {
				select {
				case <-done:
					return
				default:
				}
				_, _, err := m.Ask(service, i%partition.Tokens, []byte("x"), soon())
				mu.Lock()
				asked++
				if err != nil && !errors.Is(err, partition.ErrHere) {
					failed = append(failed, fmt.Errorf("partition %d: %w", i%partition.Tokens, err))
				}
				mu.Unlock()
				time.Sleep(each)
			}
		})
	}
	return func() (int, []error) {
		close(done)
		wg.Wait()
		return asked, failed
	}
}

func TestJoinAndLeaveFailNoAsk(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	stop := load(a, time.Millisecond)
	c := start(t, r, k)
	settled(t, a, b, c)
	if err := c.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(t, a, b) // until they know that it has left, it says so itself
	c.Stop()
	if asked, failed := stop(); len(failed) > 0 || asked < 100 {
		t.Errorf("got %d of %d asks failed, the first with %v, want none", len(failed), asked, failed[0])
	}
	if _, ok := r.nodes[c.View().Self]; ok {
		t.Error("got the row of the node that left still there")
	}
	received := 0
	c.counts.Range(func(part, counts any) bool {
		received++
		if want := fmt.Sprintf("counts of %d", part); counts != want {
			t.Errorf("got %q received, want %q", counts, want)
		}
		return true
	})
	if received == 0 {
		t.Error("got no counts moved to the node that joined")
	}
}

func TestKilledNodeIsReplaced(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b, c := start(t, r, k), start(t, r, k), start(t, r, k)
	settled(t, a, b, c)
	part := other(t, a, c)
	began := time.Now()
	c.Stop()
	eventually(t, func() string {
		if _, _, err := a.Ask(service, part, nil, soon()); !errors.Is(err, partition.ErrUnreachable) {
			return fmt.Sprintf("got %v, want %v", err, partition.ErrUnreachable)
		}
		return ""
	})
	settled(t, a, b)
	t.Logf("replaced after %v", time.Since(began))
}

// replyTime is how long a node waits for the reply to a frame.
const replyTime = time.Second

func TestFrozenNodeIsSuspected(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := startWith(t, r, k, 0), start(t, r, k)
	thaw := make(chan struct{})
	frozen := make(chan struct{}, 100)
	b.Handle(8, func(ask partition.Message, reply func(partition.Status, int64, []byte)) {
		frozen <- struct{}{}
		<-thaw
		reply(partition.Done, 1, nil)
	})
	settled(t, a, b)
	part := other(t, a, b)
	began := time.Now()
	if _, _, err := a.Ask(8, part, nil, time.Now().Add(time.Hour)); !errors.Is(err, partition.ErrUnreachable) {
		t.Errorf("got %v, want %v", err, partition.ErrUnreachable)
	}
	if took := time.Since(began); took < replyTime {
		t.Errorf("got the node suspected after %v, want %v", took, replyTime)
	}
	<-frozen
	for range 3 { // it is not waited for
		if _, _, err := a.Ask(service, part, nil, time.Now().Add(time.Hour)); !errors.Is(err, partition.ErrUnreachable) {
			t.Errorf("got %v of a suspected node, want %v", err, partition.ErrUnreachable)
		}
	}
	close(thaw)
	eventually(t, func() string {
		if _, _, err := a.Ask(service, part, nil, soon()); err != nil {
			return fmt.Sprintf("got %v of a node that responds again", err)
		}
		return ""
	})
}

func TestLateReplies(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	type pending struct {
		body  string
		reply func(partition.Status, int64, []byte)
	}
	slow := make(chan pending, 10)
	b.Handle(8, func(ask partition.Message, reply func(partition.Status, int64, []byte)) {
		slow <- pending{string(ask.Body), reply}
	})
	settled(t, a, b)
	part := other(t, a, b)
	var wg sync.WaitGroup
	for _, body := range []string{"one", "two", "three"} {
		wg.Go(func() {
			got, epoch, err := a.Ask(8, part, []byte(body), time.Now().Add(time.Minute))
			if string(got) != "reply to "+body || epoch != 7 || err != nil {
				t.Errorf("ask %s: got %q, epoch %d, %v", body, got, epoch, err)
			}
		})
	}
	list := []pending{<-slow, <-slow, <-slow}
	// Other asks pass them, for longer than a frame may take.
	for end := time.Now().Add(2 * replyTime); time.Now().Before(end); time.Sleep(replyTime / 10) {
		if _, _, err := a.Ask(service, part, nil, soon()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range list {
		p.reply(partition.Done, 7, []byte("reply to "+p.body))
		p.reply(partition.Done, 8, []byte("a second reply"))
	}
	wg.Wait()
	// An ask ends with its time.
	if _, _, err := a.Ask(8, part, nil, time.Now().Add(replyTime/4)); !errors.Is(err, partition.ErrUnreachable) {
		t.Errorf("got %v, want %v", err, partition.ErrUnreachable)
	}
}

func TestAsksOutcomes(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := startWith(t, r, k, 2*time.Second), start(t, r, k)
	b.Handle(8, func(ask partition.Message, reply func(partition.Status, int64, []byte)) {
		reply(partition.Status(ask.Body[0]), 1, nil)
	})
	settled(t, a, b)
	part := other(t, a, b)
	for _, row := range []struct {
		service byte
		status  partition.Status
		want    error
		waits   bool
	}{
		{8, partition.Done, nil, false},
		{8, partition.Busy, partition.ErrBusy, false},
		{8, partition.Elsewhere, partition.ErrUnreachable, true},
		{8, 77, partition.ErrUnreachable, false},
		{7, partition.Done, partition.ErrUnreachable, false}, // no handler
	} {
		began := time.Now()
		_, _, err := a.Ask(row.service, part, []byte{byte(row.status)}, soon())
		if !errors.Is(err, row.want) {
			t.Errorf("status %d: got %v, want %v", row.status, err, row.want)
		}
		if took := time.Since(began); row.waits && took < 2*time.Second {
			t.Errorf("status %d: got the result after %v, want to wait for 2 s", row.status, took)
		}
	}
}

func TestAsksAreBounded(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	b.Handle(8, func(partition.Message, func(partition.Status, int64, []byte)) {})
	settled(t, a, b)
	var busy, unreachable atomic.Int64
	var stopping atomic.Bool
	var wg sync.WaitGroup
	for range cluster.MaxAsks + 1 {
		wg.Go(func() {
			for id := b.first.Self; ; id = b.View().Self {
				_, err := a.AskNode(id, 8, 0, nil, time.Now().Add(time.Hour))
				switch {
				case errors.Is(err, partition.ErrBusy):
					busy.Add(1)
					return
				case stopping.Load():
					unreachable.Add(1)
					return
				}
				time.Sleep(time.Second) // a busy machine has parted the nodes
			}
		})
	}
	eventually(t, func() string {
		if got := busy.Load(); got != 1 {
			return fmt.Sprintf("got %d of %d asks refused, want 1", got, cluster.MaxAsks+1)
		}
		return ""
	})
	stopping.Store(true)
	a.Stop()
	wg.Wait()
	if got := unreachable.Load(); got != cluster.MaxAsks {
		t.Errorf("got %d asks ended by Stop, want %d", got, cluster.MaxAsks)
	}
}

// TestReadyAsksShareAFrame: with one processor, all requests that are ready ask before the first
// frame leaves. Rarely the processor is taken away meanwhile, so that the test tries again.
func TestReadyAsksShareAFrame(t *testing.T) {
	r, k := newRows(), newKeys(1)
	registry := prometheus.NewRegistry()
	a := start(t, r, k, func(c *cluster.Config) { c.Metrics = registry })
	b := start(t, r, k)
	settled(t, a, b)
	part := other(t, a, b)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const asks = 16
	eventually(t, func() string {
		before := gather(t, registry)["gatehouse_cluster_frames_total"]
		var all sync.WaitGroup
		for range asks {
			all.Go(func() {
				if _, _, err := a.Ask(service, part, nil, soon()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := gather(t, registry)["gatehouse_cluster_frames_total"] - before; got != 1 {
			return fmt.Sprintf("got %v frames with %d asks, want one", got, asks)
		}
		return ""
	})
}

func TestCastGoesToAllOthers(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b, c := start(t, r, k), start(t, r, k), start(t, r, k)
	settled(t, a, b, c)
	body := []byte("news")
	a.Cast(service, body)
	copy(body, "none")
	for _, m := range []*member{b, c} {
		if got := <-m.casts; got != "news" {
			t.Errorf("got %q cast, want news", got)
		}
	}
	if len(a.casts) > 0 {
		t.Error("got a cast at its sender")
	}
}

func TestConfirmWaitsForAllNodes(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b, c := start(t, r, k), start(t, r, k), start(t, r, k)
	settled(t, a, b, c)
	followed := [2]int64{b.follow.Load(), c.follow.Load()}
	r.commit()
	began := time.Now()
	if err := a.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("confirmed after %v", time.Since(began))
	if b.follow.Load() == followed[0] || c.follow.Load() == followed[1] {
		t.Error("got a change confirmed before the others have applied it")
	}
	c.store.cut(true)
	r.commit()
	began = time.Now()
	c.Stop()
	if err := a.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("confirmed without a node after %v", time.Since(began))
	c.store.cut(false)
}

func TestLapsedNodeJoinsAgain(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	a, b := start(t, r, k), start(t, r, k)
	settled(t, a, b)
	former, reloads := b.View().Self, b.reload.Load()
	b.store.cut(true)
	eventually(t, func() string {
		if b.Decides(time.Now()) {
			return "got a node that decides without the database"
		}
		return ""
	})
	b.store.cut(false)
	settled(t, a, b)
	if b.View().Self == former {
		t.Error("got the same ID after a lapse")
	}
	if b.reload.Load() == reloads {
		t.Error("got nothing read again after a lapse")
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, row := range []struct{ listen, advertise, want string }{
		{l.Addr().String(), "", "address already in use"},
		{"0.0.0.0:0", "", "address"},
		{":0", "", "address"},
		{"127.0.0.1:0", "here", "address"},
		{"nonsense", "", "missing port"},
	} {
		c, _ := config(newRows(), newKeys(1))
		c.Listen, c.Advertise = row.listen, row.advertise
		if _, err := cluster.New(c); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("listen %s, advertise %s: got %v, want an error with %q", row.listen, row.advertise, err, row.want)
		}
	}
	c, _ := config(newRows(), newKeys())
	if _, err := cluster.New(c); err == nil {
		t.Error("got a node without a key")
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	r, k := newRows(), newKeys(1)
	registry := prometheus.NewRegistry()
	a := start(t, r, k, func(c *cluster.Config) { c.Metrics = registry })
	settled(t, a) // it claims all partitions
	b := start(t, r, k)
	settled(t, a, b)
	part := other(t, a, b)
	if _, _, err := a.Ask(service, part, nil, soon()); err != nil {
		t.Fatal(err)
	}
	if err := a.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	held, lookups := 0, 0
	for i, p := range a.View().Parts {
		switch {
		case p.Mine && i < partition.Tokens:
			held++
		case p.Mine:
			lookups++
		}
	}
	values := gather(t, registry)
	for name, want := range map[string]float64{
		`gatehouse_cluster_asks_total{replied}`:        1,
		`gatehouse_cluster_ask_seconds`:                1,
		`gatehouse_cluster_confirm_seconds`:            1,
		`gatehouse_cluster_partitions_held`:            float64(held),
		`gatehouse_cluster_nodes{up}`:                  2,
		`gatehouse_cluster_nodes{joining}`:             0,
		`gatehouse_cluster_moves_total{claimed}`:       partition.Count,
		`gatehouse_cluster_moves_total{handed}`:        float64(partition.Count - held - lookups),
		`gatehouse_cluster_refused_total{connections}`: 0,
		`gatehouse_cluster_asks_total{unreachable}`:    0,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if age := values["gatehouse_cluster_lease_age_seconds"]; age <= 0 || age > 4.5 {
		t.Errorf("got a lease age of %v s, want at most 4.5", age)
	}
	if values["gatehouse_cluster_frames_total"] == 0 {
		t.Error("got no frames counted")
	}
	a.Stop()
	if values := gather(t, registry); len(values) > 0 {
		t.Errorf("got metrics after Stop: %v", values)
	}
}

// gather returns the values of all metrics, and the counts of histograms.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, label := range m.Label {
				name += "{" + label.GetValue() + "}"
			}
			switch {
			case m.Counter != nil:
				values[name] = m.Counter.GetValue()
			case m.Gauge != nil:
				values[name] = m.Gauge.GetValue()
			case m.Histogram != nil:
				values[name] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return values
}
