package people

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// Ways to sign in, as values of the label by.
const (
	byPassword     = "password"
	byPhone        = "phone"        // a code sent to a phone number
	byRegistration = "registration" // the code of a registration
	byReset        = "reset"        // the code of a password reset
	byPasskey      = "passkey"
	byInvitation   = "invitation" // the link of an invitation
	byProvider     = "provider"   // another provider, such as Google
	byOperator     = "operator"   // an operator created the account; in the audit trail only
)

// Results of a message to a person, as values of the label result.
const (
	messageSent    = "sent"    // the messenger has accepted it
	messageFailed  = "failed"  // the messenger has failed, or the process stopped first
	messageRefused = "refused" // the queue was full
	messageStale   = "stale"   // its code expired in the queue
)

// messageKinds are the kinds of messages of each channel.
var messageKinds = map[account.Channel][]account.Kind{
	account.SMS: {
		account.PhoneCode, account.ChangeCode, account.ProofCode, account.FactorCode,
		account.LongCode, account.AccountExists, account.ManyFactorAttempts,
	},
	account.Email: {
		account.RegisterCode, account.ResetCode, account.ChangeCode, account.BrowserCode,
		account.ProofCode, account.FactorCode, account.LongCode, account.AccountExists,
		account.NoAccount, account.ManyAttempts, account.ManyFactorAttempts,
	},
}

// metrics are the counters of a Service.
type metrics struct {
	signIns       *prometheus.CounterVec
	registrations *prometheus.CounterVec
	codeRequests  *prometheus.CounterVec
	codeEntries   *prometheus.CounterVec
	messages      *prometheus.CounterVec
	smsRefused    *prometheus.CounterVec
	hashSeconds   *prometheus.CounterVec
	invitations   *prometheus.CounterVec
	factors       *prometheus.CounterVec
	panics        prometheus.Counter
}

// newMetrics registers the counters. It creates their common labels, so that the first event shows
// as an increase from 0.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	const results = "result: ok, wrong, expired, throttled, refused or failed."
	m := &metrics{
		signIns: vector("gatehouse_sign_ins_total",
			"Attempts to sign in by means (password, passkey, phone, registration, reset, invitation, provider) and "+results,
			"by", "result"),
		registrations: vector("gatehouse_registrations_total",
			"Accounts that people have made, by channel: email, sms or provider.", "channel"),
		codeRequests: vector("gatehouse_code_requests_total",
			"Requests for a code by purpose and result: ok, throttled, refused or failed.",
			"purpose", "result"),
		codeEntries: vector("gatehouse_code_entries_total",
			"Codes entered by purpose and "+results, "purpose", "result"),
		messages: vector("gatehouse_messages_total",
			"Messages to people by channel, kind and result: sent, failed, "+
				"refused because the queue was full, or stale after a long wait.",
			"channel", "kind", "result"),
		smsRefused: vector("gatehouse_sms_refused_total",
			"Text messages refused because a budget was used up, by budget: all or country.",
			"budget"),
		hashSeconds: vector("gatehouse_password_hash_seconds_total",
			"Time in which passwords and codes were hashed, by who asked: known (browser), operator "+
				"or stranger.", "by"),
		invitations: vector("gatehouse_invitations_total",
			"Invitations by what became of them: sent, accepted or ended by an operator.", "state"),
		factors: vector("gatehouse_second_factors_total",
			"Second factors used by kind (app, recovery_code, security_key or none) and "+results, "kind", "result"),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_messenger_panics_total",
			Help: "Panics in messengers; each is logged with its stack.",
		}),
	}
	for _, lane := range laneNames {
		m.hashSeconds.WithLabelValues(lane)
	}
	for _, by := range []string{byPassword, byPasskey, byPhone, byRegistration, byReset, byInvitation, byProvider} {
		m.signIns.WithLabelValues(by, resultOf(nil))
	}
	for _, purpose := range []account.Purpose{
		account.ForRegistration, account.ForPhone, account.ForReset, account.ForChange,
		account.ForBrowser, account.ForProof, account.ForResetProof, account.ForFactor,
		account.ForConnection,
	} {
		m.codeRequests.WithLabelValues(string(purpose), resultOf(nil))
		m.codeEntries.WithLabelValues(string(purpose), resultOf(nil))
	}
	for _, kind := range []string{factorApp, factorRecovery, factorKey} {
		m.factors.WithLabelValues(kind, resultOf(nil))
	}
	for _, key := range []string{allCountries, ""} {
		m.smsRefused.WithLabelValues(budgetName(key))
	}
	for _, channel := range []account.Channel{account.Email, account.SMS} {
		m.registrations.WithLabelValues(string(channel))
	}
	for _, state := range []string{invitationSent, invitationAccepted, invitationEnded} {
		m.invitations.WithLabelValues(state)
	}
	m.registrations.WithLabelValues(byProvider)
	var err error
	for _, c := range []prometheus.Collector{
		m.signIns, m.registrations, m.codeRequests, m.codeEntries, m.messages, m.smsRefused,
		m.hashSeconds, m.invitations, m.factors, m.panics,
	} {
		err = errors.Join(err, registry.Register(c))
	}
	return m, err
}

// createMessages creates the counters of all messages, so that the first one shows as an increase.
func (m *metrics) createMessages() {
	for channel, kinds := range messageKinds {
		for _, kind := range kinds {
			for _, result := range []string{
				messageSent, messageFailed, messageRefused, messageStale,
			} {
				m.messages.WithLabelValues(string(channel), string(kind), result)
			}
		}
	}
}

// message counts a message by its result.
func (m *metrics) message(message account.Message, result string) {
	m.messages.WithLabelValues(string(message.Channel), string(message.Kind), result).Inc()
}

// The values of the label state of invitations.
const (
	invitationSent     = "sent"
	invitationAccepted = "accepted"
	invitationEnded    = "ended"
)

// invited counts what became of an invitation, unless err says that it did not.
func (m *metrics) invited(state string, err error) {
	if err == nil {
		m.invitations.WithLabelValues(state).Inc()
	}
}

func (m *metrics) signedIn(by string, err error) {
	m.signIns.WithLabelValues(by, resultOf(err)).Inc()
}

func (m *metrics) requested(purpose account.Purpose, err error) {
	m.codeRequests.WithLabelValues(string(purpose), resultOf(err)).Inc()
}

func (m *metrics) entered(purpose account.Purpose, err error) {
	m.codeEntries.WithLabelValues(string(purpose), resultOf(err)).Inc()
}

// resultOf returns the value of the label result for err.
func resultOf(err error) string {
	var (
		throttled *ThrottledError
		field     account.FieldError
		fields    account.FieldErrors
		stepUp    *StepUpError
		factor    *FactorNeededError
	)
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrWrongCredentials), errors.Is(err, ErrWrongCode),
		errors.Is(err, ErrPasskeyWrong), errors.Is(err, ErrPasskeyUnknown):
		return "wrong"
	case errors.Is(err, ErrCodeExpired), errors.Is(err, ErrPasskeyExpired), errors.Is(err, ErrAttemptEnded):
		return "expired"
	case errors.As(err, &throttled):
		return "throttled"
	case errors.As(err, &field), errors.As(err, &fields),
		errors.Is(err, account.ErrTaken), errors.Is(err, ErrDisabled),
		errors.Is(err, ErrPasskeyRefused),
		errors.Is(err, ErrNoAccount), errors.Is(err, ErrPasswordNeeded), errors.As(err, &stepUp),
		errors.As(err, &factor), errors.Is(err, ErrFactorCode),
		errors.Is(err, ErrNotLet), errors.Is(err, ErrNotConnected), errors.Is(err, ErrConnectionTaken),
		errors.As(err, new(*oauth.ProviderError)):
		return "refused"
	}
	return "failed"
}
