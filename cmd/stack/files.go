package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/httpedge/lookups"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/update"
)

// watchFiles registers the ages of the database files, and keeps the files up to date if they are to
// be.
func (s *Stack) watchFiles(files *mmdb.Provider) error {
	if err := s.Metrics.Register(fileAges{files}); err != nil {
		return fmt.Errorf("database files: %w", err)
	}
	if names := s.config.Lookups.Share; len(names) > 0 {
		s.shared = &lookups.Share{Names: names, File: files.Content}
	}
	c := s.config.Lookups.Update
	if c == nil {
		return nil
	}
	updates := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_mmdb_updates_total",
		Help: "Updates of database files by outcome: updated, unchanged, limited, refused, failed.",
	}, []string{"outcome"})
	for _, outcome := range []update.Outcome{update.Updated, update.Unchanged, update.Limited, update.Refused,
		update.Failed} {
		updates.WithLabelValues(string(outcome))
	}
	if err := s.Metrics.Register(updates); err != nil {
		return fmt.Errorf("updates: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		update.New(*c).Keep(ctx, func(results []update.Result, err error) {
			if err != nil {
				s.Logger.Warn("database files are not updated", "error", err)
			}
			for _, r := range results {
				updates.WithLabelValues(string(r.Outcome)).Inc()
				s.logUpdate(r)
			}
		})
	}()
	s.onStop(func() error { cancel(); <-done; return nil })
	return nil
}

// logUpdate logs what became of a file. No error has a secret.
func (s *Stack) logUpdate(r update.Result) {
	switch r.Outcome {
	case update.Updated:
		s.Logger.Info("database file updated", "file", r.File, "built", r.Built)
	case update.Unchanged:
		s.Logger.Debug("database file is up to date", "file", r.File, "built", r.Built)
	case update.Limited:
		s.Logger.Warn("database file is not requested: the publisher's limit is reached", "file", r.File,
			"until", r.Next)
	default:
		s.Logger.Warn("database file is not updated, the old one stays in use", "file", r.File,
			"outcome", r.Outcome, "error", r.Err)
	}
}

// fileAges is the metric of when each database file was built.
type fileAges struct{ files *mmdb.Provider }

var builtMetric = prometheus.NewDesc("gatehouse_mmdb_built_timestamp_seconds",
	"When the database file in use was built, in seconds since 1970.", []string{"file"}, nil)

// Describe implements prometheus.Collector.
func (fileAges) Describe(to chan<- *prometheus.Desc) { to <- builtMetric }

// Collect implements prometheus.Collector.
func (a fileAges) Collect(to chan<- prometheus.Metric) {
	a.files.Built(func(path string, at time.Time) {
		to <- prometheus.MustNewConstMetric(builtMetric, prometheus.GaugeValue, float64(at.Unix()), path)
	})
}
