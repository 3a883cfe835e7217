package actors

import (
	"context"
	"fmt"
	"sync"
)

// inflight counts what is under way, so that a stop can refuse more and wait for the end. The zero value is open.
type inflight struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // made by close; closed when nothing is under way
}

// enter counts one in, or reports that no more may begin.
func (f *inflight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.n++
	return true
}

func (f *inflight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.closed && f.n == 0 {
		close(f.idle)
	}
}

// close lets nothing more begin and waits until all has ended, or ctx has. It is called once.
func (f *inflight) close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	f.idle = make(chan struct{})
	if f.n == 0 {
		close(f.idle)
	}
	f.mu.Unlock()
	select {
	case <-f.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("requests were still under way: %w", ctx.Err())
	}
}
