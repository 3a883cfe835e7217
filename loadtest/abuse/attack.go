package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/loadtest/lab"
)

// attack is a named set of attackers.
type attack struct {
	name string
	by   []attacker
}

// attacker attacks on one connection, or as many as it likes, until ctx ends.
type attacker func(ctx context.Context, seen *seen)

// seen counts the requests of an attack.
type seen struct{ sent, refused atomic.Int64 }

func (s *seen) count(p *lab.Page, err error) {
	s.sent.Add(1)
	if err != nil || p.Status >= 400 {
		s.refused.Add(1)
	}
}

// anyCaller returns a random address of the attacker's /48.
func anyCaller() string { return fmt.Sprintf("2001:db8:bad:%x::1", rand.N(1<<16)) }

// retry waits a moment after a failed start of an attacker.
func retry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// forEver calls round until ctx ends. It gets a new browser after each failure.
func (t *target) forEver(ctx context.Context, s *seen, start func(*lab.Browser) (*lab.Page, error),
	round func(*lab.Browser, *lab.Page) (*lab.Page, error)) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		b := t.browser(transport, anyCaller())
		p, err := start(b)
		if err != nil {
			s.count(p, err)
			retry(ctx)
			continue
		}
		for ctx.Err() == nil {
			next, err := round(b, p)
			s.count(next, err)
			if err != nil || next.Status == http.StatusForbidden {
				break
			}
		}
	}
}

// sendForms sends consent forms of the attacker's account, which deny: consent makes others stale.
func (t *target) sendForms(ctx context.Context, s *seen) {
	t.forEver(ctx, s, func(b *lab.Browser) (*lab.Page, error) {
		p, err := signIn(ctx, b, t.authorizePath(), t.attacker)
		if err != nil {
			return nil, err
		}
		return b.Submit(ctx, p, "decision", "allow") // from now on without a chooser
	}, func(b *lab.Browser, _ *lab.Page) (*lab.Page, error) {
		p, err := b.Open(ctx, http.MethodGet, t.authorizePath()+"&skip_account_chooser=true", nil)
		if err != nil {
			return nil, err
		}
		return b.Submit(ctx, p, "decision", "deny")
	})
}

// guess signs in with wrong passwords, to ever other accounts.
func (t *target) guess(ctx context.Context, s *seen) {
	t.forEver(ctx, s, func(b *lab.Browser) (*lab.Page, error) {
		return b.Open(ctx, http.MethodGet, "/login", nil)
	}, func(b *lab.Browser, p *lab.Page) (*lab.Page, error) {
		b.Client.Transport.(*proxy).caller = anyCaller()
		email := fmt.Sprintf("nobody-%d@example.com", rand.N(1_000_000))
		return b.Submit(ctx, p, "email", email, "password", "wrong password")
	})
}

// write changes the profile of the attacker's account.
func (t *target) write(ctx context.Context, s *seen) {
	n := 0
	t.forEver(ctx, s, func(b *lab.Browser) (*lab.Page, error) {
		if _, err := signIn(ctx, b, "/login", t.attacker); err != nil {
			return nil, err
		}
		return b.Open(ctx, http.MethodGet, "/me", nil)
	}, func(b *lab.Browser, p *lab.Page) (*lab.Page, error) {
		n++
		return b.Submit(ctx, p, "name", "Load Test "+strconv.Itoa(n%10))
	})
}

// connect opens connections from another address of this machine, and sends half of a body on each.
func (t *target) connect(ctx context.Context, s *seen) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: time.Second}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for ctx.Err() == nil {
		if len(open) > 2*maxConnections/64 {
			open[0].Close()
			open = open[1:]
		}
		c, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(t.Base, "http://"))
		if err != nil {
			s.count(nil, err)
			retry(ctx)
			continue
		}
		open = append(open, c)
		_, err = io.WriteString(c, "POST /oauth/token HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 60000\r\n\r\n"+
			strings.Repeat("a", 30_000))
		s.count(&lab.Page{}, err)
	}
}

// result is what an attack did, and what a person met meanwhile.
type result struct {
	name    string
	length  time.Duration
	seen    *seen
	waits   []time.Duration
	failure error // the first of a person
	service service
	cpu     float64 // seconds of the server
	hashing float64 // seconds for strangers
}

func (r *result) longest() time.Duration {
	if len(r.waits) == 0 {
		return 0
	}
	return slices.Max(r.waits)
}

// String returns the line of the table.
func (r *result) String() string {
	slices.Sort(r.waits)
	var median time.Duration
	if len(r.waits) > 0 {
		median = r.waits[len(r.waits)/2]
	}
	seconds := r.length.Seconds()
	return fmt.Sprintf("%-13s %10.0f %8.0f%% %7d %8v %8v %8v %8d %7.2fs %7.2fs", r.name,
		float64(r.seen.sent.Load())/seconds,
		100*float64(r.seen.refused.Load())/max(1, float64(r.seen.sent.Load())),
		len(r.waits), median.Round(time.Millisecond), r.longest().Round(time.Millisecond),
		r.service.p99().Round(time.Millisecond/10), r.service.refused,
		r.cpu/seconds, r.hashing/seconds)
}

// measure attacks for that long while the victim visits twice a second.
func (t *target) measure(ctx context.Context, a attack, length time.Duration,
	workers int) (*result, error) {
	before, err := t.Server.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	r := &result{name: a.name, length: length, seen: &seen{}}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var all sync.WaitGroup
	if len(a.by) > 1 {
		workers = max(1, workers/2)
	}
	for _, by := range a.by {
		for range workers {
			all.Go(func() { by(ctx, r.seen) })
		}
	}
	all.Go(func() { t.serve(ctx, &r.service) })
	person := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		took, err := t.visit(person)
		if err != nil && r.failure == nil {
			r.failure = err
		}
		if err == nil {
			r.waits = append(r.waits, took)
		}
		time.Sleep(500 * time.Millisecond)
	}
	all.Wait()
	after, err := t.Server.Metrics(person)
	if err != nil {
		return nil, err
	}
	r.cpu = after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]
	r.hashing = after["gatehouse_password_hash_seconds_total{by=\"stranger\"}"] - before["gatehouse_password_hash_seconds_total{by=\"stranger\"}"]
	return r, nil
}
