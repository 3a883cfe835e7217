package loadtest

import (
	"syscall"
	"time"
)

// preciseSleep sleeps for d or slightly longer, or less when a signal comes. Go's timers use
// epoll_wait(2), which counts whole milliseconds: a hit could begin up to 1 ms late, more than most
// responses take.
func preciseSleep(d time.Duration) {
	left := syscall.NsecToTimespec(int64(d))
	if err := syscall.Nanosleep(&left, nil); err != nil {
		return // woken early: the caller looks at the clock
	}
}

// ownProcessGroup starts a process in its own group, so that Ctrl-C in a terminal does not reach
// it: its figures are needed until the end. The kernel kills the process when the thread that
// started it ends. Go keeps that thread until this program ends, unless a goroutine that is locked
// to the thread ends.
func ownProcessGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
