package httpedge_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// certificate writes a fresh pair for 127.0.0.1 to the files, one after the other.
func certificate(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	certificateUntil(t, name, time.Now().Add(time.Hour), certFile, keyFile)
}

func certificateUntil(t *testing.T, name string, ends time.Time, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stacktest.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: ends,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	stacktest.Must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	stacktest.Must(t, err)
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", keyDER)
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	stacktest.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}),
		0o600))
}

// presented returns the name in the certificate that a new connection is shown.
func presented(t *testing.T, address string, version uint16) (string, error) {
	t.Helper()
	conn, err := tls.Dial("tcp", address,
		&tls.Config{InsecureSkipVerify: true, MaxVersion: version, MinVersion: tls.VersionTLS10})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// TestEndOfCertificate: the log and a metric say when a certificate ends.
func TestEndOfCertificate(t *testing.T) {
	for _, test := range []struct {
		left  time.Duration
		level string // of the line in the log; "" = none
	}{{15 * 24 * time.Hour, ""}, {13 * 24 * time.Hour, "WARN"}, {-time.Hour, "ERROR"}} {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		ends := time.Now().Add(test.left)
		certificateUntil(t, "first", ends, certFile, keyFile)
		st := stacktest.NewLookups(t, func(c *stack.Config) { c.AdminCertFile, c.AdminKeyFile = certFile, keyFile })
		st.Client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true}
		want := fmt.Sprintf("gatehouse_certificate_not_after_seconds{use=\"admin\"} %v\n",
			float64(ends.Unix()))
		if got := st.Send(t, "GET", st.AdminURL+"/metrics", "").Body; !strings.Contains(got, want) {
			t.Errorf("got no %q in the metrics, want it", want)
		}
		lines := slices.Concat(st.Log.Records("the TLS certificate ends soon: renew it"),
			st.Log.Records("the TLS certificate has ended: clients refuse it"))
		if test.level == "" && len(lines) != 0 || test.level != "" &&
			(len(lines) != 1 || lines[0]["level"] != test.level || lines[0]["use"] != "admin") {
			t.Errorf("%v left: got %v, want one line at level %q", test.left, lines, test.level)
		}
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate(t, "first", certFile, keyFile)
	st := stacktest.NewLookups(t, func(c *stack.Config) { c.CertFile, c.KeyFile = certFile, keyFile })
	st.Client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}
	if a := st.Get(t, "/api/lookup?q=8.8.8.8"); a.Status != 200 {
		t.Errorf("got %d over TLS, want 200", a.Status)
	}
	a := st.Send(t, "POST", st.URL+"/api/bulk", strings.Repeat(" ", 600<<10), "Content-Type",
		"application/json")
	a.Fails(t, 413, "payload_too_large", "")
	address := strings.TrimPrefix(st.URL, "https://")
	if _, err := presented(t, address, tls.VersionTLS11); err == nil {
		t.Error("got a connection of TLS 1.1, want none")
	}
	if name, err := presented(t, address, tls.VersionTLS12); err != nil || name != "first" {
		t.Errorf("got %q and %v, want first", name, err)
	}

	stacktest.Must(t, os.WriteFile(certFile, []byte("half a file"), 0o600))
	await(t, "a warning", func() bool {
		return len(st.Log.Records(
			"the TLS certificate cannot be read again; the old one stays in use")) == 1
	}, address)
	if name, err := presented(t, address, 0); err != nil || name != "first" {
		t.Errorf("got %q and %v beside a broken file, want first", name, err)
	}
	later := time.NewTimer(1100 * time.Millisecond) // until the files are looked at again
	<-later.C
	if _, err := presented(t, address, 0); err != nil {
		t.Fatal(err)
	}
	if warnings := st.Log.Records(
		"the TLS certificate cannot be read again; the old one stays in use"); len(warnings) != 1 {
		t.Errorf("got %d warnings of one broken file, want 1", len(warnings))
	}
	certificate(t, "second", certFile, keyFile)
	await(t, "the new certificate", func() bool {
		name, err := presented(t, address, 0)
		return err == nil && name == "second"
	}, address)
	if strings.Contains(st.Log.String(), "127.0.0.1") {
		t.Errorf("got an address in the log: %s", st.Log)
	}
}

// await shakes hands with address until ok.
func await(t *testing.T, what string, ok func() bool, address string) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(stacktest.Patience); time.Now().Before(end); {
		if _, err := presented(t, address, 0); err != nil {
			t.Fatal(err)
		}
		if ok() {
			return
		}
		<-tick.C
	}
	t.Errorf("got no %s within %v", what, stacktest.Patience)
}

// A client that is silent, or speaks no TLS, holds up nobody.
func TestTLSWithBadClients(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate(t, "first", certFile, keyFile)
	st := stacktest.NewLookups(t, func(c *stack.Config) {
		c.CertFile, c.KeyFile, c.MaxConnections, c.ReadTimeout = certFile, keyFile, 3,
			300*time.Millisecond
	})
	address := strings.TrimPrefix(st.URL, "https://")
	var silent []net.Conn
	for range 5 { // more than are allowed
		conn, err := net.Dial("tcp", address)
		stacktest.Must(t, err)
		defer conn.Close()
		silent = append(silent, conn)
	}
	if _, err := silent[4].Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Log(err) // it may have been refused already
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(stacktest.Patience); time.Now().Before(end); {
		if _, err := presented(t, address, 0); err == nil {
			return
		}
		<-tick.C
	}
	t.Error("got no connection after silent clients came, want one")
}
