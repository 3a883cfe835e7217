package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"gatehouse/actors/oauth"
)

const (
	// leafLife is how long a certificate of a process is valid. It is replaced at half of it.
	leafLife = 24 * time.Hour
	// clockSkew is how far the clock of a node may be behind the clock of the node that it checks.
	clockSkew = time.Hour
	// presentAfter is the time between making a certificate and presenting it: by then the others
	// know its hash, and the authority that signed it.
	presentAfter = 10 * time.Second
)

var (
	errNoKeys      = errors.New("no key of the cluster's certificate authority")
	errCertificate = errors.New("want one certificate of a node")
)

// authority is the cluster's certificate authority. All nodes derive the same one from the same
// keys.
type authority struct {
	secrets [][32]byte // the current one first
	roots   *x509.CertPool
	ca      *x509.Certificate // the current one
	signer  crypto.Signer
}

// newAuthority derives the authorities of keys. The first one signs, and all are trusted.
func newAuthority(keys []oauth.Key) (*authority, error) {
	if len(keys) == 0 {
		return nil, errNoKeys
	}
	a := &authority{roots: x509.NewCertPool()}
	for i := range keys {
		ca, signer, err := deriveAuthority(&keys[i].Secret)
		if err != nil {
			return nil, fmt.Errorf("derive the certificate authority: %w", err)
		}
		if i == 0 {
			a.ca, a.signer = ca, signer
		}
		a.roots.AddCert(ca)
		a.secrets = append(a.secrets, keys[i].Secret)
	}
	return a, nil
}

// deriveAuthority returns the key pair of the authority of a secret, and its certificate. Nothing
// in them is random.
func deriveAuthority(secret *[32]byte) (*x509.Certificate, crypto.Signer, error) {
	seed, err := hkdf.Key(sha256.New, secret[:], nil, "gatehouse cluster authority 1",
		ed25519.SeedSize)
	if err != nil {
		return nil, nil, err
	}
	signer := ed25519.NewKeyFromSeed(seed)
	id := sha256.Sum256(signer.Public().(ed25519.PublicKey))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "gatehouse cluster " + hex.EncodeToString(id[:4])},
		NotBefore:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		// A certificate without a well-defined end (RFC 5280 section 4.1.2.5).
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		SubjectKeyId:          id[:20],
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(der)
	return ca, signer, err
}

// trusts reports whether the authority of a secret is one of a.
func (a *authority) trusts(secret *[32]byte) bool {
	for i := range a.secrets {
		if a.secrets[i] == *secret {
			return true
		}
	}
	return false
}

// isFor reports whether a is derived from keys.
func (a *authority) isFor(keys []oauth.Key) bool {
	if len(keys) != len(a.secrets) {
		return false
	}
	for i := range keys {
		if keys[i].Secret != a.secrets[i] {
			return false
		}
	}
	return true
}

// check returns an error unless raw is one certificate that a node may present at now. usage says
// on which side.
func (a *authority) check(raw []*x509.Certificate, usage x509.ExtKeyUsage, now time.Time) error {
	if len(raw) != 1 || raw[0].IsCA {
		return errCertificate
	}
	_, err := raw[0].Verify(x509.VerifyOptions{
		Roots: a.roots, Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

// leaf is a certificate of this process.
type leaf struct {
	tls.Certificate
	hash    string   // its SHA-256 in hexadecimal
	secret  [32]byte // of the authority that signed it
	present time.Time
	renew   time.Time
	expires time.Time
}

// issue makes a certificate for this process with a new key.
func (a *authority) issue(now time.Time) (*leaf, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: "gatehouse node"},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.ca, key.Public(), a.signer)
	if err != nil {
		return nil, err
	}
	l := &leaf{
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		hash:        hashOf(der), secret: a.secrets[0],
		present: now, renew: now.Add(leafLife / 2), expires: now.Add(leafLife),
	}
	return l, nil
}

// hashOf returns the SHA-256 of a certificate as the rows of nodes name it.
func hashOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// identity holds the certificates of this process and what it checks those of others against. Its
// methods may be called by many goroutines.
type identity struct {
	keys         func() []oauth.Key
	presentAfter time.Duration

	mu        sync.Mutex
	authority *authority
	leaves    []*leaf // the newest first; at most two
}

// newIdentity makes the first certificate. It is presented at once.
func newIdentity(keys func() []oauth.Key, now time.Time) (*identity, error) {
	id := &identity{keys: keys, presentAfter: presentAfter}
	return id, id.refresh(now)
}

// refresh reads the keys again, and replaces the certificate if it is half over, or if the
// authority has changed.
func (id *identity) refresh(now time.Time) error {
	keys := id.keys()
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.authority == nil || !id.authority.isFor(keys) {
		a, err := newAuthority(keys)
		if err != nil {
			return err
		}
		id.authority = a
	}
	if len(id.leaves) > 0 {
		if l := id.leaves[0]; now.Before(l.renew) && l.secret == id.authority.secrets[0] {
			return nil
		}
	}
	fresh, err := id.authority.issue(now)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	if len(id.leaves) > 0 {
		former := id.leaves[0]
		if now.Before(former.expires) && id.authority.trusts(&former.secret) {
			fresh.present = now.Add(id.presentAfter)
		}
		id.leaves = []*leaf{fresh, former}
	} else {
		id.leaves = []*leaf{fresh}
	}
	return nil
}

// hashes returns those of the certificates that the process may present, the newest first.
func (id *identity) hashes() []string {
	id.mu.Lock()
	defer id.mu.Unlock()
	list := make([]string, len(id.leaves))
	for i, l := range id.leaves {
		list[i] = l.hash
	}
	return list
}

// current returns the certificate to present at now.
func (id *identity) current(now time.Time) *leaf {
	id.mu.Lock()
	defer id.mu.Unlock()
	if l := id.leaves[0]; len(id.leaves) == 1 || !now.Before(l.present) {
		return l
	}
	return id.leaves[1]
}

// check is authority.check, with the keys read again first.
func (id *identity) check(raw []*x509.Certificate, usage x509.ExtKeyUsage, now time.Time) error {
	if err := id.refresh(now); err != nil {
		return err
	}
	id.mu.Lock()
	a := id.authority
	id.mu.Unlock()
	return a.check(raw, usage, now)
}
