//go:build unix && !linux

package loadtest

import "syscall"

// apart starts a process in a group of its own, so that the Ctrl-C of a terminal does not reach it: its figures are wanted to
// the end.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
