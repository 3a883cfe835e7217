//go:build !unix

package loadtest

import (
	"syscall"
	"time"
)

// preciseSleep sleeps for d or slightly longer.
func preciseSleep(d time.Duration) { time.Sleep(d) }

// ownProcessGroup changes nothing: these systems have no process groups.
func ownProcessGroup() *syscall.SysProcAttr { return nil }
