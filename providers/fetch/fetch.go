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
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
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
	MaxOperator = 64 << 10        // bytes of one that an operator's client names, such as an issuer's keys
	Timeout     = 5 * time.Second // of a call, with its wait for other requests to the host
	maxHeader   = 16 << 10        // bytes of the response's header
	maxWaiting  = 64              // requests of a class that wait for a slot, or for a host
	maxOfPayer  = 4               // requests of one payer, those that wait included
	maxCached   = 1000            // documents
	longestURL  = 2000            // bytes
	leastFresh  = time.Minute     // a document is kept for so long, whatever its headers say
	longestKept = 24 * time.Hour
)

// maxAtOnce is how many requests of each class are under way.
var maxAtOnce = [...]int{oauth.Strangers: 8, oauth.People: 12, oauth.Operators: 12}

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
	allow  func(netip.Addr) bool
	cache  *lru.Cache[string, document]
	flight singleflight.Group // by class and URL
	payers fair.Slots[string] // requests of each payer, by ID
	slots  [len(maxAtOnce)]*fair.Turns
	total  *prometheus.CounterVec

	mu    sync.Mutex
	hosts map[hostKey]*host // those that are being asked, or waited for
}

// hostKey names who shares the turns of a host: a class. Each client of an operator has its own, so
// that a slow address of one delays none of the others.
type hostKey struct {
	class  oauth.PayerClass
	client string // "" = all of the class
	host   string
}

// host lets one request at a time reach a server.
type host struct {
	turns *fair.Turns
	users int // requests that wait or are under way
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
	errURL  = errors.New("the address must begin with https:// and have no user name and no fragment")
	errType = errors.New("the document's content type is not JSON")
)

// New returns a Fetcher.
func New(config Config) (*Fetcher, error) {
	cache, err := lru.New[string, document](maxCached)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	f := &Fetcher{
		cache: cache, hosts: map[hostKey]*host{}, payers: fair.Slots[string]{Share: maxOfPayer},
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_fetches_total",
			Help: "Documents of clients that were requested, by outcome: done, failed or busy.",
		}, []string{"outcome"}),
	}
	f.total.WithLabelValues("done")
	f.total.WithLabelValues("failed")
	f.total.WithLabelValues("busy")
	if config.Metrics != nil {
		if err := config.Metrics.Register(f.total); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	for class, most := range maxAtOnce {
		f.slots[class] = fair.NewTurns(most, fair.Class{Waiting: maxWaiting})
	}
	if f.allow = config.Allow; f.allow == nil {
		f.allow = geo.IsPublic
	}
	f.client = &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: Dialer(f.allow), DisableKeepAlives: true,
			DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig:   &tls.Config{RootCAs: config.Roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f, nil
}

// Fetch returns the JSON document at an https URL. It is kept for as long as its headers say, at
// least a minute and at most a day; maxAge shortens that, down to a minute: 0 = it does not. One
// request at a time of a class is sent to a host, or of a client of an operator. Others wait for it,
// for half of the time that they have: the rest is for the request. The error is oauth.ErrBusy when
// that was too short, when too many wait, or too many of this payer.
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
		fetched, err, _ := f.flight.Do(strconv.Itoa(int(by.Class))+" "+address, func() (any, error) {
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
		f.total.WithLabelValues("busy").Inc()
		return nil, err
	}
	defer leave()
	if by.Charge != nil {
		if err := by.Charge(); err != nil {
			return nil, err
		}
	}
	most := MaxBody
	if by.Class == oauth.Operators {
		most = MaxOperator
	}
	found, err := f.request(ctx, address, most)
	if err != nil {
		f.total.WithLabelValues("failed").Inc()
		return nil, err
	}
	f.total.WithLabelValues("done").Inc()
	f.cache.Add(address, found)
	return found.body, nil
}

// enter waits until no other request to a host is under way, and then for a slot.
func (f *Fetcher) enter(
	ctx context.Context, name string, by oauth.Payer,
) (leave func(), err error) {
	key := hostKey{class: by.Class, host: strings.ToLower(name)}
	if by.Class == oauth.Operators {
		key.client = by.ID
	}
	if !f.payers.Take(1, by.ID) {
		return nil, oauth.ErrBusy
	}
	h := f.host(key)
	release := func() {
		f.mu.Lock()
		if h.users--; h.users == 0 {
			delete(f.hosts, key)
		}
		f.mu.Unlock()
		f.payers.Give(1, by.ID)
	}
	deadline, _ := ctx.Deadline() // that of Fetch, or an earlier one
	waiting, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
	defer cancel()
	payer, slots := fair.Payer{Network: by.Network, Key: by.ID}, f.slots[by.Class]
	if h.turns.Enter(waiting, payer) != nil {
		release()
		return nil, oauth.ErrBusy
	}
	if slots.Enter(waiting, payer) != nil {
		h.turns.Leave(payer)
		release()
		return nil, oauth.ErrBusy
	}
	return func() { slots.Leave(payer); h.turns.Leave(payer); release() }, nil
}

// host returns the turns of a host, for one user more.
func (f *Fetcher) host(key hostKey) *host {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[key]
	if h == nil {
		h = &host{turns: fair.NewTurns(1, fair.Class{Waiting: maxWaiting})}
		f.hosts[key] = h
	}
	h.users++
	return h
}

// request sends a request and reads the document of at most so many bytes.
func (f *Fetcher) request(ctx context.Context, address string, most int) (document, error) {
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
	body, err := readBody(response, most)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return document{}, err
	}
	now := time.Now()
	return document{body, now, Freshness(response.Header, now)}, nil
}

func readBody(response *http.Response, most int) ([]byte, error) {
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server responded with status %d", response.StatusCode)
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" &&
		!(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return nil, errType
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, unreachable(err)
	case len(body) > most:
		return nil, fmt.Errorf("the document is larger than %d bytes", most)
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
