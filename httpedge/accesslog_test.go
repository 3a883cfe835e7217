package httpedge_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/httpedge"
)

// sink is a log file: it can be stuck, or full.
type sink struct {
	mu     sync.Mutex
	text   bytes.Buffer
	writes int
	gate   chan struct{} // if set, each write waits for it
	err    error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.err != nil {
		return 0, s.err
	}
	return s.text.Write(p)
}

func (s *sink) read() (text string, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.writes
}

func write(t *testing.T, b *httpedge.LogBuffer, line string) {
	t.Helper()
	if _, err := b.Write([]byte(line)); err != nil {
		t.Error(err)
	}
}

func closeLog(t *testing.T, b *httpedge.LogBuffer) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestLogLinesAreBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		b := httpedge.NewLogBuffer(&s)
		write(t, b, "one\n")
		write(t, b, "two\n")
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		if text, _ := s.read(); text != "" {
			t.Errorf("got %q before 100ms, want nothing", text)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if text, writes := s.read(); text != "one\ntwo\n" || writes != 1 {
			t.Errorf("got %q in %d writes, want both lines in one", text, writes)
		}
		line := strings.Repeat("x", 1<<10-1) + "\n"
		for range 65 {
			write(t, b, line)
		}
		synctest.Wait()
		if text, writes := s.read(); len(text) < 8+64<<10 || writes != 2 {
			t.Errorf("got %d bytes in %d writes, want 64 KiB written at once", len(text), writes)
		}
		write(t, b, "last\n")
		closeLog(t, b)
		if text, _ := s.read(); !strings.HasSuffix(text, "last\n") || len(text) != 8+65<<10+5 {
			t.Errorf("got %d bytes after Close, want all", len(text))
		}
		if _, err := b.Write([]byte("late\n")); err == nil {
			t.Error("got a line taken after Close, want an error")
		}
		closeLog(t, b)
	})
}

func TestSlowSinkDropsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{gate: make(chan struct{})}
		b := httpedge.NewLogBuffer(&s)
		line := strings.Repeat("x", 1<<10-1) + "\n"
		const sent = 3000
		for range sent {
			write(t, b, line)
		}
		dropped := b.Dropped()
		if dropped < sent-2*512 || dropped > sent-512 {
			t.Errorf("got %d of %d lines dropped at a stuck sink, want most but not what the buffer holds", dropped, sent)
		}
		close(s.gate)
		synctest.Wait()
		write(t, b, "again\n")
		closeLog(t, b)
		text, _ := s.read()
		if got := strings.Count(text, "\n"); uint64(got) != sent-dropped+1 ||
			!strings.HasSuffix(text, "again\n") {
			t.Errorf("got %d lines, want all %d that were not dropped", got, sent-dropped+1)
		}
		write2 := strings.Repeat("y", 600<<10)
		b2 := httpedge.NewLogBuffer(&s)
		write(t, b2, write2)
		if b2.Dropped() != 1 {
			t.Errorf("got %d dropped, want the line that is larger than the buffer", b2.Dropped())
		}
		closeLog(t, b2)
	})
}

func TestErrorsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, asJSON := range []bool{true, false} {
			var s sink
			b := httpedge.NewLogBuffer(&s)
			log := slog.New(httpedge.NewLogHandler(b, slog.LevelInfo, asJSON)).With("node",
				"a").WithGroup("g")
			log.Debug("too fine")
			log.Info("calm")
			if text, _ := s.read(); text != "" {
				t.Errorf("got %q at once, want it to wait", text)
			}
			log.Error("alarm", "k", "v")
			synctest.Wait()
			text, _ := s.read()
			calm, alarm := strings.Index(text, "calm"), strings.Index(text, "alarm")
			if calm < 0 || alarm < calm || strings.Contains(text, "too fine") ||
				strings.Count(text, "node") != 2 {
				t.Errorf("got %q at once, want calm and alarm, in order", text)
			}
			if json := strings.HasPrefix(text, "{"); json != asJSON {
				t.Errorf("got %q, want JSON %v", text, asJSON)
			}
			closeLog(t, b)
		}
	})
}

func TestFullDiskIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{err: errors.New("disk full")}
		b := httpedge.NewLogBuffer(&s)
		write(t, b, "one\n")
		time.Sleep(time.Second)
		synctest.Wait()
		if b.Dropped() == 0 {
			t.Error("got nothing dropped at a full disk, want a count")
		}
		write(t, b, "two\n")
		if err := b.Flush(); err == nil {
			t.Error("got no error at a full disk, want one")
		}
		closeLog(t, b)
	})
}

// TestBlockedSinkDelaysNobody logs errors to a sink that takes nothing, and closes the log.
func TestBlockedSinkDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{gate: make(chan struct{})}
		b := httpedge.NewLogBuffer(&s)
		log := slog.New(httpedge.NewLogHandler(b, slog.LevelInfo, true))
		began := time.Now()
		for range 2000 {
			log.Info("calm", "text", strings.Repeat("x", 1<<10))
		}
		for range 10 {
			log.Error("alarm")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("logging took %v, want no time", took)
		}
		if err := b.Close(); err == nil {
			t.Error("got no error from Close, want that the sink takes nothing")
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Close took %v, want about 2s", took)
		}
		close(s.gate)
		synctest.Wait()
		if text, _ := s.read(); strings.Count(text, "alarm") != 10 {
			t.Errorf("got %d errors once the sink took them, want all 10",
				strings.Count(text, "alarm"))
		}
	})
}

func TestConcurrentLogWriters(t *testing.T) {
	var s sink
	b := httpedge.NewLogBuffer(&s)
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for j := range 5000 {
				write(t, b, fmt.Sprintf("%d-%d\n", i, j))
				if j%1000 == 0 {
					if err := b.Flush(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	closeLog(t, b)
	text, _ := s.read()
	lines := strings.Fields(text)
	if uint64(len(lines))+b.Dropped() != 4*5000 {
		t.Errorf("got %d lines and %d dropped, want 20000", len(lines), b.Dropped())
	}
	next := [4]int{}
	for _, line := range lines {
		var i, j int
		if _, err := fmt.Sscanf(line, "%d-%d", &i, &j); err != nil || j < next[i] {
			t.Fatalf("got line %q, want whole lines, each writer's in order", line)
		}
		next[i] = j + 1
	}
}

func TestAccessLines(t *testing.T) {
	st := stacktest.NewLookups(t, stacktest.BehindProxy)
	body := st.Get(t, "/api/lookup?q=8.8.8.8", "X-Request-Id", "one", "User-Agent",
		"secret-agent").Body
	st.Send(t, "HEAD", st.URL+"/api/lookup?q=8.8.8.8", "")
	st.Get(t, "/secret-path?q=secret-query")
	st.Send(t, "SECRET", st.URL+"/api/bulk", "")
	st.Get(t, "/api/my-ip")
	st.Send(t, "GET", st.AdminURL+"/healthz", "")
	lines := st.Log.Records("request")
	want := []struct {
		method, route string
		status        float64
		level         string
	}{
		{"GET", "/api/lookup", 200, "INFO"}, {"HEAD", "/api/lookup", 200, "INFO"},
		{"GET", "(unmatched)", 404, "INFO"},
		{"other", "/api/bulk", 405, "INFO"}, {"GET", "/api/my-ip", 400, "INFO"},
		{"GET", "/healthz", 200, "DEBUG"},
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d access lines, want %d: %v", len(lines), len(want), lines)
	}
	for i, w := range want {
		l := lines[i]
		if l["method"] != w.method || l["route"] != w.route || l["status"] != w.status ||
			l["level"] != w.level || l["request_id"] == "" {
			t.Errorf("got %v, want %v", l, w)
		}
		if len(l) != 9 || l["duration_us"].(float64) < 0 {
			t.Errorf("got %v, want time, level, msg, route, request_id, method, status, duration_us, bytes", l)
		}
	}
	if lines[0]["bytes"] != float64(len(body)) || lines[1]["bytes"] != 0.0 ||
		lines[0]["request_id"] != "one" {
		t.Errorf("got %v and %v, want the bytes that were sent", lines[0], lines[1])
	}
	for _, secret := range []string{"secret", "SECRET", "8.8.8.8", "127.0.0.1"} {
		if strings.Contains(st.Log.String(), secret) {
			t.Errorf("got %s in the log, want nothing of a request", secret)
		}
	}
}
