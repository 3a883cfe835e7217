package contracts

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// breakerOpen is the value of the breaker's metric.
const breakerOpen = 2

// joinTime is how long the nodes of a fixture may take to join, and joinPause the time between two
// looks. A busy machine needs seconds.
const (
	joinTime  = time.Minute
	joinPause = 5 * time.Millisecond
)

// chooser chooses nodes: random ones from a seed, never the same one for two requests in a row.
type chooser struct {
	nodes int

	mu     sync.Mutex
	random *rand.Rand
	last   int
}

// newChooser returns the chooser of a fixture; c may be nil.
func newChooser(c *Cluster) *chooser {
	if c == nil {
		return &chooser{nodes: 1}
	}
	return &chooser{nodes: c.Nodes, random: rand.New(rand.NewPCG(c.Seed, c.Seed))}
}

func (c *chooser) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes > 1 {
		c.last = (c.last + 1 + c.random.IntN(c.nodes-1)) % c.nodes
	}
	return c.last
}

// base returns the URL of the listener with a path, of the node that gets the next request.
func (f *fixture) base(path string) *url.URL {
	n := f.nodes[f.chooser.next()]
	if strings.HasPrefix(path, adminPath) {
		return n.admin
	}
	return n.base
}

// join waits until each node of a cluster is ready.
func (f *fixture) join(ctx context.Context) error {
	if f.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	for _, n := range f.nodes {
		for !isReady(ctx, n.AdminURL+"/readyz") {
			select {
			case <-time.After(joinPause):
			case <-ctx.Done():
				return errors.New("a node of the cluster does not become ready")
			}
		}
	}
	return nil
}

func isReady(ctx context.Context, readyz string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, readyz, nil)
	if err != nil {
		return false
	}
	response, err := transport.RoundTrip(request)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// breakerIsOpen reports whether a node asks the upstream no longer.
func (n *node) breakerIsOpen() bool {
	families, err := n.Metrics.Gather()
	return err == nil && slices.ContainsFunc(families, func(family *dto.MetricFamily) bool {
		return family.GetName() == "gatehouse_breaker_state" &&
			family.GetMetric()[0].GetGauge().GetValue() == breakerOpen
	})
}
