package httpedge

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/httpedge/endpoint"
)

// accessLine is the line of one request in the access log.
type accessLine struct {
	start     time.Time
	requestID string // of letters, digits, dots, underscores and hyphens
	traceID   string // hexadecimal digits; "" = the request belongs to no trace
	method    string // one of methodNames
	status    int
	duration  time.Duration
	bytes     int              // of the body
	failed    *endpoint.Failed // nil = it did not, or nobody said why
}

// accessLog writes the access lines of one route at one level.
type accessLog struct {
	level   slog.Level
	handler slog.Handler // has the route as an attribute

	// For a LogBuffer: package slog takes seven times as long for a line of text.
	buffer *LogBuffer // nil = through handler
	format *lineFormat
	fixed  string // level, message and route
	second atomic.Pointer[logSecond]
}

// newAccessLog returns the access log of the route with that pattern.
func newAccessLog(handler slog.Handler, pattern string, level slog.Level) *accessLog {
	route := []slog.Attr{slog.String("route", pattern)}
	l := &accessLog{level: level, handler: handler.WithAttrs(route)}
	if own, ok := handler.(logHandler); ok && own.format != nil {
		l.buffer, l.format = own.buffer, own.format
		l.fixed = own.format.print(slog.NewRecord(time.Time{}, level, message, 0), route)
	}
	return l
}

const message = "request" // of every line

func (l *accessLog) enabled() bool { return l.handler.Enabled(context.Background(), l.level) }

// write writes line.
func (l *accessLog) write(line *accessLine) error {
	if l.buffer == nil || line.failed != nil || line.requestID == "" { // only an empty value needs quotes in text
		return l.handler.Handle(context.Background(), line.record(l.level))
	}
	var space [512]byte
	_, err := l.buffer.Write(l.append(space[:0], line))
	return err
}

// longestReason is the longest reason in the log, in bytes.
const longestReason = 300

func (a *accessLine) record(level slog.Level) slog.Record {
	r := slog.NewRecord(a.start, level, message, 0)
	r.AddAttrs(slog.String("request_id", a.requestID))
	if a.traceID != "" {
		r.AddAttrs(slog.String("trace_id", a.traceID))
	}
	r.AddAttrs(
		slog.String("method", a.method),
		slog.Int("status", a.status),
		slog.Int64("duration_us", a.duration.Microseconds()),
		slog.Int("bytes", a.bytes),
	)
	if f := a.failed; f != nil {
		if f.ClientID != "" {
			r.AddAttrs(slog.String("client_id", f.ClientID))
		}
		if f.UnknownID != "" {
			r.AddAttrs(slog.String("unknown_client_id", f.UnknownID))
		}
		if f.Code != "" {
			r.AddAttrs(slog.String("error", f.Code))
		}
		if f.Reason != "" {
			r.AddAttrs(slog.String("reason", f.Reason[:min(len(f.Reason), longestReason)]))
		}
		r.AddAttrs(slog.String("reference", a.requestID))
	}
	return r
}

// append appends the line in the form that package slog gives the record.
func (l *accessLog) append(dst []byte, line *accessLine) []byte {
	f, second := l.format, l.secondOf(line.start)
	dst = append(dst, second.before...)
	dst = f.appendFraction(dst, line.start.Nanosecond())
	dst = append(dst, second.after...)
	dst = append(dst, line.requestID...)
	if line.traceID != "" {
		dst = append(append(dst, f.traceID...), line.traceID...)
	}
	dst = append(append(dst, f.method...), line.method...)
	dst = strconv.AppendInt(append(dst, f.status...), int64(line.status), 10)
	dst = strconv.AppendInt(append(dst, f.duration...), line.duration.Microseconds(), 10)
	dst = strconv.AppendInt(append(dst, f.bytes...), int64(line.bytes), 10)
	return append(dst, f.end...)
}

// logSecond is the part of a line that all lines of one second have in common.
type logSecond struct {
	unix          int64
	zone          *time.Location
	before, after string // the fraction of the second; after ends where the request id begins
}

// secondOf returns the second of t. It formats only a second that differs from the last one.
func (l *accessLog) secondOf(t time.Time) *logSecond {
	unix, zone := t.Unix(), t.Location()
	if s := l.second.Load(); s != nil && s.unix == unix && s.zone == zone {
		return s
	}
	s := &logSecond{unix: unix, zone: zone,
		before: l.format.begin + l.format.time + t.Format("2006-01-02T15:04:05"),
		after:  t.Format("Z07:00") + l.format.afterTime + l.fixed + l.format.requestID}
	l.second.Store(s)
	return s
}

// lineFormat is a format of package slog, as far as access lines need it.
type lineFormat struct {
	handler func(io.Writer, *slog.HandlerOptions) slog.Handler

	begin, time, afterTime string
	fraction               string // the fraction of a second that is 0
	unit                   int    // of its last digit, in nanoseconds
	trimmed                bool   // without zeros at its end

	requestID, traceID, method, status, duration, bytes string // what comes before the value
	end                                                 string
}

var jsonFormat = lineFormat{
	handler: func(w io.Writer, o *slog.HandlerOptions) slog.Handler {
		return slog.NewJSONHandler(w, o)
	},
	begin: `{`, time: `"time":"`, afterTime: `",`, fraction: ".000000000", unit: 1, trimmed: true,
	requestID: `,"request_id":"`, traceID: `","trace_id":"`, method: `","method":"`, status: `","status":`,
	duration: `,"duration_us":`, bytes: `,"bytes":`, end: "}\n",
}

var textFormat = lineFormat{
	handler: func(w io.Writer, o *slog.HandlerOptions) slog.Handler {
		return slog.NewTextHandler(w, o)
	},
	time: "time=", afterTime: " ", fraction: ".000", unit: 1_000_000,
	requestID: " request_id=", traceID: " trace_id=", method: " method=", status: " status=",
	duration: " duration_us=", bytes: " bytes=", end: "\n",
}

// print returns what package slog prints for r with attrs, without the begin and the end.
func (f *lineFormat) print(r slog.Record, attrs []slog.Attr) string {
	r.AddAttrs(attrs...)
	var text bytes.Buffer
	if err := f.handler(&text, nil).Handle(context.Background(), r); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	return strings.TrimSuffix(strings.TrimPrefix(text.String(), f.begin), f.end)
}

// appendFraction appends the fraction of a second.
func (f *lineFormat) appendFraction(dst []byte, nanos int) []byte {
	dst = append(dst, f.fraction...)
	rest := nanos / f.unit
	for i := len(dst) - 1; rest > 0; i-- {
		dst[i] = byte('0' + rest%10)
		rest /= 10
	}
	if f.trimmed {
		dst = bytes.TrimSuffix(bytes.TrimRight(dst, "0"), []byte("."))
	}
	return dst
}
