package httpedge

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// newTLSConfig returns a configuration with the certificate of a pair of PEM files, which must be
// valid now.
func newTLSConfig(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: c.get}, nil
}

const certificateCheck = time.Second // least time between two checks of the files

// certificate is a pair of files and the last valid certificate in them.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	seen    [2]version
	checked time.Time
}

// version tells whether a file has changed.
type version struct {
	modified time.Time
	size     int64
}

// get returns the certificate for a handshake. It checks the files when the last check is a second
// old. While they are invalid or do not match, it returns the old certificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= certificateCheck {
		c.checked = now
		c.refresh()
	}
	return c.pair, nil
}

func (c *certificate) refresh() {
	seen, err := c.versions()
	if err == nil && seen == c.seen {
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
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the TLS certificate: %w", err)
	}
	c.pair, c.seen = &pair, seen
	return nil
}

func (c *certificate) versions() (seen [2]version, err error) {
	for i, name := range [...]string{c.certFile, c.keyFile} {
		var info fs.FileInfo
		if info, err = os.Stat(name); err != nil {
			return seen, fmt.Errorf("read the TLS certificate: %w", err)
		}
		seen[i] = version{info.ModTime(), info.Size()}
	}
	return seen, nil
}
