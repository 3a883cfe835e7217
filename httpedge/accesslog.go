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
	logFlushBytes = 64 << 10  // pending bytes that are written without waiting for logDelay
	logMaxBytes   = 512 << 10 // pending bytes
	logMaxUrgent  = 64 << 10  // further pending bytes, for errors only
	logDelay      = 100 * time.Millisecond
	logTimeout    = 2 * time.Second // of Flush and Close
	logSteps      = 20
)

// LogBuffer buffers log lines and writes them to its sink at 64 KiB, or after 100 ms. When the sink
// is too slow, lines are dropped and counted; writers never wait. It may be used by many
// goroutines.
type LogBuffer struct {
	sink    io.Writer
	dropped atomic.Uint64
	wake    chan struct{}   // signals that pending lines should be written now
	flush   chan chan error // requests of Flush
	spare   []byte          // of run: the block written last, to be reused
	quit    chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	lines  []byte
	closed bool
}

// NewLogBuffer returns a buffer that writes to sink. Close ends its goroutine.
func NewLogBuffer(sink io.Writer) *LogBuffer {
	b := &LogBuffer{
		sink: sink,
		wake: make(chan struct{}, 1), flush: make(chan chan error),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	go b.run()
	return b
}

// Write buffers one line, or drops it. It fails only after Close.
func (b *LogBuffer) Write(line []byte) (int, error) {
	return b.add(line, logMaxBytes, logFlushBytes)
}

// add appends line to the pending ones, or drops it beyond most bytes. At wake bytes or more it
// starts a write.
func (b *LogBuffer) add(line []byte, most, wake int) (int, error) {
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

// Dropped returns the number of lines dropped so far.
func (b *LogBuffer) Dropped() uint64 { return b.dropped.Load() }

// Flush writes the pending lines and returns the sink's error. It waits at most 2 s, in steps: a
// process that stands still meanwhile loses one step only.
func (b *LogBuffer) Flush() error {
	written := make(chan error, 1)
	flush, done := b.flush, b.done
	ticker := time.NewTicker(logTimeout / logSteps)
	defer ticker.Stop()
	for left := logSteps; left > 0; {
		select {
		case flush <- written:
			flush, done = nil, nil
		case err := <-written:
			return err
		case <-done:
			return errLogClosed
		case <-ticker.C:
			left--
		}
	}
	return errLogStalled
}

var errLogStalled = errors.New("write log: the sink is blocked")

// Close writes the pending lines and ends the goroutine. Later writes fail. It waits at most 2 s;
// when the sink is blocked, the goroutine ends later.
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

// run writes to the sink until Close. Nothing else does.
func (b *LogBuffer) run() {
	defer close(b.done)
	ticker := time.NewTicker(logDelay)
	defer ticker.Stop()
	for {
		select {
		case <-b.wake:
			b.countLost(b.writePending())
		case <-ticker.C:
			b.countLost(b.writePending())
		case written := <-b.flush:
			written <- b.writePending()
		case <-b.quit:
			b.countLost(b.writePending())
			return
		}
	}
}

// writePending writes the pending lines.
func (b *LogBuffer) writePending() error {
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

// countLost counts a block that the sink refused. There is nowhere else to report it.
func (b *LogBuffer) countLost(err error) {
	if err != nil {
		b.dropped.Add(1)
	}
}

// urgent buffers lines that are written without delay, and has room of its own for them.
type urgent struct{ buffer *LogBuffer }

func (u urgent) Write(line []byte) (int, error) {
	return u.buffer.add(line, logMaxBytes+logMaxUrgent, 0)
}

// NewLogHandler returns a handler that writes records from level on to b, as JSON or as text.
// Records of level Error are written without delay.
func NewLogHandler(b *LogBuffer, level slog.Leveler, asJSON bool) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	format := &textFormat
	if asJSON {
		format = &jsonFormat
	}
	return logHandler{normal: format.handler(b, options),
		urgent: format.handler(urgent{b}, options), buffer: b, format: format}
}

// logHandler writes errors through urgent and the rest through normal.
type logHandler struct {
	normal, urgent slog.Handler
	buffer         *LogBuffer
	format         *lineFormat // nil = with attributes or groups of its own
}

func (h logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.normal.Enabled(ctx, level)
}

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		return h.urgent.Handle(ctx, r)
	}
	return h.normal.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{normal: h.normal.WithAttrs(attrs), urgent: h.urgent.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{normal: h.normal.WithGroup(name), urgent: h.urgent.WithGroup(name)}
}
