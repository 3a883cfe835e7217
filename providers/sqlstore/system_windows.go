package sqlstore

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const (
	// othersBits is 0: what other users may do is in the access list of the folder, not in the mode.
	othersBits fs.FileMode = 0
	// errLocked: another process has the lock.
	errLocked = windows.ERROR_LOCK_VIOLATION
)

// tryLock locks a file that nobody reads or writes, or returns errLocked.
func tryLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
}

// available returns the bytes that this process may write to the volume of a file.
func available(path string) (free uint64, err error) {
	folder, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	err = windows.GetDiskFreeSpaceEx(folder, &free, nil, nil)
	return free, err
}

// hasSeveralNames is not known: a listing of the folder does not say it.
func hasSeveralNames(fs.FileInfo) bool { return false }

// ownersOf is not called: othersBits is 0.
func ownersOf(fs.FileInfo) string { return "" }

// isOfOwnGroup reports false: a mode has no group.
func isOfOwnGroup(fs.FileInfo) bool { return false }

// syncFolder does nothing: Windows writes names with the files.
func syncFolder(string) error { return nil }
