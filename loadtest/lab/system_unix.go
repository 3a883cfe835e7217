//go:build unix && !linux

package lab

import (
	"errors"
	"syscall"
	"time"
)

// ownGroup starts a process in its own group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// cpuTime is known on Linux only.
func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
