package sqlstore

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// replication are the metrics of the standby servers of PostgreSQL, read when they are asked for.
type replication struct{ pools pools }

const replicationTimeout = time.Second // then the metrics are left out

var (
	descReplicas = prometheus.NewDesc("gatehouse_store_replicas",
		"Standby servers that follow the PostgreSQL server; 0 on SQLite.", nil, nil)
	descReplicationLag = prometheus.NewDesc("gatehouse_store_replication_lag_seconds",
		"Longest time that a commit takes to be visible on a standby server; 0 on SQLite.", nil, nil)
)

// Describe implements prometheus.Collector.
func (r replication) Describe(all chan<- *prometheus.Desc) {
	all <- descReplicas
	all <- descReplicationLag
}

// Collect implements prometheus.Collector. Without the role pg_monitor, the lag is 0.
func (r replication) Collect(all chan<- prometheus.Metric) {
	var replicas, lag float64
	if r.pools.engine == postgresEngine {
		ctx, cancel := context.WithTimeout(context.Background(), replicationTimeout)
		defer cancel()
		if err := r.pools.read.QueryRowContext(ctx, `SELECT count(*),
			coalesce(max(extract(epoch FROM replay_lag)), 0)::float8
			FROM pg_stat_replication`).Scan(&replicas, &lag); err != nil {
			return
		}
	}
	all <- prometheus.MustNewConstMetric(descReplicas, prometheus.GaugeValue, replicas)
	all <- prometheus.MustNewConstMetric(descReplicationLag, prometheus.GaugeValue, lag)
}
