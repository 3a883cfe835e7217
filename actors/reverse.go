package actors

import (
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/geo"
)

// Reverser finds reverse DNS names in the background.
type Reverser interface {
	// Resolve calls done once, on any goroutine, with the name of addr: no trailing dot, "" when there is none or no
	// room to look it up.
	Resolve(addr netip.Addr, done func(name string))
}

// reverseWait is how long the answers of a batch wait for their reverse names.
const reverseWait = 150 * time.Millisecond

// reverseRound fills the reverse names of one batch. Names that come too late for the answers go to the cache.
type reverseRound struct {
	worker  *worker
	answers []geo.Answer
	done    *exchangeDone

	mu      sync.Mutex
	missing int
	sent    bool
	all     chan struct{}
}

// withReverse fills in reverse names, as far as they come in time, and reports the end of the exchange.
func (w *worker) withReverse(done *exchangeDone, answers []geo.Answer) {
	r := &reverseRound{worker: w, answers: answers, done: done, all: make(chan struct{})}
	var wanted []int
	for i, a := range answers {
		if a.Err == nil && a.Result.Network.Reverse == "" {
			wanted = append(wanted, i)
		}
	}
	r.missing = len(wanted)
	for _, i := range wanted {
		w.system.config.Reverse.Resolve(answers[i].Result.IP, func(name string) { r.found(i, name) })
	}
	if len(wanted) > 0 {
		timer := time.NewTimer(reverseWait)
		defer timer.Stop()
		select {
		case <-r.all:
		case <-timer.C:
		}
	}
	r.send(time.Now())
}

// send reports the exchange with the names found so far.
func (r *reverseRound) send(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = true
	r.done.answers = r.worker.answers(r.done.exchange, r.answers, now)
	r.worker.system.batcher.Tell(r.done)
}

// found takes in the name of answer i. A late one is put into the cache, behind the answer and with its time.
func (r *reverseRound) found(i int, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing--
	r.answers[i].Result.Network.Reverse = name
	if r.missing == 0 {
		close(r.all)
	}
	if !r.sent || name == "" {
		return
	}
	old := r.done.answers[i].Entry
	q := r.done.flights[i].query
	named := geo.NewEntry(q, r.answers[i], old.Source(), old.Fetched())
	r.worker.system.batcher.Tell(&lateReverse{query: q, old: old, new: named})
}
