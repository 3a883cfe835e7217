//go:build unix

package bulk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// errLocked: another process has the lock.
const errLocked = syscall.EWOULDBLOCK

// lock takes an advisory lock, or returns errLocked.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// readable returns a file for reading that may be open for writing only.
func readable(f *os.File) (readable *os.File, closeIt func() error, err error) {
	if readable, err = os.Open(fmt.Sprintf("/dev/fd/%d", f.Fd())); err != nil {
		return nil, nil, err
	}
	return readable, readable.Close, nil
}

// replace puts a new file, which is locked, in the place of the state.
func (s *State) replace(f *os.File) error {
	if err := os.Rename(s.temporary(), s.path); err != nil {
		return errors.Join(err, f.Close())
	}
	old := s.lock
	s.lock = f
	folder, err := os.Open(filepath.Dir(s.path))
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close()) // makes the name durable
}
