package sim

import (
	"crypto/subtle"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"
)

// The headers of the budget.
const (
	headerLeft = "X-Rl"  // requests left in the window
	headerTTL  = "X-Ttl" // seconds to its end
)

// work holds the buffers of one request. A pool reuses them.
type work struct {
	parser  fastjson.Parser
	answers []answer
	body    []byte
}

// serveJSON serves GET /json/{query}. The query "" is the caller's address.
func (s *Server) serveJSON(ctx *fasthttp.RequestCtx, query string) {
	s.exchange(ctx, EndpointJSON, func(w *work, _ Fault) int {
		if !ctx.IsGet() {
			ctx.Response.Header.Set(fasthttp.HeaderAllow, fasthttp.MethodGet)
			return fasthttp.StatusMethodNotAllowed
		}
		a := answerAddr(caller(ctx))
		if query != "" {
			a = answerText(query)
		}
		w.answers = append(w.answers, a)
		w.body = a.append(w.body, ParseFields(string(ctx.QueryArgs().Peek("fields"))), time.Now())
		return fasthttp.StatusOK
	})
}

// exchange serves a request to e with the latency, budget and faults of the settings. render writes
// the body and returns the HTTP status.
func (s *Server) exchange(ctx *fasthttp.RequestCtx, e Endpoint, render func(*work, Fault) int) {
	v := s.admit(ctx, e)
	defer s.leave()
	s.wait(v.pause)
	if v.metered {
		sendQuota(ctx, v.quota.left, v.quota.ttl)
	}
	switch {
	case v.wrongKey:
		sendStatus(ctx, fasthttp.StatusForbidden)
		return
	case v.metered && !v.quota.ok:
		sendStatus(ctx, fasthttp.StatusTooManyRequests)
		return
	case s.inflict(ctx, v.fault):
		return
	}
	w := s.work.Get().(*work)
	defer s.work.Put(w)
	w.answers, w.body = w.answers[:0], w.body[:0]
	status := render(w, v.fault)
	s.count(e, w.answers, status)
	if status != fasthttp.StatusOK {
		sendStatus(ctx, status)
		return
	}
	ctx.SetContentType("application/json; charset=utf-8")
	ctx.SetBody(w.body)
}

func (s *Server) admit(ctx *fasthttp.RequestCtx, e Endpoint) verdict {
	key := ctx.QueryArgs().Peek("key")
	right := len(key) > 0
	if s.key != "" {
		right = subtle.ConstantTimeCompare(key, []byte(s.key)) == 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.admit(e, right, time.Now())
}

func (s *Server) count(e Endpoint, answers []answer, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch status {
	case fasthttp.StatusOK:
		s.state.answered(e, answers, time.Now())
		return
	case fasthttp.StatusUnprocessableEntity:
		s.state.stats.OversizeBatch++
		s.state.stats.Violations++
	}
	s.state.stats.Refused++
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.stats.InFlight--
}

// wait waits for d, or until the simulator shuts down.
func (s *Server) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ending.Done():
	}
}

// sendStatus responds with the status and its text. Headers that are set already stay.
func sendStatus(ctx *fasthttp.RequestCtx, status int) {
	ctx.SetStatusCode(status)
	ctx.SetBodyString(fasthttp.StatusMessage(status))
}

func sendQuota(ctx *fasthttp.RequestCtx, left int, ttl time.Duration) {
	ctx.Response.Header.Set(headerLeft, strconv.Itoa(left))
	ctx.Response.Header.Set(headerTTL, strconv.Itoa(seconds(ttl)))
}

// caller returns the peer address of the connection.
func caller(ctx *fasthttp.RequestCtx) netip.Addr {
	tcp, ok := ctx.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.IPv4Unspecified()
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
