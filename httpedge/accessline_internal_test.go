package httpedge

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata" // for machines without zone files
)

// logFormats are the formats of NewLogHandler.
var logFormats = []struct {
	name string
	json bool
}{{"json", true}, {"text", false}}

// TestAccessLineMatchesSlog holds the short way against the long one.
func TestAccessLineMatchesSlog(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 5, 9, 120_000_000, time.UTC)
	usual := accessLine{start: at, requestID: "Ab-9_.z", method: "GET", status: 200,
		duration: 1234567 * time.Nanosecond, bytes: 742}
	with := func(change func(*accessLine)) []accessLine {
		line := usual
		change(&line)
		return []accessLine{usual, line}
	}
	began := func(starts ...time.Time) []accessLine {
		lines := make([]accessLine, len(starts))
		for i, start := range starts {
			lines[i] = usual
			lines[i].start = start
		}
		return lines
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	summer := time.Date(2026, 3, 29, 2, 0, 0, 0, berlin) // the hour does not exist
	whole := at.Truncate(time.Second)
	for _, c := range []struct {
		name    string
		pattern string
		level   slog.Level
		lines   []accessLine
	}{
		{"usual", "/api/lookup", slog.LevelInfo, with(func(*accessLine) {})},
		{"another level", "/api/lookup", slog.LevelDebug, with(func(*accessLine) {})},
		{"parameter in the pattern", "/debug/pprof/{profile}", slog.LevelInfo, began(at)},
		{"unmatched", unmatched, slog.LevelInfo, began(at)},
		{"space in the pattern", "/a b", slog.LevelInfo, began(at)},
		{"equals sign in the pattern", "/a=b", slog.LevelInfo, began(at)},
		{"quote in the pattern", `/"a\b"`, slog.LevelInfo, began(at)},
		{"other letters in the pattern", "/ü\u2028\x01<", slog.LevelInfo, began(at)},
		{"no pattern", "", slog.LevelInfo, began(at)},
		{"no request id", "/", slog.LevelInfo, with(func(l *accessLine) { l.requestID = "" })},
		{"trace", "/", slog.LevelInfo,
			with(func(l *accessLine) { l.traceID = "0af7651916cd43dd8448eb211c80319c" })},
		{"other method", "/", slog.LevelInfo,
			with(func(l *accessLine) { l.method = "other"; l.status = 405 })},
		{"nothing sent, no time spent", "/", slog.LevelInfo,
			with(func(l *accessLine) { l.bytes, l.duration = 0, 0 })},
		{"clock that went back during the request", "/", slog.LevelInfo,
			with(func(l *accessLine) { l.duration = -time.Second })},
		{"fractions", "/", slog.LevelInfo, began(whole, whole.Add(1), whole.Add(100),
			whole.Add(999_999), whole.Add(time.Millisecond), whole.Add(1_500_000),
			whole.Add(10*time.Millisecond), whole.Add(900*time.Millisecond),
			whole.Add(998_999_999), whole.Add(999_999_999))},
		{"end of a second", "/", slog.LevelInfo,
			began(whole.Add(-1), whole, whole.Add(time.Second-1), whole.Add(time.Second))},
		{"end of a day and a year", "/", slog.LevelInfo,
			began(midnight.Add(-1), midnight, midnight.Add(24*time.Hour))},
		{"clock that goes back", "/", slog.LevelInfo,
			began(at, at.Add(-1), at.Add(-time.Second), at.Add(-24*time.Hour), at)},
		{"same second of another minute, hour and day", "/", slog.LevelInfo,
			began(at, at.Add(time.Minute), at.Add(time.Hour), at.Add(24*time.Hour))},
		{"before 1970", "/", slog.LevelInfo, began(time.Unix(-1, 5).UTC(), time.Unix(0, 0).UTC())},
		{"other zones", "/", slog.LevelInfo, began(at, at.In(time.FixedZone("", -12600)),
			at.In(time.FixedZone("", 5*3600+1800)), at.In(berlin), at.Local(), at)},
		{"offset with seconds", "/", slog.LevelInfo, began(at.In(time.FixedZone("LMT", 3208)))},
		{"begin of summer time", "/", slog.LevelInfo,
			began(summer.Add(-time.Hour-1), summer.Add(-1), summer, summer.Add(time.Hour))},
		{"end of summer time", "/", slog.LevelInfo,
			began(time.Unix(1_792_890_000-1, 0).In(berlin), time.Unix(1_792_890_000, 0).In(berlin))},
	} {
		for _, format := range logFormats {
			short, long := printed(t, format.json, c.pattern, c.level, c.lines, true),
				printed(t, format.json, c.pattern, c.level, c.lines, false)
			if short != long || strings.Count(short, "\n") != len(c.lines) {
				t.Errorf("%s, %s: got\n%swant\n%s", c.name, format.name, short, long)
			}
		}
	}
}

// printed returns the lines as the access log prints them: by itself, or by way of a handler that
// it does not know.
func printed(t *testing.T, asJSON bool, pattern string, level slog.Level, lines []accessLine,
	itself bool) string {
	t.Helper()
	var text bytes.Buffer
	buffer := NewLogBuffer(&text)
	handler := NewLogHandler(buffer, slog.LevelDebug, asJSON)
	log := newAccessLog(handler, pattern, level)
	if log.buffer == nil {
		t.Error("got the long way for a log of a LogBuffer, want the short one")
	}
	if !itself {
		log = newAccessLog(handler.WithAttrs(nil), pattern, level)
		if log.buffer != nil {
			t.Error("got the short way for a log with more in it, want the long one")
		}
	}
	for i := range lines {
		if err := log.write(&lines[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := buffer.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestConcurrentAccessLines writes lines of two seconds and two zones to one log.
func TestConcurrentAccessLines(t *testing.T) {
	at := time.Date(2026, 11, 21, 23, 59, 59, 5_000_000, time.UTC)
	for _, format := range logFormats {
		lines := make([]accessLine, 4)
		for i := range lines {
			start := at.Add(time.Duration(i/2) * time.Second)
			if i%2 == 1 {
				start = start.In(time.FixedZone("", 3600))
			}
			lines[i] = accessLine{start: start, requestID: "a", method: "GET", status: 200}
		}
		want := strings.SplitAfter(printed(t, format.json, "/", slog.LevelInfo, lines, false), "\n")
		var text bytes.Buffer
		buffer := NewLogBuffer(&text)
		log := newAccessLog(NewLogHandler(buffer, slog.LevelInfo, format.json), "/", slog.LevelInfo)
		var writers sync.WaitGroup
		const each = 200 // fewer than the buffer drops
		for i := range lines {
			writers.Go(func() {
				for range each {
					if err := log.write(&lines[i]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		if err := buffer.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range lines {
			if got := strings.Count(text.String(), want[i]); got != each {
				t.Errorf("%s: got %d times %s, want %d", format.name, got, want[i], each)
			}
		}
	}
}

func TestAccessLinesOfOtherLogs(t *testing.T) {
	for _, c := range []struct {
		name string
		wrap func(slog.Handler) slog.Handler
		json bool
		want string
	}{
		{"text, spelled out", func(h slog.Handler) slog.Handler { return h }, false,
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
	for _, format := range logFormats {
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
