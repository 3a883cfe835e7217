//go:build !unix

package lab

import (
	"errors"
	"syscall"
	"time"
)

// ownGroup changes nothing: these systems have no process groups.
func ownGroup() *syscall.SysProcAttr { return nil }

// cpuTime is known on Linux only.
func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
