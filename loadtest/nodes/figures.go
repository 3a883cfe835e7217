package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// figureTime is the length of each measurement of speed.
const figureTime = 10 * time.Second

// busyConnections are as many as keep all processors busy.
const busyConnections = 128

// many uses many tokens once, as fast as the machine can, and kills a node.
func many(ctx context.Context, l *Lab) (_ string, err error) {
	c, err := l.start(ctx, 3, Config{Flags: []string{"--max-active-tokens", "100000000"}})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tokens, err := c.Tokens(ctx, l.Active, min(l.Active, 10_000))
	if err != nil {
		return "", err
	}
	if l.Cluster {
		if err := c.awaitSettled(ctx); err != nil {
			return "", err
		}
	}
	began := time.Now()
	failed, err := useOnce(ctx, c.Balancer, tokens, l.Workers)
	if err != nil {
		return "", err
	}
	took := time.Since(began)
	memory := ""
	for _, n := range c.Nodes() {
		m, err := n.Memory()
		if err != nil {
			return "", err
		}
		memory += fmt.Sprintf(" %d", m>>20)
	}
	if err := c.Nodes()[1].Kill(); err != nil {
		return "", err
	}
	settled, err := awaitHolders(ctx, []*Node{c.Nodes()[0], c.Nodes()[2]})
	text := fmt.Sprintf("%d tokens used in %v, %d failed; memory of the nodes%s MiB; all partitions "+
		"have a holder %v after the crash", len(tokens), took.Round(time.Second), failed, memory,
		settled.Round(100*time.Millisecond))
	if err == nil && settled > 8*time.Second {
		err = errors.New("that took longer than 8 s")
	}
	if failed > 0 {
		err = errors.Join(err, errors.New("requests failed"))
	}
	return text, err
}

// useOnce uses each token once and returns the number of requests that were not admitted.
func useOnce(ctx context.Context, to sender, tokens []Token, workers int) (int, error) {
	var next, failed atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			a := newAsker(to)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(tokens) {
					return
				}
				if got := a.ask(tokens[i].Text); !got.admitted() {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(failed.Load()), ctx.Err()
}

// hop measures what it costs that nodes count together, beside as many processes that do not.
func hop(ctx context.Context, l *Lab) (string, error) {
	text := ""
	for _, s := range []struct{ nodes, uses int }{{1, 60}, {3, 60}, {5, 60}, {3, 1}} {
		line, err := l.compare(ctx, s.nodes, s.uses)
		if text += line; err != nil {
			return text, fmt.Errorf("%d nodes: %w", s.nodes, err)
		}
	}
	if !l.Cluster {
		return text, nil
	}
	local, remote, err := l.hop(ctx)
	if err != nil {
		return text, err
	}
	return text + l.line("at the holder: %v; at another node: %v", local, remote), nil
}

// rounds is how often each of those that are compared has its turn.
const rounds = 4

// compare measures what requests cost at nodes and at as many processes that count alone, in turn,
// with tokens that are used uses times each.
func (l *Lab) compare(ctx context.Context, nodes, uses int) (text string, err error) {
	var all []*costed
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, way := range []struct {
		name            string
		cluster, sticky bool
	}{{"processes without the flag", false, false}, {"nodes, random", true, false}, {"nodes, sticky", true, true}} {
		if way.cluster && !l.Cluster || way.sticky && nodes == 1 {
			continue
		}
		c, err := l.cost(ctx, nodes, uses, way.cluster, way.sticky)
		if err != nil {
			return "", err
		}
		c.name = way.name
		all = append(all, c)
	}
	for round := range rounds {
		for _, c := range all {
			some := len(c.used) / rounds
			used := c.used[round*some : (round+1)*some]
			if err := c.got.measureCPU(ctx, c.Cluster, c.balancer, used, uses*some); err != nil {
				return "", err
			}
		}
	}
	for _, c := range all {
		text += l.line("%d %s, %d uses: %v, costs %.2f times the processes; ", nodes, c.name, uses, c.got,
			float64(c.got.request())/float64(all[0].got.request()))
	}
	return text, nil
}

// costed are nodes, and what is measured at them.
type costed struct {
	*Cluster
	name string
	used []Token
	got  *cost
}

func (c *costed) balancer(int) sender { return c.Balancer }

// line logs a line and returns it.
func (l *Lab) line(format string, args ...any) string {
	line := fmt.Sprintf(format, args...)
	l.Log("%s", line)
	return line
}

// cost is what requests cost at some nodes.
type cost struct {
	requests int
	cpu      time.Duration // of all nodes and requests
	p50, p99 time.Duration // while nothing else runs
}

// request returns the CPU time of a request.
func (c *cost) request() time.Duration { return c.cpu / time.Duration(c.requests) }

// String returns the cost on one line.
func (c *cost) String() string {
	return fmt.Sprintf("p50 %v, p99 %v, %v of CPU time a request", c.p50.Round(time.Microsecond),
		c.p99.Round(time.Microsecond), c.request().Round(100*time.Nanosecond))
}

// usedRequests is how many requests are about measured when each token is used some times.
const usedRequests = 300_000

// cost starts nodes and measures latencies through the balancer. The tokens for the measurement of
// CPU time are not used yet.
func (l *Lab) cost(ctx context.Context, n, uses int, cluster, sticky bool) (_ *costed, err error) {
	lab := *l
	lab.Cluster = cluster
	started, err := lab.start(ctx, n, Config{})
	if err != nil {
		return nil, err
	}
	c := &costed{Cluster: started}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	c.Balancer.Sticky.Store(sticky)
	tokens, err := c.Tokens(ctx, 20_000+min(usedRequests/uses, 60_000), 1000)
	if err != nil {
		return nil, err
	}
	if cluster {
		if err := c.awaitSettled(ctx); err != nil {
			return nil, err
		}
	}
	warm := tokens[:20_000]
	c.used = tokens[20_000:]
	if _, err := useOnce(ctx, c.Balancer, warm, l.Workers); err != nil {
		return nil, err
	}
	c.got, err = measureLatency(ctx, c.balancer, warm)
	return c, err
}

// hop measures requests at the holder, and at other nodes.
func (l *Lab) hop(ctx context.Context) (local, remote *cost, err error) {
	c, err := l.start(ctx, 3, Config{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tokens, err := c.Tokens(ctx, 20_000, 1000)
	if err != nil {
		return nil, nil, err
	}
	if err := c.awaitSettled(ctx); err != nil {
		return nil, nil, err
	}
	holders, err := c.holders(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes := c.Nodes()
	to := make([]sender, len(nodes))
	for i, n := range nodes {
		to[i] = newDirect(n, defaultTimeout)
	}
	at := func(offset int) func(int) sender {
		return func(token int) sender {
			holder := c.node(holders[partitionName(tokens[token].Partition)])
			return to[(slices.Index(nodes, holder)+offset)%len(nodes)]
		}
	}
	for i, to := range []**cost{&local, &remote} {
		if *to, err = measureLatency(ctx, at(i), tokens); err != nil {
			return nil, nil, err
		}
		if err := (*to).measureCPU(ctx, c, at(i), tokens, usedRequests); err != nil {
			return nil, nil, err
		}
	}
	return local, remote, nil
}

// measureLatency measures latencies with one connection at a time.
func measureLatency(ctx context.Context, to func(token int) sender, tokens []Token) (*cost, error) {
	var took []time.Duration
	if err := useFor(ctx, figureTime/2, 1<<30, 1, to, tokens, &took); err != nil {
		return nil, err
	}
	slices.Sort(took)
	return &cost{p50: took[len(took)/2], p99: took[len(took)*99/100]}, nil
}

// measureCPU measures CPU time with many connections: then a frame carries many asks.
func (got *cost) measureCPU(
	ctx context.Context, c *Cluster, to func(token int) sender, tokens []Token, requests int,
) error {
	before, err := c.cpu()
	if err != nil {
		return err
	}
	if err := useFor(ctx, time.Minute, requests, busyConnections, to, tokens, nil); err != nil {
		return err
	}
	after, err := c.cpu()
	got.cpu += after - before
	got.requests += requests
	return err
}

// useFor uses the tokens in turn, for a time or a number of requests.
func useFor(ctx context.Context, length time.Duration, requests, workers int,
	to func(token int) sender, tokens []Token, took *[]time.Duration) error {
	var next, failed atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(length)
	for range workers {
		all.Go(func() {
			a := newAsker(nil)
			for ctx.Err() == nil && time.Now().Before(end) {
				n := int(next.Add(1) - 1)
				if n >= requests {
					return
				}
				i := n % len(tokens)
				a.to = to(i)
				got := a.ask(tokens[i].Text)
				if !got.admitted() {
					failed.Add(1)
				}
				if took != nil {
					*took = append(*took, got.Took)
				}
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d of %d requests were not admitted", n, next.Load())
	}
	return ctx.Err()
}

// cpu returns the CPU time of all nodes.
func (c *Cluster) cpu() (time.Duration, error) {
	var all time.Duration
	for _, n := range c.Nodes() {
		used, err := n.CPU()
		if err != nil {
			return 0, err
		}
		all += used
	}
	return all, nil
}
