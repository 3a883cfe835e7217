package sim

import (
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// hangDefault is the wait of FaultHang without a Delay.
const hangDefault = time.Minute

// inflict carries out a fault. It returns true if the fault replaces the response.
func (s *Server) inflict(ctx *fasthttp.RequestCtx, f Fault) bool {
	switch f.Kind {
	case FaultSlow:
		s.wait(f.Delay)
		return false
	case FaultStatus:
		respondStatus(ctx, f)
	case FaultGarbage:
		ctx.SetContentType("text/html")
		ctx.SetBodyString("<html><body>We will be back soon.</body></html>")
	case FaultHang:
		s.hang(ctx, f.Delay)
	case FaultDrop:
		closeAfter(ctx, func(net.Conn) {})
	case FaultReset:
		reset(ctx)
	default:
		return false
	}
	return true
}

// respondStatus responds with the fault's status. With 429 it adds the headers of the budget as the
// upstream does. Other statuses imitate a proxy before the upstream, which does not know the
// budget.
func respondStatus(ctx *fasthttp.RequestCtx, f Fault) {
	h := &ctx.Response.Header
	switch {
	case f.Status != fasthttp.StatusTooManyRequests:
		h.Del(headerLeft)
		h.Del(headerTTL)
	case f.Delay > 0:
		sendQuota(ctx, 0, f.Delay)
	case len(h.Peek(headerTTL)) > 0:
		h.Set(headerLeft, "0")
	}
	sendStatus(ctx, f.Status)
}

// closeAfter runs handler and closes the connection without a response.
func closeAfter(ctx *fasthttp.RequestCtx, handler fasthttp.HijackHandler) {
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(handler)
}

// reset closes the connection with a TCP RST. It closes a connection normally that is not TCP or
// that the client has closed.
func reset(ctx *fasthttp.RequestCtx) {
	tcp, ok := ctx.Conn().(*net.TCPConn)
	closeAfter(ctx, func(net.Conn) {
		if ok && tcp.SetLinger(0) != nil {
			return
		}
	})
}

// hang waits until the client disconnects, the delay is over or the simulator shuts down.
func (s *Server) hang(ctx *fasthttp.RequestCtx, delay time.Duration) {
	if delay == 0 {
		delay = hangDefault
	}
	// interrupt may run after the handler has returned, and fasthttp reuses the handler's conn
	// then.
	conn := ctx.Conn()
	closeAfter(ctx, func(c net.Conn) {
		if conn.SetReadDeadline(time.Now().Add(delay)) != nil {
			return
		}
		defer context.AfterFunc(s.ending, func() { interrupt(conn) })()
		for buf := make([]byte, 512); ; {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	})
}

// interrupt ends a blocked read of conn.
func interrupt(conn net.Conn) {
	if conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		return // closed: no read is blocked
	}
}
