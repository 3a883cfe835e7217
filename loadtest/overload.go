package loadtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	overloadIdle   = 2000 // default number of idle connections
	idlePerSlow    = 10   // idle connections for one slow client
	garbagePerIdle = 5    // garbage queries a second for one idle connection
	garbageSenders = 64   // connections for garbage queries
	// idleTimeout is gatehouse's default: idle connections may end after it.
	idleTimeout = time.Minute
)

// overload overloads a target in the second half of a run.
type overload struct {
	target string // HOST:PORT
	secure bool
	base   string
	idle   int    // number of idle connections
	path   string // of the cached lookup

	begun         atomic.Bool
	lasted        time.Duration
	kept          int          // idle connections that still worked at the end
	refused, lost atomic.Int64 // slow requests with 408, and those that ended otherwise
	due           uint64       // garbage queries
	flood         Result
}

func prepareOverload(ctx context.Context, s *Setup) (*workload, error) {
	const cached = "8.8.8.8"
	base, err := url.Parse(s.Target.Base)
	if err != nil {
		return nil, fmt.Errorf("read the target's address: %w", err)
	}
	secure := base.Scheme == "https"
	o := &overload{target: fasthttp.AddMissingPort(base.Host, secure), secure: secure,
		base: s.Target.Base, idle: s.people(overloadIdle), path: lookup(cached)}
	return &workload{hit: o.hit, during: o.during, checks: o.checks}, s.warm(ctx, []string{cached})
}

// hit makes a cached lookup.
func (o *overload) hit(h *Hit) error {
	step := "lookup"
	if o.begun.Load() {
		step = "overloaded-lookup"
	}
	_, err := h.Do(step, Request{Path: o.path, Want: func(r *Response) string {
		if r.Status == http.StatusOK && r.Header("X-Cache") != "hit" {
			return "not cached"
		}
		return Status(http.StatusOK)(r)
	}})
	return err
}

// during overloads the target from the middle of the run to its end.
func (o *overload) during(ctx context.Context, planned time.Duration, note func(Period)) error {
	began := time.Now()
	if !pause(ctx, planned/2) {
		return nil
	}
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for range o.idle {
		c, err := o.dial(ctx)
		if err == nil {
			idle = append(idle, c)
			err = o.ask(c)
		}
		if err != nil {
			return fmt.Errorf("open idle connection %d: %w", len(idle), err)
		}
	}
	o.begun.Store(true)
	period := Period{What: "overload", From: time.Since(began)}
	schedule := Steady(float64(garbagePerIdle*o.idle), max(time.Second, planned-period.From))
	flood, err := newRun(o.base, Config{Schedule: schedule, Connections: garbageSenders}, sendGarbage)
	if err != nil {
		return err
	}
	slow, stop := context.WithCancel(ctx)
	defer stop()
	var senders sync.WaitGroup
	for range o.idle / idlePerSlow {
		senders.Go(func() { o.sendSlowly(slow) })
	}
	o.due, o.flood = schedule.Hits(), flood.do(ctx)
	flood.client.CloseIdleConnections()
	stop()
	senders.Wait()
	period.To = time.Since(began)
	o.lasted = period.To - period.From
	note(period)
	for _, c := range idle {
		if o.ask(c) == nil {
			o.kept++
		}
	}
	return nil
}

func (o *overload) dial(ctx context.Context) (net.Conn, error) {
	if o.secure {
		d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", o.target)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", o.target)
}

// ask makes a cached lookup on a connection, which stays open.
func (o *overload) ask(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(maxGrace)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, "GET "+o.path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("got status %d", response.StatusCode))
	}
	return errors.Join(err, response.Body.Close())
}

// sendGarbage looks up garbage. Half of it are domains that may exist, half is malformed in various
// ways.
func sendGarbage(h *Hit) error {
	n := h.Number
	query := fmt.Sprintf("garbage%d.com", n)
	switch n % 8 {
	case 0:
		query = fmt.Sprintf("%d.%d.%d.%d", n%997, 256+n%7, n, n)
	case 1:
		query = fmt.Sprintf("http://garbage%d.com/x", n)
	case 2:
		query = fmt.Sprintf("garbage%d..com", n)
	case 3:
		query = fmt.Sprintf("xn--ü%d-.%d", n, n)
	}
	_, err := h.Do("garbage", Request{Path: lookup(query), Want: func(r *Response) string {
		if r.Status == http.StatusInternalServerError {
			return wrongStatus(r)
		}
		return ""
	}})
	return err
}

// sendSlowly sends requests by one byte a second until ctx ends.
func (o *overload) sendSlowly(ctx context.Context) {
	const begin = "GET /api/lookup?q=8.8.8.8 HTTP/1.1\r\nHost: slow\r\nX-Filler: "
	for ctx.Err() == nil {
		c, err := o.dial(ctx)
		if err != nil {
			o.lost.Add(1)
			return
		}
		text := begin
		for ctx.Err() == nil {
			var got [len("HTTP/1.1 408")]byte
			_, failed := io.WriteString(c, text[:1])
			err := errors.Join(failed, c.SetReadDeadline(time.Now().Add(time.Second)))
			if n, end := io.ReadFull(c, got[:]); n > 0 || !isTimeout(end) || err != nil {
				if strings.HasSuffix(string(got[:]), " 408") {
					o.refused.Add(1)
				} else {
					o.lost.Add(1)
				}
				break
			}
			if text = text[1:]; text == "" {
				text = "a"
			}
		}
		c.Close()
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (o *overload) checks(r *Result) []Check {
	var statuses []string
	for _, s := range o.flood.All.Statuses {
		statuses = append(statuses, fmt.Sprintf("%s: %s", s.What, grouped(s.Times)))
	}
	begun := o.begun.Load()
	return []Check{
		{What: "cached lookups are always hits", OK: r.All.Failed == 0,
			Seen: fmt.Sprintf("%d of %d failed", r.All.Failed, r.All.Attempts)},
		{What: "garbage queries have responses", OK: o.flood.All.Failed == 0, Untested: !begun,
			Seen: fmt.Sprintf("%s of %s sent in time; by status %s", grouped(o.flood.Hits),
				grouped(int64(o.due)), strings.Join(statuses, ", "))},
		{What: "idle connections still work", OK: o.kept == o.idle || o.lasted >= idleTimeout || !begun,
			Untested: o.lasted >= idleTimeout || !begun,
			Seen:     fmt.Sprintf("%d of %d after %s", o.kept, o.idle, shortTime(o.lasted))},
		{What: "slow requests are refused with 408", OK: o.lost.Load() == 0,
			Untested: o.refused.Load() == 0,
			Seen: fmt.Sprintf("%d refused, %d ended otherwise", o.refused.Load(),
				o.lost.Load())},
	}
}
