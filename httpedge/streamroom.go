package httpedge

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/ratelimit"
	"gatehouse/httpedge/lookups"
)

// Limits of the bodies of streams, in bytes.
const (
	maxStreamBytes  = 1 << 20   // of one
	maxStreamsBytes = 128 << 20 // of all that are being received or answered
	maxOwnStreams   = 16 << 20  // of those of one address, see ratelimit.Networks
)

// errStreamsFull is the error of a request for which streamRoom has no room.
var errStreamsFull = errors.New("streams hold too many bytes")

// streamRoom bounds the bytes that the bodies of all streams hold, and those of one address: who
// reads slowly keeps them for long. Networks are those that the connection counts for.
type streamRoom struct {
	mu   sync.Mutex
	held int64
	of   map[netip.Prefix]int64
}

// take takes n bytes, or returns false if there is no room for them.
func (r *streamRoom) take(n int64, from []ratelimit.Network) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+n > maxStreamsBytes {
		return false
	}
	for _, network := range from {
		if r.of[network.Prefix]+n > maxOwnStreams*int64(network.Wide) {
			return false
		}
	}
	r.add(n, from)
	return true
}

// give gives back n bytes.
func (r *streamRoom) give(n int64, from []ratelimit.Network) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(-n, from)
}

func (r *streamRoom) add(n int64, from []ratelimit.Network) {
	r.held += n
	for _, network := range from {
		if r.of == nil {
			r.of = map[netip.Prefix]int64{}
		}
		if r.of[network.Prefix] += n; r.of[network.Prefix] == 0 {
			delete(r.of, network.Prefix)
		}
	}
}

// bodyLimit returns the limit of the body of a request with that target, in origin or absolute form
// (RFC 9112 section 3.2).
func bodyLimit(target []byte) int {
	if _, rest, ok := bytes.Cut(target, []byte("://")); ok && target[0] != '/' {
		target = rest[max(0, bytes.IndexByte(rest, '/')):]
	}
	path, _, _ := bytes.Cut(target, []byte{'?'})
	if string(path) == lookups.PathStream {
		return maxStreamBytes
	}
	return maxBodyBytes
}

// limitBody tells fasthttp the limit of a request's body.
func limitBody(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	return fasthttp.RequestConfig{MaxRequestBodySize: bodyLimit(h.RequestURI())}
}

// isStream reports whether the request of ctx may have the body of a stream. fasthttp drops the
// target of some requests that it refuses.
func isStream(ctx *fasthttp.RequestCtx) bool {
	for conn := ctx.Conn(); ; {
		switch c := conn.(type) {
		case *arrival:
			return c.request.limit > maxBodyBytes
		case *tlsArrival:
			return c.request.limit > maxBodyBytes
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return false
		}
	}
}
