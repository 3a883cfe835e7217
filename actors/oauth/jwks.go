package oauth

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// The sizes of RSA keys of clients, in bits, and their exponent. With larger ones, a check of a
// signature costs many times as much.
const (
	leastRSA    = 2048
	mostRSA     = 4096
	rsaExponent = 65537
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
	var keys []jose.JSONWebKey
	for _, text := range set.Keys {
		key, err := parseKey(text)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	_, err := withKeyIDs(keys)
	return err
}

// mostFetchedKeys is how many keys of a set that a client serves are used.
const mostFetchedKeys = 10

// ParseJWKS returns the keys of a set that check assertions of a client. It leaves out all others,
// such as those for encryption. refused says why a key for signatures was left out; nil = none was.
func ParseJWKS(text []byte) (keys []jose.JSONWebKey, refused, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, nil, errors.New("it must be a JSON object with a list of keys (RFC 7517)")
	}
	for _, text := range set.Keys {
		key, err := parseKey(text)
		switch {
		case err == nil && len(keys) < mostFetchedKeys:
			keys = append(keys, key)
		case err == nil:
			refused = cmp.Or(refused, errors.New("of a set, the first 10 keys for signatures are used"))
		case key.Use != "enc":
			refused = cmp.Or(refused, err)
		}
	}
	keys, err = withKeyIDs(keys)
	return keys, cmp.Or(refused, err), nil
}

// withKeyIDs returns the keys that an assertion can name: of several, those with a key ID that no
// other has. Else each assertion could make the service try all of them. The error says why others
// were left out.
func withKeyIDs(keys []jose.JSONWebKey) (named []jose.JSONWebKey, err error) {
	if len(keys) < 2 {
		return keys, nil
	}
	for _, key := range keys {
		switch isSame := func(k jose.JSONWebKey) bool { return k.KeyID == key.KeyID }; {
		case key.KeyID == "":
			err = errors.New("each of several keys must have a kid")
		case slices.ContainsFunc(named, isSame):
			err = errors.New("each of several keys must have a kid of its own")
		default:
			named = append(named, key)
		}
	}
	return named, err
}

var errRSABits = errors.New("an RSA key must have 2048 to 4096 bits")

func isLargeRSA(text json.RawMessage) bool {
	var key struct {
		Kind    string `json:"kty"`
		Modulus string `json:"n"`
	}
	return json.Unmarshal(text, &key) == nil && key.Kind == "RSA" &&
		base64.RawURLEncoding.DecodedLen(len(key.Modulus)) > mostRSA/8
}

func checkRSA(k *rsa.PublicKey) error {
	switch bits := k.N.BitLen(); {
	case bits < leastRSA || bits > mostRSA:
		return errRSABits
	case k.N.Bit(0) == 0:
		return errors.New("an RSA key must have an odd modulus: this one is no product of two primes")
	case k.E != rsaExponent:
		return errors.New("an RSA key must have the exponent 65537 (AQAB)")
	}
	return nil
}

func parseKey(text json.RawMessage) (key jose.JSONWebKey, err error) {
	if err := key.UnmarshalJSON(text); err != nil || !key.Valid() {
		if isLargeRSA(text) { // which the decoder refuses
			return key, errRSABits
		}
		return key, errors.New("a key is malformed, or of a kind that is not supported")
	}
	if !key.IsPublic() {
		return key, errors.New("it must hold public keys only: keep private and symmetric keys to yourself")
	}
	if key.Use != "" && key.Use != "sig" {
		return key, errors.New("each key must be for signatures")
	}
	alg := ""
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		if err := checkRSA(k); err != nil {
			return key, err
		}
		alg = "RS256"
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return key, errors.New("an elliptic key must be on the curve P-256")
		}
		alg = "ES256"
	}
	if alg == "" || key.Algorithm != "" && key.Algorithm != alg {
		return key, errors.New("each key must be for RS256 or ES256")
	}
	return key, nil
}
