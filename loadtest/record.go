package loadtest

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range of latencies, from a microsecond to two minutes, and their precision.
const (
	shortest = 1
	longest  = int64(2 * time.Minute / time.Microsecond)
	digits   = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, digits) }

// tally counts the attempts of one step in some time. An attempt has an expected response, or it
// failed.
type tally struct {
	latency  *hdrhistogram.Histogram // microseconds, of expected responses
	statuses map[int]int64           // 0 = no response
	errors   map[string]int64        // by reason
}

func newTally() *tally {
	return &tally{latency: newHistogram(), statuses: map[int]int64{}, errors: map[string]int64{}}
}

// responses returns the number of attempts with the expected response.
func (t *tally) responses() int64 { return t.latency.TotalCount() }

// attempts returns the number of requests.
func (t *tally) attempts() int64 { return t.responses() + t.failed() }

// failed returns the number of attempts without the expected response.
func (t *tally) failed() int64 {
	var n int64
	for _, k := range t.errors {
		n += k
	}
	return n
}

// byStatus returns the counts of statuses, the lowest status first.
func (t *tally) byStatus() []Count {
	var all []Count
	for _, status := range slices.Sorted(maps.Keys(t.statuses)) {
		all = append(all, Count{What: statusText(status), Times: t.statuses[status]})
	}
	return all
}

func (t *tally) add(other *tally) {
	t.latency.Merge(other.latency)
	for status, n := range other.statuses {
		t.statuses[status] += n
	}
	for reason, n := range other.errors {
		t.errors[reason] += n
	}
}

func (t *tally) reset() {
	t.latency.Reset()
	clear(t.statuses)
	clear(t.errors)
}

// recorder counts the requests of a run. Its methods may be called by many goroutines.
type recorder struct {
	shards []shard
	mu     sync.Mutex
	total  map[string]*tally
}

// shard is a part of a recorder. Several shards keep concurrent hits from waiting for each other.
type shard struct {
	mu    sync.Mutex
	steps map[string]*tally
	spare map[string]*tally // empty; take swaps it with steps
	_     [32]byte
}

func newRecorder() *recorder {
	r := &recorder{shards: make([]shard, 2*runtime.GOMAXPROCS(0)), total: map[string]*tally{}}
	for i := range r.shards {
		r.shards[i].steps, r.shards[i].spare = map[string]*tally{}, map[string]*tally{}
	}
	return r
}

// add counts one attempt. reason is "" for an expected response; only then the latency counts, since
// a failure may be fast. hit selects the shard.
func (r *recorder) add(hit uint64, step string, latency time.Duration, status int, reason string) {
	s := &r.shards[hit%uint64(len(r.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.steps[step]
	if !ok {
		t = newTally()
		s.steps[step] = t
	}
	t.statuses[status]++
	if reason != "" {
		t.errors[reason]++
		return
	}
	value := min(longest, max(shortest, latency.Microseconds()))
	if err := t.latency.RecordValue(value); err != nil {
		panic(err) // never: the value is in range
	}
}

// take returns the counts since the last call, by step, and adds them to the total.
func (r *recorder) take() map[string]*tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := map[string]*tally{}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.steps, s.spare = s.spare, s.steps
		taken := s.spare
		s.mu.Unlock()
		for step, t := range taken {
			merge(fresh, step, t)
			t.reset()
		}
	}
	for step, t := range fresh {
		merge(r.total, step, t)
	}
	return fresh
}

func merge(into map[string]*tally, step string, t *tally) {
	if into[step] == nil {
		into[step] = newTally()
	}
	into[step].add(t)
}

// whole returns the sum of the steps' tallies.
func whole(steps map[string]*tally) *tally {
	sum := newTally()
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		sum.add(steps[name])
	}
	return sum
}
