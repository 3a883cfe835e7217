package httpedge

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// How long the origins of public clients are cached.
const (
	originsLast     = time.Minute     // a known origin
	originsRecheck  = time.Second     // at least, before an unknown one is read again
	originsDeadline = 2 * time.Second // for reading them
	originsPage     = 200             // clients per read
)

// clientOrigins caches the origins of the web pages of public clients: those of their redirect
// URIs. Clients that await a consent do not count: strangers could make reading them too slow. Its
// methods may be called by many goroutines.
type clientOrigins struct {
	list     func(ctx context.Context, after string, limit int) ([]*oauth.Client, error)
	failures *endpoint.Failures

	reading sync.Mutex
	known   atomic.Pointer[originSet]
}

// originSet is the result of one read. It is never changed.
type originSet struct {
	origins map[string]struct{}
	read    time.Time
	recheck time.Duration // age at which an unknown origin causes another read
}

func (s *originSet) fresh(origin []byte, now time.Time) (allowed, fresh bool) {
	if s == nil {
		return false, false
	}
	_, allowed = s.origins[string(origin)]
	if allowed {
		return true, now.Sub(s.read) < originsLast
	}
	return false, now.Sub(s.read) < s.recheck
}

// allows reports whether pages of origin may call the identity endpoints.
func (c *clientOrigins) allows(origin []byte, now time.Time) bool {
	allowed, fresh := c.known.Load().fresh(origin, now)
	if fresh {
		return allowed
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	old := c.known.Load()
	if allowed, fresh = old.fresh(origin, now); fresh {
		return allowed
	}
	set := c.read(old)
	c.known.Store(set)
	_, allowed = set.origins[string(origin)]
	return allowed
}

// read reads all clients that await no consent. When that fails, it keeps the old origins.
func (c *clientOrigins) read(old *originSet) *originSet {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), originsDeadline)
	defer cancel()
	set := &originSet{origins: make(map[string]struct{})}
	for after, more := "", true; more; {
		page, err := c.list(ctx, after, originsPage)
		if err != nil {
			c.failures.Log("read the origins of public clients", err)
			if old != nil {
				set.origins = old.origins
			}
			break
		}
		for _, client := range page {
			set.add(client)
			after = client.ID
		}
		more = len(page) == originsPage
	}
	set.read = time.Now()
	set.recheck = max(originsRecheck, 20*set.read.Sub(start))
	return set
}

func (s *originSet) add(client *oauth.Client) {
	if !client.Public || client.Disabled {
		return
	}
	for _, uri := range client.RedirectURIs {
		if origin := oauth.RedirectOrigin(uri); strings.Contains(origin, "://") { // no private-use scheme
			s.origins[origin] = struct{}{}
		}
	}
}

var (
	headerOrigin = []byte(fasthttp.HeaderOrigin)
	headerVary   = []byte(fasthttp.HeaderVary)
	varyOrigin   = []byte(fasthttp.HeaderOrigin)
)

// allowOrigin lets the calling page read the response if any may, or if it is a page of a public
// client. Vary is set already.
func (s *Server) allowOrigin(ctx *fasthttp.RequestCtx, any bool) {
	origin := ctx.Request.Header.PeekCanonical(headerOrigin)
	if len(origin) == 0 || !any && !s.origins.allows(origin, time.Now()) {
		return
	}
	h := &ctx.Response.Header
	h.SetCanonical(headerAllowOrigin, origin)
	h.SetCanonical(headerExpose, exposed)
}
