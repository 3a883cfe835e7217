package endpoint

import (
	"math/bits"
	"sync"

	"github.com/valyala/fasthttp"
)

// The capacities of the buffers of large bodies, in bytes: powers of two.
const (
	leastBody = 4 << 10
	mostBody  = 1 << 20 // larger ones are not used again
)

// Body is the buffer of a large response body. fasthttp's own buffers fit the bodies that are most
// frequent: it drops larger ones, which then grow from nothing with each response. Use NewBody.
type Body struct{ B []byte }

// bodies are the buffers for further responses, by class: those of class i have room for at least
// leastBody<<i bytes.
var bodies [9]sync.Pool // up to mostBody

// NewBody returns an empty buffer with room for at least size bytes.
func NewBody(size int) *Body {
	class := bits.Len(uint(max(size, leastBody)-1) / leastBody)
	if class >= len(bodies) {
		return &Body{make([]byte, 0, size)}
	}
	if b, ok := bodies[class].Get().(*Body); ok {
		return b
	}
	return &Body{make([]byte, 0, leastBody<<class)}
}

// Free makes b available for other responses. It must not be used any more.
func (b *Body) Free() {
	if size := cap(b.B); size >= leastBody && size <= mostBody {
		b.B = b.B[:0]
		bodies[bits.Len(uint(size/leastBody))-1].Put(b)
	}
}

// bodyHolder is a connection that frees a body when its response has been sent.
type bodyHolder interface{ HoldBody(b *Body) }

// Send makes b the body of the response. b must not be used any more.
func (b *Body) Send(ctx *fasthttp.RequestCtx) {
	ctx.Response.SetBodyRaw(b.B)
	if conn, ok := ctx.Conn().(bodyHolder); ok {
		conn.HoldBody(b)
	}
}
