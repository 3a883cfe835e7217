package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"gatehouse/actors/fair"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Limits on assertions. A client has at most 40,000 assertions that have not expired.
const (
	checksWaiting    = 2048 // of operators' clients, and of others
	checksOfPayer    = 128  // of one client in one network
	failedProofs     = 20   // of a client in a network: a burst, and then
	failedProofEvery = time.Second
	failedProvers    = 50_000
	clientProofs     = 10_000 // a burst, and then
	clientProofsIn   = 10 * time.Millisecond
	proofClients     = 10_000
	earlyProofs      = 50_000         // that are remembered
	keySets          = 1_000          // of operators' clients, and of others, that are kept
	keysFresh        = time.Hour      // after which the keys of a jwks_uri are fetched again
	keysKept         = 24 * time.Hour // while they cannot be fetched
	keysAgain        = time.Minute    // at least, between two fetches for a client
	keyFetches       = 60             // of a caller for self-registered clients: a burst, and then
	keyFetchesEvery  = 5 * time.Second
	keyFetchers      = 10_000
	assertionChecks  = 10 * time.Second
)

// prover checks the assertions of clients (RFC 7523). Its methods may be called by many goroutines.
type prover struct {
	turns    *fair.Turns                  // to check a signature
	failed   *ratelimit.Pacer[fair.Payer] // on this node; others count their own
	proofs   ratelimit.Limiter[string]
	early    *lru.Cache[oauth.Hash, struct{}] // assertions of clients that await a consent
	sets     [2]*lru.Cache[string, *keySetOf] // by client; of operators' clients, and of others
	fetches  singleflight.Group
	fetchers ratelimit.Limiter[netip.Addr] // for clients that registered themselves
}

// keySetOf are the keys of a client. It is never changed.
type keySetOf struct {
	source  keySource
	keys    []jose.JSONWebKey
	refused error     // why a key was left out; nil = none was
	read    time.Time // when they were read, or could not be
	asOf    time.Time // when they were read
	err     error     // why there are none
}

// keySource is where the keys of a client are: one of its members is set, or document and text.
type keySource struct {
	text      string          // the keys themselves
	url       string          // of the keys
	federated oauth.Federated // their issuer
	document  string          // that describes the client, and had text when a person consented
}

// isFetched reports whether the keys are elsewhere, and may change there.
func (k *keySource) isFetched() bool { return k.text == "" || k.document != "" }

func keySourceOf(o *oauth.ClientOptions) keySource {
	if o.IsFederated() && o.Federated.JWKS == "" {
		return keySource{federated: o.Federated}
	}
	if o.JWKS != "" && o.MetadataURL != "" {
		return keySource{text: o.JWKS, document: o.MetadataURL}
	}
	return keySource{text: o.JWKS + o.Federated.JWKS, url: o.JWKSURI} // two of them are ""
}

func newProver(nodes ratelimit.Nodes) *prover {
	early, err := lru.New[oauth.Hash, struct{}](earlyProofs)
	if err != nil {
		panic(err) // earlyProofs is below 1
	}
	class := fair.Class{Waiting: checksWaiting, Own: checksOfPayer}
	p := &prover{
		turns:  fair.NewTurns(max(1, runtime.GOMAXPROCS(0)/2), class, class),
		failed: ratelimit.NewPacer[fair.Payer](failedProofs, failedProofEvery, failedProvers),
		early:  early,
		proofs: ratelimit.SharePacer(nodes, "client_proofs",
			ratelimit.NewPacer[string](clientProofs, clientProofsIn, proofClients),
			func(id string) []byte { return []byte(id) },
			func(text []byte) (string, bool) { return string(text), true }),
		fetchers: ratelimit.ShareThrottle(nodes, "client_keys",
			ratelimit.NewThrottle(keyFetches, keyFetchesEvery, keyFetchers)),
	}
	for class := range p.sets {
		if p.sets[class], err = lru.New[string, *keySetOf](keySets); err != nil {
			panic(err) // keySets is below 1
		}
	}
	return p
}

// setsOf returns where the keys of a client are kept. Clients that strangers have registered crowd out
// none of an operator's.
func (p *prover) setsOf(client *oauth.Client) *lru.Cache[string, *keySetOf] {
	return p.sets[payerOfClient(client, netip.Addr{}).Class]
}

// prove checks the assertion of c, if there is one, and uses it up. client is the one that c names;
// nil = there is none. The error is an *oauth.Error or a failure.
func (s *Service) prove(
	ctx context.Context, c *oauth.Credentials, client *oauth.Client, now time.Time,
) error {
	if c.Assertion == "" || c.Proven || client == nil || !client.HasKeys() {
		return nil // Authenticate refuses it
	}
	audiences := []string{s.config.Issuer, s.config.Issuer + "/oauth/token"}
	a, fault := client.ParseAssertion(c.Assertion, audiences, now)
	if fault != nil {
		return fault
	}
	by := payerOfClient(client, c.Caller)
	if wait := s.prover.failed.Wait(by, now); wait > 0 && c.Caller.IsValid() {
		s.metrics.assertions.WithLabelValues("throttled").Inc()
		return tooManyFailures(wait)
	}
	ctx, cancel := context.WithTimeout(ctx, assertionChecks)
	defer cancel()
	set, err := s.keysOf(ctx, client, a, c.Caller, now)
	if err != nil {
		return err
	}
	key := a.Key(set.keys)
	signed, err := s.prover.check(ctx, a, key, by, now)
	if err != nil {
		s.metrics.assertions.WithLabelValues("busy").Inc()
		return err
	}
	if !signed {
		s.metrics.assertions.WithLabelValues("wrong").Inc()
		if key == nil {
			return a.ErrNoKey(set.refused)
		}
		return nil // Authenticate refuses it
	}
	if wait := s.prover.proofs.Take(client.ID, now); wait > 0 {
		return tooMany("The client has sent too many assertions.", wait)
	}
	if !a.IsReusable {
		err := s.useAssertion(ctx, client, a)
		if errors.Is(err, oauth.ErrAssertionUsed) { // anybody may have sent it again: they pay
			s.prover.proofs.Forgive(client.ID)
			s.prover.failed.Take(by, now)
		}
		if err != nil {
			return err
		}
	}
	s.metrics.assertions.WithLabelValues("ok").Inc()
	c.Proven = true
	return nil
}

// useAssertion uses up an assertion. Nothing is written for a client that awaits a consent, since
// anybody can register one: it gets no tokens, and memory keeps what it has sent until then.
func (s *Service) useAssertion(
	ctx context.Context, client *oauth.Client, a *oauth.Assertion,
) error {
	if !client.Awaits.IsZero() {
		if found, _ := s.prover.early.ContainsOrAdd(a.Replay, struct{}{}); found {
			return oauth.ErrAssertionUsed
		}
		return nil
	}
	var err error
	if s.prover.early.Contains(a.Replay) {
		err = oauth.ErrConflict
	} else {
		err = s.config.Tokens.UseAssertion(ctx, a.Replay, a.Expires)
	}
	switch {
	case errors.Is(err, oauth.ErrConflict):
		return oauth.ErrAssertionUsed
	case err != nil:
		return fmt.Errorf("use assertion: %w", err)
	}
	return nil
}

// payerOfClient returns who pays for a client's assertions and signatures: the client in a network,
// so that nobody elsewhere delays it. Operators' clients are a class of their own.
func payerOfClient(client *oauth.Client, caller netip.Addr) fair.Payer {
	by := fair.Payer{Network: ratelimit.SitePrefix(caller), Key: client.ID}
	if client.Options.SelfRegistered {
		by.Class = 1
	}
	return by
}

// check reports whether key has signed an assertion, when it is the payer's turn; nil = it has no key,
// and is wrong. The payer pays for a wrong one.
func (p *prover) check(
	ctx context.Context, a *oauth.Assertion, key *jose.JSONWebKey, by fair.Payer, now time.Time,
) (signed bool, err error) {
	if key != nil {
		switch err := p.turns.Enter(ctx, by); {
		case errors.Is(err, fair.ErrFull):
			return false, errUnavailable
		case err != nil:
			return false, fmt.Errorf("check a signature: %w", err)
		}
		defer p.turns.Leave(by)
		signed = a.IsSignedBy(key)
	}
	if !signed {
		p.failed.Take(by, now)
	}
	return signed, nil
}

// errNoKeys is what a client is told whose keys cannot be fetched.
var errNoKeys = &oauth.Error{
	Code:        oauth.TemporarilyUnavailable,
	Description: "The client's keys could not be fetched from its document, jwks_uri or issuer.",
	Hint:        "Serve them as JSON at a public https address, and try again in a minute.",
	RetryAfter:  keysAgain,
}

// keysOf returns the keys of a client. Those that it serves are fetched again when none has the name
// that a says, at most once a minute.
func (s *Service) keysOf(
	ctx context.Context, client *oauth.Client, a *oauth.Assertion, caller netip.Addr, now time.Time,
) (*keySetOf, error) {
	source := keySourceOf(&client.Options)
	set, ok := s.prover.setsOf(client).Get(client.ID)
	switch {
	case !ok || set.source != source:
		set = nil
	case !source.isFetched():
	case now.Sub(set.read) >= keysFresh,
		now.Sub(set.read) >= keysAgain && (set.err != nil || a.Key(set.keys) == nil ||
			now.Sub(set.asOf) >= keysKept):
		set = nil
	}
	if set == nil {
		by, err := s.payerOf(client, source, caller, now)
		if err == nil {
			set, err = s.readKeySet(ctx, client, source, by, now)
		}
		if err != nil {
			return nil, err
		}
	}
	if set.err != nil {
		return nil, errNoKeys
	}
	return set, nil
}

// payerOf returns who has the keys of a client fetched: the client, if an operator has registered
// it, or the network of the caller. Anybody can register clients and name their servers.
func (s *Service) payerOf(
	client *oauth.Client, source keySource, caller netip.Addr, now time.Time,
) (oauth.Payer, error) {
	network := ratelimit.SitePrefix(caller)
	if !client.Options.SelfRegistered {
		return oauth.Payer{
			ID: "client " + client.ID, Network: network, Class: oauth.Operators,
		}, nil
	}
	if source.isFetched() {
		if wait := s.prover.fetchers.Take(caller, now); wait > 0 {
			return oauth.Payer{}, tooMany("Too many keys of clients had to be fetched.", wait)
		}
	}
	by := oauth.Payer{ID: "network " + network.String(), Network: network}
	if client.Awaits.IsZero() {
		by.Class = oauth.People // one of them has consented
	}
	return by, nil
}

// readKeySet reads the keys of a client. Requests of the same payer that come meanwhile wait for
// the same. When it is too busy, that is the error, and the keys are as they were.
func (s *Service) readKeySet(
	ctx context.Context, client *oauth.Client, source keySource, by oauth.Payer, now time.Time,
) (*keySetOf, error) {
	read := s.prover.fetches.DoChan(fmt.Sprint(client.ID, source, by.ID), func() (any, error) {
		set := &keySetOf{source: source, read: now, asOf: now}
		text := []byte(source.text)
		if source.isFetched() {
			text, set.err = s.fetchKeys(source, by)
		}
		if errors.Is(set.err, oauth.ErrBusy) {
			return nil, errUnavailable
		}
		if set.err == nil {
			set.keys, set.refused, set.err = oauth.ParseJWKS(text)
		}
		if old, ok := s.prover.setsOf(client).Peek(client.ID); ok && set.err != nil &&
			old.source == source && old.err == nil && now.Sub(old.asOf) < keysKept {
			set.keys, set.refused, set.asOf, set.err = old.keys, old.refused, old.asOf, nil // better than none
		}
		s.prover.setsOf(client).Add(client.ID, set)
		return set, nil
	})
	select {
	case result := <-read:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*keySetOf), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for keys: %w", ctx.Err())
	}
}

func (s *Service) fetchKeys(source keySource, by oauth.Payer) ([]byte, error) {
	if s.config.Fetcher == nil {
		return nil, errors.New("nothing is fetched")
	}
	ctx, cancel := context.WithTimeout(s.lifetime, assertionChecks)
	defer cancel()
	address := source.url
	switch {
	case source.document != "":
		text, err := s.config.Fetcher.Fetch(ctx, source.document, keysAgain, by)
		if err != nil {
			return nil, err
		}
		said, err := s.parseDocument(ctx, source.document, text)
		if err != nil {
			return nil, err
		}
		if address = said.Options.JWKSURI; address == "" {
			return []byte(cmp.Or(said.Options.JWKS, `{"keys":[]}`)), nil
		}
	case address == "":
		metadata, err := s.config.Fetcher.Fetch(ctx, source.federated.MetadataURL(), keysAgain, by)
		if err != nil {
			return nil, err
		}
		if address, err = source.federated.KeysURL(metadata); err != nil {
			return nil, err
		}
	}
	return s.config.Fetcher.Fetch(ctx, address, keysAgain, by)
}
