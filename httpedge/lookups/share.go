package lookups

import (
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/fair"
	"gatehouse/httpedge/endpoint"
)

// Share offers database files to other servers.
type Share struct {
	// Names are the callers who may download, by the names of their keys.
	Names []string
	// File returns a file by its name and a text that changes with it; ok = there is one. The bytes
	// must not change.
	File func(name string) (data []byte, version string, ok bool)

	slots   fair.Slots[netip.Addr]
	callers map[netip.Addr]bool
}

// Downloads at once. A server that is a mirror needs one.
const (
	maxDownloads      = 16
	maxDownloadsByKey = 2
)

const shareChunk = 128 << 10 // bytes that a slow reader gets at a time

var errShareBusy = &endpoint.Problem{Status: fasthttp.StatusServiceUnavailable, Code: "overloaded",
	Message: "Too many downloads are under way. Try again in a minute.", RetryAfter: 60e9}

// prepare sets what follows from the names.
func (h *Share) prepare() {
	h.slots.Total, h.slots.Share = maxDownloads, maxDownloadsByKey
	h.callers = map[netip.Addr]bool{}
	for _, name := range h.Names {
		h.callers[addressOf(name)] = true
	}
}

// share serves GET /api/mmdb/{file}.
func (s *service) share(ctx *fasthttp.RequestCtx) {
	if s.files == nil || s.keys == nil {
		endpoint.WriteLookup(ctx, "", endpoint.ErrNotFound)
		return
	}
	caller, err := s.keys.caller(&ctx.Request.Header)
	switch {
	case err == nil && !caller.IsValid():
		err = endpoint.ErrKeyRequired
	case err == nil && !s.files.callers[caller]:
		err = endpoint.ErrInvalidKey
	}
	if err != nil {
		endpoint.WriteLookup(ctx, "", err)
		return
	}
	name, _ := ctx.UserValue("file").(string)
	data, version, ok := s.files.File(name)
	if !ok {
		endpoint.WriteLookup(ctx, "", endpoint.ErrNotFound)
		return
	}
	tag := `"` + version + `"`
	ctx.Response.Header.Set(fasthttp.HeaderETag, tag)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "private, no-cache")
	if hasTag(string(ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), tag) {
		ctx.Response.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	ctx.Response.Header.SetContentType("application/octet-stream")
	if ctx.IsHead() {
		return
	}
	if !s.files.slots.Take(1, caller) {
		ctx.Response.Header.Del(fasthttp.HeaderETag)
		endpoint.WriteLookup(ctx, "", errShareBusy)
		return
	}
	endpoint.SetStream(ctx, false, func(to *endpoint.Stream) error {
		for len(data) > 0 {
			n, err := to.Write(data[:min(shareChunk, len(data))])
			if err != nil {
				return err
			}
			data = data[n:]
		}
		return nil
	})
	endpoint.StreamOf(ctx).Closed = func() { s.files.slots.Give(1, caller) }
}

// hasTag reports whether a list of tags (RFC 9110 section 13.1.2) has one.
func hasTag(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}
