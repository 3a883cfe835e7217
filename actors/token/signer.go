package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatehouse/actors/fair"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
)

// signQueue is the room of a class for signatures for each processor: those that are reserved, waited
// for or computed. A signature by RS256 takes a millisecond of a processor. So the last one in a full
// queue waits for a quarter of a second, or for two while this process has an eighth of them; for
// twice as long if both classes are full.
const signQueue = 256

// signer bounds how many signatures are computed at once, and how many wait for it. Room is reserved
// before anything is taken, so nobody loses it later. Clients of operators have room and turns of
// their own (payerOfClient). Its methods may be called by many goroutines.
type signer struct {
	turns *fair.Turns
	rooms [2]fair.Slots[string] // by class and client; "" = for no client
}

// newSigner returns a signer. One client gets a quarter of the room of its class, so that it leaves
// some to the others.
func newSigner() *signer {
	processors := runtime.GOMAXPROCS(0)
	room := signQueue * processors
	s := &signer{turns: fair.NewTurns(processors, fair.Class{Waiting: room},
		fair.Class{Waiting: room})}
	for class := range s.rooms {
		s.rooms[class].Total, s.rooms[class].Share = room, room/4
	}
	return s
}

// signature is the room for one signature and its key. It must be released once.
type signature struct {
	service *Service
	by      fair.Payer
	key     *signingKey
}

// reserve takes room for a signature, so that it cannot be refused later. alg is one of
// oauth.IDTokenAlgs; nil = there is no room. It does not block.
func (s *Service) reserve(by fair.Payer, alg string, now time.Time) *signature {
	if !s.signer.rooms[by.Class].Take(1, by.Key) {
		s.metrics.signaturesRefused.Inc()
		return nil
	}
	return &signature{service: s, by: by, key: s.keys.signing(purposeOf(alg), now)}
}

// release gives back the room. A nil signature has none.
func (g *signature) release() {
	if g != nil {
		g.service.signer.rooms[g.by.Class].Give(1, g.by.Key)
	}
}

// sign returns a JWT that says claims. It waits for its turn.
func (g *signature) sign(typ string, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encode claims: %w", err)
	}
	turns := g.service.signer.turns
	if err := turns.Enter(context.Background(), g.by); err != nil { // as many may wait as have room
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	defer turns.Leave(g.by)
	began := time.Now()
	jwt, err := g.key.sign(typ, payload)
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	g.service.metrics.signed(g.key.alg, time.Since(began))
	return jwt, nil
}

// Sign returns a JWT of type typ, such as "JWT" or "logout+jwt", that says claims. alg is "RS256"
// or "ES256". Its error is an *oauth.Error if too many signatures are waited for.
func (s *Service) Sign(alg, typ string, claims any) (string, error) {
	if !s.inflight.Enter() {
		return "", mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if purposeOf(alg) == "" {
		return "", fmt.Errorf("sign: %q is no algorithm of ours", alg)
	}
	room := s.reserve(fair.Payer{}, alg, time.Now())
	if room == nil {
		return "", errUnavailable
	}
	defer room.release()
	return room.sign(typ, claims)
}

// errNotSigned is the error of Verify. It does not say more, so that nothing of a JWT is logged.
var errNotSigned = errors.New("the JWT was not signed by this service")

// Verify decodes the claims of a JWT that this service has signed with that type, and returns its
// algorithm. The key may be the current one or a former one that is kept. It checks no claim: the
// JWT may have expired.
func (s *Service) Verify(jwt, typ string, claims any) (alg string, err error) {
	signed, err := jose.ParseSignedCompact(jwt, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil || signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType] != typ {
		return "", errNotSigned
	}
	header := &signed.Signatures[0].Header
	key := s.keys.verifier(header.KeyID, header.Algorithm, time.Now())
	if key == nil {
		return "", errNotSigned
	}
	payload, err := signed.Verify(key.public.Key)
	if err != nil {
		return "", errNotSigned
	}
	if err := json.Unmarshal(payload, claims); err != nil {
		return "", fmt.Errorf("decode claims: %w", err)
	}
	return key.alg, nil
}

// JWKS returns the public keys as a JSON Web Key Set (RFC 7517 section 5): those that sign, those
// that will, and former ones as long as what they signed may be valid.
func (s *Service) JWKS() []byte {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	now := time.Now()
	for _, purpose := range oauth.SigningPurposes {
		keys := s.keys.current.Load().signing[purpose]
		for i, key := range keys {
			if i == 0 || now.Before(keys[i-1].Starts.Add(s.accessLifetime()+JWKSMaxAge)) {
				set.Keys = append(set.Keys, key.public)
			}
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err) // public keys can be encoded
	}
	return text
}
