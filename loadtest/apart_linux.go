package loadtest

import "syscall"

// apart starts a process in a group of its own, so that the Ctrl-C of a terminal does not reach it: its figures are wanted to
// the end. It does not outlive this program, however that ends: more exactly the thread that started it, which Go keeps unless a
// goroutine that is locked to it ends.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
