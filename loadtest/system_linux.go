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
