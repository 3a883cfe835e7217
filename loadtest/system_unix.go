//go:build unix && !linux

package loadtest

import (
	"syscall"
	"time"
)

// preciseSleep sleeps for d or slightly longer.
func preciseSleep(d time.Duration) { time.Sleep(d) }

// ownProcessGroup starts a process in its own group, so that Ctrl-C in a terminal does not reach
// it: its figures are needed until the end.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
