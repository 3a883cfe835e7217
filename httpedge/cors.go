package httpedge

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
)

// How long the origins of public clients are believed.
const (
	originsLast     = time.Minute     // an origin that is known
	originsRecheck  = time.Second     // before an unknown one is looked for again, at least
	originsDeadline = 2 * time.Second // for reading them
	originsPage     = 200             // clients a read
)

// clientOrigins knows from which web pages public clients ask: the origins of their redirect URIs. Its methods may be
// called by many goroutines.
type clientOrigins struct {
	list func(ctx context.Context, after string, limit int) ([]*oauth.Client, error)
	log  *slog.Logger

	reading sync.Mutex
	known   atomic.Pointer[originSet]
}

// originSet is what was read once. It is never changed.
type originSet struct {
	origins map[string]struct{}
	read    time.Time
	recheck time.Duration // when an origin is missing in it, it is read again after that
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

// read reads all clients, and keeps the old origins when it cannot.
func (c *clientOrigins) read(old *originSet) *originSet {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), originsDeadline)
	defer cancel()
	set := &originSet{origins: make(map[string]struct{})}
	for after, more := "", true; more; {
		page, err := c.list(ctx, after, originsPage)
		if err != nil {
			c.log.Error("read the origins of public clients", "error", err)
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
		if origin := oauth.RedirectOrigin(uri); strings.Contains(origin, "://") { // not a private-use scheme
			s.origins[origin] = struct{}{}
		}
	}
}

var (
	headerOrigin = []byte(fasthttp.HeaderOrigin)
	headerVary   = []byte(fasthttp.HeaderVary)
	varyOrigin   = []byte(fasthttp.HeaderOrigin)
)

// allowOrigin lets the page that asks read the answer, if a public client lives there. The answer says already that it varies.
func (s *Server) allowOrigin(ctx *fasthttp.RequestCtx) {
	origin := ctx.Request.Header.PeekCanonical(headerOrigin)
	if len(origin) == 0 || !s.origins.allows(origin, time.Now()) {
		return
	}
	h := &ctx.Response.Header
	h.SetCanonical(headerAllowOrigin, origin)
	h.SetCanonical(headerExpose, exposed)
}
