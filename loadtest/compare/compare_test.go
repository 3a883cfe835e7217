package main

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/loadtest/lab"
)

// gatehouse is the program that is measured.
var gatehouse string

// TestMain lets the test binary run as raw.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == rawCommand {
		exitOn(serveRaw(os.Args[2]))
		return
	}
	os.Exit(lab.WithProgram(func(program string) (int, error) {
		gatehouse = program
		return m.Run(), nil
	}))
}

// BenchmarkRelativeToRaw reports CPU and rate of each kind of request over loopback, for gatehouse
// and for raw, and their ratios. Figures are medians of 5 pairs. -benchtime has no effect.
func BenchmarkRelativeToRaw(b *testing.B) {
	for _, t := range trials {
		b.Run(t.name, func(b *testing.B) {
			m, err := comparison{trial: t, binary: gatehouse, pairs: 5, requests: t.requests,
				connections: 64}.run()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(m.raw.micros(), "raw-µs/req")
			b.ReportMetric(m.gatehouse.micros(), "gatehouse-µs/req")
			b.ReportMetric(m.ratio, "ratio")
			b.ReportMetric(m.share, "share")
			b.ReportMetric(m.gatehouse.rate, "gatehouse-req/s")
		})
	}
}

// TestServersSendSameResponses compares the servers with few requests, since many of them wait for
// the disk.
func TestServersSendSameResponses(t *testing.T) {
	for _, trial := range trials {
		if trial == &manyProfilesTrial {
			continue // with so few tokens it is profileTrial
		}
		t.Run(trial.name, func(t *testing.T) {
			pairs := 0
			c := comparison{trial: trial, binary: gatehouse, pairs: 2,
				requests: 80 * max(1, len(trial.parts)), connections: 4, tokens: min(trial.tokens, 50),
				keys: min(trial.keys, 1000), each: func(_ int, p pair) {
					pairs++
					if p.raw.cpu <= 0 || p.gatehouse.cpu <= 0 || p.raw.rate <= 0 || p.gatehouse.rate <= 0 {
						t.Errorf("got %+v, want times and rates", p)
					}
				}}
			m, err := c.run()
			if err != nil {
				t.Fatal(err)
			}
			if pairs != 2 || m.ratio <= 0 || m.share <= 0 || len(m.gatehouse.p99) != max(1, len(trial.parts)) {
				t.Errorf("got %d pairs and %+v, want 2 and ratios above 0", pairs, m)
			}
		})
	}
}

func TestUnknownTrialIsRefused(t *testing.T) {
	if err := reportAll(comparison{pairs: 1, connections: 1}, []string{"nothing"}); err == nil ||
		!strings.Contains(err.Error(), "hit, bulk, cold, bulk-cold, profile") {
		t.Errorf("got %v, want an error with the known names", err)
	}
}

func TestKeysAreDistinctAndOfEqualLength(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for i := range fileKeys {
		seen[key(i)] = true
		if got := len(key(i).String()); got != len("20.100.100.100") {
			t.Fatalf("got key %v of %d characters, want 14", key(i), got)
		}
	}
	if len(seen) != fileKeys {
		t.Errorf("got %d distinct keys, want %d", len(seen), fileKeys)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 100, 2}, 3},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v: got %v, want %v", c.values, got, c.want)
		}
	}
}

func TestClientRequiresProof(t *testing.T) {
	const hit = "HTTP/1.1 200 OK\r\nX-Cache: hit\r\nContent-Length: 2\r\n\r\n{}"
	for _, c := range []struct {
		name, response string
		ok             bool
	}{
		{"hit", hit, true},
		{"miss", strings.Replace(hit, "hit", "miss", 1), false},
		{"error", strings.Replace(hit, "200 OK", "503 No", 1), false},
		{"no length", strings.Replace(hit, "Content-Length", "Length", 1), false},
		{"cut short", hit[:len(hit)-1], false},
	} {
		here, there := net.Pipe()
		go func() {
			there.Read(make([]byte, 1024))
			there.Write([]byte(c.response))
			there.Close()
		}()
		client := &client{conn: here, requests: [][]byte{[]byte("GET / HTTP/1.1")},
			proofs: map[string][]byte{"": []byte("\r\nX-Cache: hit\r\n")}, buffer: make([]byte, 1024)}
		if err := client.run(1); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok = %v", c.name, err, c.ok)
		}
		here.Close()
	}
}

func TestCompareResponses(t *testing.T) {
	const response = "HTTP/1.1 200 OK\r\nAge: 1\r\nX-Cache: hit\r\nContent-Length: 2\r\n\r\n{}"
	for _, c := range []struct {
		name, other string
		same        bool
	}{
		{"another age", strings.Replace(response, "Age: 1", "Age: 23", 1), true},
		{"another header", strings.Replace(response, "hit", "miss", 1), false},
		{"an additional header", strings.Replace(response, "\r\nAge", "\r\nServer: s\r\nAge", 1), false},
		{"another body", strings.Replace(response, "{}", "[]", 1), false},
	} {
		if err := compareResponses(serving(t, response), serving(t, c.other)); (err == nil) != c.same {
			t.Errorf("%s: got %v, want same = %v", c.name, err, c.same)
		}
	}
}

// serving returns a client whose server sends response for the first request.
func serving(t *testing.T, response string) *client {
	t.Helper()
	here, there := net.Pipe()
	deadline := time.Now().Add(10 * time.Second)
	if err := there.SetDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	go func() {
		there.Read(make([]byte, 1024))
		there.Write([]byte(response))
	}()
	t.Cleanup(func() { here.Close(); there.Close() })
	return &client{conn: here, requests: [][]byte{[]byte("GET / HTTP/1.1")},
		proofs: map[string][]byte{"": nil}, buffer: make([]byte, 1024)}
}
