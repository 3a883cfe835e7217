//go:build !unix

package loadtest

import "syscall"

// apart does nothing where there are no groups of processes.
func apart() *syscall.SysProcAttr { return nil }
