package nodes

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limit is the number of requests to /api/user that a token may make in a window.
const Limit = 100

// windowLength is the length of a window.
const windowLength = 60 * time.Second

// Response is what a client saw of one request.
type Response struct {
	Token  int    // its number
	Status int    // 0 = no response
	Node   string // that responded; "" = none
	Reset  int64  // X-RateLimit-Reset; 0 = none
	Began  time.Time
	Took   time.Duration
}

// admitted reports whether the request counts (apps.md): a 403 does, a 429 does not.
func (r *Response) admitted() bool {
	return r.Status == http.StatusOK || r.Status == http.StatusForbidden
}

// Tally counts the responses of each token by window. Its methods may be called concurrently.
type Tally struct {
	mu        sync.Mutex
	tokens    []map[int64]*resetCount
	statuses  map[int]int
	latencies []time.Duration
}

// resetCount counts the responses of one token that named the same end of the window.
type resetCount struct {
	reset             int64
	admitted, refused int
	first, last       time.Time // of the requests, when they began
}

// NewTally returns a Tally of n tokens.
func NewTally(n int) *Tally {
	t := &Tally{tokens: make([]map[int64]*resetCount, n), statuses: map[int]int{}}
	for i := range t.tokens {
		t.tokens[i] = map[int64]*resetCount{}
	}
	return t
}

// Note counts a response.
func (t *Tally) Note(r Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.statuses[r.Status]++
	t.latencies = append(t.latencies, r.Took)
	if !r.admitted() && r.Status != http.StatusTooManyRequests {
		return
	}
	c := t.tokens[r.Token][r.Reset]
	if c == nil {
		c = &resetCount{reset: r.Reset, first: r.Began, last: r.Began}
		t.tokens[r.Token][r.Reset] = c
	}
	if r.admitted() {
		c.admitted++
	} else {
		c.refused++
	}
	if r.Began.Before(c.first) {
		c.first = r.Began
	}
	if r.Began.After(c.last) {
		c.last = r.Began
	}
}

// Window is one window of one token.
type Window struct {
	Token             int
	Admitted, Refused int
	Jump              int64 // seconds between the least and the greatest X-RateLimit-Reset
	First             time.Time
	// Early reports that a request began in this window, by its X-RateLimit-Reset, two seconds or
	// more before the window before it ended: that one was lost.
	Early bool
}

// Windows returns all windows in which a token got a response. The same window may be named by
// several ends: those less than half a window apart.
func (t *Tally) Windows() []Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Window
	for token, resets := range t.tokens {
		var ends []*resetCount
		for _, c := range resets {
			ends = append(ends, c)
		}
		slices.SortFunc(ends, func(a, b *resetCount) int { return cmp.Compare(a.reset, b.reset) })
		var least, before int64
		for _, c := range ends {
			if least == 0 || c.reset-least > int64(windowLength.Seconds()/2) {
				before, least = least, c.reset
				all = append(all, Window{Token: token, First: c.first})
			}
			w := &all[len(all)-1]
			w.Admitted += c.admitted
			w.Refused += c.refused
			w.Jump = c.reset - least
			w.Early = w.Early || c.first.Unix() <= before-2
		}
	}
	return all
}

// Summary is what a Tally says in all.
type Summary struct {
	Requests, Admitted, Refused int
	Errors                      map[int]int // responses that are neither admitted nor 429, by status
	Windows, Full               int         // Full have refused requests
	Lacking                     int         // windows that refused requests below the limit
	Above                       int         // windows above the limit
	Most                        int         // admitted requests in a window
	P99Most                     int         // the 99th percentile of the tokens' most
	Jump                        int64       // greatest of a window, seconds
	Early                       int         // windows that began before their predecessor's end
	P50, P99, Max               time.Duration
}

// Summary returns the figures of all responses so far.
func (t *Tally) Summary() Summary {
	s := Summary{Errors: map[int]int{}}
	most := make([]int, len(t.tokens))
	for _, w := range t.Windows() {
		s.Windows++
		s.Admitted += w.Admitted
		s.Refused += w.Refused
		s.Jump = max(s.Jump, w.Jump)
		most[w.Token] = max(most[w.Token], w.Admitted)
		if w.Refused > 0 {
			s.Full++
			if w.Admitted < Limit {
				s.Lacking++
			}
		}
		if w.Admitted > Limit {
			s.Above++
		}
		if w.Early {
			s.Early++
		}
	}
	slices.Sort(most)
	if len(most) > 0 {
		s.Most, s.P99Most = most[len(most)-1], most[(len(most)-1)*99/100]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for status, n := range t.statuses {
		s.Requests += n
		switch status {
		case http.StatusOK, http.StatusForbidden, http.StatusTooManyRequests:
		default:
			s.Errors[status] += n
		}
	}
	slices.Sort(t.latencies)
	if n := len(t.latencies); n > 0 {
		s.P50, s.P99, s.Max = t.latencies[n/2], t.latencies[(n-1)*99/100], t.latencies[n-1]
	}
	return s
}

// failures returns the number of errors.
func (s *Summary) failures() int {
	n := 0
	for _, m := range s.Errors {
		n += m
	}
	return n
}

// String returns the summary on one line.
func (s Summary) String() string {
	errs := "0 errors"
	if n := s.failures(); n > 0 {
		errs = fmt.Sprintf("%d errors %v", n, s.Errors)
	}
	return fmt.Sprintf("%d admitted of %d requests, %s; windows: %d, full %d, above %d, lacking %d, "+
		"early %d; most %d, 99%% of tokens at most %d; Reset within %d s; p50 %v, p99 %v, max %v",
		s.Admitted, s.Requests, errs, s.Windows, s.Full, s.Above, s.Lacking, s.Early, s.Most, s.P99Most,
		s.Jump, s.P50.Round(time.Microsecond), s.P99.Round(time.Microsecond),
		s.Max.Round(time.Microsecond))
}

// CheckExact returns an error unless each window admits exactly the limit before it refuses, and
// nothing but the limit refuses a request.
func (s *Summary) CheckExact() error {
	switch {
	case s.Full == 0:
		return fmt.Errorf("no token reached its limit: %v", s)
	case s.Above > 0 || s.Lacking > 0 || s.Early > 0:
		return fmt.Errorf("windows are not exact: %v", s)
	case s.Jump > 1:
		return fmt.Errorf("X-RateLimit-Reset jumps: %v", s)
	case s.failures() > 0:
		return fmt.Errorf("requests failed: %v", s)
	}
	return nil
}

// CheckBounded returns an error if a request failed, a token got more than double its limit in a
// window, or more than one token of a hundred got more than most.
func (s *Summary) CheckBounded(most int) error {
	switch {
	case s.Full == 0:
		return fmt.Errorf("no token reached its limit: %v", s)
	case s.Most > 2*Limit || s.P99Most > most:
		return fmt.Errorf("tokens got too much: %v", s)
	case s.failures() > 0:
		return fmt.Errorf("requests failed: %v", s)
	}
	return nil
}
