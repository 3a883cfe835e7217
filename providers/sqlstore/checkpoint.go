package sqlstore

import (
	"context"
	"fmt"
	"time"
)

const (
	checkpointInterval = 250 * time.Millisecond
	// truncatePause follows a TRUNCATE that a reader has prevented: each one blocks the writer.
	truncatePause = 5 * time.Second
	// checkpointWait is how long a checkpoint waits for readers, such as a backup.
	checkpointWait = 100 * time.Millisecond

	leastLog, smallLog, mostLog = 1 << 20, 16 << 20, 256 << 20 // bytes
	passiveShare                = 8                            // see checkpoint
)

// logLimit returns the size from which SQLite's log is emptied: the size of the database, but at
// most a quarter of the space that the log can have.
func (v volume) logLimit() int64 {
	return max(leastLog, min(mostLog, max(smallLog, v.database), (v.free+v.log)/4))
}

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

// checkpoint copies the log at an eighth of its limit. At the limit it also empties the file, which
// the writer waits for.
func (s *Store) checkpoint(ctx context.Context) error {
	v := s.measure()
	limit := v.logLimit()
	empty := s.emptyLog.Load()
	truncate := (empty || v.log >= limit) && time.Now().After(s.truncateFrom)
	if !truncate {
		pending, _, err := s.runCheckpoint(ctx, "NOOP")
		if err != nil || pending < limit/passiveShare {
			return err
		}
	}
	start := time.Now()
	_, _, err := s.runCheckpoint(ctx, "PASSIVE") // so that the writer does not wait for the most of it
	if err == nil && truncate {
		err = s.emptyTheLog(ctx)
	}
	if err != nil {
		return err
	}
	s.metrics.checkpointTime.Observe(time.Since(start).Seconds())
	return nil
}

func (s *Store) emptyTheLog(ctx context.Context) error {
	s.turn.Lock() // else the writer would hardly let SQLite's lock go
	defer s.turn.Unlock()
	empty := s.emptyLog.Swap(false)
	_, prevented, err := s.runCheckpoint(ctx, "TRUNCATE")
	if err != nil || prevented {
		s.truncateFrom = time.Now().Add(truncatePause)
		if empty {
			s.eraseDeleted() // later
		}
	}
	return err
}

// runCheckpoint runs a checkpoint in the given mode (NOOP changes nothing). It returns the bytes of
// the log that are not copied yet, and whether another connection prevented the checkpoint.
func (s *Store) runCheckpoint(ctx context.Context,
	mode string) (pending int64, prevented bool, err error) {
	var busy, frames, copied int64
	if err := s.pools.checkpoint.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy,
		&frames, &copied); err != nil {
		return 0, false, fmt.Errorf("checkpoint %s: %w", mode, err)
	}
	return max(0, frames-copied) * s.pageSize, busy != 0, nil
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
	_, _, err := s.runCheckpoint(context.Background(), "TRUNCATE")
	return err
}

// logSize returns the size of SQLite's log file in bytes; 0 on PostgreSQL.
func (s *Store) logSize() float64 {
	if s.pools.engine != sqliteEngine {
		return 0
	}
	return float64(fileSize(s.pools.path + "-wal"))
}
