// Package signinwith asks other providers who a person is: those of OpenID Connect, and GitHub. It
// keeps what they say of themselves, and no token of theirs.
package signinwith

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"

	"gatehouse/actors/fair"
	"gatehouse/actors/oauth"
)

// Limits of what is asked of a provider.
const (
	timeout    = 8 * time.Second  // of a call, with its wait for others
	probeTime  = 5 * time.Second  // of a look whether a provider is back
	maxBody    = 512 << 10        // bytes of a response
	maxHeader  = 32 << 10         // bytes of a response's header
	atOnce     = 8                // calls to one provider under way
	maxWaiting = 64               // calls to one provider that wait
	ofNetwork  = 4                // of them, those of one network
	stale      = 15 * time.Second // until it is asked again whether it is back
	current    = time.Minute      // until it is asked again whether it is still there
)

// Config is what a Client is made of. Fields are optional unless they say otherwise.
type Config struct {
	// Dial opens connections; required. It refuses addresses that may not be reached.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Freshness returns how long a document may be kept by its headers; required.
	Freshness func(http.Header, time.Time) time.Duration
	Metrics   prometheus.Registerer
	Roots     *x509.CertPool // for tests: they sign the certificates of providers
}

// Client implements oauth.ProviderClient. Make it with New, and end it with Stop.
type Client struct {
	http      *http.Client
	freshness func(http.Header, time.Time) time.Duration
	total     *prometheus.CounterVec
	lifetime  context.Context
	end       context.CancelFunc
	probes    sync.WaitGroup

	mu        sync.Mutex
	stopped   bool
	providers map[string]*provider // by ID and what it is asked by
}

// New returns a Client.
func New(config Config) (*Client, error) {
	c := &Client{freshness: config.Freshness, providers: map[string]*provider{},
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_provider_requests_total",
			Help: "Questions to other providers with which people sign in, by provider and outcome: " +
				"done, refused (what it said), away or busy.",
		}, []string{"provider", "outcome"})}
	c.lifetime, c.end = context.WithCancel(context.Background())
	if config.Metrics != nil {
		if err := config.Metrics.Register(c.total); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: config.Dial, DisableKeepAlives: true,
			MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{RootCAs: config.Roots, MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Stop ends what is under way in the background.
func (c *Client) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.end()
	c.probes.Wait()
}

// provider is what is known of a provider.
type provider struct {
	turns *fair.Turns

	mu       sync.Mutex
	found    *discovered // nil = not read yet, or not at all with GitHub
	keys     keySet
	away     bool      // it did not respond the last time
	asked    time.Time // the last time
	probing  bool
	fetching chan struct{} // closed when the discovery under way has ended; nil = none is
}

// of returns what is known of p. Another issuer or kind is another provider.
func (c *Client) of(p *oauth.Provider) *provider {
	key := p.ID + " " + string(p.Kind) + " " + p.Issuer
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.providers[key]
	if known == nil {
		if len(c.providers) >= 4*oauth.MostProviders { // those that were changed or deleted
			clear(c.providers)
		}
		known = &provider{turns: fair.NewTurns(atOnce,
			fair.Class{Waiting: maxWaiting, Own: ofNetwork, AtOnce: ofNetwork})}
		c.providers[key] = known
		for _, outcome := range []string{"done", "refused", "away", "busy"} {
			c.total.WithLabelValues(p.ID, outcome)
		}
	}
	return known
}

// AuthorizationURL implements oauth.ProviderClient.
func (c *Client) AuthorizationURL(
	ctx context.Context, p *oauth.Provider, r oauth.ProviderRequest,
) (url string, err error) {
	err = c.ask(ctx, p, fair.Payer{Network: r.Network}, func(ctx context.Context, known *provider) error {
		config, err := c.config(ctx, p, known, r.RedirectURI)
		if err != nil {
			return err
		}
		options := []oauth2.AuthCodeOption{
			oauth2.SetAuthURLParam("code_challenge", r.Challenge),
			oauth2.SetAuthURLParam("code_challenge_method", "S256"),
		}
		if r.LoginHint != "" {
			name := "login_hint"
			if p.Kind == oauth.GitHubProvider {
				name = "login"
			}
			options = append(options, oauth2.SetAuthURLParam(name, r.LoginHint))
		}
		if p.Kind == oauth.OpenIDProvider {
			options = append(options, oauth2.SetAuthURLParam("nonce", r.Nonce))
			if r.Again {
				options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
			}
		}
		url = config.AuthCodeURL(r.State, options...)
		return nil
	})
	return url, err
}

// Identity implements oauth.ProviderClient.
func (c *Client) Identity(
	ctx context.Context, p *oauth.Provider, r oauth.ProviderResponse,
) (who *oauth.ProviderIdentity, err error) {
	err = c.ask(ctx, p, fair.Payer{Network: r.Network}, func(ctx context.Context, known *provider) error {
		config, err := c.config(ctx, p, known, r.RedirectURI)
		if err != nil {
			return err
		}
		if err := checkIssuer(p, known.said(), r.Issuer); err != nil {
			return err
		}
		token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, c.limited()), r.Code,
			oauth2.VerifierOption(r.Verifier))
		if err != nil {
			return exchangeError(err)
		}
		if p.Kind == oauth.GitHubProvider {
			who, err = c.gitHubIdentity(ctx, p, token.AccessToken)
		} else {
			who, err = c.openIDIdentity(ctx, p, known, token, r.Nonce)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return who, nil
}

// checkIssuer compares the parameter iss of a response with the issuer (RFC 9207 section 2.4).
func checkIssuer(p *oauth.Provider, said *discovered, issuer string) error {
	switch {
	case issuer == p.Issuer:
		return nil
	case issuer == "" && (said == nil || !said.SaysIssuer):
		return nil
	case p.Kind == oauth.GitHubProvider && issuer == p.Issuer+"/login/oauth":
		return nil // as its metadata of RFC 8414 say
	case issuer == "":
		return &oauth.ProviderError{Reason: "the parameter iss is missing"}
	}
	return &oauth.ProviderError{Reason: "the parameter iss names another issuer"}
}

// exchangeError returns the error of a token request. It has no text of the provider's but the code.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil &&
		(refused.Response.StatusCode >= 500 || refused.Response.StatusCode == http.StatusTooManyRequests):
		return fmt.Errorf("token request: status %d: %w", refused.Response.StatusCode,
			oauth.ErrProviderAway)
	case errors.As(err, &refused):
		return &oauth.ProviderError{Reason: "the token request was refused: " +
			shortCode(refused.ErrorCode)}
	case errors.As(err, new(*reachError)):
		return fmt.Errorf("token request: %w", oauth.ErrProviderAway)
	}
	return &oauth.ProviderError{Reason: "the response to the token request is not one"}
}

// shortCode returns an OAuth error code, or a word for what is none.
func shortCode(code string) string {
	if code == "" || len(code) > 40 {
		return "no error code"
	}
	for i := range len(code) {
		if c := code[i]; (c < 'a' || c > 'z') && c != '_' {
			return "no error code"
		}
	}
	return code
}

// Keys implements token.ProviderKeys. Keys that are known need no turn.
func (c *Client) Keys(
	ctx context.Context, p *oauth.Provider, id string, network netip.Prefix,
) (keys []jose.JSONWebKey, err error) {
	hasKey := func(all []jose.JSONWebKey) bool {
		return id == "" || slices.ContainsFunc(all, func(k jose.JSONWebKey) bool { return k.KeyID == id })
	}
	known := c.of(p)
	if found := known.said(); found != nil && time.Now().Before(found.until) {
		if fresh := known.keys.fresh(found.Keys); fresh != nil && hasKey(fresh.all) {
			return fresh.all, nil
		}
	}
	err = c.ask(ctx, p, fair.Payer{Network: network}, func(ctx context.Context, known *provider) error {
		found, err := c.discover(ctx, p, known)
		if err != nil {
			return fmt.Errorf("discovery: %w", err)
		}
		keys, err = (&remoteKeys{client: c, known: known, url: found.Keys}).find(ctx, hasKey)
		return err
	})
	return keys, err
}

// ask calls question when it is the turn of its payer, and notes whether p responds.
func (c *Client) ask(
	ctx context.Context, p *oauth.Provider, by fair.Payer,
	question func(context.Context, *provider) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	known := c.of(p)
	waiting, stop := context.WithTimeout(ctx, timeout/2)
	defer stop()
	if known.turns.Enter(waiting, by) != nil {
		c.total.WithLabelValues(p.ID, "busy").Inc()
		return fmt.Errorf("ask the provider: %w", oauth.ErrBusy)
	}
	defer known.turns.Leave(by)
	err := question(ctx, known)
	known.note(err)
	outcome := "done"
	switch {
	case errors.Is(err, oauth.ErrProviderAway):
		outcome = "away"
	case err != nil:
		outcome = "refused"
	}
	c.total.WithLabelValues(p.ID, outcome).Inc()
	return err
}

// note remembers whether the provider has responded.
func (p *provider) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away, p.asked = errors.Is(err, oauth.ErrProviderAway), time.Now()
}

// said returns what the provider says of itself; nil = nothing yet.
func (p *provider) said() *discovered {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

// IsAway implements oauth.ProviderClient. It has a provider asked in the background that was away, or
// was not asked before.
func (c *Client) IsAway(p *oauth.Provider) bool {
	known := c.of(p)
	known.mu.Lock()
	defer known.mu.Unlock()
	age := time.Since(known.asked)
	due := known.asked.IsZero() || known.away && age >= stale || age >= current
	if due && !known.probing {
		c.mu.Lock()
		if !c.stopped {
			known.probing = true
			c.probes.Add(1)
			go c.probe(p, known)
		}
		c.mu.Unlock()
	}
	return known.away
}

// probe asks whether p responds.
func (c *Client) probe(p *oauth.Provider, known *provider) {
	defer c.probes.Done()
	ctx, cancel := context.WithTimeout(c.lifetime, probeTime)
	defer cancel()
	var err error
	if p.Kind == oauth.GitHubProvider {
		_, _, err = c.get(ctx, gitHubAPI(p)+"/meta", "", nil)
		if !errors.Is(err, oauth.ErrProviderAway) {
			err = nil // it may let nobody read that
		}
	} else {
		var found *discovered
		if found, err = c.fetchDiscovery(ctx, p); err == nil {
			known.mu.Lock()
			known.found = found
			known.mu.Unlock()
		}
	}
	if c.lifetime.Err() == nil {
		known.note(err)
	}
	known.mu.Lock()
	known.probing = false
	known.mu.Unlock()
}

// reachError is the error of a provider that cannot be reached.
type reachError struct{ err error }

// Error says no more than operators need: not what addresses there are in the network.
func (e *reachError) Error() string {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return "no response in time"
	}
	return "it cannot be reached"
}

// limited returns a client whose responses have a limited size.
func (c *Client) limited() *http.Client {
	again := *c.http
	again.Transport = limitedTransport{c.http.Transport}
	return &again
}

// limitedTransport limits the bodies of responses, and marks the errors of requests.
type limitedTransport struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.to.RoundTrip(r)
	if err != nil {
		return nil, &reachError{err}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxBody), response.Body}
	return response, nil
}

// get reads a JSON document into a value, unless that is nil. bearer authorizes the request; "" =
// nothing does.
func (c *Client) get(
	ctx context.Context, address, bearer string, into any,
) (http.Header, time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, time.Time{}, &oauth.ProviderError{Reason: "an address is not a URL"}
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "gatehouse")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := c.limited().Do(request)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%w: %w", errors.Unwrap(err), oauth.ErrProviderAway)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, time.Time{}, fmt.Errorf("read response: %w", oauth.ErrProviderAway)
	}
	switch status := response.StatusCode; {
	case status >= 500 || status == http.StatusTooManyRequests:
		return nil, time.Time{}, fmt.Errorf("status %d: %w", status, oauth.ErrProviderAway)
	case status != http.StatusOK:
		return nil, time.Time{}, &oauth.ProviderError{
			Reason: fmt.Sprintf("it responded with status %d", status)}
	}
	if into != nil && json.Unmarshal(body, into) != nil {
		return nil, time.Time{}, &oauth.ProviderError{Reason: "a document is not JSON as expected"}
	}
	return response.Header, time.Now(), nil
}
