package update

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock locks the first byte of a file, which nobody reads, or fails if another process has it.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{})
}

// syncFolder does nothing: Windows writes names with the files.
func syncFolder(string) error { return nil }
