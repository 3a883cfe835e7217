package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// healTime is how long nodes may take to be up, and partitions to have holders, after a fault.
	healTime = 10 * time.Second
	// burstTime is how long random faults go on before the cluster must heal.
	burstTime = 40 * time.Second
	// endsEach is the mean number of tokens that end in a second of random faults.
	endsEach = 4
	// askInterval is the mean time between two requests with ended tokens at a node.
	askInterval = 10 * time.Millisecond
	// recent is how many of the tokens that have ended last are asked more often.
	recent = 16
)

// randomFaults makes random faults while tokens are used and ended.
func randomFaults(ctx context.Context, l *Lab) (_ string, err error) {
	seed := l.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	l.Log("-seed %d", seed)
	lines := &logLines{keep: (*logLine).isBad}
	c, err := l.start(ctx, 3, Config{Lines: lines.note})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.Balancer.Timeout.Store(int64(frozenTimeout))
	o, err := newOrdeal(ctx, l, c, lines, l.Faults)
	if err != nil {
		return "", err
	}
	random := rand.New(rand.NewPCG(seed, seed))
	failed := o.run(ctx, func(ctx context.Context) error { return o.bursts(ctx, random) }, o.settle)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	exact, inexact, err := o.exact()
	text := fmt.Sprintf("%s; %v; healed within %v; afterwards %d windows exact, %d not", o.breaker, o,
		slices.Max(append(o.healed, 0)).Round(100*time.Millisecond), exact, inexact)
	return text, errors.Join(failed, o.check(), err)
}

// faultRun is a cluster whose tokens are used and ended while it is broken.
type faultRun struct {
	lab         *Lab
	cluster     *Cluster
	breaker     *breaker
	lines       *logLines
	live, dying []Token
	tally       *Tally

	next, asked, warm, unanswered atomic.Int64

	mu     sync.Mutex
	failed []Response // of live tokens, neither admitted nor 429
	ended  []endedToken
	late   []string // requests with ended tokens that were admitted
	healed []time.Duration
	calm   []period // when no fault has an effect
	losing bool     // what ends is not in ended but in lost
	lost   []endedToken
}

type endedToken struct {
	text     string
	disabled bool      // its user is disabled; else it is revoked
	at       time.Time // of the response
}

type period struct{ from, to time.Time }

// newOrdeal makes the tokens. As many can end as do in that time.
func newOrdeal(
	ctx context.Context, l *Lab, c *Cluster, lines *logLines, ending time.Duration,
) (*faultRun, error) {
	c.Balancer.Timeout.Store(int64(frozenTimeout))
	live, err := c.Tokens(ctx, l.Tokens, max(1, l.Tokens/3))
	if err != nil {
		return nil, err
	}
	n := max(1, int(ending.Seconds())) * endsEach * 2
	dying, err := c.Tokens(ctx, n, n)
	if err != nil {
		return nil, err
	}
	return &faultRun{lab: l, cluster: c, breaker: newBreaker(c, l.Log), tally: NewTally(len(live)),
		live: live, dying: dying, lines: lines}, nil
}

// run uses tokens while faults and then after run, and ends tokens during faults.
func (o *faultRun) run(ctx context.Context, faults, after func(context.Context) error) error {
	using, stop := context.WithCancel(ctx)
	defer stop()
	var users sync.WaitGroup
	length := o.lab.Faults + 10*time.Minute // it is stopped before
	load := Load{Tokens: o.live, Each: int(length.Minutes() * 3 * Limit / 2), Length: length,
		Workers: o.lab.Workers}
	users.Go(func() { load.Run(using, o.cluster.Balancer, o.note) })
	ending, stopEnding := context.WithCancel(ctx)
	defer stopEnding()
	var enders sync.WaitGroup
	for range 2 * endsEach {
		enders.Go(func() { o.end(ending) })
	}
	for _, n := range o.cluster.Nodes() {
		users.Go(func() { o.keepAskingEnded(using, n) })
	}
	err := faults(ctx)
	stopEnding()
	enders.Wait()
	if err == nil {
		err = o.askEnded(ctx, o.cluster.Nodes())
	}
	if err == nil {
		err = after(ctx)
	}
	stop()
	users.Wait()
	return err
}

// bursts makes faults in bursts. After each, the cluster must heal.
func (o *faultRun) bursts(ctx context.Context, random *rand.Rand) error {
	for left := o.lab.Faults; left > 0 && ctx.Err() == nil; left -= burstTime {
		o.breaker.run(ctx, Schedule(random, len(o.cluster.Nodes()), min(left, burstTime)))
		if err := o.heal(ctx); err != nil {
			return err
		}
		from := time.Now()
		pause(ctx, 5*time.Second)
		o.mu.Lock()
		o.calm = append(o.calm, period{from, time.Now().Add(-frozenTimeout)})
		o.mu.Unlock()
	}
	return nil
}

// heal waits until all nodes are up and all partitions have one holder.
func (o *faultRun) heal(ctx context.Context) error {
	began := time.Now()
	for _, n := range o.cluster.Nodes() {
		if err := errors.Join(n.Crashed(), n.AwaitReady(ctx)); err != nil {
			return err
		}
	}
	if _, err := awaitHolders(ctx, o.cluster.Nodes()); err != nil {
		return err
	}
	if err := o.cluster.Balancer.await(ctx, len(o.cluster.Nodes())); err != nil {
		return err
	}
	took := time.Since(began)
	o.lab.Log("healed after %v", took.Round(time.Millisecond))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.healed = append(o.healed, took)
	return nil
}

// askEnded asks nodes with each token that has ended.
func (o *faultRun) askEnded(ctx context.Context, nodes []*Node) error {
	for _, n := range nodes {
		a := newAsker(newDirect(n, defaultTimeout))
		for _, token := range o.ended {
			if got := a.ask(token.text); got.Status != http.StatusUnauthorized && ctx.Err() == nil {
				return fmt.Errorf("%s: an ended token got status %d in the end, want 401", n.Name,
					got.Status)
			}
		}
	}
	return nil
}

// calmTime is how long the run goes on after the last fault: a window, one that may have begun
// just before, and as long as tokens take to reach their limit.
const calmTime = 2*windowLength + 50*time.Second

// settle lets windows pass.
func (o *faultRun) settle(ctx context.Context) error {
	from := time.Now()
	pause(ctx, calmTime)
	o.calm = append(o.calm, period{from, time.Now().Add(-frozenTimeout)})
	return nil
}

// note takes the response to a request with a live token.
func (o *faultRun) note(r Response) {
	o.tally.Note(r)
	if !r.admitted() && r.Status != http.StatusTooManyRequests {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.failed = append(o.failed, r)
	}
}

// end uses tokens at all nodes and ends them, one after the other. It repeats an end that fails at
// another node, until it succeeds. Then it asks all nodes on the same connections: a node that is
// frozen since finds the request there.
func (o *faultRun) end(ctx context.Context) {
	nodes := o.cluster.Nodes()
	var askers []*asker
	var ends []*ender
	for _, n := range nodes {
		askers = append(askers, newAsker(newDirect(n, endTimeout)))
		ends = append(ends, enderAt(o.cluster, n))
	}
	for ctx.Err() == nil {
		i := int(o.next.Add(1)) - 1
		if i >= len(o.dying) {
			return
		}
		for _, a := range askers {
			if got := a.ask(o.dying[i].Text); got.admitted() {
				o.warm.Add(1)
			}
		}
		pause(ctx, rand.N(4*time.Second)) // many faults begin here
		at := rand.IntN(len(ends))
		for ctx.Err() == nil && ends[at].end(ctx, o.dying[i], i%2 == 1) != nil {
			o.unanswered.Add(1)
			at = (at + 1) % len(ends)
			pause(ctx, 100*time.Millisecond)
		}
		if ctx.Err() != nil {
			return
		}
		token := endedToken{o.dying[i].Text, i%2 == 1, time.Now()}
		if !o.record(token) {
			continue
		}
		var asked sync.WaitGroup
		for at, a := range askers {
			asked.Go(func() { o.checkResponse(token, a.ask(token.text), nodes[at]) })
		}
		asked.Wait()
	}
}

// record notes a response to an end. It returns false if the database may lose the end.
func (o *faultRun) record(token endedToken) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.losing {
		o.lost = append(o.lost, token)
		return false
	}
	o.ended = append(o.ended, token)
	return true
}

// keepAskingEnded asks a node with tokens that have ended, those that have just ended above all. It
// does not wait for responses: a frozen node holds the requests in its sockets.
func (o *faultRun) keepAskingEnded(ctx context.Context, n *Node) {
	to := newDirect(n, endTimeout)
	var asking sync.WaitGroup
	for ; ctx.Err() == nil; pause(ctx, rand.N(2*askInterval)) {
		token, ok := o.anyEnded()
		if !ok {
			continue
		}
		asking.Go(func() { o.checkResponse(token, newAsker(to).ask(token.text), n) })
	}
	asking.Wait()
	to.client.CloseIdleConnections()
}

// checkResponse takes the response to a request that began after the end of its token.
func (o *faultRun) checkResponse(token endedToken, got Response, n *Node) {
	o.asked.Add(1)
	if !got.admitted() && got.Status != http.StatusTooManyRequests {
		return
	}
	text := fmt.Sprintf("%s responded with %d to a request that began at %v, %v after the end",
		n.Name, got.Status, got.Began.Format(time.TimeOnly), got.Began.Sub(token.at))
	o.lab.Log("%s", text)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late = append(o.late, text)
}

// anyEnded returns a token that has ended: every second time one of the last.
func (o *faultRun) anyEnded() (endedToken, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from := o.ended
	if rand.IntN(2) == 0 {
		from = from[max(0, len(from)-recent):]
	}
	if len(from) == 0 {
		return endedToken{}, false
	}
	return from[rand.IntN(len(from))], true
}

// String says what was seen.
func (o *faultRun) String() string {
	s := o.tally.Summary()
	return fmt.Sprintf("%d requests, %d without success while nodes or the database were away; "+
		"the most of a token in a window %d, %d windows above %d; %d tokens ended, used %d times "+
		"before, then %d times: %d admitted, %d ends tried again; %d lines at level error, "+
		"%d starts without the database", s.Requests, len(o.failed), s.Most, s.Above, Limit, len(o.ended), o.warm.Load(),
		o.asked.Load(), len(o.late), o.unanswered.Load(), len(o.lines.lines()), len(o.breaker.starts))
}

// check returns what is against the promises.
func (o *faultRun) check() error {
	var errs []error
	if len(o.late) > 0 {
		errs = append(errs, fmt.Errorf("ended tokens were admitted: %s", o.late[0]))
	}
	if len(o.ended) == 0 || o.warm.Load() == 0 {
		errs = append(errs, errors.New("no token has ended, or none was used before"))
	}
	for _, took := range o.healed {
		if took > healTime {
			errs = append(errs, fmt.Errorf("the cluster has healed after %v", took))
		}
	}
	for _, r := range o.failed {
		if r.Status != 0 && r.Status != http.StatusBadGateway &&
			r.Status != http.StatusServiceUnavailable || o.isCalm(r.Began) {
			errs = append(errs, fmt.Errorf("status %d at %v by %s", r.Status,
				r.Began.Format(time.TimeOnly), r.Node))
		}
	}
	for _, w := range o.tally.Windows() {
		faults := o.breaker.during(w.First.Add(-windowLength/2), w.First.Add(3*windowLength/2),
			func(*Fault) bool { return true })
		if w.Admitted > Limit*(1+faults) { // each fault can add the limit once
			errs = append(errs, fmt.Errorf("%d faults, and a window with too much: %+v", faults, w))
		}
	}
	errs = append(errs, o.breaker.problems(o.lines.lines())...)
	if n := len(errs); n > shownProblems {
		errs = append(errs[:shownProblems:shownProblems], fmt.Errorf("and %d more", n-shownProblems))
	}
	return errors.Join(errs...)
}

const shownProblems = 20

// isCalm reports whether no fault has an effect at a time.
func (o *faultRun) isCalm(at time.Time) bool {
	return slices.ContainsFunc(o.calm,
		func(p period) bool { return at.After(p.from) && at.Before(p.to) })
}

// exact counts the windows that were full and those that were not exact, from one window after the
// last fault on.
func (o *faultRun) exact() (exact, inexact int, err error) {
	var last time.Time
	for _, h := range o.breaker.all {
		if h.ended.After(last) {
			last = h.ended
		}
	}
	settled := last.Add(windowLength)
	for _, w := range o.tally.Windows() {
		switch {
		case w.First.Before(settled):
		case w.Admitted > Limit, w.Jump > 1, w.Early, w.Refused > 0 && w.Admitted < Limit:
			inexact++
			err = fmt.Errorf("a window is not exact after the last fault: %+v", w)
		case w.Refused > 0:
			exact++
		}
	}
	if exact == 0 {
		err = errors.Join(err, errors.New("no window was full after the last fault"))
	}
	return exact, inexact, err
}

// String counts the faults by kind.
func (b *breaker) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[FaultKind]int{}
	for _, h := range b.all {
		counts[h.Kind]++
	}
	var text []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return fmt.Sprintf("%d faults: %s", len(b.all), strings.Join(text, ", "))
}
