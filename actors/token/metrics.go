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
	overloads      prometheus.Counter
	panics         prometheus.Counter
	mailboxRejects prometheus.Counter
	provisional    prometheus.Counter

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
	m := &metrics{
		tokenRequests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_token_requests_total",
			Help: "Well-formed token requests by grant type and outcome: ok or the error code.",
		}, []string{"grant", "outcome"}),
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
	m.assertions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_client_assertions_total",
		Help: "Assertions that clients authenticated with, by outcome: ok, wrong, throttled or busy.",
	}, []string{"outcome"})
	for _, outcome := range []string{"ok", "wrong", "throttled", "busy"} {
		m.assertions.WithLabelValues(outcome)
	}
	m.registrations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_client_registrations_total",
		Help: "Clients that asked to be registered, by outcome: ok or the error code.",
	}, []string{"outcome"})
	m.registrations.WithLabelValues("ok")
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_clients_ended_total",
		Help: "Clients that registered themselves and were ended, by reason: idle, unconsented or crowded_out.",
	}, []string{"reason"})
	m.clientsIdle, m.clientsUnconsented = ended.WithLabelValues("idle"),
		ended.WithLabelValues("unconsented")
	m.clientsCrowdedOut = ended.WithLabelValues("crowded_out")
	m.issued = map[oauth.GrantTypes]prometheus.Counter{}
	for _, grant := range []oauth.GrantTypes{
		oauth.AuthorizationCodeGrant, oauth.RefreshTokenGrant, oauth.ClientCredentialsGrant,
		oauth.DeviceCodeGrant,
	} {
		m.issued[grant] = m.tokenRequests.WithLabelValues(grant.String(), "ok")
	}
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	collectors := []prometheus.Collector{
		m.tokenRequests, m.overloads, m.panics, m.mailboxRejects,
		m.signatureSeconds, m.signaturesRefused, m.assertions, m.registrations, ended,
		gauge("gatehouse_limit_actors", "Access tokens in use, each with an actor in memory.",
			func() float64 { return float64(s.directory.size.Load()) }),
		gauge("gatehouse_revocations_held",
			"Access tokens and token families that were revoked and have not expired.",
			func() float64 { return float64(s.ended.size.Load()) }),
		gauge("gatehouse_follow_delay_seconds",
			"Time since the changes of other servers on the same database were last read; 0 on SQLite.",
			func() float64 {
				if !s.config.Shared {
					return 0
				}
				return s.followDelay(time.Now()).Seconds()
			}),
	}
	if s.config.Peers != nil {
		collectors = append(collectors, m.provisional, gauge("gatehouse_cluster_shadows",
			"Access tokens in use here whose requests another node counts.", s.shadows))
	}
	for _, purpose := range oauth.AllPurposes {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "gatehouse_key_age_seconds",
			Help:        "Age of the newest key of each purpose; 0 if there is none yet.",
			ConstLabels: prometheus.Labels{"purpose": string(purpose)},
		}, func() float64 {
			keys := s.Keys(purpose)
			if len(keys) == 0 {
				return 0
			}
			return time.Since(keys[0].Made).Seconds()
		}))
	}
	var err error
	for _, c := range collectors {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
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
