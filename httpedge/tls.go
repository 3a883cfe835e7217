package httpedge

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// newTLSConfig returns a configuration with the certificate of a pair of PEM files, which must be
// valid now. With clientCA, clients need a certificate that is signed by one in that file.
func newTLSConfig(certFile, keyFile, clientCA string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{files: []string{certFile, keyFile}, log: log}
	if clientCA != "" {
		c.files = append(c.files, clientCA)
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetConfigForClient: c.get}, nil
}

const certificateCheck = time.Second // least time between two checks of the files

// certificate is what a server shows to clients, and the last valid contents of its files.
type certificate struct {
	files []string // certificate, key and, if clients need certificates, those of their signers
	log   *slog.Logger

	mu      sync.Mutex
	config  *tls.Config
	seen    []version
	checked time.Time
}

// version tells whether a file has changed.
type version struct {
	modified time.Time
	size     int64
}

// get returns the configuration of a handshake. It checks the files when the last check is a second
// old. While they are invalid or do not match, the old contents count.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= certificateCheck {
		c.checked = now
		c.refresh()
	}
	return c.config, nil
}

func (c *certificate) refresh() {
	seen, err := c.versions()
	if err == nil && slices.Equal(seen, c.seen) {
		return
	}
	if err == nil {
		err = c.load()
	}
	if err != nil {
		c.seen = seen // logged once for each change
		c.log.Warn("the TLS certificate cannot be read again; the old one stays in use", "cause",
			err)
		return
	}
	c.log.Info("TLS certificate read again")
}

// load reads the files. It takes their versions first, so that the next check sees a change made
// meanwhile.
func (c *certificate) load() error {
	seen, err := c.versions()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.files[0], c.files[1])
	if err != nil {
		return fmt.Errorf("read the TLS certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{pair}}
	if len(c.files) > 2 {
		if config.ClientCAs, err = readSigners(c.files[2]); err != nil {
			return fmt.Errorf("read the certificates of clients' signers: %w", err)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.config, c.seen = config, seen
	return nil
}

func readSigners(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return pool, nil
}

func (c *certificate) versions() ([]version, error) {
	seen := make([]version, len(c.files))
	for i, name := range c.files {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("read the TLS certificate: %w", err)
		}
		seen[i] = version{info.ModTime(), info.Size()}
	}
	return seen, nil
}
