package sqlstore

import (
	"context"
	"fmt"
	"time"
)

const (
	checkpointInterval = 250 * time.Millisecond
	passiveBytes       = 32 << 20  // size of the log for a PASSIVE checkpoint
	truncateBytes      = 256 << 20 // size for a TRUNCATE checkpoint, which the writer waits for
)

// checkpointUntil copies SQLite's log into the database file from time to time until ctx ends. It
// has its own connection, because SQLite's default checkpoints delay a commit.
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
		select { // at most one checkpoint an interval
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		pause.Reset(checkpointInterval)
		err := s.checkpoint(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.config.Logger.Warn("the database's log cannot be checkpointed and will grow", "error",
				err)
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
		s.emptyLog.Store(true) // try again after the next commit
	}
	if err != nil {
		return err
	}
	s.metrics.checkpointTime.Observe(time.Since(start).Seconds())
	return nil
}

// walSize runs a checkpoint in the given mode (NOOP changes nothing). It returns the size in bytes
// of the log that is not copied yet, and whether another connection prevented the checkpoint.
func (s *Store) walSize(ctx context.Context, mode string) (size int64, prevented bool, err error) {
	var busy, frames, copied int64
	if err := s.pools.checkpoint.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy,
		&frames, &copied); err != nil {
		return 0, false, fmt.Errorf("checkpoint %s: %w", mode, err)
	}
	if frames == copied {
		frames = 0 // the next write overwrites the log
	}
	size = max(0, frames) * s.pageSize
	s.metrics.walSize.Set(float64(size))
	return size, busy != 0, nil
}

// eraseDeleted makes the checkpointer empty the log soon: deleted data is overwritten in the
// database file, but the log still has it.
func (s *Store) eraseDeleted() {
	s.emptyLog.Store(true)
	s.wakeCheckpointer()
}

// wakeCheckpointer wakes the checkpointer, without waiting for it.
func (s *Store) wakeCheckpointer() {
	select {
	case s.logGrew <- struct{}{}:
	default:
	}
}

// truncateWAL copies the whole log and empties it. If a reader or another process prevents it, the
// next Open continues with the log.
func (s *Store) truncateWAL() error {
	if s.pools.checkpoint == nil {
		return nil
	}
	_, _, err := s.walSize(context.Background(), "TRUNCATE")
	return err
}
