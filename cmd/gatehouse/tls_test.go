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
	"strings"
	"testing"
	"time"

	"gatehouse/providers/sqlstore/sqlitetest"
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
	t.Parallel()
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

// TestAdminOverTLS manages clients over TLS with a certificate of the operator. The settings are in
// a file.
func TestAdminOverTLS(t *testing.T) {
	t.Parallel()
	cert, key, _ := newCertificate(t)
	theirs, theirKey, _ := newCertificate(t)
	database := sqlitetest.URL(t)
	admin := decode[operator](t, runOnce(t, nil, "init", "--json", "--database-url="+database))
	p := start(t, nil, append([]string{"serve", "--roles=identity", "--database-url=" + database,
		"--admin-tls-cert=" + cert, "--admin-tls-key=" + key, "--admin-client-ca=" + theirs},
		anyPorts...)...)
	listen, adminListen := p.ready(t)
	settings := "database-url: " + database + "\nbase-url: http://" + listen +
		"\nadmin-url: https://" + adminListen + "\nclient-id: " + admin.ClientID +
		"\nclient-secret: " + admin.ClientSecret + "\n"
	trusting := settings + "ca: " + cert + "\n"
	for _, test := range []struct {
		name, file, want string
		args             []string
	}{
		{"client list", trusting + "client-cert: " + theirs + "\nclient-key: " + theirKey, "", nil},
		{"by flags", settings, "",
			[]string{"--ca=" + cert, "--client-cert=" + theirs, "--client-key=" + theirKey}},
		{"signer unknown", settings, "certificate", nil},
		{"no certificate", trusting, "certificate required", nil},
		{"another's certificate", trusting, "unknown certificate authority",
			[]string{"--client-cert=" + cert, "--client-key=" + key}},
		{"certificate without key", trusting, "client-key", []string{"--client-cert=" + theirs}},
		{"no certificates in the file", settings, "PEM", []string{"--ca=" + key}},
	} {
		args := append([]string{"client", "list", "--config", write(t, "a.yaml", test.file)},
			test.args...)
		got := runOnce(t, nil, args...)
		if test.want == "" && (got.code != exitDone || got.stderr != "") {
			t.Errorf("%s: got code %d, stderr %q, want 0", test.name, got.code, got.stderr)
		}
		if test.want != "" && (got.code == exitDone || !strings.Contains(got.stderr, test.want) ||
			strings.Count(got.stderr, "\n") != 1) {
			t.Errorf("%s: got code %d, stderr %q, want a line with %q", test.name, got.code,
				got.stderr, test.want)
		}
	}
	if response, err := newClient(t, "").Get("http://" + adminListen + "/healthz"); err == nil {
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("got 200 in the clear, want TLS alone")
		}
	}
}

// TestAdminBeyondLoopback serves others only over TLS or when told to.
func TestAdminBeyondLoopback(t *testing.T) {
	t.Parallel()
	cert, key, _ := newCertificate(t)
	for _, flags := range [][]string{
		{"--admin-insecure"}, {"--admin-insecure=true"}, {"--admin-tls-cert=" + cert, "--admin-tls-key=" + key},
	} {
		p := start(t, nil, append([]string{"serve", "--ip-provider=sim", "--listen=127.0.0.1:0",
			"--admin-listen=0.0.0.0:0"}, flags...)...)
		p.ready(t)
	}
}
