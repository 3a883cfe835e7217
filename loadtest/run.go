package loadtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"github.com/valyala/fasthttp"
)

// Config is how to run a scenario against a target that is there.
type Config struct {
	Schedule    Schedule      // open model; nil = closed
	Concurrency int           // closed model: users that wait for each answer
	Duration    time.Duration // closed model
	Timeout     time.Duration // of one request; 0 = 10 s
	Connections int           // at most, and hits under way; 0 = 1,000
	// Live is called each second with what the last one saw, and once at the end; nil = nobody looks.
	Live func(Second)
}

// Second is what was seen in about one second of a run.
type Second struct {
	At       time.Duration // since the begin of the run, at the end of this second
	Left     time.Duration // until hits no longer begin
	Length   time.Duration // of this second: the last one may be from half as long to half as long again
	Waiting  int64         // hits that are due and have not begun, once all are due
	Hits     int64         // that have begun
	Requests int64
	Errors   int64
	P50, P99 time.Duration // of requests; 0 when there were none
	Statuses []Count       // by status
	Steps    []StepSecond  // that were taken, by name
}

// StepSecond is what was seen of one step in about one second.
type StepSecond struct {
	Name     string
	Requests int64
	Errors   int64
	P50, P99 time.Duration
}

// MinAchieved is the part of the planned hits that must have begun in time for a run to say anything.
const MinAchieved = 0.99

// run is a run that goes on.
type run struct {
	config   Config
	base     *fasthttp.URI
	client   *fasthttp.HostClient
	recorder *recorder
	hit      func(*Hit) error
	steps    []string            // in the order in which they are reported; others come after them
	doze     func(time.Duration) // waits for a short time, about exactly
	began    time.Time           // set before the first hit
	started  atomic.Int64        // hits
	broken   atomic.Int64        // hits with a step that went wrong
	last     atomic.Int64        // when the last hit began, in nanoseconds since the begin of the run
	late     atomic.Int64        // the most that a hit began after its time, in nanoseconds
	now      atomic.Int64        // hits under way
	most     atomic.Int64        // hits under way at once
	spent    atomic.Int64        // by hits under way together, in nanoseconds
	end      context.CancelCauseFunc
}

// patience is the longest that hits may begin after the end of their schedule.
const patience = 10 * time.Second

// grace returns how long hits that are due may begin after the end of the schedule: the time-out of a request, at most patience.
func (r *run) grace() time.Duration { return min(patience, r.config.Timeout) }

func newRun(base string, config Config, hit func(*Hit) error) (*run, error) {
	if config.Timeout == 0 {
		config.Timeout = 10 * time.Second
	}
	if config.Connections == 0 {
		config.Connections = 1000
	}
	uri := &fasthttp.URI{}
	if err := uri.Parse(nil, []byte(base)); err != nil {
		return nil, fmt.Errorf("read the target's address: %w", err)
	}
	secure := string(uri.Scheme()) == "https"
	return &run{
		config: config, base: uri, recorder: newRecorder(), hit: hit, doze: doze,
		client: &fasthttp.HostClient{
			Addr: fasthttp.AddMissingPort(string(uri.Host()), secure), IsTLS: secure, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			Name: "gatehouse-loadtest", MaxConns: config.Connections, MaxConnWaitTimeout: config.Timeout,
			ReadBufferSize: 16 << 10, MaxIdleConnDuration: time.Minute,
			RetryIfErr:               func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
			NoDefaultUserAgentHeader: false, DisablePathNormalizing: true,
		},
	}, nil
}

// open makes the hits of the schedule, which vegeta starts. A server that stalls holds up the hits that follow, and their
// latency counts from when they were due: so their number at a time can be bounded, which keeps the generator from drowning
// a server that is behind in connections.
func (r *run) open(ctx context.Context) {
	connections := uint64(r.config.Connections)
	c := &clock{Schedule: r.config.Schedule, run: r}
	attacker := vegeta.NewAttacker(vegeta.Workers(min(32, connections)), vegeta.MaxWorkers(connections), vegeta.MaxBody(0),
		vegeta.Client(&http.Client{Transport: c}))
	ctx, cancel := context.WithTimeout(ctx, r.planned()+r.grace())
	defer cancel()
	c.over = ctx
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodGet, URL: "http://scenario/"})
	for range attacker.Attack(target, c, 0, "") { // what vegeta counts is of no use: it does not know steps
	}
}

// clock is the pacer and the transport of the attacker: vegeta asks it when to begin each hit, and hands it the hit.
type clock struct {
	Schedule
	run  *run
	once sync.Once
	over context.Context // ends when hits begin no more, which the attacker may notice some hits later
}

// Pace implements vegeta.Pacer. The first call tells when the run began. It waits itself when the time is near, more exactly than vegeta
// does.
func (c *clock) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	c.once.Do(func() { c.run.began = time.Now().Add(-elapsed) })
	wait, stop := c.Schedule.Pace(elapsed, hits)
	if stop || wait < dozeLeast {
		return wait, stop
	}
	due := time.Now().Add(wait)
	if wait > dozeMost {
		time.Sleep(wait - dozeMost)
	}
	if left := time.Until(due); left > 0 {
		c.run.doze(left)
	}
	return max(0, time.Until(due)), false
}

// How long before its time a hit is waited for more exactly. Below the least, hits come so fast that Go's scheduler looks at its timers all
// the time.
const (
	dozeLeast = 60 * time.Microsecond
	dozeMost  = 1500 * time.Microsecond
)

// RoundTrip implements http.RoundTripper: it makes the hit, which counts for itself.
func (c *clock) RoundTrip(request *http.Request) (*http.Response, error) {
	n, err := strconv.ParseUint(request.Header.Get("X-Vegeta-Seq"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the number of the hit: %w", err)
	}
	if c.over.Err() == nil {
		c.run.one(n, c.run.began.Add(c.At(n)))
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: http.NoBody, Request: request}, nil
}

// closed lets users make one hit after the other.
func (r *run) closed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Duration)
	defer cancel()
	var users sync.WaitGroup
	var next atomic.Uint64
	for range r.config.Concurrency {
		users.Go(func() {
			for ctx.Err() == nil {
				r.one(next.Add(1)-1, time.Time{})
			}
		})
	}
	users.Wait()
}

// errUsedUp says that a scenario has nothing left to ask: the run ends.
var errUsedUp = errors.New("all queries have been asked")

// one makes a hit that was due then; zero = now.
func (r *run) one(n uint64, due time.Time) {
	began := r.mark(due)
	raise(&r.most, r.now.Add(1))
	h := hits.Get().(*Hit)
	h.Number, h.run, h.due = n, r, due
	err := r.hit(h)
	h.run = nil
	hits.Put(h)
	r.now.Add(-1)
	r.spent.Add(int64(time.Since(began)))
	switch {
	case err == nil:
	case errors.Is(err, errUsedUp):
		r.started.Add(-1)
		r.end(err)
	default:
		r.broken.Add(1)
		if !errors.Is(err, errStep) { // answers that each looked right did not lead on
			r.recorder.add(n, "flow", 0, 0, err.Error())
		}
	}
}

// mark keeps how far the run has come, and how late it is.
func (r *run) mark(due time.Time) time.Time {
	now := time.Now()
	r.started.Add(1)
	raise(&r.last, int64(now.Sub(r.began)))
	if !due.IsZero() {
		raise(&r.late, int64(now.Sub(due)))
	}
	return now
}

func raise(to *atomic.Int64, value int64) {
	for {
		old := to.Load()
		if value <= old || to.CompareAndSwap(old, value) {
			return
		}
	}
}

// planned returns how long hits begin.
func (r *run) planned() time.Duration {
	if r.config.Schedule != nil {
		return r.config.Schedule.Duration()
	}
	return r.config.Duration
}

// watch tells of each second until done is closed, and of the rest.
func (r *run) watch(done <-chan struct{}) []Second {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var seconds []Second
	var kept map[string]*tally // of the last of them
	began, last, hitsBefore := time.Now(), time.Now(), int64(0)
	for more := true; more; {
		select {
		case <-tick.C:
		case <-done:
			more = false
		}
		now := time.Now()
		steps := r.recorder.take()
		hits := r.started.Load()
		s := newSecond(steps)
		s.At, s.Left, s.Length, s.Hits = now.Sub(began), max(0, r.planned()-now.Sub(began)), now.Sub(last), hits-hitsBefore
		if more && s.Left == 0 && r.config.Schedule != nil {
			s.Waiting = int64(r.config.Schedule.Hits()) - hits
		}
		last, hitsBefore = now, hits
		switch {
		case !more && s.Length < time.Second/2 && len(seconds) > 0: // too short for a rate
			seconds[len(seconds)-1].extend(s, kept, steps)
		case more || s.Requests > 0 || s.Hits > 0:
			seconds, kept = append(seconds, s), steps
		}
		if r.config.Live != nil {
			r.config.Live(s)
		}
	}
	return seconds
}

// newSecond sums up what was seen, by step.
func newSecond(steps map[string]*tally) Second {
	sum := whole(steps)
	s := Second{Requests: sum.count(), Errors: sum.failed(), P50: quantile(sum, 50), P99: quantile(sum, 99), Statuses: sum.byStatus()}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		if t := steps[name]; t.count() > 0 {
			s.Steps = append(s.Steps, StepSecond{Name: name, Requests: t.count(), Errors: t.failed(), P50: quantile(t, 50), P99: quantile(t, 99)})
		}
	}
	return s
}

// extend takes the rest of a run into its last second. kept and more are what was seen in the two.
func (s *Second) extend(rest Second, kept, more map[string]*tally) {
	for name, t := range more {
		merge(kept, name, t)
	}
	sum := newSecond(kept)
	sum.At, sum.Left, sum.Length, sum.Hits = rest.At, rest.Left, s.Length+rest.Length, s.Hits+rest.Hits
	*s = sum
}

func quantile(t *tally, q float64) time.Duration {
	return time.Duration(t.latency.ValueAtQuantile(q)) * time.Microsecond
}

// do makes all hits, waits for those under way, and returns what was seen. A run that ctx or its scenario ends early is no error.
func (r *run) do(ctx context.Context) Result {
	done := make(chan struct{})
	ctx, r.end = context.WithCancelCause(ctx)
	defer r.end(nil)
	var result Result
	var watching sync.WaitGroup
	watching.Go(func() { result.Seconds = r.watch(done) })
	r.began = time.Now()
	if r.config.Schedule != nil {
		r.open(ctx)
	} else {
		r.closed(ctx)
	}
	result.Took = time.Since(r.began)
	close(done)
	watching.Wait()
	r.client.CloseIdleConnections()
	result.UsedUp = errors.Is(context.Cause(ctx), errUsedUp)
	r.finish(&result, ctx.Err() != nil)
	return result
}
