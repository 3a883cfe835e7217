package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/partition"
)

// nodeMetrics are the metrics of a Node.
type nodeMetrics struct {
	registry   prometheus.Registerer // nil = none
	registered []prometheus.Collector

	asks    *prometheus.CounterVec
	byError [3]prometheus.Counter // of asks, as outcomes orders them
	seconds prometheus.Histogram
	frames  prometheus.Counter
	refused *prometheus.CounterVec
	moved   *prometheus.CounterVec
	confirm prometheus.Histogram
}

// outcomes are those of asks. Asks that this node decides itself are not counted.
var outcomes = [3]string{"replied", "unreachable", "busy"}

func newNodeMetrics(n *Node) (*nodeMetrics, error) {
	m := &nodeMetrics{
		registry: n.config.Metrics,
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_cluster_asks_total", Help: "Asks to other nodes by outcome.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatehouse_cluster_ask_seconds", Help: "Time of asks to other nodes.",
			Buckets: prometheus.ExponentialBuckets(.0001, 2, 15),
		}),
		frames: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_cluster_frames_total", Help: "Frames sent to other nodes.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_cluster_refused_total",
			Help: "Connections and messages of others that were refused, and connections to others that failed.",
		}, []string{"reason"}),
		moved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_cluster_moves_total",
			Help: "Partitions that this node has handed over or claimed.",
		}, []string{"kind"}),
		confirm: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "gatehouse_cluster_confirm_seconds",
			Help:    "Time until all other nodes had applied a change.",
			Buckets: prometheus.ExponentialBuckets(.001, 2, 15),
		}),
	}
	for i, outcome := range outcomes {
		m.byError[i] = m.asks.WithLabelValues(outcome)
	}
	for _, r := range []string{"certificate", "handshake", "connections", "message", "frame"} {
		m.refused.WithLabelValues(r)
	}
	for _, kind := range []string{"handed", "claimed"} {
		m.moved.WithLabelValues(kind)
	}
	if m.registry == nil {
		return m, nil
	}
	for _, c := range append([]prometheus.Collector{
		m.asks, m.seconds, m.frames, m.refused, m.moved, m.confirm,
	}, n.gauges()...) {
		if err := m.registry.Register(c); err != nil {
			m.unregister()
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		m.registered = append(m.registered, c)
	}
	return m, nil
}

func (m *nodeMetrics) unregister() {
	for _, c := range m.registered {
		m.registry.Unregister(c)
	}
}

// gauges are those that are computed from the View.
func (n *Node) gauges() []prometheus.Collector {
	list := []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_cluster_partitions_held",
			Help: "Partitions of access tokens that this node holds, of 256 in the cluster.",
		}, func() (held float64) {
			for _, p := range n.View().Parts[:partition.Tokens] {
				if p.Mine {
					held++
				}
			}
			return held
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_cluster_lease_age_seconds",
			Help: "Time since the last successful beat was sent; above 4.5 the lease is lost.",
		}, func() float64 {
			sent := time.Duration(n.lease.Load()) - partition.LeaseTime
			return (n.clock() - max(0, sent)).Seconds()
		}),
	}
	for _, state := range []partition.State{partition.Joining, partition.Up, partition.Leaving} {
		list = append(list, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_cluster_nodes", Help: "Nodes that have a row, by state.",
			ConstLabels: prometheus.Labels{"state": string(state)},
		}, func() (nodes float64) {
			for _, node := range n.View().Nodes {
				if node.State == state {
					nodes++
				}
			}
			return nodes
		}))
	}
	return list
}

// asked counts an ask.
func (m *nodeMetrics) asked(err error, took time.Duration) {
	switch err {
	case nil:
		m.byError[0].Inc()
	case partition.ErrBusy:
		m.byError[2].Inc()
	case partition.ErrHere:
		return
	default:
		m.byError[1].Inc()
	}
	m.seconds.Observe(took.Seconds())
}

// operation counts what an operation has moved.
func (m *nodeMetrics) operation(op *partition.Op) {
	switch op.Kind {
	case partition.OpHand:
		m.moved.WithLabelValues("handed").Add(float64(len(op.Got)))
	case partition.OpClaim:
		m.moved.WithLabelValues("claimed").Add(float64(len(op.Got)))
	}
}

// reason returns the label of what was refused.
func reason(err error) string {
	for _, e := range []error{errMethod, errGreeting, errShape, errStranger} {
		if errors.Is(err, e) {
			return "message"
		}
	}
	switch {
	case errors.Is(err, errFrame):
		return "frame"
	case errors.Is(err, errTooMany):
		return "connections"
	case errors.Is(err, errUnknownCertificate), errors.Is(err, errCertificate):
		return "certificate"
	}
	return "handshake"
}
