package bulk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"

	"gatehouse/actors/geo"
)

// MaxBatch is how many queries a request to a server has at most. A Config with a Server has as
// many MaxRows.
const MaxBatch = 500

const (
	windowSize = 1 << 14         // distinct queries that are remembered
	maxStrikes = 3               // tries of a domain that fails while others do not
	domainTime = 5 * time.Minute // for a domain that fails, and nothing else is asked
)

// Server is the Source that asks a server.
type Server struct {
	config  ServerConfig
	limiter *limiter
	window  window
	parsers fastjson.ParserPool
}

// ServerConfig configures a Server. Fields are required unless they say otherwise.
type ServerConfig struct {
	URL      string // without a slash at the end
	Key      string // optional: sent as X-Api-Key
	Client   *http.Client
	Plan     *Plan
	Patience time.Duration // how long all requests may fail before the Source gives up

	// Waiting is called when a request failed and is going to be repeated, with the time for which all
	// have failed. Optional; by several goroutines.
	Waiting func(failing time.Duration, cause error)
}

// NewServer returns a Source that asks a server.
func NewServer(c ServerConfig) *Server {
	return &Server{config: c, limiter: newLimiter(c.Patience),
		window: window{known: map[geo.Query]*question{}}}
}

// question is a query that is or was asked.
type question struct {
	query   geo.Query
	answer  Answer        // valid when done is closed; until then, the last failure
	done    chan struct{} // closed when answered
	first   time.Time     // of a response without an answer
	strikes int           // such responses that had other answers
}

// window remembers the last questions, so that duplicates are asked once.
type window struct {
	mu    sync.Mutex
	known map[geo.Query]*question
	order []geo.Query // a ring
	next  int         // index in order of the oldest
}

// take returns the question for a query. isNew says that the caller has to ask it.
func (w *window) take(q geo.Query) (found *question, isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.known[q]; found != nil {
		return found, false
	}
	q = q.Clone()
	found = &question{query: q, done: make(chan struct{})}
	w.known[q] = found
	if len(w.order) < windowSize {
		w.order = append(w.order, q)
		return found, true
	}
	delete(w.known, w.order[w.next])
	w.order[w.next] = q
	w.next = (w.next + 1) % windowSize
	return found, true
}

// Answer asks the queries that are not in the window. It repeats what fails for now.
func (s *Server) Answer(ctx context.Context, number int64, queries []geo.Query,
	answers []Answer) (misses int, err error) {
	all := make([]*question, len(queries))
	var mine []*question
	for i, q := range queries {
		var isNew bool
		if all[i], isNew = s.window.take(q); isNew {
			mine = append(mine, all[i])
		}
	}
	misses = len(mine)
	g, asking := errgroup.WithContext(ctx)
	for len(mine) > 0 {
		n := min(MaxBatch, len(mine))
		batch := mine[:n:n]
		mine = mine[n:]
		g.Go(func() error { return s.ask(asking, number, batch) })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	for i, q := range all {
		select {
		case <-q.done:
			answers[i] = q.answer
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return misses, nil
}

// ask asks the batch with a number until all of it is answered.
func (s *Server) ask(ctx context.Context, number int64, batch []*question) error {
	for len(batch) > 0 {
		if err := s.limiter.acquire(ctx, number); err != nil {
			return err
		}
		began := time.Now()
		r := s.post(ctx, batch)
		r.rest = append(r.rest, s.retries(&r)...)
		batch = r.rest
		var refused refusedError
		switch {
		case errors.As(r.err, &refused):
			s.limiter.succeed()
			return r.err
		case ctx.Err() != nil:
			s.limiter.succeed()
			return ctx.Err()
		case r.err == nil && !r.busy:
			s.limiter.succeed()
			if len(batch) == 0 {
				return nil
			}
			if err := sleep(ctx, r.wait); err != nil {
				return err
			}
		default:
			failing, reason := s.limiter.fail(began, r.wait, r.some), r.cause()
			if failing >= s.config.Patience {
				return fmt.Errorf("no answer in %s: %w", s.config.Patience, reason)
			}
			if s.config.Waiting != nil {
				s.config.Waiting(failing, reason)
			}
		}
	}
	return nil
}

// retries returns the questions to repeat of those that the server's upstream or resolver did not
// answer. A domain may fail alone, for as long as its name servers are down.
func (s *Server) retries(r *reply) (rest []*question) {
	for _, q := range r.unreachable {
		if q.first.IsZero() {
			q.first = time.Now()
		}
		if q.query.IsDomain() && (r.some || q.strikes > 0) {
			q.strikes++
		}
		r.busy = r.busy || q.strikes == 0
		if q.strikes == maxStrikes ||
			q.query.IsDomain() && time.Since(q.first) >= min(domainTime, s.config.Patience) {
			close(q.done)
			continue
		}
		rest = append(rest, q)
	}
	return rest
}

// sleep waits for at least a second and at most maxWait.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(max(time.Second, min(wait, maxWait)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cause returns the error of a reply, or what its items said.
func (r *reply) cause() error {
	switch {
	case r.err != nil:
		return r.err
	case len(r.unreachable) > 0:
		return errors.New("the server cannot reach its provider")
	}
	return errors.New("the server has no capacity")
}

// A refusedError says that a server does not take the requests of this program, so that none is
// repeated.
type refusedError struct{ error }

// refusal returns the error of a response with a status.
func refusal(status int, message string) error {
	if status == http.StatusNotFound {
		return refusedError{errors.New(
			"the server has no /api/stream: give the address that serves lookups, without a path")}
	}
	return refusedError{errors.New(strings.TrimSpace(
		fmt.Sprintf("the server refuses: status %d %s", status, message)))}
}
