package stub

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fault is what some requests meet instead of their response. One of Status, Delay, Cut and Expired
// is set.
type Fault struct {
	Method, Path string
	Percent      int // of the requests, 1 to 100
	Status       int
	Delay        time.Duration
	Cut          bool // the connection ends in the middle of the body
	Expired      bool // the access token has expired
}

// ParseFault parses a fault, such as GET /api/lookup=503@10%.
func ParseFault(text string) (Fault, error) {
	f := Fault{Percent: 100}
	operation, what, found := strings.Cut(text, "=")
	method, path, spaced := strings.Cut(strings.TrimSpace(operation), " ")
	if !found || !spaced || !strings.HasPrefix(path, "/") {
		return f, fmt.Errorf("got %q, want a fault such as 'GET /api/lookup=503@10%%'", text)
	}
	f.Method, f.Path = strings.ToUpper(method), path
	if kind, share, limited := strings.Cut(what, "@"); limited {
		n, err := strconv.Atoi(strings.TrimSuffix(share, "%"))
		if err != nil || n < 1 || n > 100 {
			return f, fmt.Errorf("%q: got %s, want 1%% to 100%%", text, share)
		}
		f.Percent, what = n, kind
	}
	switch duration, delayed := strings.CutPrefix(what, "delay "); {
	case what == "cut":
		f.Cut = true
	case what == "expired":
		f.Expired = true
	case delayed:
		d, err := time.ParseDuration(duration)
		if err != nil || d <= 0 || d > time.Hour {
			return f, fmt.Errorf("%q: got the delay %s, want one such as 200ms, at most 1h", text, duration)
		}
		f.Delay = d
	default:
		n, err := strconv.Atoi(what)
		if err != nil {
			return f, fmt.Errorf("%q: got %s, want a status, cut, expired, or a delay such as 'delay 200ms'", text,
				what)
		}
		f.Status = n
	}
	return f, f.possible()
}

// possible returns an error unless gatehouse's pacts have the response.
func (f Fault) possible() error {
	status, word := f.Status, ""
	if f.Expired {
		status, word = 401, "expired"
	}
	if f.Cut || f.Delay > 0 {
		return nil
	}
	if p, _, there := find(f.Method, f.Path, status, word); p == nil {
		return fmt.Errorf("gatehouse's pacts have no response %d %s to %s %s; they have %v", status, word, f.Method,
			f.Path, there)
	}
	return nil
}
