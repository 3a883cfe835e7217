package sqlstore

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// storeMetrics are the metrics of the writer.
type storeMetrics struct {
	registry   prometheus.Registerer // nil = none
	registered []prometheus.Collector

	batchSize      prometheus.Histogram
	commitTime     prometheus.Histogram
	checkpointTime prometheus.Histogram
	refused        prometheus.Counter
	retries        prometheus.Counter
	swept          prometheus.Counter
}

func newStoreMetrics(s *Store) (*storeMetrics, error) {
	m := &storeMetrics{
		registry: s.config.Metrics,
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatehouse_store_batch_size", Help: "Writes in a transaction.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		commitTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "gatehouse_store_commit_duration_seconds",
			Help:    "Time of a commit, which is mostly the disk.",
			Buckets: prometheus.ExponentialBuckets(.0001, 2, 15),
		}),
		checkpointTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "gatehouse_store_checkpoint_duration_seconds",
			Help:    "Time of a checkpoint of SQLite's log.",
			Buckets: prometheus.ExponentialBuckets(.001, 2, 14),
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_store_refused_total",
			Help: "Writes refused because the queue was full or the store was closed.",
		}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_store_batch_retries_total",
			Help: "Transactions that failed and whose writes were retried one by one.",
		}),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_store_swept_rows_total", Help: "Expired rows that were deleted.",
		}),
	}
	if m.registry == nil {
		return m, nil
	}
	queued := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_store_queue_length", Help: "Writes in the writer's queue.",
	}, func() float64 { return float64(s.queue.len()) })
	logSize := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_store_wal_bytes",
		Help: "Size of the file of SQLite's log; 0 on PostgreSQL.",
	}, s.logSize)
	for _, c := range []prometheus.Collector{
		m.batchSize, m.commitTime, m.checkpointTime, logSize, m.refused, m.retries,
		m.swept, queued, replication{s.pools},
		collectors.NewDBStatsCollector(s.pools.write, "writers"),
		collectors.NewDBStatsCollector(s.pools.read, "readers"),
	} {
		if err := m.registry.Register(c); err != nil {
			m.unregister()
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		m.registered = append(m.registered, c)
	}
	return m, nil
}

func (m *storeMetrics) unregister() {
	for _, c := range m.registered {
		m.registry.Unregister(c)
	}
}
