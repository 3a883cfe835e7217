package httpedge

import (
	"encoding/hex"
	"math/rand/v2"

	"github.com/valyala/fasthttp"
)

var headerRequestID = []byte("X-Request-Id")

const maxRequestID = 64 // characters

// setRequestID sets the request id of the response: that of a trusted proxy if it is well-formed,
// else 128 random bits. Ids are in the log and in the audit trail, where no stranger may write.
func (c *clientAddresses) setRequestID(ctx *fasthttp.RequestCtx) {
	id := ctx.Request.Header.PeekCanonical(headerRequestID)
	if !isRequestID(id) || !c.trusts(peer(ctx.RemoteAddr())) {
		var made [32]byte
		id = appendRandomID(made[:0])
	}
	ctx.Response.Header.SetCanonical(headerRequestID, id)
}

func isRequestID(id []byte) bool {
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_',
			c == '-':
		default:
			return false
		}
	}
	return len(id) >= 1 && len(id) <= maxRequestID
}

func appendRandomID(dst []byte) []byte {
	var bits [16]byte
	for i, half := range [2]uint64{rand.Uint64(), rand.Uint64()} {
		for j := range 8 {
			bits[8*i+j] = byte(half >> (8 * j))
		}
	}
	return hex.AppendEncode(dst, bits[:])
}
