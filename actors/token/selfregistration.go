package token

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// DefaultRegistrationPerHour is how many clients of a caller may await a consent by default. Each
// does for an hour at most.
const DefaultRegistrationPerHour = 60

// registerAgain is the longest that a caller is told to wait. A consent gives a place back before.
const registerAgain = 10 * time.Minute

// endEvery is how often self-registered clients are ended that nobody has consented to, or that
// nobody uses.
const endEvery = time.Minute

// errRegistrationToken tells that the initial access token is missing or wrong.
var errRegistrationToken = &oauth.Error{
	Code:        oauth.InvalidToken,
	Description: "A registration needs the operator's initial access token.",
	Hint:        "Send it in the header Authorization: Bearer.",
}

// TakesRegistrations reports whether clients may register themselves.
func (s *Service) TakesRegistrations() bool {
	return s.config.Registration != oauth.RegistrationOff
}

// Register registers a client that describes itself (RFC 7591) and returns the response. token is
// the initial access token; "" = none was sent. The client ends after oauth.ConsentWithin unless a
// person consents to it.
func (s *Service) Register(
	ctx context.Context, text []byte, token string, caller netip.Addr, now time.Time,
) ([]byte, *oauth.Error) {
	response, err := s.register(ctx, text, token, caller, now)
	fault := s.fault(err, "register a client")
	outcome := "ok"
	if fault != nil {
		outcome = string(fault.Code)
	}
	s.metrics.registrations.WithLabelValues(outcome).Inc()
	return response, fault
}

func (s *Service) register(
	ctx context.Context, text []byte, token string, caller netip.Addr, now time.Time,
) ([]byte, error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if err := s.mayRegister(token, caller, now); err != nil {
		return nil, err
	}
	r, fault := oauth.ParseRegistration(text, s.config.Registration, s.config.RedirectSchemes)
	if fault != nil {
		return nil, fault
	}
	c := r.Client
	if err := s.checkKeysURL(ctx, c); err != nil {
		return nil, oauth.InvalidMetadata(err)
	}
	c.ID, c.Created, c.Awaits = uuid.NewString(), now, now.Add(oauth.ConsentWithin)
	var secret string
	if !c.Public && !c.HasKeys() {
		var kept oauth.Secret
		secret, kept = oauth.NewSecret(now)
		c.Secrets = []oauth.Secret{kept}
	}
	ctx = audit.With(ctx, audit.Event{Action: audit.ClientRegistered, Target: c.ID})
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	from := oauth.Registrant{Caller: caller, Most: oauth.MostAwaiting}
	if s.config.Registration == oauth.RegistrationOpen {
		from.PerCaller = s.config.RegistrationPerHour
	}
	ended, err := s.config.Tokens.RegisterClient(ctx, c, from)
	s.clientsEnded(ended, s.metrics.clientsCrowdedOut)
	var crowded *oauth.CrowdedError
	switch {
	case errors.As(err, &crowded):
		return nil, tooMany("Too many clients from this network wait for a first consent.",
			min(max(time.Second, crowded.Until.Sub(now)), registerAgain))
	case err != nil:
		return nil, fmt.Errorf("register client: %w", err)
	}
	return r.Response(secret), nil
}

// mayRegister checks the initial access token, if one is needed. Wrong ones count as wrong client
// secrets do.
func (s *Service) mayRegister(token string, caller netip.Addr, now time.Time) error {
	if s.config.Registration != oauth.RegistrationToken {
		return nil
	}
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.config.RegistrationToken))
	if subtle.ConstantTimeCompare(given[:], want[:]) == 1 {
		return nil
	}
	if token == "" {
		return errRegistrationToken
	}
	if wait := s.wrongSecrets.Take(caller, now); wait > 0 {
		return tooMany("Too many wrong tokens were sent.", wait)
	}
	return errRegistrationToken
}

// ConfirmClient notes that a person has just consented to a client that registered itself, which
// therefore stays. Call it before the consent is stored. It returns oauth.ErrNotFound for a client
// that nobody has consented to in time.
func (s *Service) ConfirmClient(ctx context.Context, id string, now time.Time) error {
	_, err := s.changeClient(ctx, id, func(c *oauth.Client) error {
		if c.HasLapsed(now) {
			return oauth.ErrNotFound
		}
		c.Awaits = time.Time{}
		return nil
	})
	return err
}

// SettledClients is Clients without those that await a consent.
func (s *Service) SettledClients(
	ctx context.Context, after string, limit int,
) ([]*oauth.Client, error) {
	return s.config.Tokens.SettledClients(ctx, after, limit)
}

// endClients ends self-registered clients until the Service stops.
func (s *Service) endClients() {
	ticker := time.NewTicker(endEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.lifetime.Done():
			return
		case <-ticker.C:
		}
		err := s.EndClients(s.lifetime, time.Now())
		if err != nil && s.lifetime.Err() == nil {
			s.config.Logger.Warn("clients that registered themselves could not be ended", "error", err)
		}
	}
}

// EndClients ends the self-registered clients that nobody has consented to, or that nobody uses.
func (s *Service) EndClients(ctx context.Context, now time.Time) error {
	ended, err := s.config.Tokens.EndClients(ctx, now)
	s.clientsEnded(ended, s.metrics.clientsUnconsented)
	if err != nil {
		return fmt.Errorf("end clients: %w", err)
	}
	return nil
}

// clientsEnded forgets clients that the store has deleted. unconsented counts those that awaited a
// consent.
func (s *Service) clientsEnded(ended []oauth.EndedClient, unconsented prometheus.Counter) {
	for _, c := range ended {
		s.clients.change(c.ID)
		s.clientActors.drop(c.ID)
		if c.Idle {
			s.metrics.clientsIdle.Inc()
		} else {
			unconsented.Inc()
		}
	}
}
