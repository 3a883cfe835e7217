package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startWithCache starts a server with a cache file; "" = none.
func startWithCache(t *testing.T, file string) (p *process, base string) {
	t.Helper()
	args := append([]string{"serve", "--ip-provider=sim", "--roles=geo"}, anyPorts...)
	if file != "" {
		args = append(args, "--cache-file="+file)
	}
	p = start(t, nil, args...)
	listen, _ := p.ready(t)
	return p, "http://" + listen
}

// stream returns the response to a stream of n addresses from the first on.
func stream(t *testing.T, base string, first, n int) string {
	t.Helper()
	var body strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&body, "9.%d.%d.%d\n", i>>16&255, i>>8&255, i&255)
	}
	response, err := newClient(t, "").Post(base+"/api/stream", "text/plain",
		strings.NewReader(body.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if end := fmt.Sprintf("{\"done\":true,\"count\":%d,\"failed\":0}\n", n); err != nil ||
		!strings.HasSuffix(string(text), end) {
		t.Fatalf("got %v and %.300s, want %d results", err, text[max(0, len(text)-300):], n)
	}
	return string(text)
}

// filesIn returns the names of the files of a folder.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// awaitSize waits until a file has a size, or until the process has ended.
func (p *process) awaitSize(path string, size int64) {
	for {
		if info, err := os.Stat(path); err == nil && info.Size() >= size {
			return
		}
		select {
		case <-p.ended:
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// TestCacheFileOutlivesKills kills servers while they write the cache file. Each server after them
// reads the file of the last write that ended, and its answers are those of the upstream.
func TestCacheFileOutlivesKills(t *testing.T) {
	t.Parallel() // it mostly waits
	const queries = 8_000
	p, base := startWithCache(t, "")
	want := stream(t, base, 0, queries)
	p.stop(t)

	dir := t.TempDir()
	file := filepath.Join(dir, "cache")
	written, cutOff := false, 0 // whether there is a file; writes that were cut off
	var usual time.Duration     // of a stop
	for round := range 2 * *crashes {
		p, base := startWithCache(t, file)
		log := p.stderr.String()
		if read := strings.Contains(log, `"msg":"cached results read"`); read != written ||
			strings.Contains(log, "the cache file is not used") {
			t.Errorf("round %d: got the file read %t, want %t; the log:\n%s", round, read, written, log)
		}
		if names := filesIn(t, dir); len(names) > 1 {
			t.Errorf("round %d: got files %v after a start, want no temporary one", round, names)
		}
		if stream(t, base, 0, queries) != want {
			t.Errorf("round %d: got another response than without a cache file", round)
		}
		stream(t, base, queries+round, 1) // so that there is something to write
		began := time.Now()
		p.signal(t, syscall.SIGTERM)
		switch {
		case round == 0: // it ends its write
			p.code(t)
			usual = time.Since(began)
		case round%2 == 0:
			time.Sleep(rand.N(usual))
		default:
			p.awaitSize(file+".tmp", rand.Int64N(queries*600))
		}
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		p.code(t)
		if _, err := os.Stat(file + ".tmp"); err == nil {
			cutOff++
		}
		_, err := os.Stat(file)
		written = err == nil
	}
	t.Logf("%d of %d writes were cut off", cutOff, 2**crashes-1)
	if !written {
		t.Error("got no cache file, want one")
	}
}

// TestCacheFileKeepsAnswersOfLoad stops a server under load. Every answer that a client has got is
// a hit at the next server.
func TestCacheFileKeepsAnswersOfLoad(t *testing.T) {
	t.Parallel() // it mostly waits
	file := filepath.Join(t.TempDir(), "cache")
	p, base := startWithCache(t, file)
	client := newClient(t, "")
	var mu sync.Mutex
	var known []string
	var load sync.WaitGroup
	some := make(chan struct{})
	for worker := range 8 {
		load.Go(func() {
			for n := 0; ; n++ {
				query := fmt.Sprintf("/api/lookup?q=9.%d.%d.%d", worker, n>>8&255, n&255)
				status, _, err := ask(client, base+query)
				if err != nil || status != http.StatusOK {
					return // the server ends
				}
				mu.Lock()
				if known = append(known, query); len(known) == 500 {
					close(some)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-some:
	case <-time.After(waitTimeout):
		t.Fatal("got no 500 answers in time")
	}
	p.signal(t, syscall.SIGTERM)
	load.Wait()
	if got := p.code(t); got != exitDone {
		t.Fatalf("got code %d, want 0; stderr:\n%s", got, p.stderr)
	}
	_, base = startWithCache(t, file)
	for _, query := range known {
		response, err := client.Get(base + query)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("X-Cache"); got != "hit" {
			t.Errorf("%s: got %q after the restart, want a hit", query, got)
		}
	}
}
