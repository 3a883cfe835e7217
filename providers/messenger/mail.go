package messenger

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"gatehouse/actors/account"
)

var (
	errNoTLS = errors.New("the mail server offers no TLS")
	errAuth  = errors.New("the mail server offers no way to sign in that is known here: SCRAM-SHA-256, PLAIN or LOGIN")
)

const (
	mailTries     = 4               // at most, of one e-mail
	firstMailWait = 3 * time.Second // after the first try; it doubles with each, less up to half of it by chance
)

// post sends e-mails over SMTP (RFC 5321), one connection for each try.
type post struct {
	host, address string // name of the server; its host and port
	implicit      bool   // TLS from the start (RFC 8314)
	mustTLS       bool   // else what STARTTLS (RFC 3207) gives is taken, and who is at the other end is not checked (RFC 7435)
	login         *url.Userinfo
	from          *mail.Address
	service       string
	open          func(ctx context.Context) (net.Conn, error) // dial, unless a test has another
}

func newPost(t Target, from *mail.Address, service string) *post {
	port := t.url.Port()
	if port == "" {
		port = map[string]string{"smtps": "465"}[t.scheme]
	}
	if port == "" {
		port = "587" // submission (RFC 6409)
	}
	host := t.url.Hostname()
	p := &post{
		host: host, address: net.JoinHostPort(host, port), login: t.url.User, from: from, service: service,
		implicit: t.scheme == "smtps", mustTLS: t.scheme == "smtps" || t.scheme == "smtp" && !isLoopback(host),
	}
	p.open = p.dial
	return p
}

// Send hands m to the mail server. It tries again, with the same Message-ID, where the server answers that it cannot do so for now (RFC
// 5321 section 4.2.1: 4yz); anything else is final, also that nothing is known of what became of it.
func (p *post) Send(ctx context.Context, m account.Message) error {
	letter, err := p.compose(m)
	if err != nil {
		return err
	}
	for n := range mailTries {
		if err = p.deliver(ctx, letter); err == nil || letter.IsDelivered() {
			return nil
		}
		if code := replyCode(err); code < 400 || code > 499 || n+1 == mailTries || !pause(ctx, backOff(firstMailWait, n)) {
			break
		}
	}
	return fmt.Errorf("smtp: %w", mailKind(ctx, err))
}

func (p *post) compose(m account.Message) (*gomail.Msg, error) {
	said := compose(m, p.service)
	letter := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	letter.FromMailAddress(p.from)
	if err := letter.To(m.To); err != nil {
		return nil, errors.New("smtp: the address cannot be written in an e-mail")
	}
	letter.SetDate()
	letter.SetMessageIDWithValue(rand.Text() + "@" + heloName(p.service))
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: nobody answers it by machine
	letter.Subject(said.subject)
	letter.SetBodyString(gomail.TypeTextPlain, said.body)
	return letter, nil
}

// deliver sends letter on a connection of its own, which ends with ctx at the latest.
func (p *post) deliver(ctx context.Context, letter *gomail.Msg) error {
	conn, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	session, err := p.greet(conn)
	if err != nil {
		return err
	}
	sender, err := gomail.NewClient(p.host)
	if err != nil {
		return err
	}
	if err := sender.SendWithSMTPClient(session, letter); err != nil {
		return err
	}
	return session.Quit()
}

func (p *post) dial(ctx context.Context) (net.Conn, error) {
	if p.implicit {
		return (&tls.Dialer{Config: &tls.Config{ServerName: p.host}}).DialContext(ctx, "tcp", p.address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
}

// greet says hello, sets up TLS and signs in.
func (p *post) greet(conn net.Conn) (*smtp.Client, error) {
	session, err := smtp.NewClient(conn, p.host)
	if err != nil {
		return nil, err
	}
	if err := session.Hello(heloName(p.service)); err != nil {
		return nil, err
	}
	if !p.implicit {
		offered, _ := session.Extension("STARTTLS")
		if !offered && p.mustTLS {
			return nil, errNoTLS
		}
		if offered {
			if err := session.StartTLS(&tls.Config{ServerName: p.host, InsecureSkipVerify: !p.mustTLS}); err != nil {
				return nil, err
			}
		}
	}
	return session, p.signIn(session)
}

// signIn proves who sends, if there is a password.
func (p *post) signIn(session *smtp.Client) error {
	password, ok := p.login.Password()
	if !ok {
		return nil
	}
	user := p.login.Username()
	_, offered := session.Extension("AUTH")
	switch offered = " " + offered + " "; {
	case strings.Contains(offered, " SCRAM-SHA-256 "):
		return session.Auth(smtp.ScramSHA256Auth(user, password))
	case strings.Contains(offered, " PLAIN "):
		return session.Auth(smtp.PlainAuth("", user, password, p.host, !p.mustTLS))
	case strings.Contains(offered, " LOGIN "):
		return session.Auth(smtp.LoginAuth(user, password, p.host, !p.mustTLS))
	}
	return errAuth
}

// heloName is the service's host as SMTP wants it: a name without port, or an address in brackets (RFC 5321 section 4.1.3).
func heloName(service string) string {
	host := (&url.URL{Host: service}).Hostname()
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.Is6():
		return "[IPv6:" + host + "]"
	case err == nil:
		return "[" + host + "]"
	}
	return host
}

// mailKind returns what may be told of an error: never what the server said, which may quote the address.
func mailKind(ctx context.Context, err error) error {
	if errors.Is(err, errNoTLS) || errors.Is(err, errAuth) {
		return err
	}
	if code := replyCode(err); code > 0 {
		return fmt.Errorf("the mail server answered %d", code)
	}
	return kindOf(ctx, err)
}

// replyCode returns what the mail server answered; 0 = the error is none of its answers.
func replyCode(err error) int {
	var (
		refused *gomail.SendError
		reply   *textproto.Error
	)
	switch {
	case errors.As(err, &reply):
		return reply.Code
	case errors.As(err, &refused):
		return refused.ErrorCode()
	}
	return 0
}
