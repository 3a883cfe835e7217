//go:build !linux

package loadtest

import "time"

// preciseSleep sleeps for d or slightly longer.
func preciseSleep(d time.Duration) { time.Sleep(d) }
