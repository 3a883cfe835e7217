package httpedge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a LogBuffer.
const (
	logFlushBytes = 64 << 10 // that wait are written at once
	logMaxBytes   = 512 << 10
	logMaxUrgent  = 64 << 10 // beyond that, for errors
	logDelay      = 100 * time.Millisecond
	logPatience   = 2 * time.Second // with a sink, when the buffer is flushed or closed
)

// LogBuffer gathers log lines and writes them to its sink by the 64 KiB, or after 100 ms. When the sink is slower than
// the lines come, lines are dropped and counted; nobody waits for it. It may be used by many goroutines.
type LogBuffer struct {
	sink    io.Writer
	dropped atomic.Uint64
	wake    chan struct{}   // there is much to write, or something urgent
	flush   chan chan error // wants to know when all is written
	spare   []byte          // run's own: what was written last, to be filled again
	quit    chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	lines  []byte
	closed bool
}

// NewLogBuffer returns a buffer before sink. Close ends its goroutine.
func NewLogBuffer(sink io.Writer) *LogBuffer {
	b := &LogBuffer{
		sink: sink,
		wake: make(chan struct{}, 1), flush: make(chan chan error),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	go b.run()
	return b
}

// Write takes in one line, or drops it. It fails after Close only.
func (b *LogBuffer) Write(line []byte) (int, error) {
	return b.take(line, logMaxBytes, logFlushBytes)
}

// take appends line to what waits, unless that is then more than most, and has it written at once when it is wake or more.
func (b *LogBuffer) take(line []byte, most, wake int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, errLogClosed
	case len(b.lines)+len(line) > most:
		b.dropped.Add(1)
		return len(line), nil
	}
	b.lines = append(b.lines, line...)
	if len(b.lines) >= wake {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}

var errLogClosed = errors.New("write log: the buffer is closed")

// Dropped returns how many lines were dropped so far.
func (b *LogBuffer) Dropped() uint64 { return b.dropped.Load() }

// Flush writes out what is there and returns the sink's error. It waits 2 s at most.
func (b *LogBuffer) Flush() error {
	timer := time.NewTimer(logPatience)
	defer timer.Stop()
	written := make(chan error, 1)
	select {
	case b.flush <- written:
	case <-b.done:
		return errLogClosed
	case <-timer.C:
		return errLogStalled
	}
	select {
	case err := <-written:
		return err
	case <-timer.C:
		return errLogStalled
	}
}

var errLogStalled = errors.New("write log: its sink takes nothing")

// Close writes out what is there and ends the goroutine. Later lines are errors. It waits 2 s at most: a sink that takes
// nothing keeps the goroutine until it does.
func (b *LogBuffer) Close() error {
	b.mu.Lock()
	wasClosed := b.closed
	b.closed = true
	b.mu.Unlock()
	if wasClosed {
		return nil
	}
	err := b.Flush()
	close(b.quit)
	if err == nil {
		<-b.done
	}
	return err
}

// run is the only one to write to the sink.
func (b *LogBuffer) run() {
	defer close(b.done)
	ticker := time.NewTicker(logDelay)
	defer ticker.Stop()
	for {
		select {
		case <-b.wake:
			b.lost(b.put())
		case <-ticker.C:
			b.lost(b.put())
		case written := <-b.flush:
			written <- b.put()
		case <-b.quit:
			b.lost(b.put())
			return
		}
	}
}

// put writes out what waits.
func (b *LogBuffer) put() error {
	b.mu.Lock()
	lines := b.lines
	b.lines = b.spare[:0]
	b.mu.Unlock()
	var err error
	if len(lines) > 0 {
		_, err = b.sink.Write(lines)
	}
	b.spare = lines
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// lost counts a block that the sink refused: there is nowhere else to say so.
func (b *LogBuffer) lost(err error) {
	if err != nil {
		b.dropped.Add(1)
	}
}

// urgent takes lines that are written at once, and for which there is room when there is none for others.
type urgent struct{ buffer *LogBuffer }

func (u urgent) Write(line []byte) (int, error) {
	return u.buffer.take(line, logMaxBytes+logMaxUrgent, 0)
}

// NewLogHandler returns a handler that prints to b from level on, as JSON or as text. Records of level Error do not
// wait in the buffer.
func NewLogHandler(b *LogBuffer, level slog.Leveler, asJSON bool) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	h := logHandler{buffer: b, plainJSON: asJSON}
	if asJSON {
		h.calm, h.urgent = slog.NewJSONHandler(b, options), slog.NewJSONHandler(urgent{b}, options)
	} else {
		h.calm, h.urgent = slog.NewTextHandler(b, options), slog.NewTextHandler(urgent{b}, options)
	}
	return h
}

// logHandler sends errors one way and the rest another.
type logHandler struct {
	calm, urgent slog.Handler
	buffer       *LogBuffer
	plainJSON    bool // prints JSON and nothing but what a record holds
}

func (h logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.calm.Enabled(ctx, level)
}

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		return h.urgent.Handle(ctx, r)
	}
	return h.calm.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{calm: h.calm.WithAttrs(attrs), urgent: h.urgent.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{calm: h.calm.WithGroup(name), urgent: h.urgent.WithGroup(name)}
}
