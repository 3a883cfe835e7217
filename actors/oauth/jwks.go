package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"

	"github.com/go-jose/go-jose/v4"
)

// The sizes of RSA keys of clients, in bits. Larger ones cost too much time to check.
const (
	leastRSA = 2048
	mostRSA  = 4096
)

// CheckJWKS returns an error for operators to read, unless text is a set of public keys that sign
// assertions of a client (RFC 7517 section 5): RSA for RS256, or P-256 for ES256.
func CheckJWKS(text string) error {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch {
	case len(text) > longestJWKS:
		return errors.New("it must have at most 8192 bytes")
	case json.Unmarshal([]byte(text), &set) != nil || len(set.Keys) == 0:
		return errors.New("it must be a JSON object with a list of keys (RFC 7517)")
	case len(set.Keys) > MostClientKeys:
		return errors.New("a client can have at most 5 keys")
	}
	for _, key := range set.Keys {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	return nil
}

func checkKey(text json.RawMessage) error {
	var key jose.JSONWebKey
	if err := key.UnmarshalJSON(text); err != nil || !key.Valid() {
		return errors.New("a key is malformed, or of a kind that is not supported")
	}
	if !key.IsPublic() {
		return errors.New("it must hold public keys only: keep private and symmetric keys to yourself")
	}
	if key.Use != "" && key.Use != "sig" {
		return errors.New("each key must be for signatures")
	}
	alg := ""
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < leastRSA || bits > mostRSA {
			return errors.New("an RSA key must have 2048 to 4096 bits")
		}
		alg = "RS256"
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return errors.New("an elliptic key must be on the curve P-256")
		}
		alg = "ES256"
	}
	if alg == "" || key.Algorithm != "" && key.Algorithm != alg {
		return errors.New("each key must be for RS256 or ES256")
	}
	return nil
}
