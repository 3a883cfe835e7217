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
	logBlockBytes = 64 << 10
	logBlocks     = 4 // that may wait to be written
	logDelay      = 100 * time.Millisecond
)

// LogBuffer gathers log lines and writes them to its sink in blocks of 64 KiB, or after 100 ms. When the sink is slower
// than the lines come, lines are dropped and counted; nobody waits for it. It may be used by many goroutines.
type LogBuffer struct {
	dropped atomic.Uint64
	quit    chan struct{}
	done    chan struct{}
	wake    chan struct{} // a block is full
	full    chan []byte   // blocks to be written
	free    chan []byte   // blocks to be filled

	mu     sync.Mutex
	active []byte // being filled
	closed bool

	sinkMu sync.Mutex
	sink   io.Writer
}

// NewLogBuffer returns a buffer before sink. Close ends its goroutine.
func NewLogBuffer(sink io.Writer) *LogBuffer {
	b := &LogBuffer{
		sink: sink,
		quit: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1),
		full: make(chan []byte, logBlocks), free: make(chan []byte, logBlocks),
		active: make([]byte, 0, logBlockBytes),
	}
	for range logBlocks {
		b.free <- nil // made when needed
	}
	go b.run()
	return b
}

// Write takes in one line, or drops it. It never fails before Close.
func (b *LogBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errors.New("write log: the buffer is closed")
	}
	if len(b.active)+len(line) > logBlockBytes && !b.turn() || len(line) > logBlockBytes {
		b.dropped.Add(1)
		return len(line), nil
	}
	b.active = append(b.active, line...)
	return len(line), nil
}

// turn hands the active block over and takes a free one, or reports that there is none. b.mu is held.
func (b *LogBuffer) turn() bool {
	select {
	case block := <-b.free:
		b.full <- b.active // never blocks: there are only so many blocks
		if block == nil {
			block = make([]byte, 0, logBlockBytes)
		}
		b.active = block[:0]
		select {
		case b.wake <- struct{}{}:
		default:
		}
		return true
	default:
		return false
	}
}

// Dropped returns how many lines were dropped so far.
func (b *LogBuffer) Dropped() uint64 { return b.dropped.Load() }

// Flush writes out what is there, and returns the sink's error.
func (b *LogBuffer) Flush() error {
	b.sinkMu.Lock()
	defer b.sinkMu.Unlock()
	return b.flush()
}

// flush writes the waiting blocks and the active one. b.sinkMu is held.
func (b *LogBuffer) flush() error {
	err := b.putFull()
	b.mu.Lock()
	if len(b.active) > 0 {
		b.turn() // there is a free block: putFull just returned some, if not
	}
	b.mu.Unlock()
	return errors.Join(err, b.putFull())
}

// putFull writes the blocks that wait now. b.sinkMu is held: nobody else takes from b.full.
func (b *LogBuffer) putFull() error {
	var errs error
	for range len(b.full) {
		block := <-b.full
		errs = errors.Join(errs, b.put(block))
		b.free <- block
	}
	return errs
}

func (b *LogBuffer) put(p []byte) error {
	if _, err := b.sink.Write(p); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// Close writes out what is there and ends the goroutine. Later lines are errors.
func (b *LogBuffer) Close() error {
	b.mu.Lock()
	wasClosed := b.closed
	b.closed = true
	b.mu.Unlock()
	if wasClosed {
		return nil
	}
	close(b.quit)
	<-b.done
	return b.Flush()
}

func (b *LogBuffer) run() {
	defer close(b.done)
	ticker := time.NewTicker(logDelay)
	defer ticker.Stop()
	for {
		select {
		case <-b.wake:
			b.sinkMu.Lock()
			err := b.putFull()
			b.sinkMu.Unlock()
			b.lost(err)
		case <-ticker.C:
			b.lost(b.Flush())
		case <-b.quit:
			return
		}
	}
}

// lost counts a block that the sink refused: there is nowhere else to say so.
func (b *LogBuffer) lost(err error) {
	if err != nil {
		b.dropped.Add(1)
	}
}

// urgent writes a line straight to the sink, behind everything that came before it.
type urgent struct{ buffer *LogBuffer }

func (u urgent) Write(line []byte) (int, error) {
	u.buffer.sinkMu.Lock()
	defer u.buffer.sinkMu.Unlock()
	if err := errors.Join(u.buffer.flush(), u.buffer.put(line)); err != nil {
		return 0, err
	}
	return len(line), nil
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
