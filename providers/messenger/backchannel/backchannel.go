// Package backchannel tells clients that sessions have ended (OpenID Connect Back-Channel Logout):
// each client at least once, or until a logout is MaxAge old.
//
// The database keeps the logouts until a client has accepted them, so a restart loses none. Of
// several servers on one database, the holder of a lease sends. Each client has a queue of its own:
// one that does not respond delays no other.
package backchannel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/trace"
	"gatehouse/providers/messenger/leased"
	"gatehouse/providers/messenger/webhook"
)

const (
	leaseName = "backchannel_logout"
	pollEvery = 500 * time.Millisecond
	stepEvery = 50 * time.Millisecond // at least, while clients accept logouts

	attemptTimeout = 5 * time.Second // of one request, from dialling to the status
	perClient      = 4               // requests to a client at once; 1 after a failure
	most           = 256             // requests at once
	tokenLifetime  = 2 * time.Minute // of a logout token (Back-Channel Logout section 2.4)
)

// MaxAge is how long a client is tried.
const MaxAge = 30 * time.Minute

// Store is the part of the database that a Sender needs.
type Store interface {
	account.LogoutStore
	leased.Store
	// Client returns a client, disabled or not, or oauth.ErrNotFound.
	Client(ctx context.Context, id string) (*oauth.Client, error)
	// Record writes the events of ctx (see audit.With).
	Record(ctx context.Context) error
}

// Config configures a Sender. All fields are required.
type Config struct {
	Issuer string
	Store  Store
	// Sign returns a JWT of type typ that says claims. alg is "RS256" or "ES256".
	Sign func(alg, typ string, claims any) (string, error)
	// Dial opens connections, to addresses that a client's server may have only.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Sender tells clients until Stop.
type Sender struct {
	config  Config
	http    *http.Client
	metrics metrics
	leased  *leased.Sender
	sending sync.WaitGroup
	wake    chan struct{} // has one element after a client has accepted a logout

	mu      sync.Mutex
	clients map[string]*line // those with logouts
	total   int              // requests under way

	failed bool // the database, at the last step; only run uses it
}

// line is what a Sender knows of one client.
type line struct {
	sending map[string]bool // logouts on the way, by ID
	failed  int             // requests in a row that got no response of the client
	retry   time.Time       // no request before
}

// New starts a Sender.
func New(config Config) (*Sender, error) {
	s, err := newSender(config)
	if err != nil {
		return nil, err
	}
	s.leased.Start(s.run)
	return s, nil
}

func newSender(config Config) (*Sender, error) {
	s := &Sender{config: config, metrics: newMetrics(), wake: make(chan struct{}, 1),
		clients: map[string]*line{}, http: newClient(config)}
	var err error
	s.leased, err = leased.New(leaseName, "back-channel logouts", config.Store, config.Logger,
		config.Metrics, s.metrics.sent, s.metrics.failures, s.metrics.lost, s.metrics.waiting)
	return s, err
}

// newClient returns a client that follows no redirect and reads no body.
func newClient(config Config) *http.Client {
	return &http.Client{
		Timeout: attemptTimeout,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            config.Dial,
			MaxIdleConns:           most,
			MaxIdleConnsPerHost:    perClient,
			IdleConnTimeout:        10 * time.Second,
			MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Stop ends the Sender and its lease. A request under way is cut off: it is sent again later. Call
// it once, before the store is closed.
func (s *Sender) Stop() {
	s.leased.Stop()
	s.http.CloseIdleConnections()
}

// run sends until ctx ends.
func (s *Sender) run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		s.step(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
			continue
		case <-s.wake:
			select {
			case <-ctx.Done():
			case <-time.After(stepEvery):
				continue
			}
		}
		s.sending.Wait()
		return
	}
}

// step takes or renews the lease if there is something to send, and begins requests.
func (s *Sender) step(ctx context.Context) {
	now := time.Now()
	queues, err := s.queues(ctx)
	if err == nil && len(queues) > 0 { // an idle service writes nothing
		err = s.renew(ctx)
	}
	if err == nil && s.leased.Held {
		err = s.sendAll(ctx, now, queues)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil && !s.failed {
		s.config.Logger.Warn("back-channel logouts cannot be read; retrying", "error", err)
	}
	s.failed = err != nil
}

func (s *Sender) renew(ctx context.Context) error {
	err := s.leased.Renew(ctx, nil)
	if !s.leased.Held {
		s.metrics.waiting.Set(0)
	}
	return err
}

func (s *Sender) queues(ctx context.Context) ([]account.LogoutQueue, error) {
	ctx, cancel := context.WithTimeout(ctx, leased.StoreTimeout)
	defer cancel()
	return s.config.Store.LogoutQueues(ctx)
}

// sendAll begins requests to all clients that have logouts which are due.
func (s *Sender) sendAll(ctx context.Context, now time.Time, queues []account.LogoutQueue) error {
	reading, cancel := context.WithTimeout(ctx, leased.StoreTimeout)
	defer cancel()
	waiting := 0
	for _, q := range queues {
		waiting += q.Waiting
		if q.Due.After(now) {
			continue
		}
		if err := s.sendTo(ctx, reading, q.ClientID, now); err != nil {
			return err
		}
	}
	s.metrics.waiting.Set(float64(waiting))
	s.forget(queues)
	return nil
}

// forget drops the lines of clients that have no logouts any more.
func (s *Sender) forget(queues []account.LogoutQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := make(map[string]bool, len(queues))
	for _, q := range queues {
		left[q.ClientID] = true
	}
	for id, l := range s.clients {
		if !left[id] && len(l.sending) == 0 {
			delete(s.clients, id)
		}
	}
}

// sendTo begins requests to one client, as many as it may get at once.
func (s *Sender) sendTo(ctx, reading context.Context, clientID string, now time.Time) error {
	room := s.room(clientID, now)
	if room == 0 {
		return nil
	}
	client, err := s.config.Store.Client(reading, clientID)
	if errors.Is(err, oauth.ErrNotFound) {
		return nil // a concurrent request has deleted it, and its logouts
	}
	if err != nil {
		return err
	}
	due, err := s.config.Store.Logouts(reading, clientID, now, room+perClient)
	if err != nil {
		return err
	}
	for i := range due {
		if room == 0 {
			break
		}
		if s.begin(due[i].ID, clientID) {
			room--
			s.sending.Go(func() { s.send(ctx, client, &due[i]) })
		}
	}
	return nil
}

// room returns how many further requests a client may get now.
func (s *Sender) room(clientID string, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.clients[clientID]
	switch {
	case l == nil:
		return min(perClient, most-s.total)
	case now.Before(l.retry):
		return 0
	case l.failed > 0:
		return min(max(0, 1-len(l.sending)), most-s.total)
	}
	return min(perClient-len(l.sending), most-s.total)
}

// begin reports whether a logout is not on its way yet, and notes that it is.
func (s *Sender) begin(id, clientID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.clients[clientID]
	if l == nil {
		l = &line{sending: map[string]bool{}}
		s.clients[clientID] = l
	}
	if l.sending[id] {
		return false
	}
	l.sending[id] = true
	s.total++
	return true
}

// end ends what begin has begun. reached says whether the client has responded.
func (s *Sender) end(l *account.Logout, reached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[l.ClientID]
	delete(c.sending, l.ID)
	s.total--
	if reached {
		c.failed, c.retry = 0, time.Time{}
		select {
		case s.wake <- struct{}{}:
		default:
		}
		return
	}
	c.failed++
	c.retry = time.Now().Add(leased.Backoff(c.failed))
}

// send tells a client of one logout.
func (s *Sender) send(ctx context.Context, client *oauth.Client, l *account.Logout) {
	reached := true
	defer func() { s.end(l, reached) }()
	o := &client.Options
	if o.BackchannelLogoutURI == "" || client.Disabled || o.SelfRegistered {
		s.drop(ctx, l) // nobody is there to be told any more
		return
	}
	var err error
	if reached, err = s.post(ctx, client, l); err == nil {
		s.metrics.sent.Inc()
		s.drop(ctx, l)
		return
	}
	if ctx.Err() != nil {
		reached = true // the service stops: the attempt does not count
		return
	}
	s.metrics.failures.Inc()
	s.delay(ctx, client, l, err)
}

// drop deletes a logout. If that fails, the client is told again.
func (s *Sender) drop(ctx context.Context, l *account.Logout) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leased.StoreTimeout)
	defer cancel()
	if err := s.config.Store.EndLogout(ctx, l.ID); err != nil {
		s.config.Logger.Warn("a back-channel logout could not be deleted", "error", err)
	}
}

// delay puts off the next attempt, or gives up.
func (s *Sender) delay(ctx context.Context, client *oauth.Client, l *account.Logout, cause error) {
	next := time.Now().Add(leased.Backoff(l.Attempts + 1))
	if l.Attempts == 0 {
		s.config.Logger.Warn("a client could not be told of a logout; retrying",
			"client", client.ID, "error", cause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leased.StoreTimeout)
	defer cancel()
	if next.Sub(l.Created) > MaxAge {
		s.metrics.lost.Inc()
		s.drop(audit.With(ctx, audit.Event{Action: audit.LogoutLost, Outcome: audit.Failed,
			Subject: audit.OfUser(l.UserID), Target: l.ClientID}), l)
		return
	}
	err := s.config.Store.DelayLogout(ctx, l.ID, next)
	if err != nil && !errors.Is(err, account.ErrNotFound) {
		s.config.Logger.Warn("a back-channel logout could not be delayed", "error", err)
	}
}

// claims are those of a logout token (OpenID Connect Back-Channel Logout section 2.4).
type claims struct {
	Issuer   string              `json:"iss"`
	Subject  string              `json:"sub"`
	Audience string              `json:"aud"`
	Issued   int64               `json:"iat"`
	Expires  int64               `json:"exp"`
	ID       string              `json:"jti"`
	SID      string              `json:"sid"`
	Events   map[string]struct{} `json:"events"`
}

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// post posts a logout token once. reached is false when another request would fail as well: without
// a response, or with one that says so.
func (s *Sender) post(ctx context.Context, client *oauth.Client, l *account.Logout) (reached bool,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	now := time.Now()
	token, err := s.config.Sign(client.IDTokenAlg(), "logout+jwt", claims{
		Issuer: s.config.Issuer, Subject: strconv.FormatInt(l.UserID, 10), Audience: client.ID,
		Issued: now.Unix(), Expires: now.Add(tokenLifetime).Unix(), ID: l.ID, SID: l.SID,
		Events: map[string]struct{}{logoutEvent: {}},
	})
	if err != nil {
		return true, fmt.Errorf("sign: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		client.Options.BackchannelLogoutURI,
		strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
	if err != nil {
		return true, errors.New("the request cannot be built")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", "gatehouse")
	if traceparent := trace.OfMark(l.ID); traceparent != "" {
		request.Header.Set(trace.Header, traceparent)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return false, webhook.KindOf(ctx, err)
	}
	response.Body.Close()
	status := response.StatusCode
	if status >= 200 && status <= 299 {
		return true, nil
	}
	return status < 500 && status != http.StatusTooManyRequests,
		fmt.Errorf("the client responded with status %d", status)
}

// metrics are the metrics of a Sender.
type metrics struct {
	sent, failures, lost prometheus.Counter
	waiting              prometheus.Gauge
}

func newMetrics() metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return metrics{
		sent: counter("gatehouse_logouts_sent_total",
			"Logout tokens that clients have accepted."),
		failures: counter("gatehouse_logout_failures_total",
			"Failed attempts to send a logout token to a client."),
		lost: counter("gatehouse_logouts_lost_total",
			"Logouts that a client has not accepted in time."),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_logouts_waiting",
			Help: "Logouts that clients are still to be told of; 0 while another server sends."}),
	}
}
