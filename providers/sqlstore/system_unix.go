//go:build unix

package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

const (
	// othersBits are the mode bits that say what other users may do with a file.
	othersBits fs.FileMode = 0o077
	// errLocked: another process has the lock.
	errLocked = syscall.EWOULDBLOCK
)

// tryLock takes an advisory lock, or returns errLocked.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// available returns the bytes that this process may write to the file system of a file.
func available(path string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return 0, err
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil
}

// hasSeveralNames reports whether a file has hard links.
func hasSeveralNames(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}

// ownersOf says whose a file and this process are, as part of a sentence.
func ownersOf(info fs.FileInfo) string {
	process := fmt.Sprintf("which has uid %d and gid %d", os.Geteuid(), os.Getegid())
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%s; the file has %d and %d", process, stat.Uid, stat.Gid)
	}
	return process
}

// isOfOwnGroup reports whether a file belongs to root or to the user of this process, and to one of
// the groups of this process.
func isOfOwnGroup(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return false
	}
	groups, err := os.Getgroups()
	return int(stat.Gid) == os.Getegid() || err == nil && slices.Contains(groups, int(stat.Gid))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err == nil {
		err = errors.Join(folder.Sync(), folder.Close())
	}
	return wrap("write folder", err)
}
