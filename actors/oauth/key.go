package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// Purpose is what keys are for. The keys of each purpose rotate apart.
type Purpose string

// The purposes.
const (
	TokenKeys   Purpose = "tokens"   // seal access tokens
	FormKeys    Purpose = "forms"    // seal the forms of pages
	BrowserKeys Purpose = "browsers" // mark browsers as known to an account
	ClusterKeys Purpose = "cluster"  // certify the nodes of a cluster to each other
	FactorKeys  Purpose = "factors"  // seal the secrets of authenticator apps
	RS256Keys   Purpose = "rs256"    // sign id_tokens and other JWTs with RSA (RFC 7518 section 3.3)
	ES256Keys   Purpose = "es256"    // sign them with ECDSA on P-256 (RFC 7518 section 3.4)
)

// Purposes has all purposes in the order of all lists. The first key of each is made with the
// database.
var Purposes = []Purpose{
	TokenKeys, FormKeys, BrowserKeys, ClusterKeys, FactorKeys, RS256Keys, ES256Keys,
}

// SigningPurposes has those whose keys are pairs: others know the public half.
var SigningPurposes = []Purpose{RS256Keys, ES256Keys}

// IsSigning reports whether p is one of SigningPurposes.
func (p Purpose) IsSigning() bool { return slices.Contains(SigningPurposes, p) }

// IsKept reports whether keys of p are never deleted, since what they seal lasts as long as an
// account. A rotation seals it again under the new key.
func (p Purpose) IsKept() bool { return p == FactorKeys }

// How long what was made with a key is valid at most. For TokenKeys the configuration says so.
const (
	FormLifetime    = time.Hour            // FormKeys: from rendering a form to sending it
	BrowserLifetime = 365 * 24 * time.Hour // BrowserKeys: from a sign-in
	ClusterLifetime = 2 * 24 * time.Hour   // ClusterKeys: longer than a node's certificate
)

// Key is a secret key that a Store keeps. It prints without its value.
type Key struct {
	Purpose Purpose
	Number  uint16 // counts from 1 for each purpose
	Secret  [32]byte
	Private string // of a signing key, in place of Secret: PKCS #8 in DER
	Made    time.Time
	Starts  time.Time // when a signing key is first used, so that others know it by then
	Expires time.Time // zero = it is the current one
	// Needed is how long it is needed after its successor is in use: the longest that any process has
	// asked for. What was made with it before settings changed is valid for as long.
	Needed time.Duration
}

// String returns purpose and number.
func (k Key) String() string { return fmt.Sprintf("%s key %d", k.Purpose, k.Number) }

// KeyInfo describes a stored key without its value.
type KeyInfo struct {
	Purpose Purpose
	Number  uint16
	Made    time.Time
	Starts  time.Time // of a signing key: its first use
	Expires time.Time // zero = it is the current one
	File    string    // short name of the key file that it is wrapped under
}

// KeyRotation asks for a new key.
type KeyRotation struct {
	Purpose Purpose
	Now     time.Time
	Expires time.Time // when the key before it is no longer needed, unless its Needed says later
	Drop    bool      // drop all former keys at once, also when they are in use; not of signing keys

	Needed time.Duration // of the new key

	Private string    // of a signing key
	Starts  time.Time // of a signing key: its first use
}

// rsaBits is the length of RSA keys (RFC 7518 section 3.3 asks for 2048 at least).
const rsaBits = 2048

// NewPrivateKey returns a new key pair in the form of Key.Private. An RSA key may take a second.
func NewPrivateKey(purpose Purpose) (string, error) {
	var private any
	var err error
	if purpose == RS256Keys {
		private, err = rsa.GenerateKey(rand.Reader, rsaBits)
	} else {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return "", fmt.Errorf("make %s key: %w", purpose, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("encode %s key: %w", purpose, err)
	}
	return string(der), nil
}
