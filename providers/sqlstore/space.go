package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"gatehouse/actors/oauth"
)

// ErrFull: the volume of a SQLite database has too little space left for new data.
var ErrFull = fmt.Errorf("the volume of the database has less than %d MB left: "+
	"only deletions and revocations are written", reservedSpace>>20)

const (
	// reservedSpace is left to the log and to writes that make space, in bytes. Without it a full
	// volume could not be recovered: a deletion needs space in the log first.
	reservedSpace = 8 << 20
	// A transaction needs batchSpace of the log at most, and writeSpace for each write of a batch.
	batchSpace, writeSpace = 4 << 20, 32 << 10
)

// volume says how much space a SQLite database has, in bytes.
type volume struct {
	free          int64 // of the file system, for this process
	database, log int64 // sizes of the files
}

// measure returns the present volume. What cannot be measured does not count as full.
func (s *Store) measure() volume {
	return volume{free: freeSpace(s.pools.path), database: fileSize(s.pools.path),
		log: fileSize(s.pools.path + "-wal")}
}

// freeSpace returns the bytes that this process may write to the file system of a file; much if
// that cannot be measured.
func freeSpace(path string) int64 {
	const much = math.MaxInt64 / 2
	free, err := available(path)
	if err != nil {
		return much
	}
	return int64(min(much, free))
}

// fileSize returns the size of a file, or 0 if there is none.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// withSpace returns the operations that there is space for and ends the others with ErrFull. It
// keeps as much space free as the log needs to be copied: on a full volume, a log with new pages
// of the database could never be emptied.
func (s *Store) withSpace(ops []oauth.Operation) []oauth.Operation {
	v := s.measure()
	need := int64(batchSpace + writeSpace*len(ops))
	if v.free >= reservedSpace+need+v.log {
		s.sayFull(nil)
		return ops
	}
	err := s.checkSpace(v, need)
	if err == nil {
		s.sayFull(nil)
		return ops
	}
	s.sayFull(err)
	s.health.failed(err)
	admitted := ops[:0]
	for _, op := range ops {
		if makesSpace(op) && errors.Is(err, ErrFull) {
			admitted = append(admitted, op)
			continue
		}
		op.Done(fmt.Errorf("write: %w", err))
	}
	return admitted
}

// checkSpace returns ErrFull if there is no space for new data, and another error if there is none
// for deletions either.
func (s *Store) checkSpace(v volume, need int64) error {
	ctx := context.Background()
	growth, unused, err := s.pages(ctx, v)
	if err == nil && v.log > 0 && v.free < growth+need {
		if _, _, err = s.runCheckpoint(ctx, "TRUNCATE"); err == nil {
			v = s.measure()
			growth, unused, err = s.pages(ctx, v)
		}
		if err == nil && growth > 0 && v.free < growth+need {
			err = errors.New("the log cannot be emptied while the database is read, such as for a backup")
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("make space on the volume of the database: %w", err)
	case v.free+v.log-growth+unused < reservedSpace:
		return ErrFull
	}
	return nil
}

// pages returns by how much the database file grows when the log is copied to it, and how much
// space in it is unused, in bytes.
func (s *Store) pages(ctx context.Context, v volume) (growth, unused int64, err error) {
	err = s.pools.checkpoint.QueryRowContext(ctx,
		"SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count").Scan(&growth,
		&unused)
	return max(0, growth*s.pageSize-v.database), unused * s.pageSize, err
}

// makesSpace reports whether op deletes data or ends tokens. It is executed on a full volume too.
func makesSpace(op oauth.Operation) bool {
	switch op := op.(type) {
	case *oauth.Revoke:
		return true
	case *task:
		return op.makesSpace
	}
	return false
}

// sayFull logs when the volume becomes full and when it no longer is; nil = it is not.
func (s *Store) sayFull(err error) {
	switch full := err != nil; {
	case full == s.full:
		return
	case full:
		s.config.Logger.Error("new data is refused", "cause", err)
	default:
		s.config.Logger.Info("the volume of the database has space again")
	}
	s.full = err != nil
}
