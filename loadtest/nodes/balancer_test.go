package nodes_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/loadtest/nodes"
)

// fakeNode serves as both listeners of a node.
type fakeNode struct {
	public, admin *httptest.Server
	status        atomic.Int64 // of public responses; 0 = the connection ends
	down          atomic.Bool  // /readyz fails
	asked         atomic.Int64
}

func newFakeNode(t *testing.T) *fakeNode {
	f := &fakeNode{}
	f.status.Store(http.StatusOK)
	f.public = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.asked.Add(1)
		status := int(f.status.Load())
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
	}))
	f.admin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if f.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(func() {
		f.public.Close()
		f.admin.Close()
	})
	return f
}

// balance returns a balancer of three nodes that it knows to be ready.
func balance(t *testing.T) (*nodes.Balancer, []*fakeNode) {
	t.Helper()
	b, err := nodes.NewBalancer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	var all []*fakeNode
	for _, name := range []string{"a", "b", "c"} {
		f := newFakeNode(t)
		all = append(all, f)
		b.Add(name, f.public.Listener.Addr().(*net.TCPAddr).String(), f.admin.URL)
	}
	ready(t, b, 3)
	return b, all
}

// ready waits until the balancer knows that many nodes to be ready.
func ready(t *testing.T, b *nodes.Balancer, want int) {
	t.Helper()
	for began := time.Now(); b.Ready() != want; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("got %d ready nodes, want %d", b.Ready(), want)
		}
	}
}

// send sends a request through the balancer's listener and returns the status.
func send(t *testing.T, b *nodes.Balancer, method, authorization string) int {
	t.Helper()
	var request fasthttp.Request
	var response fasthttp.Response
	request.Header.SetMethod(method)
	request.Header.Set("Authorization", authorization)
	request.SetRequestURI(b.URL + "/api/user")
	if err := fasthttp.Do(&request, &response); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode()
}

func TestBalancerRepeats(t *testing.T) {
	for _, row := range []struct {
		name, method string
		broken       int64 // status of two nodes of three
		want         int   // 0 = that of the broken ones, or of the third
	}{
		{"cut", http.MethodGet, 0, http.StatusOK},
		{"503", http.MethodGet, http.StatusServiceUnavailable, http.StatusOK},
		{"502", http.MethodGet, http.StatusBadGateway, http.StatusOK},
		{"401", http.MethodGet, http.StatusUnauthorized, 0},
		{"POST", http.MethodPost, http.StatusServiceUnavailable, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b, all := balance(t)
			all[0].status.Store(row.broken)
			all[1].status.Store(row.broken)
			broken := false
			for range 30 {
				got := send(t, b, row.method, "")
				broken = broken || got == int(row.broken)
				if got != http.StatusOK && got != int(row.broken) || row.want != 0 && got != row.want {
					t.Fatalf("got status %d", got)
				}
			}
			if broken != (row.want == 0) {
				t.Errorf("got the status of a broken node %t, want %t", broken, row.want == 0)
			}
		})
	}
}

func TestBalancerWithoutNodes(t *testing.T) {
	b, all := balance(t)
	for _, f := range all {
		f.status.Store(http.StatusServiceUnavailable)
	}
	if got := send(t, b, http.MethodGet, ""); got != http.StatusServiceUnavailable {
		t.Errorf("got status %d from nodes that respond with 503, want that", got)
	}
	for _, f := range all {
		f.status.Store(0)
	}
	if got := send(t, b, http.MethodGet, ""); got != http.StatusBadGateway {
		t.Errorf("got status %d from nodes that do not respond, want 502", got)
	}
	for _, f := range all {
		f.down.Store(true)
	}
	ready(t, b, 0)
	if got := send(t, b, http.MethodGet, ""); got != http.StatusBadGateway {
		t.Errorf("got status %d without a node, want 502", got)
	}
}

// TestBalancerProbes takes a node out and puts it back.
func TestBalancerProbes(t *testing.T) {
	b, all := balance(t)
	all[0].down.Store(true)
	ready(t, b, 2)
	before := all[0].asked.Load()
	for range 30 {
		send(t, b, http.MethodGet, "")
	}
	if got := all[0].asked.Load(); got != before {
		t.Errorf("got %d requests at a node that is not ready, want none", got-before)
	}
	all[0].down.Store(false)
	ready(t, b, 3)
	for range 100 {
		send(t, b, http.MethodGet, "")
	}
	if all[0].asked.Load() == before {
		t.Error("got no request at a node that is ready again")
	}
}

func TestBalancerSticks(t *testing.T) {
	b, all := balance(t)
	b.Sticky.Store(true)
	used := map[int]bool{}
	for _, authorization := range []string{"Bearer 1", "Bearer 2", "Bearer 3", "Bearer 4", "Bearer 5",
		"Bearer 6", "Bearer 7", "Bearer 8", "Bearer 9", "Bearer 10"} {
		var before [3]int64
		for i, f := range all {
			before[i] = f.asked.Load()
		}
		for range 5 {
			send(t, b, http.MethodGet, authorization)
		}
		for i, f := range all {
			switch f.asked.Load() - before[i] {
			case 0:
			case 5:
				used[i] = true
			default:
				t.Errorf("%s: got requests at several nodes, want one", authorization)
			}
		}
	}
	if len(used) < 2 {
		t.Errorf("got %d nodes in use for ten tokens, want more", len(used))
	}
}
