package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// leaseTime is when a node without the database must have stopped to serve: 4.5 s after its last
// beat, and a second for a slow machine.
const leaseTime = 5500 * time.Millisecond

// databaseStop stops PostgreSQL for cutTime and uses tokens all the time, also one that has ended.
func databaseStop(stale string) func(context.Context, *Lab) (string, error) {
	return func(ctx context.Context, l *Lab) (_ string, err error) {
		c, err := l.start(ctx, 3, Config{Flags: []string{"--stale", stale}})
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		tokens, err := c.Tokens(ctx, 60, 60)
		if err != nil {
			return "", err
		}
		ends, err := newEnder(ctx, c, c.Nodes()[0])
		if err != nil {
			return "", err
		}
		o := &outage{stale: stale != "0s", live: tokens[2:], ended: tokens[:2]}
		for i, token := range o.ended {
			if err := ends.end(ctx, token, i == 1); err != nil {
				return "", err
			}
		}
		return o.run(ctx, c)
	}
}

// outage is a time without the database.
type outage struct {
	stale       bool    // GATEHOUSE_STALE lasts longer than the outage
	live, ended []Token // ended are revoked, or their users disabled

	mu               sync.Mutex
	responses, dead  []Response // dead are those to ended tokens
	stopped, resumed time.Time
}

func (o *outage) run(ctx context.Context, c *Cluster) (string, error) {
	using, stop := context.WithCancel(ctx)
	defer stop()
	var users sync.WaitGroup
	for _, n := range c.Nodes() {
		users.Go(func() { o.use(using, newDirect(n, defaultTimeout)) })
	}
	pause(ctx, 3*time.Second)
	o.stopped = time.Now()
	err := c.StopPostgres()
	pause(ctx, cutTime)
	o.resumed = time.Now()
	err = errors.Join(err, c.ResumePostgres())
	if err == nil {
		for _, n := range c.Nodes() {
			err = errors.Join(err, n.AwaitReady(ctx))
		}
	}
	ready := time.Since(o.resumed)
	pause(ctx, 2*time.Second)
	stop()
	users.Wait()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return "", err
	}
	return o.verdict(ready)
}

// use asks with each token in turn, each at most every second so that no limit is reached.
func (o *outage) use(ctx context.Context, to *direct) {
	defer to.client.CloseIdleConnections()
	a := newAsker(to)
	for i := 0; ctx.Err() == nil; i++ {
		live := a.ask(o.live[i%len(o.live)].Text)
		dead := a.ask(o.ended[i%len(o.ended)].Text)
		o.mu.Lock()
		o.responses, o.dead = append(o.responses, live), append(o.dead, dead)
		o.mu.Unlock()
		pause(ctx, 20*time.Millisecond)
	}
}

// verdict counts responses by the time of their requests.
func (o *outage) verdict(ready time.Duration) (string, error) {
	before, during, lost, after := map[int]int{}, map[int]int{}, map[int]int{}, map[int]int{}
	var lastServed time.Duration
	for _, r := range o.responses {
		switch {
		case r.Began.Before(o.stopped):
			before[r.Status]++
		case r.Began.After(o.resumed.Add(ready)):
			after[r.Status]++
		case r.Began.After(o.resumed):
		case r.Began.After(o.stopped.Add(leaseTime)):
			lost[r.Status]++
			fallthrough
		default:
			during[r.Status]++
			if r.Status == http.StatusOK {
				lastServed = max(lastServed, r.Began.Sub(o.stopped))
			}
		}
	}
	dead := 0
	for _, r := range o.dead {
		if r.admitted() || r.Status == http.StatusTooManyRequests {
			dead++
		}
	}
	text := fmt.Sprintf("before %v; without the database %v, served until %v; ready %v after its "+
		"start, then %v; %d of %d requests with ended tokens admitted", before, during,
		lastServed.Round(100*time.Millisecond), ready.Round(100*time.Millisecond), after, dead,
		len(o.dead))
	var err error
	if only(before, http.StatusOK) != nil || only(after, http.StatusOK) != nil {
		err = errors.New("requests failed before or after the outage")
	}
	want := http.StatusServiceUnavailable
	if o.stale {
		want, lost = http.StatusOK, during
	}
	err = errors.Join(err, only(lost, want))
	if dead > 0 {
		err = errors.Join(err, errors.New("an ended token was admitted"))
	}
	return text, err
}

// only returns an error unless all responses have that status, and there are some.
func only(statuses map[int]int, want int) error {
	if len(statuses) != 1 || statuses[want] == 0 {
		return fmt.Errorf("got responses by status %v, want %d only", statuses, want)
	}
	return nil
}
