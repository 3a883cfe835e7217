package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// Limits of what others may hold open at this node.
const (
	maxHandshakes     = 64
	maxHandshakesEach = 8 // of one address
	maxConnections    = 512
	handshakeTimeout  = 5 * time.Second
)

var (
	errUnknownCertificate = errors.New("no row of a node names the certificate")
	errTooMany            = errors.New("too many connections")
)

// handshakes are the credentials of the connections in both directions: mutual TLS 1.3 with
// certificates that the rows of nodes name.
type handshakes struct {
	id *identity
	// known reports whether a node has the certificate with that hash, at that address; "" = any.
	known func(hash, address string) bool
	// isNode reports whether the row of a node names an IP address.
	isNode  func(netip.Addr) bool
	refused func(error)

	// Connections to this node.
	shaking shaking
	open    atomic.Int64
}

// config returns the settings of one side of a connection.
func (h *handshakes) config(usage x509.ExtKeyUsage, address string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAnyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &h.id.current(time.Now()).Certificate, nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &h.id.current(time.Now()).Certificate, nil
		},
		// VerifyConnection checks the chain against the authorities of the moment, and the hash
		// instead of a name.
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			certificates := state.PeerCertificates
			if err := h.id.check(certificates, usage, time.Now()); err != nil {
				return err
			}
			if !h.known(hashOf(certificates[0].Raw), address) {
				return errUnknownCertificate
			}
			return nil
		},
	}
}

// ClientHandshake implements credentials.TransportCredentials. The certificate must be the one of a
// node at address.
func (h *handshakes) ClientHandshake(ctx context.Context, address string, conn net.Conn) (
	net.Conn, credentials.AuthInfo, error) {
	inner := credentials.NewTLS(h.config(x509.ExtKeyUsageServerAuth, address))
	secure, info, err := inner.ClientHandshake(ctx, address, conn)
	if err != nil {
		h.refused(err)
	}
	return secure, info, err
}

// ServerHandshake implements credentials.TransportCredentials.
func (h *handshakes) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if h.open.Load() >= maxConnections {
		h.refused(errTooMany)
		return nil, nil, errTooMany
	}
	h.open.Add(1)
	counted := &countedConn{Conn: conn, open: &h.open}
	own := h.shaking.add(counted, h.isNode)
	inner := credentials.NewTLS(h.config(x509.ExtKeyUsageClientAuth, ""))
	secure, info, err := inner.ServerHandshake(counted)
	if !h.shaking.end(own) {
		err = errTooMany
	}
	if err != nil {
		_ = counted.Close()
		h.refused(err)
		return nil, nil, fmt.Errorf("handshake: %w", err)
	}
	return secure, info, nil
}

// Info implements credentials.TransportCredentials.
func (h *handshakes) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (h *handshakes) Clone() credentials.TransportCredentials { return h }

// OverrideServerName implements credentials.TransportCredentials. The name counts for nothing.
func (h *handshakes) OverrideServerName(string) error { return nil }

// countedConn counts itself as open until it is closed.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
