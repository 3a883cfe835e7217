package messenger

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// mailServer is a real SMTP server on loopback.
type mailServer struct {
	t        *testing.T
	address  string
	password string // password of the user atlas; "" = no authentication
	refusal  error  // reply to every recipient; nil = accepted

	mu   sync.Mutex
	got  []mailed
	seen []string // commands AUTH and MAIL of all sessions
}

// mailed is a message that the server accepted.
type mailed struct {
	from, to, data string
	encrypted      bool
	hello          string
}

// testCertificate returns the certificate of httptest.
func testCertificate(t *testing.T) *tls.Config {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return &tls.Config{Certificates: server.TLS.Certificates}
}

// startMail runs a server, after change if that is not nil. With config it offers STARTTLS, or if
// implicit TLS from the start.
func startMail(t *testing.T, config *tls.Config, implicit bool,
	change func(*mailServer)) *mailServer {
	t.Helper()
	s := &mailServer{t: t}
	if change != nil {
		change(s)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = ln.Addr().String()
	server := smtp.NewServer(s)
	server.Domain, server.AllowInsecureAuth, server.ErrorLog = "mail.example.com", true, quiet{}
	if implicit {
		ln = tls.NewListener(ln, config)
	} else {
		server.TLSConfig = config
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close the mail server: %v", err)
		}
		if err := <-ended; err != nil && !errors.Is(err, smtp.ErrServerClosed) {
			t.Errorf("mail server: %v", err)
		}
	})
	return s
}

// quiet discards log lines: tests break connections.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// one returns the server's only message.
func (s *mailServer) one() mailed {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) != 1 {
		s.t.Fatalf("got %d messages, want 1", len(s.got))
	}
	return s.got[0]
}

// saw reports whether a client sent that command.
func (s *mailServer) saw(command string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.seen, command)
}

func (s *mailServer) note(command string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, command)
}

// NewSession implements smtp.Backend.
func (s *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, encrypted := c.TLSConnectionState()
	return &mailSession{server: s, signedIn: s.password == "",
		mailed: mailed{encrypted: encrypted, hello: c.Hostname()}}, nil
}

type mailSession struct {
	mailed
	server   *mailServer
	signedIn bool
}

// AuthMechanisms implements smtp.AuthSession.
func (s *mailSession) AuthMechanisms() []string {
	if s.server.password == "" {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth implements smtp.AuthSession.
func (s *mailSession) Auth(string) (sasl.Server, error) {
	s.server.note("AUTH")
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "atlas" || password != s.server.password {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8},
				Message: "wrong password " + password}
		}
		s.signedIn = true
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	s.server.note("MAIL")
	if !s.signedIn {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return s.server.refusal
}

func (s *mailSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.data = strings.ReplaceAll(string(data), "\r\n", "\n")
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.got = append(s.server.got, s.mailed)
	return nil
}

func (s *mailSession) Reset()        {}
func (s *mailSession) Logout() error { return nil }
