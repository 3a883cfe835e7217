package endpoint_test

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

	"gatehouse/httpedge/endpoint"
)

// lines is a log without times.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends a line.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the lines since the last call.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return strings.ReplaceAll(l.text.String(), "level=ERROR msg=", "")
}

func (l *lines) logger() *slog.Logger {
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: drop}))
}

// wants checks the lines since the last call.
func (l *lines) wants(t *testing.T, want ...string) {
	t.Helper()
	if got, text := l.take(), strings.Join(append(want, ""), "\n"); got != text {
		t.Errorf("got lines\n%swant\n%s", got, text)
	}
}

func TestFailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		f := endpoint.NewFailures(log.logger())
		full, other := errors.New("disk full"), errors.New("locked")
		for i := range 3988 {
			f.Log("store", full, "request_id", i)
		}
		f.Log("store", other)
		f.Log("read", full)
		log.wants(t, `store error="disk full" request_id=0`, `store error=locked`,
			`read error="disk full"`)
		time.Sleep(10*time.Second + 1)
		synctest.Wait()
		log.wants(t, `store error="disk full" more=3987`)
		f.Log("store", full)
		f.Log("read", full) // had a quiet interval
		log.wants(t, `read error="disk full"`)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		log.wants(t, `store error="disk full" more=1`)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		log.wants(t)
		f.Log("store", full)
		f.Log("store", full)
		f.Close()
		log.wants(t, `store error="disk full"`, `store error="disk full" more=1`)
		time.Sleep(time.Minute)
		synctest.Wait()
		log.wants(t)
	})
}

// Errors whose texts differ cannot fill the memory or the log.
func TestKindsOfFailuresAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		f := endpoint.NewFailures(log.logger())
		for i := range 5000 {
			f.Log("store", fmt.Errorf("row %d", i))
		}
		if got := strings.Count(log.take(), "\n"); got != 101 {
			t.Errorf("got %d lines, want 101", got)
		}
		time.Sleep(10*time.Second + 1)
		synctest.Wait()
		log.wants(t, `"requests fail in many ways" error=various more=4899`)
		f.Close()
	})
}
