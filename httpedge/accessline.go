package httpedge

import (
	"context"
	"log/slog"
	"strconv"
	"time"
)

// accessLine is the line of one request in the access log.
type accessLine struct {
	start     time.Time
	requestID string // of letters, digits, dots, underscores and hyphens
	method    string
	status    int
	duration  time.Duration
	bytes     int // of the body
}

// accessLog writes the access lines of one route at one level.
type accessLog struct {
	level   slog.Level
	handler slog.Handler // has the route as an attribute

	// For JSON into a LogBuffer: package slog would cost a tenth of a cached lookup.
	buffer *LogBuffer // nil = through handler
	middle []byte     // what stands between the time and the request id
}

// newAccessLog returns the access log of the route with that pattern.
func newAccessLog(handler slog.Handler, pattern string, level slog.Level) accessLog {
	l := accessLog{level: level,
		handler: handler.WithAttrs([]slog.Attr{slog.String("route", pattern)})}
	if own, ok := handler.(logHandler); ok && own.plainJSON {
		l.buffer = own.buffer
		l.middle = append(l.middle, `","level":"`+level.String()+`","msg":"request","route":`...)
		l.middle = append(strconv.AppendQuote(l.middle, pattern), `,"request_id":"`...)
	}
	return l
}

func (l *accessLog) enabled() bool { return l.handler.Enabled(context.Background(), l.level) }

// write writes line.
func (l *accessLog) write(line *accessLine) error {
	if l.buffer == nil {
		return l.handler.Handle(context.Background(), line.record(l.level))
	}
	var space [512]byte
	_, err := l.buffer.Write(line.appendJSON(space[:0], l.middle))
	return err
}

func (a *accessLine) record(level slog.Level) slog.Record {
	r := slog.NewRecord(a.start, level, "request", 0)
	r.AddAttrs(
		slog.String("request_id", a.requestID),
		slog.String("method", a.method),
		slog.Int("status", a.status),
		slog.Int64("duration_us", a.duration.Microseconds()),
		slog.Int("bytes", a.bytes),
	)
	return r
}

// appendJSON appends the line in the form that slog.JSONHandler gives the record.
func (a *accessLine) appendJSON(dst, middle []byte) []byte {
	dst = append(dst, `{"time":"`...)
	dst = a.start.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, middle...)
	dst = append(dst, a.requestID...)
	dst = append(dst, `","method":"`...)
	dst = append(dst, a.method...)
	dst = strconv.AppendInt(append(dst, `","status":`...), int64(a.status), 10)
	dst = strconv.AppendInt(append(dst, `,"duration_us":`...), a.duration.Microseconds(), 10)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), int64(a.bytes), 10)
	return append(dst, '}', '\n')
}
