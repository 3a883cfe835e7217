package token

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/oauth"
)

// metrics are the Service's counters, as the admin listener shows them.
type metrics struct {
	tokenRequests  *prometheus.CounterVec
	overloads      prometheus.Counter
	panics         prometheus.Counter
	mailboxRejects prometheus.Counter
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
	}
	actors := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_limit_actors",
		Help: "Access tokens in use, each with an actor in memory.",
	}, func() float64 { return float64(s.directory.size.Load()) })
	var err error
	for _, c := range []prometheus.Collector{m.tokenRequests, m.overloads, m.panics, m.mailboxRejects, actors} {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
}

// responded counts the response to a token request; a nil fault is a success.
func (m *metrics) responded(grant oauth.GrantTypes, fault *oauth.Error) {
	outcome := "ok"
	if fault != nil {
		outcome = string(fault.Code)
	}
	m.tokenRequests.WithLabelValues(grant.String(), outcome).Inc()
}
