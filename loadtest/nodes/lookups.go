package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// lookupTime is how long lookups arrive: a window of the free tier, and a part of the next.
	lookupTime = 75 * time.Second
	// windowBudget is the number of addresses in a window of the free tier: 15 batches of 100. The
	// single requests come on top.
	windowBudget = 1500
)

// lookups asks for that many different addresses a second. All nodes share the budget of one free
// tier, which must never be exceeded. killed ends the node that spends the budget.
func lookups(rate int, killed bool) func(context.Context, *Lab) (string, error) {
	return func(ctx context.Context, l *Lab) (_ string, err error) {
		c, err := l.start(ctx, 3, Config{Upstream: []string{"--tier", "free", "--latency", "20ms"}})
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		q := &queries{cluster: c, rate: rate, kept: map[string]bool{}}
		var failed error
		var happening sync.WaitGroup
		if killed {
			happening.Go(func() {
				pause(ctx, lookupTime/3)
				failed = l.killSpender(ctx, c)
				q.mu.Lock()
				q.killed = time.Now()
				q.mu.Unlock()
			})
		}
		var first upstreamStats // of the first window
		happening.Go(func() {
			pause(ctx, windowLength)
			var err error
			if first, err = c.upstreamStats(ctx); err != nil {
				failed = errors.Join(failed, err)
			}
		})
		q.run(ctx)
		happening.Wait()
		if err := errors.Join(failed, ctx.Err()); err != nil {
			return "", err
		}
		return q.verdict(ctx, first, killed)
	}
}

// killSpender ends the node that holds the partition of lookups.
func (l *Lab) killSpender(ctx context.Context, c *Cluster) error {
	spender := c.Nodes()[0]
	if l.Cluster {
		all, err := c.holders(ctx)
		if err != nil {
			return err
		}
		spender = nil
		for partition, name := range all {
			if len(partition) > 4 && partition[:4] == "geo/" {
				spender = c.node(name)
			}
		}
		if spender == nil {
			return errors.New("no node holds the partition of lookups")
		}
	}
	l.Log("%s ends by kill -9", spender.Name)
	return spender.Kill()
}

// mostGap is how long lookups fail at most when the node that asks the upstream has ended.
const mostGap = 3 * time.Second

// queries are lookups of different addresses.
type queries struct {
	cluster *Cluster
	rate    int // a second

	mu       sync.Mutex
	statuses map[int]int
	kept     map[string]bool // addresses whose lookup got a result
	killed   time.Time       // when the node that spends the budget was ended
	gap      time.Duration   // from then to the last lookup that fails, by when it is sent
}

// run sends lookups through the balancer, each when it is due.
func (q *queries) run(ctx context.Context) {
	q.statuses = map[int]int{}
	var all sync.WaitGroup
	began := time.Now()
	for i := range int(lookupTime.Seconds()) * q.rate {
		pause(ctx, time.Until(began.Add(time.Duration(i)*time.Second/time.Duration(q.rate))))
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			address := fmt.Sprintf("8.%d.%d.%d", 1+i>>16, i>>8&0xff, i&0xff)
			sent := time.Now()
			status, _ := lookUp(q.cluster.Balancer, address)
			q.mu.Lock()
			defer q.mu.Unlock()
			if status == http.StatusBadGateway && !q.killed.IsZero() {
				q.gap = max(q.gap, sent.Sub(q.killed))
			}
			q.statuses[status]++
			if status == http.StatusOK {
				q.kept[address] = true
			}
		})
	}
	all.Wait()
}

// lookUp returns the status of a lookup (0 = no response) and whether the cache had it.
func lookUp(to sender, address string) (status int, cached bool) {
	var request fasthttp.Request
	var response fasthttp.Response
	request.SetRequestURI("http://gatehouse.example/api/lookup?q=" + address)
	if _, err := to.Do(&request, &response); err != nil {
		return 0, false
	}
	return response.StatusCode(), string(response.Header.Peek("X-Cache")) == "hit"
}

// verdict asks each node that runs for each result again.
func (q *queries) verdict(ctx context.Context, first upstreamStats, killed bool) (string, error) {
	last, err := q.cluster.upstreamStats(ctx)
	if err != nil {
		return "", err
	}
	var repeated, misses atomic.Int64
	var all sync.WaitGroup
	for _, n := range q.cluster.Nodes() {
		select {
		case <-n.current().Ended():
			continue
		default:
		}
		all.Go(func() {
			to := newDirect(n, defaultTimeout)
			defer to.client.CloseIdleConnections()
			for address := range q.kept {
				repeated.Add(1)
				if _, cached := lookUp(to, address); !cached {
					misses.Add(1)
				}
			}
		})
	}
	all.Wait()
	asked := int(lookupTime.Seconds()) * q.rate
	text := fmt.Sprintf("%d of %d served (by status %v), the upstream had %d in the first window and "+
		"%d in all, %d violations; repeats: %d of %d missed", len(q.kept), asked, q.statuses, first.Items,
		last.Items, last.Violations, misses.Load(), repeated.Load())
	switch {
	case last.Violations > 0:
		return text, errors.New("the budget was exceeded")
	case killed && q.gap > mostGap:
		return text, fmt.Errorf("lookups fail for %v, want at most %v", q.gap, mostGap)
	case killed:
	case misses.Load() > 0:
		return text, errors.New("a repeated lookup was no hit")
	case q.rate*60 > windowBudget && first.Items < windowBudget*95/100:
		return text, errors.New("the budget was not used")
	case q.rate*60 < windowBudget && len(q.kept) < asked*95/100:
		return text, errors.New("lookups within the budget were refused")
	}
	return text, nil
}

// upstreamStats are counters of the simulator.
type upstreamStats struct {
	Items      int `json:"items"`
	Violations int `json:"violations"`
}

func (c *Cluster) upstreamStats(ctx context.Context) (upstreamStats, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Upstream+"/_sim", nil)
	if err != nil {
		return upstreamStats{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return upstreamStats{}, fmt.Errorf("read the statistics: %w", err)
	}
	defer response.Body.Close()
	var got struct {
		Stats upstreamStats `json:"stats"`
	}
	return got.Stats, json.NewDecoder(response.Body).Decode(&got)
}
