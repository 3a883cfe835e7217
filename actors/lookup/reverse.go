package lookup

import (
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

// Reverser finds reverse DNS names in the background.
type Reverser interface {
	// Resolve calls done once, on any goroutine, with the name of addr: no trailing dot, "" if
	// there is none or no room to look it up.
	Resolve(addr netip.Addr, done func(name string))
}

// reverseWait is how long the results of a batch wait for their reverse names.
const reverseWait = 150 * time.Millisecond

// reverseNames collects the reverse names of one batch. Names that come after the batch was
// reported go to the cache.
type reverseNames struct {
	worker  *worker
	replies []geo.Answer
	done    *exchangeDone

	mu       sync.Mutex
	missing  int
	reported bool
	all      chan struct{} // closed when none is missing
}

// withReverse fills in the reverse names that come in time, and reports the end of the exchange.
func (w *worker) withReverse(done *exchangeDone, replies []geo.Answer) {
	r := &reverseNames{worker: w, replies: replies, done: done, all: make(chan struct{})}
	var wanted []int
	for i, reply := range replies {
		if reply.Err == nil && reply.Result.Network.Reverse == "" {
			wanted = append(wanted, i)
		}
	}
	r.missing = len(wanted)
	for _, i := range wanted {
		addr := replies[i].Result.IP
		w.service.config.Reverse.Resolve(addr, func(name string) { r.found(i, name) })
	}
	if len(wanted) > 0 {
		timer := time.NewTimer(reverseWait)
		defer timer.Stop()
		select {
		case <-r.all:
		case <-timer.C:
		}
	}
	r.report(time.Now())
}

// report tells the batcher the end of the exchange, with the names found so far. The lock keeps
// late names behind it.
func (r *reverseNames) report(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported = true
	r.done.outcomes = r.worker.outcomes(r.done.exchange, r.replies, now)
	r.worker.succeed(r.done)
}

// found adds the name of reply i. A late one replaces the cache entry, whose age stays.
func (r *reverseNames) found(i int, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing--
	r.replies[i].Result.Network.Reverse = name
	if r.missing == 0 {
		close(r.all)
	}
	if !r.reported || name == "" {
		return
	}
	old, q := r.done.outcomes[i].Entry, r.done.lookups[i].query
	named := geo.NewEntry(old.TTL(), q, r.replies[i], old.Source(), old.Fetched())
	r.worker.service.batcher.Tell(&lateReverse{query: q, old: old, new: named})
	r.worker.service.tell([]geo.Query{q}, []*geo.Entry{named})
}
