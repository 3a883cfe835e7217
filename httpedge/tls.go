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

// newCertificate reads a pair of PEM files. With clientCA, clients need a certificate that is
// signed by one in that file. use names the listener.
func newCertificate(use, certFile, keyFile, clientCA string, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: []string{certFile, keyFile}, log: log.With("use", use)}
	if clientCA != "" {
		c.files = append(c.files, clientCA)
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	c.warn(time.Now())
	return c, nil
}

// server returns the configuration of a listener.
func (c *certificate) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetConfigForClient: c.get}
}

// notAfter returns when the certificate ends, in seconds since 1970. It checks the files as get
// does.
func (c *certificate) notAfter() float64 {
	_, _ = c.get(nil) // it logs what is wrong
	c.mu.Lock()
	defer c.mu.Unlock()
	return float64(c.ends.Unix())
}

const (
	certificateCheck  = time.Second         // least time between two checks of the files
	certificateNotice = 14 * 24 * time.Hour // before its end, it is logged
	certificateRemind = 24 * time.Hour      // and again
)

// certificate is what a server shows to clients, and the last valid contents of its files.
type certificate struct {
	files []string // certificate, key and, if clients need certificates, those of their signers
	log   *slog.Logger

	mu      sync.Mutex
	config  *tls.Config
	seen    []version
	checked time.Time
	ends    time.Time // the first end of a certificate of the chain
	warned  time.Time
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
		c.warn(now)
	}
	return c.config, nil
}

// warn logs, once a day, that the certificate ends soon or has ended.
func (c *certificate) warn(now time.Time) {
	left := c.ends.Sub(now)
	if left > certificateNotice || now.Sub(c.warned) < certificateRemind {
		return
	}
	c.warned = now
	if left <= 0 {
		c.log.Error("the TLS certificate has ended: clients refuse it", "ended", c.ends)
		return
	}
	c.log.Warn("the TLS certificate ends soon: renew it", "ends", c.ends, "days",
		int(left/(24*time.Hour)))
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
	ends, err := firstEnd(pair.Certificate)
	if err != nil {
		return fmt.Errorf("read the TLS certificate: %w", err)
	}
	if !ends.Equal(c.ends) {
		c.warned = time.Time{}
	}
	c.config, c.seen, c.ends = config, seen, ends
	return nil
}

// firstEnd returns when the first certificate of a chain ends.
func firstEnd(chain [][]byte) (first time.Time, err error) {
	for i, der := range chain {
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			return first, err
		}
		if i == 0 || parsed.NotAfter.Before(first) {
			first = parsed.NotAfter
		}
	}
	return first, nil
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
