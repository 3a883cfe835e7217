package sim

import (
	"maps"
	"time"
)

// Stats are the simulator's counters since its start or the last reset. Requests to the admin path
// do not count.
type Stats struct {
	Since    time.Time `json:"since"`
	Requests int64     `json:"requests"` // requests to /json and /batch, rejected ones included
	Singles  int64     `json:"singles"`  // requests to /json
	Batches  int64     `json:"batches"`  // requests to /batch
	Items    int64     `json:"items"`    // queries answered
	Found    int64     `json:"found"`    // queries answered with "success"
	NotFound int64     `json:"not_found"`
	Repeats  int64     `json:"repeats"` // successes within ten minutes of the query's last success
	Refused  int64     `json:"refused"` // requests with a wrong key, method or body

	// Violations is the sum of the next three: a client must never cause one.
	Violations    int64 `json:"violations"`
	EmptyBudget   int64 `json:"empty_budget"`   // requests without budget, status 429
	BatchDomains  int64 `json:"batch_domains"`  // domains in batches
	OversizeBatch int64 `json:"oversize_batch"` // batches of more than 100 queries

	Faults      map[FaultKind]int64 `json:"faults"`        // requests with a fault, by kind
	InFlight    int                 `json:"in_flight"`     // current requests; never reset
	InFlightMax int                 `json:"in_flight_max"` // maximum of InFlight
}

// clone returns a deep copy.
func (s Stats) clone() Stats {
	s.Faults = maps.Clone(s.Faults)
	return s
}

// fresh returns zero statistics as of now.
func (s Stats) fresh(now time.Time) Stats {
	return Stats{Since: now, Faults: map[FaultKind]int64{}, InFlight: s.InFlight,
		InFlightMax: s.InFlight}
}

// A success is a repeat within repeatWithin, if at most recentSize other queries came between.
const (
	repeatWithin = 10 * time.Minute
	recentSize   = 1 << 18
)

// recent holds the times of the last answers. It has two generations, so that dropping the older
// one limits its size.
type recent struct {
	young, old map[uint64]int64 // Unix nanoseconds by answer.key
}

// repeats records an answer at now. It reports whether the same query was answered within
// repeatWithin.
func (r *recent) repeats(key uint64, now time.Time) bool {
	last, known := r.young[key]
	if !known {
		last, known = r.old[key]
	}
	if r.young == nil || len(r.young) >= recentSize {
		r.young, r.old = map[uint64]int64{}, r.young
	}
	r.young[key] = now.UnixNano()
	return known && now.Sub(time.Unix(0, last)) < repeatWithin
}
