package loadtest

import (
	"syscall"
	"time"
)

// doze sleeps for d or somewhat longer, or less when a signal comes. Go's own timers are kept by epoll_wait(2), whose times
// are whole milliseconds: a hit that waits for one begins up to a millisecond late, more than most answers take.
func doze(d time.Duration) {
	left := syscall.NsecToTimespec(int64(d))
	if err := syscall.Nanosleep(&left, nil); err != nil {
		return // woken early: the caller looks at the clock
	}
}
