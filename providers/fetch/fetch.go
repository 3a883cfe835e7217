// Package fetch fetches small JSON documents from servers that strangers name: client-id metadata
// documents and key sets. Nothing in a private network can be reached through it.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"gatehouse/actors/fair"
	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
)

// The limits of a fetch.
const (
	MaxBody     = 5 << 10         // bytes of a document
	Timeout     = 5 * time.Second // of a call, with its wait for other requests to the host
	maxHeader   = 16 << 10        // bytes of the response's header
	maxAtOnce   = 32              // requests to all hosts
	maxStrange  = 16              // those for payers that are not trusted
	maxOfPayer  = 4               // requests of one payer, those that wait for a host included
	maxCached   = 1000            // documents
	longestURL  = 2000            // bytes
	leastFresh  = time.Minute     // a document is kept for so long, whatever its headers say
	longestKept = 24 * time.Hour
)

// Config is what a Fetcher is made of. The zero value is that of production, without metrics.
type Config struct {
	Metrics prometheus.Registerer // optional

	// Roots and Allow are for tests; optional. Roots sign the certificates of servers, and Allow
	// says which addresses may be reached: nil = public ones.
	Roots *x509.CertPool
	Allow func(netip.Addr) bool
}

// Fetcher fetches documents and keeps them while they are fresh. Its methods may be called by many
// goroutines.
type Fetcher struct {
	client *http.Client
	cache  *lru.Cache[string, document]
	flight singleflight.Group // by URL
	payers fair.Slots[string] // requests of each payer, by ID
	slots  fair.Slots[string] // requests under way; those for nobody trusted have a key
	total  *prometheus.CounterVec

	mu    sync.Mutex
	hosts map[string]*host // those that are being asked, or waited for
}

// host lets one request at a time reach a server.
type host struct {
	turn  chan struct{} // holds one while a request is under way
	users int           // requests that wait or are under way
}

// document is a fetched document.
type document struct {
	body    []byte
	fetched time.Time
	fresh   time.Duration
}

// Errors of documents that a server has sent. Fetch returns others for servers that cannot be
// reached.
var (
	errURL      = errors.New("the address must begin with https:// and have no user name and no fragment")
	errAddress  = errors.New("the address is not public")
	errTooLarge = fmt.Errorf("the document is larger than %d bytes", MaxBody)
	errType     = errors.New("the document's content type is not JSON")
)

// New returns a Fetcher.
func New(config Config) (*Fetcher, error) {
	cache, err := lru.New[string, document](maxCached)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	f := &Fetcher{
		cache: cache, hosts: map[string]*host{}, payers: fair.Slots[string]{Share: maxOfPayer},
		slots: fair.Slots[string]{Total: maxAtOnce, Share: maxStrange},
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_fetches_total",
			Help: "Documents of clients that were requested, by outcome: done or failed.",
		}, []string{"outcome"}),
	}
	f.total.WithLabelValues("done")
	f.total.WithLabelValues("failed")
	if config.Metrics != nil {
		if err := config.Metrics.Register(f.total); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	allow := config.Allow
	if allow == nil {
		allow = geo.IsPublic
	}
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		return checkAddress(address, allow)
	}}
	f.client = &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, DisableKeepAlives: true,
			DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig:   &tls.Config{RootCAs: config.Roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f, nil
}

// checkAddress returns an error unless the address of a connection may be reached. It is called
// with what the name has resolved to, for each address that is tried, so that a name cannot resolve
// to another one afterwards.
func checkAddress(address string, allow func(netip.Addr) bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !allow(at.Addr().Unmap()) {
		return errAddress
	}
	return nil
}

// Fetch returns the JSON document at an https URL. It is kept for as long as its headers say, at
// least a minute and at most a day; maxAge shortens that, down to a minute: 0 = it does not. One
// request at a time is sent to a host, and others wait for it. The error is oauth.ErrBusy when too
// many hosts are being asked, or too many for this payer.
func (f *Fetcher) Fetch(
	ctx context.Context, address string, maxAge time.Duration, by oauth.Payer,
) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, "https://") || u.Hostname() == "" ||
		u.User != nil || strings.Contains(address, "#") || len(address) > longestURL {
		return nil, errURL
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	for {
		if body, ok := f.cached(address, maxAge); ok {
			return body, nil
		}
		own := false
		fetched, err, _ := f.flight.Do(address, func() (any, error) {
			own = true
			if body, ok := f.cached(address, maxAge); ok {
				return body, nil
			}
			return f.fetch(ctx, address, u.Host, by)
		})
		if err == nil {
			return fetched.([]byte), nil
		}
		if own || ctx.Err() != nil { // the error of another caller's budget or deadline is not ours
			return nil, err
		}
	}
}

// cached returns a document that is fresh.
func (f *Fetcher) cached(address string, maxAge time.Duration) ([]byte, bool) {
	found, ok := f.cache.Get(address)
	if !ok {
		return nil, false
	}
	fresh := found.fresh
	if maxAge > 0 {
		fresh = min(fresh, max(maxAge, leastFresh))
	}
	return found.body, time.Since(found.fetched) < fresh
}

// fetch fetches a document when it is the turn of this request.
func (f *Fetcher) fetch(
	ctx context.Context, address, host string, by oauth.Payer,
) ([]byte, error) {
	leave, err := f.enter(ctx, host, by)
	if err != nil {
		return nil, err
	}
	defer leave()
	if by.Charge != nil {
		if err := by.Charge(); err != nil {
			return nil, err
		}
	}
	found, err := f.request(ctx, address)
	if err != nil {
		f.total.WithLabelValues("failed").Inc()
		return nil, err
	}
	f.total.WithLabelValues("done").Inc()
	f.cache.Add(address, found)
	return found.body, nil
}

// enter waits until no other request to a host is under way.
func (f *Fetcher) enter(
	ctx context.Context, name string, by oauth.Payer,
) (leave func(), err error) {
	name = strings.ToLower(name)
	if !f.payers.Take(1, by.ID) {
		return nil, oauth.ErrBusy
	}
	f.mu.Lock()
	h := f.hosts[name]
	if h == nil {
		h = &host{turn: make(chan struct{}, 1)}
		f.hosts[name] = h
	}
	h.users++
	f.mu.Unlock()
	release := func() {
		f.mu.Lock()
		if h.users--; h.users == 0 {
			delete(f.hosts, name)
		}
		f.mu.Unlock()
		f.payers.Give(1, by.ID)
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		release()
		return nil, fmt.Errorf("wait for another request to the host: %w", ctx.Err())
	}
	var counts []string // what the request counts for, beside all
	if !by.Trusted {
		counts = []string{"strangers"}
	}
	if !f.slots.Take(1, counts...) {
		<-h.turn
		release()
		return nil, oauth.ErrBusy
	}
	return func() { f.slots.Give(1, counts...); <-h.turn; release() }, nil
}

// request sends a request and reads the document.
func (f *Fetcher) request(ctx context.Context, address string) (document, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return document{}, errURL
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "gatehouse")
	response, err := f.client.Do(request)
	if err != nil {
		return document{}, unreachable(err)
	}
	body, err := readBody(response)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return document{}, err
	}
	now := time.Now()
	return document{body, now, freshness(response.Header, now)}, nil
}

func readBody(response *http.Response) ([]byte, error) {
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server responded with status %d", response.StatusCode)
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" &&
		!(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return nil, errType
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, unreachable(err)
	case len(body) > MaxBody:
		return nil, errTooLarge
	}
	return body, nil
}

// errUnreachable says no more, since people see it: not what names and addresses there are in the
// network of the server.
var errUnreachable = errors.New("the server cannot be reached at a public address")

// unreachable says of an error whether the time was over, and nothing else.
func unreachable(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the server did not respond in time: %w", context.DeadlineExceeded)
	}
	return errUnreachable
}
