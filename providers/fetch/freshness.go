package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Freshness returns how long a document is fresh by its headers (RFC 9111 sections 4.2 and 5.2.2),
// from leastFresh to longestKept.
func Freshness(h http.Header, now time.Time) time.Duration {
	return min(max(stated(h, now), leastFresh), longestKept)
}

// stated returns how long the headers say that a document is fresh; 0 = they do not.
func stated(h http.Header, now time.Time) time.Duration {
	age := time.Duration(-1)
	for _, line := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
			switch name {
			case "no-store", "no-cache":
				return 0
			case "max-age":
				age = seconds(strings.Trim(value, `"`))
			}
		}
	}
	if age >= 0 {
		return age - max(seconds(h.Get("Age")), 0)
	}
	expires, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	return expires.Sub(now)
}

// seconds returns a number of seconds, or 0 for anything else. It returns a day for more.
func seconds(text string) time.Duration {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return min(time.Duration(n)*time.Second, longestKept)
}
