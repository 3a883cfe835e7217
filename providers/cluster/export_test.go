package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"

	"gatehouse/actors/oauth"
)

// What others may hold open.
const (
	MaxHandshakes = maxHandshakes
	MaxAsks       = maxAsks
	MaxMessage    = maxMessage
)

// The names that frames go by.
const (
	TargetName = targetName
	FrameType  = frameType
)

// Issue returns a certificate that the authority of keys has made at a time, and its hash.
func Issue(keys []oauth.Key, made time.Time) (tls.Certificate, string, error) {
	a, err := newAuthority(keys)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	l, err := a.issue(made)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	return l.Certificate, l.hash, nil
}

// Identity is what a process presents.
type Identity struct{ id *identity }

// NewIdentity makes an identity.
func NewIdentity(keys func() []oauth.Key, now time.Time) (Identity, error) {
	id, err := newIdentity(keys, now)
	return Identity{id}, err
}

// Refresh is called each second.
func (i Identity) Refresh(now time.Time) error { return i.id.refresh(now) }

// Hashes returns what the row names.
func (i Identity) Hashes() []string { return i.id.hashes() }

// Presents returns the hash of the certificate that is presented.
func (i Identity) Presents(now time.Time) string { return i.id.current(now).hash }

// Inspect returns the error that a message of another node causes, and whether b is a message.
func Inspect(b []byte, greeted bool) (m *remote.RemoteMessage, err error, ok bool) {
	m = &remote.RemoteMessage{}
	if proto.Unmarshal(b, m) != nil {
		return nil, nil, false
	}
	return m, inspect(m, greeted, actor.NewPID("127.0.0.1:7946", targetName)), true
}

// Open returns how many connections to the node are open or shaking hands.
func (n *Node) Open() int { return int(n.transport.shakes.open.Load()) }

// Check checks certificates against the authorities of keys.
func Check(keys []oauth.Key, certificates []*x509.Certificate, usage x509.ExtKeyUsage,
	now time.Time) error {
	a, err := newAuthority(keys)
	if err != nil {
		return err
	}
	return a.check(certificates, usage, now)
}

// AuthorityCertificate returns the certificate of the current authority.
func AuthorityCertificate(keys []oauth.Key) *x509.Certificate {
	a, err := newAuthority(keys)
	if err != nil {
		panic(err)
	}
	return a.ca
}
