package token

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/oauth"
)

// metrics are the Service's counters, as the admin listener shows them.
type metrics struct {
	tokenRequests  *prometheus.CounterVec
	issued         map[oauth.GrantTypes]prometheus.Counter // of tokenRequests, with outcome ok
	failures       *prometheus.CounterVec                  // by endpoint and error code
	overloads      prometheus.Counter
	panics         prometheus.Counter
	mailboxRejects prometheus.Counter
	provisional    prometheus.Counter

	granted, spent, returned, lost prometheus.Counter // requests of allowances

	signatureSeconds  *prometheus.HistogramVec // by algorithm
	signaturesRefused prometheus.Counter
	assertions        *prometheus.CounterVec // of clients, by outcome

	registrations *prometheus.CounterVec // by outcome
	// clients that were ended
	clientsIdle, clientsUnconsented, clientsCrowdedOut prometheus.Counter
}

func newMetrics(s *Service, registry prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		tokenRequests: counters("gatehouse_token_requests_total",
			"Well-formed token requests by grant type and outcome: ok or the error code.", "grant", "outcome"),
		failures: counters("gatehouse_oauth_failures_total",
			"Failed requests to OAuth endpoints by endpoint and error code.", "endpoint", "error"),
		overloads: counter("gatehouse_identity_overloads_total",
			"Requests to the token, revocation and introspection endpoints that were refused because of overload or timeout."),
		panics: counter("gatehouse_identity_panics_total",
			"Panics in the identity service's actors; each is logged with its stack."),
		mailboxRejects: counter("gatehouse_identity_mailbox_rejects_total",
			"Messages refused because the mailbox of an identity actor was full."),
		provisional: counter("gatehouse_cluster_provisional_decisions_total",
			"Requests with access tokens that this node decided about alone, because the node that counts them could not be asked."),
	}
	m.signatureSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "gatehouse_signature_seconds",
		Help:    "Time to compute a signature of an id_token or another JWT, by algorithm.",
		Buckets: []float64{0.00005, 0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1},
	}, []string{"alg"})
	for _, alg := range oauth.IDTokenAlgs {
		m.signatureSeconds.WithLabelValues(alg) // shown before the first signature
	}
	m.signaturesRefused = counter("gatehouse_signatures_refused_total",
		"Signatures that were refused because too many were waited for; nothing was consumed.")
	m.assertions = counters("gatehouse_client_assertions_total",
		"Assertions that clients authenticated with, by outcome: ok, wrong, throttled or busy.", "outcome")
	for _, outcome := range []string{"ok", "wrong", "throttled", "busy"} {
		m.assertions.WithLabelValues(outcome)
	}
	m.registrations = counters("gatehouse_client_registrations_total",
		"Clients that asked to be registered, by outcome: ok or the error code.", "outcome")
	m.registrations.WithLabelValues("ok")
	ended := counters("gatehouse_clients_ended_total",
		"Clients that registered themselves and were ended, by reason: idle, unconsented or crowded_out.", "reason")
	m.clientsIdle, m.clientsUnconsented = ended.WithLabelValues("idle"),
		ended.WithLabelValues("unconsented")
	m.clientsCrowdedOut = ended.WithLabelValues("crowded_out")
	m.issued = map[oauth.GrantTypes]prometheus.Counter{}
	for grant := range grantTypes {
		m.issued[grant] = m.tokenRequests.WithLabelValues(grant.String(), "ok")
	}
	allowances := counters("gatehouse_cluster_allowances_total",
		"Requests of allowances, by outcome: granted to other nodes or spent by this one without asking;"+
			" of the granted ones returned unspent, or lost: counted as used since the node did not reply.",
		"outcome")
	m.granted, m.spent = allowances.WithLabelValues("granted"), allowances.WithLabelValues("spent")
	m.returned, m.lost = allowances.WithLabelValues("returned"), allowances.WithLabelValues("lost")
	collectors := append(gauges(s), m.tokenRequests, m.failures, m.overloads, m.panics,
		m.mailboxRejects, m.signatureSeconds, m.signaturesRefused, m.assertions, m.registrations, ended)
	if s.config.Peers != nil {
		collectors = append(collectors, m.provisional, allowances)
	}
	var err error
	for _, c := range collectors {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
}

// gauges show what the Service has in memory.
func gauges(s *Service) []prometheus.Collector {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	all := []prometheus.Collector{
		gauge("gatehouse_limit_actors", "Access tokens in use, each with an actor in memory.",
			func() float64 { return float64(s.directory.size.Load()) }),
		gauge("gatehouse_revocations_held",
			"Access tokens and token families that were revoked and have not expired.",
			func() float64 { return float64(s.ended.size.Load()) }),
		gauge("gatehouse_follow_delay_seconds",
			"Time since the changes of other servers on the same database were last read; 0 on SQLite.",
			func() float64 {
				if !s.config.OtherWriters {
					return 0
				}
				return s.followDelay(time.Now()).Seconds()
			}),
	}
	if s.config.Peers != nil {
		all = append(all, gauge("gatehouse_cluster_shadows",
			"Access tokens in use here whose requests another node counts.", s.shadows))
	}
	for _, purpose := range oauth.Purposes {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "gatehouse_key_age_seconds",
			Help:        "Age of the newest key of each purpose.",
			ConstLabels: prometheus.Labels{"purpose": string(purpose)},
		}, func() float64 {
			return time.Since(s.Keys(purpose)[0].Made).Seconds()
		}))
	}
	return all
}

// responded counts the response to a token request; a nil fault is a success.
func (m *metrics) responded(grant oauth.GrantTypes, fault *oauth.Error) {
	if fault == nil {
		m.issued[grant].Inc()
		return
	}
	m.tokenRequests.WithLabelValues(grant.String(), string(fault.Code)).Inc()
}

// signed counts a signature.
func (m *metrics) signed(alg string, took time.Duration) {
	m.signatureSeconds.WithLabelValues(alg).Observe(took.Seconds())
}
