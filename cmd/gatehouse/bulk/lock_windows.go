package bulk

import (
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

// syncFolder does nothing: Windows writes names with the files.
func syncFolder(string) error { return nil }
