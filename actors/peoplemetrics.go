package actors

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
)

// What a person signed in with.
const (
	byPassword     = "password"
	byPhone        = "phone"        // a code sent to the number
	byRegistration = "registration" // the code that made the account
	byReset        = "reset"        // the code for a new password
)

// peopleMetrics are the counters of what people do, as the admin listener shows them.
type peopleMetrics struct {
	signIns       *prometheus.CounterVec
	registrations *prometheus.CounterVec
	codeRequests  *prometheus.CounterVec
	codeEntries   *prometheus.CounterVec
}

func newPeopleMetrics(registry prometheus.Registerer) (*peopleMetrics, error) {
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &peopleMetrics{
		signIns: vector("gatehouse_sign_ins_total",
			"Attempts to sign in by what with (password, phone, registration, reset) and result: ok, wrong, expired, throttled, refused or failed.", "by", "result"),
		registrations: vector("gatehouse_registrations_total", "Accounts that people have made, by channel.", "channel"),
		codeRequests: vector("gatehouse_code_requests_total",
			"Requests for a code by purpose and result: ok, throttled, refused or failed.", "purpose", "result"),
		codeEntries: vector("gatehouse_code_entries_total",
			"Codes entered by purpose and result: ok, wrong, expired, throttled, refused or failed.", "purpose", "result"),
	}
	for _, by := range []string{byPassword, byPhone, byRegistration, byReset} {
		m.signIns.WithLabelValues(by, resultOf(nil))
	}
	for _, purpose := range []account.Purpose{account.ForRegistration, account.ForPhone, account.ForReset, account.ForChange} {
		m.codeRequests.WithLabelValues(string(purpose), resultOf(nil))
		m.codeEntries.WithLabelValues(string(purpose), resultOf(nil))
	}
	for _, channel := range []account.Channel{account.Email, account.SMS} {
		m.registrations.WithLabelValues(string(channel))
	}
	var err error
	for _, c := range []prometheus.Collector{m.signIns, m.registrations, m.codeRequests, m.codeEntries} {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
}

func (m *peopleMetrics) signedIn(by string, err error) {
	m.signIns.WithLabelValues(by, resultOf(err)).Inc()
}

func (m *peopleMetrics) requested(purpose account.Purpose, err error) {
	m.codeRequests.WithLabelValues(string(purpose), resultOf(err)).Inc()
}

func (m *peopleMetrics) entered(purpose account.Purpose, err error) {
	m.codeEntries.WithLabelValues(string(purpose), resultOf(err)).Inc()
}

// resultOf says in a word how something that a person did has ended.
func resultOf(err error) string {
	var (
		throttled *ThrottledError
		field     account.FieldError
		fields    account.FieldErrors
	)
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrWrongCredentials), errors.Is(err, ErrWrongCode):
		return "wrong"
	case errors.Is(err, ErrCodeExpired):
		return "expired"
	case errors.As(err, &throttled):
		return "throttled"
	case errors.As(err, &field), errors.As(err, &fields), errors.Is(err, account.ErrTaken), errors.Is(err, ErrDisabled):
		return "refused"
	}
	return "failed"
}
