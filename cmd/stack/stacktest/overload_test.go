package stacktest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/cmd/stack/stacktest/emulator"
	"gatehouse/providers/ipapi"
)

const (
	// heapBound is the most that the test may add to the heap for each node, with both ends of 2,000
	// connections.
	heapBound = 96 << 20
	// growthBound is the most that a second round of garbage queries may add to that.
	growthBound = 2 << 20
)

// TestOverloadKeepsCachedLookups has 2,000 idle connections, and 64 clients that send garbage
// queries without a pause. Meanwhile every cached lookup must be a hit. A second round must not
// need more memory. The scenario overload of loadtest adds slow clients, and measures latency.
func TestOverloadKeepsCachedLookups(t *testing.T) {
	before := liveHeap()
	e := emulator.New(t, emulator.Config{Singles: emulator.FreeSingles, Batches: emulator.FreeBatches})
	s := &overloaded{stacktest.New(t, func(c *stack.Config) {
		c.Lookups.Upstream = ipapi.Config{Base: e.URL, Tier: ipapi.Free}
		c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = timeout, timeout, timeout
		c.Log = io.Discard // stacktest keeps every line in memory
	}), t}
	c := s.connect()
	if status, cache := c.lookup("8.8.8.8"); status != http.StatusOK || cache != "miss" {
		t.Fatalf("got %d and X-Cache %q, want 200 and a miss", status, cache)
	}
	c.close()

	var idle []*keptConn
	for range 2000 {
		idle = append(idle, s.connect())
		idle[len(idle)-1].isHit("8.8.8.8")
	}
	var held [2]uint64
	for round := range held {
		statuses := s.flood(round)
		held[round] = liveHeap()
		t.Logf("garbage: %v; heap %d KiB before, then %d KiB", statuses, before>>10, held[round]>>10)
		if malformed := statuses[http.StatusBadRequest]; malformed < 3000 ||
			statuses[http.StatusTooManyRequests] < 2000 ||
			statuses[0]+statuses[http.StatusInternalServerError] > 0 {
			t.Errorf("got %v for garbage, want 400 for malformed queries and 429 for lookups over budget",
				statuses)
		}
	}
	for _, c := range idle {
		c.isHit("8.8.8.8")
		c.close()
	}
	most := before + heapBound*uint64(stacktest.Nodes(t))
	if held[1] > most || held[1] > held[0]+growthBound {
		t.Errorf("got a heap of %d, then of %d KiB, want at most %d and no growth",
			held[0]>>10, held[1]>>10, most>>10)
	}
}

// overloaded is the service under load.
type overloaded struct {
	*stacktest.Stack
	t *testing.T
}

// flood sends garbage queries: at least 6,000, and more until 600 concurrent cached lookups are
// done. It returns the garbage queries' statuses.
func (s *overloaded) flood(round int) map[int]int {
	const clients, queries = 64, 6000
	var sent atomic.Int64
	var cached, flooders sync.WaitGroup
	for range 8 {
		cached.Go(func() {
			c := s.connect()
			defer c.close()
			for range 75 {
				c.isHit("8.8.8.8")
			}
		})
	}
	served := make(chan struct{})
	go func() { cached.Wait(); close(served) }()
	var mu sync.Mutex
	statuses := map[int]int{}
	for range clients {
		flooders.Go(func() {
			c := s.connect()
			defer c.close()
			for more := true; more; {
				n := sent.Add(1)
				status, _ := c.lookup(garbage(round, n))
				mu.Lock()
				statuses[status]++
				mu.Unlock()
				if n >= queries {
					select {
					case <-served:
						more = false
					default:
					}
				}
			}
		})
	}
	flooders.Wait()
	return statuses
}

// garbage returns garbage query n of a round. Half of them are domains that may exist, half are
// malformed in various ways.
func garbage(round int, n int64) string {
	switch n % 8 {
	case 0:
		return fmt.Sprintf("%d.%d.%d.%d", round, 256+n%7, n, n)
	case 1:
		return fmt.Sprintf("http://garbage%d-%d.com/x", round, n)
	case 2:
		return fmt.Sprintf("garbage%d-%d..com", round, n)
	case 3:
		return fmt.Sprintf("xn--%%C3%%BC%d-.%d", n, round)
	}
	return fmt.Sprintf("garbage%d-%d.com", round, n)
}

// keptConn is a connection that a client keeps open. It may be used on one goroutine at a time.
type keptConn struct {
	net.Conn
	s *overloaded
	r *bufio.Reader
}

func (s *overloaded) connect() *keptConn {
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err == nil {
		err = c.SetDeadline(time.Now().Add(timeout))
	}
	if err != nil {
		panic(err) // the test cannot continue
	}
	return &keptConn{c, s, bufio.NewReaderSize(c, 2048)}
}

// lookup returns the status of a lookup and its X-Cache. The status is 0 if the connection fails.
func (c *keptConn) lookup(query string) (status int, cache string) {
	if _, err := io.WriteString(c,
		"GET /api/lookup?q="+query+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return 0, err.Error()
	}
	response, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, response.Header.Get("X-Cache")
}

func (c *keptConn) isHit(query string) {
	if status, cache := c.lookup(query); status != http.StatusOK || cache != "hit" {
		c.s.t.Errorf("got %d and X-Cache %q for a cached query, want 200 and a hit", status, cache)
	}
}

func (c *keptConn) close() {
	if err := c.Close(); err != nil {
		c.s.t.Error(err)
	}
}

// liveHeap returns the bytes of live objects.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // a pool frees its objects in the second collection
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
