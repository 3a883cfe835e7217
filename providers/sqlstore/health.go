package sqlstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// healthFor is how long a successful write shows that the database can be written, and the least
// time between two probes.
const healthFor = time.Second

// health knows whether the database can be written. Its methods may be called by many goroutines.
type health struct {
	mu      sync.Mutex
	written time.Time // the last write that succeeded
	probed  time.Time // the last probe's begin
	err     error     // of the last write that failed; nil since a probe succeeded
}

// succeeded notes a write that succeeded. It does not end a failure: a transaction that changes
// nothing succeeds on a full volume too.
func (h *health) succeeded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written = time.Now()
}

// failed notes a write that the database has refused, whatever it was.
func (h *health) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// state returns the error of the last write, or that a probe is due.
func (h *health) state() (probe bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case h.err == nil && now.Sub(h.written) < healthFor, now.Sub(h.probed) < healthFor:
		return false, h.err
	}
	h.probed = now
	return true, nil
}

func (h *health) probeEnded(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err = err; err == nil {
		h.written = time.Now()
	}
}

const probeWrite = `INSERT INTO counters (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`

// probeRows is how many rows the probes of all processes share.
const probeRows = 1000

// newProbe returns the name of the row that the probes of a process write. With one row for all, a
// process that stands still in its probe would block those of the others.
func newProbe() string { return "probe-" + strconv.Itoa(rand.IntN(probeRows)) }

// CheckWritable returns why the database cannot be written, or nil. Unless a write succeeded within
// a second and none failed since, it writes a row, at most once a second.
func (s *Store) CheckWritable(ctx context.Context) error {
	probe, err := s.health.state()
	if probe {
		err = s.do(ctx, func(b *batch) error {
			_, err := b.conn.exec(b.ctx, probeWrite, s.probe, time.Now().UnixMilli())
			return err
		})
		s.health.probeEnded(err)
	}
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}
