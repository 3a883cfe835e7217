//go:build !linux

package loadtest

import "time"

// doze sleeps for about d.
func doze(d time.Duration) { time.Sleep(d) }
