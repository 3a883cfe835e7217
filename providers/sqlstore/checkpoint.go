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
	empty := s.emptyLog.Swap(false)
	size, _, err := s.walSize(ctx, "NOOP")
	if err == nil && size < passiveBytes && !empty {
		return nil
	}
	mode := "PASSIVE"
	if size >= truncateBytes || empty {
		mode = "TRUNCATE"
	}
	start := time.Now()
	busy := false
	if err == nil {
		_, busy, err = s.walSize(ctx, mode)
	}
	if empty && (err != nil || busy) {
		s.emptyLog.Store(true) // after the next commit
	}
	if err != nil {
		return err
	}
	s.metrics.checkpointTime.Observe(time.Since(start).Seconds())
	return nil
}

// walSize performs a checkpoint of a mode (NOOP does nothing) and returns how long the log is that is not to be overwritten yet, and
// whether somebody kept it from being done.
func (s *Store) walSize(ctx context.Context, mode string) (size int64, kept bool, err error) {
	var busy, frames, copied int64
	if err := s.pools.checkpoint.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &copied); err != nil {
		return 0, false, fmt.Errorf("checkpoint %s: %w", mode, err)
	}
	if frames == copied {
		frames = 0 // the next write starts the log anew
	}
	size = max(0, frames) * s.pageSize
	s.metrics.walSize.Set(float64(size))
	return size, busy != 0, nil
}

// forget makes the checkpointer empty the log soon: what was deleted is overwritten in the database file, but still in the log.
func (s *Store) forget() {
	s.emptyLog.Store(true)
	s.tellOfLog()
}

// tellOfLog wakes the checkpointer, now or when it has time.
func (s *Store) tellOfLog() {
	select {
	case s.logGrew <- struct{}{}:
	default:
	}
}

// truncateWAL copies the whole log and empties it. A reader or another process may keep it from that; the next Open goes on.
func (s *Store) truncateWAL() error {
	if s.pools.checkpoint == nil {
		return nil
	}
	_, _, err := s.walSize(context.Background(), "TRUNCATE")
	return err
}
