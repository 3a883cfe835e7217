package mailbox

import (
	"context"
	"fmt"
	"sync"
)

// InFlight counts the requests in flight, so that a service that stops can refuse new ones and wait
// for the rest. The zero value is open. Its methods may be called by many goroutines.
type InFlight struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // made by Close; closed when nothing is in flight
}

// Enter counts a request, or returns false once Close was called. Leave ends what Enter has
// counted.
func (f *InFlight) Enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.n++
	return true
}

// Leave ends a request that Enter has counted.
func (f *InFlight) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.closed && f.n == 0 {
		close(f.idle)
	}
}

// Close refuses new requests and waits until none is in flight, or until ctx ends. Call it once.
func (f *InFlight) Close(ctx context.Context) error {
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
		return fmt.Errorf("requests were still in flight: %w", ctx.Err())
	}
}
