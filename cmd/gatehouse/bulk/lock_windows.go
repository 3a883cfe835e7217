package bulk

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// errLocked: another process has the lock.
const errLocked = windows.ERROR_LOCK_VIOLATION

// lock locks the byte after the last that a file can have, or returns errLocked. Windows would keep
// other handles from bytes that are locked.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: math.MaxUint32, OffsetHigh: math.MaxInt32})
}

// readable returns a file for reading. It cannot be read if it is open for writing only, as after >>.
func readable(f *os.File) (readable *os.File, closeIt func() error, err error) {
	return f, func() error { return nil }, nil
}

// replace puts a new file in the place of the state. Windows renames no open file, so for a moment
// nothing is locked but the output, which another command with this state would need.
func (s *State) replace(f *os.File) error {
	err := errors.Join(f.Close(), s.lock.Close())
	if err == nil {
		err = os.Rename(s.temporary(), s.path)
	}
	return errors.Join(err, s.open())
}
