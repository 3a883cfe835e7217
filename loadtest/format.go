package loadtest

import (
	"fmt"
	"strconv"
	"time"
)

func statusText(status int) string {
	if status == 0 {
		return "none"
	}
	return strconv.Itoa(status)
}

// shortTime formats a latency with three digits.
func shortTime(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2fms", d.Seconds()*1e3)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1fms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}

// String returns the second as a line of text.
func (s Second) String() string {
	left := s.Left.Round(time.Second).String() + " left"
	switch {
	case s.Waiting > 0:
		left = "finishing, " + grouped(s.Waiting) + " hits are due"
	case s.Left == 0:
		left = "finishing"
	}
	return fmt.Sprintf("%.0f/s  p50 %s  p99 %s  %s failed  %s", perSecond(s.Responses(), s.Length),
		shortTime(s.P50), shortTime(s.P99), grouped(s.Failed), left)
}

// grouped formats a number with commas between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// percent formats a share from 0 to 1 with three digits. It writes 100% only for exactly 1.
func percent(share float64) string {
	if share > 0.999 && share < 1 {
		return "99.9%"
	}
	return fmt.Sprintf("%.3g%%", 100*share)
}
