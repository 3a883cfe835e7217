package sqlstore

import (
	"context"
	"fmt"
	"time"
)

const (
	checkpointInterval = 250 * time.Millisecond
	passiveBytes       = 32 << 20  // of the log: copied into the database beside the writer
	truncateBytes      = 256 << 20 // of the log: long readers kept it from starting anew; the writer waits for it
)

// checkpointUntil copies SQLite's log into the database file from time to time, on a connection of its own: the default does so
// within the commit that comes at a bad time.
func (s *Store) checkpointUntil(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.logGrew:
		}
		select { // and not at each commit
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		pause.Reset(checkpointInterval)
		err := s.checkpoint(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.config.Logger.Warn("the database's log cannot be copied and will grow", "error", err)
		}
		failing = err != nil
	}
}

func (s *Store) checkpoint(ctx context.Context) error {
	size, err := s.walSize(ctx, "NOOP")
	if err != nil || size < passiveBytes {
		return err
	}
	mode := "PASSIVE"
	if size >= truncateBytes {
		mode = "TRUNCATE"
	}
	start := time.Now()
	if _, err := s.walSize(ctx, mode); err != nil {
		return err
	}
	s.metrics.checkpointTime.Observe(time.Since(start).Seconds())
	return nil
}

// walSize performs a checkpoint of a mode (NOOP does nothing) and returns how long the log is that is not to be overwritten yet.
func (s *Store) walSize(ctx context.Context, mode string) (int64, error) {
	var busy, frames, copied int64
	if err := s.pools.checkpoint.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &copied); err != nil {
		return 0, fmt.Errorf("checkpoint %s: %w", mode, err)
	}
	if frames == copied {
		frames = 0 // the next write starts the log anew
	}
	size := max(0, frames) * s.pageSize
	s.metrics.walSize.Set(float64(size))
	return size, nil
}

// truncateWAL copies the whole log and empties it. A reader or another process may keep it from that; the next Open goes on.
func (s *Store) truncateWAL() error {
	if s.pools.checkpoint == nil {
		return nil
	}
	_, err := s.walSize(context.Background(), "TRUNCATE")
	return err
}
