package httpedge

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"
)

// TestAccessLineMatchesSlog holds the short way against the long one.
func TestAccessLineMatchesSlog(t *testing.T) {
	line := accessLine{
		start:     time.Date(2026, 11, 21, 8, 5, 9, 120_000_000, time.UTC),
		requestID: "Ab-9_.z", method: "GET", status: 200, duration: 1234567 * time.Nanosecond,
		bytes: 742,
	}
	for _, c := range []struct {
		name    string
		pattern string
		level   slog.Level
		change  func(*accessLine)
	}{
		{"usual", "/api/lookup", slog.LevelInfo, func(*accessLine) {}},
		{"another level", "/api/lookup", slog.LevelDebug, func(*accessLine) {}},
		{"parameter in the pattern", "/debug/pprof/{profile}", slog.LevelInfo,
			func(*accessLine) {}},
		{"unmatched", unmatched, slog.LevelInfo, func(*accessLine) {}},
		{"no request id", "/", slog.LevelInfo, func(l *accessLine) { l.requestID = "" }},
		{"other method", "/", slog.LevelInfo,
			func(l *accessLine) { l.method = "other"; l.status = 405 }},
		{"nothing sent, no time spent", "/", slog.LevelInfo,
			func(l *accessLine) { l.bytes, l.duration = 0, 0 }},
		{"whole second", "/", slog.LevelInfo,
			func(l *accessLine) { l.start = time.Unix(1_790_000_000, 0).UTC() }},
		{"other zone", "/", slog.LevelInfo,
			func(l *accessLine) { l.start = l.start.In(time.FixedZone("", -12600)) }},
	} {
		line := line
		c.change(&line)
		short, long := printed(t, c.pattern, c.level, &line, true),
			printed(t, c.pattern, c.level, &line, false)
		if short != long || short == "" {
			t.Errorf("%s: got %s, want %s", c.name, short, long)
		}
	}
}

// printed returns the line as the access log prints it: by itself, or by way of a handler that it
// does not know.
func printed(t *testing.T, pattern string, level slog.Level, line *accessLine, itself bool) string {
	t.Helper()
	var text bytes.Buffer
	buffer := NewLogBuffer(&text)
	handler := NewLogHandler(buffer, slog.LevelDebug, true)
	log := newAccessLog(handler, pattern, level)
	if log.buffer == nil {
		t.Error("got the long way for a JSON log, want the short one")
	}
	if !itself {
		log = newAccessLog(handler.WithAttrs(nil), pattern, level)
		if log.buffer != nil {
			t.Error("got the short way for a log with more in it, want the long one")
		}
	}
	if err := errors.Join(log.write(line), buffer.Close()); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestAccessLinesOfOtherLogs(t *testing.T) {
	for _, c := range []struct {
		name string
		wrap func(slog.Handler) slog.Handler
		json bool
		want string
	}{
		{"text", func(h slog.Handler) slog.Handler { return h }, false,
			"time=2026-11-21T08:05:09.000Z level=INFO msg=request route=/ request_id=a method=GET status=200 duration_us=5 bytes=3\n"},
		{"with an attribute", func(
			h slog.Handler) slog.Handler {
			return h.WithAttrs([]slog.Attr{slog.Int("node", 7)})
		},
			true,
			`{"time":"2026-11-21T08:05:09Z","level":"INFO","msg":"request","node":7,"route":"/","request_id":"a","method":"GET","status":200,"duration_us":5,"bytes":3}` + "\n"},
	} {
		var text bytes.Buffer
		buffer := NewLogBuffer(&text)
		log := newAccessLog(c.wrap(NewLogHandler(buffer, slog.LevelInfo, c.json)), "/",
			slog.LevelInfo)
		line := accessLine{start: time.Date(2026, 11, 21, 8, 5, 9, 0, time.UTC), requestID: "a",
			method: "GET", status: 200, duration: 5 * time.Microsecond, bytes: 3}
		if err := errors.Join(log.write(&line), buffer.Close()); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// BenchmarkAccessLine is one access line into a LogBuffer. Every millisecond has a thousand lines.
func BenchmarkAccessLine(b *testing.B) {
	for _, format := range []struct {
		name string
		json bool
	}{{"json", true}, {"text", false}} {
		b.Run(format.name, func(b *testing.B) {
			buffer := NewLogBuffer(io.Discard)
			log := newAccessLog(NewLogHandler(buffer, slog.LevelInfo, format.json), "/api/lookup",
				slog.LevelInfo)
			line := accessLine{start: time.Date(2026, 11, 21, 8, 5, 9, 123_456_789, time.Local),
				requestID: "0123456789abcdef01234567", method: "GET", status: 200,
				duration: 123 * time.Microsecond, bytes: 742}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%256 == 0 {
					runtime.Gosched() // lets the buffer be written
				}
				line.start = line.start.Add(time.Microsecond)
				if err := log.write(&line); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if n := buffer.Dropped(); n != 0 {
				b.Fatalf("got %d of %d lines dropped, want none: they cost less", n, b.N)
			}
			if err := buffer.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
