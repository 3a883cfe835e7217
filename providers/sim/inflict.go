package sim

import (
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// hangDefault is how long FaultHang waits for the client to leave.
const hangDefault = time.Minute

// inflict carries out a fault and reports whether nothing else is to be answered.
func (s *Server) inflict(ctx *fasthttp.RequestCtx, f Fault) bool {
	switch f.Kind {
	case FaultSlow:
		s.wait(f.Delay)
		return false
	case FaultStatus:
		refuse(ctx, f)
	case FaultGarbage:
		ctx.SetContentType("text/html")
		ctx.SetBodyString("<html><body>We will be back soon.</body></html>")
	case FaultHang:
		s.hang(ctx, f.Delay)
	case FaultDrop:
		silence(ctx, func(net.Conn) {})
	case FaultReset:
		reset(ctx)
	default:
		return false
	}
	return true
}

// refuse answers with the fault's status: as a proxy in front of the upstream would, which knows no budgets, or, with
// 429, as the upstream.
func refuse(ctx *fasthttp.RequestCtx, f Fault) {
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

// silence closes the connection after then, without an answer.
func silence(ctx *fasthttp.RequestCtx, then fasthttp.HijackHandler) {
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(then)
}

// reset makes the close that follows a reset; a connection that is not TCP, or that the client has left, is closed in
// order.
func reset(ctx *fasthttp.RequestCtx) {
	tcp, ok := ctx.Conn().(*net.TCPConn)
	silence(ctx, func(net.Conn) {
		if ok && tcp.SetLinger(0) != nil {
			return
		}
	})
}

// hang waits until the client leaves, the delay is over or the simulator shuts down.
func (s *Server) hang(ctx *fasthttp.RequestCtx, delay time.Duration) {
	if delay == 0 {
		delay = hangDefault
	}
	conn := ctx.Conn() // what the hijacker gets is used again once it returns, too early for interrupt
	silence(ctx, func(c net.Conn) {
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

// interrupt ends a read that waits on conn.
func interrupt(conn net.Conn) {
	if conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		return // closed: nothing waits
	}
}
