//go:build unix

package update

import (
	"os"
	"syscall"
)

// lock takes an advisory lock, or fails if another process has it.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
