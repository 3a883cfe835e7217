package main

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var soak = flag.Duration("soak", time.Second, "how long TestSoak keeps a server under load")

// TestSoak looks up new addresses all the time while one upstream request in ten fails. Every
// response is a documented one, and the server stops cleanly.
func TestSoak(t *testing.T) {
	upstream := start(t, nil, "sim", "--listen=127.0.0.1:0", "--latency=2ms",
		"--fault=status,status=503,rate=0.05", "--fault=drop,rate=0.05")
	_, base, _ := strings.Cut(strings.TrimSpace(upstream.stdout.await(t, "interface at ")), " at ")
	p := start(t, []string{"IP_PROVIDER=sim", "IP_API_BASE=" + base, "GATEHOUSE_LOG_LEVEL=warn",
		"GATEHOUSE_BREAKER_COOLDOWN=100ms", "GATEHOUSE_CACHE_ENTRIES=1000"},
		"serve", "--ptr=off", "--listen=unix:"+t.TempDir()+"/s",
		"--admin-listen=unix:"+t.TempDir()+"/a", "--log-level=info")
	listen, _ := p.ready(t)
	client := newClient(t, strings.TrimPrefix(listen, "unix:"))

	var asked, answered atomic.Int64
	var askers sync.WaitGroup
	end := time.Now().Add(*soak)
	for range 16 {
		askers.Go(func() {
			for time.Now().Before(end) || asked.Load() < 500 {
				n := asked.Add(1)
				url := fmt.Sprintf("http://localhost/api/lookup?q=8.%d.%d.%d", n>>16&0xff,
					n>>8&0xff, n&0xff)
				status, body, err := ask(client, url)
				switch {
				case err != nil:
					t.Errorf("got error %v, want an answer", err)
					return
				case status == http.StatusOK:
					answered.Add(1)
				case status != http.StatusBadGateway && status != http.StatusServiceUnavailable:
					t.Errorf("got %d %s, want 200, 502 or 503", status, body)
					return
				}
			}
		})
	}
	askers.Wait()
	t.Logf("%d of %d answered with a result", answered.Load(), asked.Load())
	if answered.Load() == 0 {
		t.Error("got no result, want some")
	}
	p.stop(t)
}
