package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// requestTimeout is for one single lookup.
const requestTimeout = 20 * time.Second

// caller looks up single queries over one connection.
type caller struct {
	net.Conn
	r        *bufio.Reader
	response fasthttp.Response
}

// dialFrom connects from an address of this machine, such as 127.0.0.3.
func dialFrom(from, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: requestTimeout}
	return d.Dial("tcp", to)
}

func newCaller(from, to string) (*caller, error) {
	conn, err := dialFrom(from, to)
	if err != nil {
		return nil, err
	}
	return &caller{Conn: conn, r: bufio.NewReader(conn)}, nil
}

// lookUp returns the response to a query. It is valid until the next call. Header lines end with CR
// LF.
func (c *caller) lookUp(query, header string) (*fasthttp.Response, error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, "GET /api/lookup?q="+query+" HTTP/1.1\r\nHost: x\r\n"+header+
		"\r\n"); err != nil {
		return nil, err
	}
	return &c.response, c.response.Read(c.r)
}

// times are the durations of requests.
type times []time.Duration

// quantile returns a quantile, such as 0.99 for the 99th percentile; 0 without requests.
func (t times) quantile(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// String returns the median and the 99th percentile.
func (t times) String() string {
	return fmt.Sprintf("p50 %v, p99 %v of %d", t.quantile(0.5).Round(time.Microsecond),
		t.quantile(0.99).Round(time.Microsecond), len(t))
}

// pace is the time between two single lookups of a kind.
const pace = 4 * time.Millisecond

// paceConns is the number of connections that they use in turn.
const paceConns = 16

// lookUpPaced looks up the queries that next returns, one each pace, for a while. A latency counts
// from when the lookup was due.
func lookUpPaced(
	ctx context.Context, to, from string, length time.Duration, next func(n int) string,
) (times, error) {
	var all times
	var errs error
	var mu sync.Mutex
	var workers sync.WaitGroup
	began := time.Now()
	total := int(length / pace)
	for i := range paceConns {
		c, err := newCaller(from, to)
		if err != nil {
			errs = errors.Join(errs, err)
			break
		}
		workers.Go(func() {
			defer c.Close()
			for n := i; n < total && ctx.Err() == nil; n += paceConns {
				due := began.Add(time.Duration(n) * pace)
				time.Sleep(time.Until(due))
				response, err := c.lookUp(next(n), "")
				took := time.Since(due)
				if err == nil && response.StatusCode() != fasthttp.StatusOK {
					err = fmt.Errorf("got status %d for a single lookup: %.200s", response.StatusCode(),
						response.Body())
				}
				mu.Lock()
				all, errs = append(all, took), errors.Join(errs, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return all, errors.Join(errs, ctx.Err())
}

// addressOf returns address n of 20.0.0.0/8.
func addressOf(n int) string {
	return fmt.Sprintf("20.%d.%d.%d", n>>16&255, n>>8&255, n&255)
}

// streamOf returns the request of a stream of n addresses from the first on. Header lines end with
// CR LF.
func streamOf(address func(n int) string, first, n int, header string) string {
	var body strings.Builder
	for i := range n {
		body.WriteString(address(first + i))
		body.WriteByte('\n')
	}
	return fmt.Sprintf("POST /api/stream HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"+
		"%sContent-Length: %d\r\n\r\n%s", header, body.Len(), &body)
}
