package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// newCertificate writes a certificate for 127.0.0.1 and its key, and returns their paths and a pool
// that trusts it.
func newCertificate(t *testing.T) (cert, key string, trusted *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(),
		private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER})
	trusted = x509.NewCertPool()
	trusted.AppendCertsFromPEM(certPEM)
	return write(t, "cert.pem", string(certPEM)),
		write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
			Bytes: keyDER}))), trusted
}

func TestDemoOverTLS(t *testing.T) {
	cert, key, trusted := newCertificate(t)
	dir := filepath.Join(t.TempDir(), "demo")
	p := start(t, []string{"GATEHOUSE_TLS_CERT=" + cert},
		append([]string{"demo", "--dir", dir, "--tls-key", key}, anyPorts...)...)
	p.stderr.await(t, "msg=serving")
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	status, body := get(t, &http.Client{Transport: transport, Timeout: waitTimeout},
		readDemo(t, dir).BaseURL+"/api/lookup?q=8.8.8.8")
	if status != http.StatusOK {
		t.Errorf("got %d %s, want 200 over TLS", status, body)
	}
}
