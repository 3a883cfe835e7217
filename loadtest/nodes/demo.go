package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// restartDelay is how long a demo waits before it starts a node again: longer than the others need
// to take its partitions.
const restartDelay = 15 * time.Second

// Demo runs nodes with a balancer until ctx ends, and prints to w what can be tried. It starts a
// node again that has ended.
func Demo(ctx context.Context, config Config, w io.Writer) (err error) {
	c, err := Prepare(ctx, config)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tokens, err := c.Tokens(ctx, 1, 1)
	if err == nil {
		err = c.StartAll(ctx)
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	if err := c.greet(w, tokens[0].Text); err != nil {
		return err
	}
	p := &printer{w: w}
	var watched sync.WaitGroup
	for _, n := range c.Nodes() {
		watched.Go(func() { n.revive(ctx, p) })
	}
	watched.Wait()
	return nil
}

// interrupted returns no error if a demo was stopped while it started.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// printer prints lines from many goroutines.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *printer) print(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// revive starts the process again some time after each end of it.
func (n *Node) revive(ctx context.Context, p *printer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.current().Ended():
		}
		p.print("%s has ended. It starts again in %v.", n.Name, restartDelay)
		pause(ctx, restartDelay)
		if ctx.Err() != nil {
			return
		}
		if err := n.Start(ctx); err != nil && ctx.Err() == nil {
			p.print("%s does not start: %v", n.Name, err)
			return
		}
		if ctx.Err() == nil {
			p.print("%s runs again with PID %d.", n.Name, n.current().PID())
		}
	}
}

// greet prints the addresses and what can be tried.
func (c *Cluster) greet(w io.Writer, token string) error {
	var b strings.Builder
	nodes := c.Nodes()
	fmt.Fprintf(&b, "%d nodes of gatehouse on one PostgreSQL, behind a balancer at %s\n\n", len(nodes),
		c.Balancer.URL)
	for _, n := range nodes {
		fmt.Fprintf(&b, "  %s  %s  admin %s  PID %d\n", n.Name, n.Base, n.Admin,
			n.current().PID())
	}
	last := nodes[len(nodes)-1]
	pid := last.current().PID()
	profile := c.Balancer.URL + "/api/user"
	fmt.Fprintf(&b, `
A request. The balancer picks a node, and all nodes count it:
  curl -i '%s' -H 'Authorization: Bearer %s'
110 requests: 100 get 200 and 10 get 429, whichever nodes they reach:
  for i in $(seq 110); do curl -s -o /dev/null -w '%%{http_code}\n' '%s' -H 'Authorization: Bearer %s'; done | sort | uniq -c
The nodes and what each of them holds:
  export GATEHOUSE_DATABASE_URL='%s' GATEHOUSE_KEY_FILE='%s'
  %s cluster status
Meanwhile try one of these. Each node that ends starts again after %v:
  kill %d                        # %s leaves: it hands over what it has counted
  kill -9 %d                     # it crashes: the others take over within 8 seconds
  kill -STOP %d; kill -CONT %d   # it hangs, and joins again
Metrics:
  curl -s '%s/metrics' | grep gatehouse_cluster

Stop with Ctrl-C. Nothing is kept.

`, profile, token, profile, token, c.database, c.keyFile, c.config.Program, restartDelay, pid,
		last.Name, pid, pid, pid, nodes[0].Admin)
	_, err := io.WriteString(w, b.String())
	return err
}
