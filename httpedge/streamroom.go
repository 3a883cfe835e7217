package httpedge

import (
	"bytes"
	"errors"
	"net"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/fair"
	"gatehouse/actors/ratelimit"
	"gatehouse/httpedge/lookups"
)

// Limits of the bodies of streams, in bytes.
const (
	maxStreamBytes  = 1 << 20   // of one
	maxStreamsBytes = 128 << 20 // of all that are being received or answered, see streamsBytes
	maxOwnStreams   = 16 << 20  // of those of one address, see ratelimit.Networks
)

// errStreamsFull is the error of a request for which streamRoom has no room.
var errStreamsFull = errors.New("streams hold too many bytes")

// streamRoom bounds the bytes that the bodies of all streams hold, and those of one address: who
// reads slowly keeps them for long. Networks are those that the connection counts for.
type streamRoom = fair.Slots[ratelimit.Network]

// streamsBytes returns how many bytes all streams may hold if Go keeps to that memory limit, in
// bytes: at most an eighth. What was read ahead and not yet sent needs as much again, and so do sockets.
func streamsBytes(memoryLimit int64) int {
	return int(min(maxStreamsBytes, memoryLimit/8))
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
