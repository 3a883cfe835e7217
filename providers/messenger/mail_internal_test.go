package messenger

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"gatehouse/actors/account"
	"gatehouse/actors/brand"
	"gatehouse/actors/texts"
	"gatehouse/providers/messenger/webhook"
)

// atlas is the brand of the tests.
var atlas = brand.Brand{Name: "Atlas", Host: "id.example.com:8443",
	Support: "mailto:help@example.com", MailLogo: &brand.Image{Type: "image/png", Data: []byte("picture")}}

var resetCode = account.Message{Channel: account.Email, To: "ada@example.com",
	Kind: account.ResetCode, Code: "271828"}

// newTestMailer returns a mailer for rawURL. If address is not "", it connects there instead.
func newTestMailer(t *testing.T, rawURL, address string) *mailer {
	t.Helper()
	target, err := ParseTarget(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	from, err := ParseSender("Atlas <no-reply@example.com>")
	if err != nil {
		t.Fatal(err)
	}
	p := newMailer(target, from, Config{Brand: atlas})
	if address != "" {
		p.address = address
	}
	return p
}

func TestMailArrives(t *testing.T) {
	s := startMail(t, nil, false, nil)
	if err := newTestMailer(t, "smtp://"+s.address, "").Send(t.Context(), resetCode); err != nil {
		t.Fatal(err)
	}
	got := s.one()
	if got.from != "no-reply@example.com" || got.to != "ada@example.com" ||
		got.hello != "id.example.com" {
		t.Errorf("got mail from %q to %q after hello %q, want no-reply@example.com, ada@example.com and id.example.com",
			got.from, got.to, got.hello)
	}
	email, err := mail.ReadMessage(strings.NewReader(got.data))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From": `"Atlas" <no-reply@example.com>`, "To": "<ada@example.com>",
		"Subject":        "Your code for Atlas",
		"Auto-Submitted": "auto-generated",
		"User-Agent":     "",
	} {
		if got := email.Header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	if sent, err := email.Header.Date(); err != nil || time.Since(sent) > time.Minute {
		t.Errorf("got date %v, %v, want now", sent, err)
	}
	if id := email.Header.Get("Message-ID"); !strings.HasSuffix(id, "@id.example.com>") {
		t.Errorf("got id %q, want one of id.example.com", id)
	}
	found := map[string]string{}
	readParts(t, textproto.MIMEHeader(email.Header), email.Body, found)
	want := composer{"Atlas", "", texts.Default()}.compose(resetCode).body
	if strings.TrimSpace(strings.ReplaceAll(
		found["text/plain"], "\r\n", "\n")) != strings.TrimSpace(want) {
		t.Errorf("got body %q, want %q", found["text/plain"], want)
	}
	html := found["text/html"]
	if !strings.Contains(html, `src="cid:logo"`) || !strings.Contains(html, "Your code for Atlas is") ||
		!strings.Contains(html, "mailto:help@example.com") || strings.Contains(html, "http") {
		t.Errorf("got %q, want the code below the logo, and nothing from elsewhere", html)
	}
	if picture, err := base64.StdEncoding.DecodeString(strings.TrimSpace(
		found["image/png"])); err != nil || string(picture) != "picture" {
		t.Errorf("got the logo %q, %v, want it in the mail", found["image/png"], err)
	}
}

// readParts reads the parts of a mail into found, by their media type.
func readParts(t *testing.T, h textproto.MIMEHeader, body io.Reader, found map[string]string) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		found[kind] = string(text)
		return
	}
	for parts := multipart.NewReader(body, params["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		readParts(t, part.Header, part, found)
	}
}

// TestMailEncryption connects to loopback for the name example.com, which counts as a remote
// server.
func TestMailEncryption(t *testing.T) {
	login := func(s *mailServer) { s.password = "s3cr3t" }
	for _, test := range []struct {
		name             string
		url              string
		offers, implicit bool
		want             error // nil = it is delivered
		encrypted        bool
	}{
		{"smtp on loopback without TLS", "smtp://127.0.0.1", false, false, nil, false},
		{"smtp on loopback with TLS", "smtp://localhost", true, false, nil, true},
		{"smtp without TLS", "smtp://atlas:s3cr3t@example.com", false, false, errNoTLS, false},
		{"smtp with TLS", "smtp://atlas:s3cr3t@example.com", true, false, nil, true},
		{"smtp with a wrong certificate", "smtp://atlas:s3cr3t@example.org", true, false, webhook.ErrTLS, false},
		{"smtp+insecure without TLS", "smtp+insecure://atlas:s3cr3t@example.com", false, false, nil, false},
		{"smtp+insecure with a wrong certificate", "smtp+insecure://atlas:s3cr3t@example.org", true, false, nil, true},
		{"smtps", "smtps://atlas:s3cr3t@example.com", true, true, nil, true},
		{"smtps with a wrong certificate", "smtps://atlas:s3cr3t@example.org", true, true, webhook.ErrTLS, false},
		{"smtps without TLS", "smtps://atlas:s3cr3t@example.com", false, false, webhook.ErrTLS, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := login
			if !strings.Contains(test.url, "@") {
				change = nil
			}
			config := testCertificate(t)
			if !test.offers {
				config = nil
			}
			s := startMail(t, config, test.implicit, change)
			err := newTestMailer(t, test.url, s.address).Send(t.Context(), resetCode)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if test.want != nil {
				if s.saw("AUTH") || s.saw("MAIL") {
					t.Errorf("the client continued, want it to stop")
				}
				return
			}
			if got := s.one().encrypted; got != test.encrypted {
				t.Errorf("got encrypted %v, want %v", got, test.encrypted)
			}
		})
	}
}

func TestMailPorts(t *testing.T) {
	for url, want := range map[string]string{
		"smtp://mail.example.com":    "mail.example.com:587",
		"smtps://mail.example.com/":  "mail.example.com:465",
		"smtp+insecure://[::1]:2525": "[::1]:2525", "smtp://localhost:25": "localhost:25",
	} {
		if got := newTestMailer(t, url, "").address; got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}

// TestMailErrors checks that errors leave out the server's text, which may quote the message.
func TestMailErrors(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	refusing := startMail(t, nil, false, func(s *mailServer) {
		s.refusal = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1},
			Message: "no ada@example.com here"}
	})
	locked := startMail(t, nil, false, func(s *mailServer) { s.password = "another" })
	open := startMail(t, nil, false, nil)
	for _, test := range []struct{ name, url, want string }{
		{"connection refused", "smtp://" + nobody.Addr().String(), "cannot connect"},
		{"recipient refused", "smtp://" + refusing.address, "replied 550"},
		{"wrong password", "smtp://atlas:s3cr3t@" + locked.address, "replied 535"},
		{"missing password", "smtp://" + locked.address, "replied 502"},
		{"no authentication offered", "smtp://atlas:s3cr3t@" + open.address, "supports none of"},
	} {
		err := newTestMailer(t, test.url, "").Send(t.Context(), resetCode)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
			continue
		}
		for _, private := range []string{"ada@", "271828", "s3cr3t"} {
			if strings.Contains(err.Error(), private) {
				t.Errorf("%s: got %v, want no %s in it", test.name, err, private)
			}
		}
	}
}

// TestMailServerHangs stops replying after each of the commands.
func TestMailServerHangs(t *testing.T) {
	for _, silent := range []string{"EHLO", "MAIL", "DATA"} {
		quiet := false
		address, ended := serveOne(t, func(line string) (string, bool) {
			quiet = quiet || strings.HasPrefix(line, silent)
			return map[bool]string{true: "", false: "250 go on\r\n"}[quiet], true
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		err := newTestMailer(t, "smtp://"+address, "").Send(ctx, resetCode)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
			t.Errorf("silent after %q: got %v after %v, want %v", silent, err, time.Since(began),
				context.DeadlineExceeded)
		}
		cancel()
		<-ended
	}
}

// serveOne serves one client: it calls reply for each line, until reply returns false or the client
// disconnects. Then it closes the connection and ended.
func serveOne(t *testing.T, reply func(line string) (text string, stay bool)) (address string,
	ended chan struct{}) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "220 mail.example.com\r\n")
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			text, stay := reply(lines.Text())
			if !stay {
				return
			}
			io.WriteString(conn, text)
		}
	}()
	return ln.Addr().String(), ended
}

// TestMailDisconnectWithoutReply disconnects after the message without a reply to it.
func TestMailDisconnectWithoutReply(t *testing.T) {
	data, received := false, false
	address, ended := serveOne(t, func(line string) (string, bool) {
		switch {
		case line == "DATA":
			data = true
			return "354 go on\r\n", true
		case data && line == ".":
			data, received = false, true
		case data:
			return "", true
		case received:
			return "", false
		}
		return "250 go on\r\n", true
	})
	if err := newTestMailer(t, "smtp://"+address, "").Send(t.Context(), resetCode); err != nil {
		t.Errorf("got %v, want nil: the server has the message", err)
	}
	<-ended
}

// TestMailFailureClosesConnection waits until the client disconnects.
func TestMailFailureClosesConnection(t *testing.T) {
	address, ended := serveOne(t, func(string) (string, bool) { return "250 go on\r\n", true })
	if err := newTestMailer(t, "smtp://example.com", address).Send(t.Context(),
		resetCode); !errors.Is(err, errNoTLS) {
		t.Errorf("got %v, want errNoTLS", err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Error("the connection is still open, want it closed")
	}
}
