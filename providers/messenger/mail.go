package messenger

import (
	"bytes"
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
	"gatehouse/actors/brand"
	"gatehouse/providers/messenger/webhook"
)

var (
	errNoTLS = errors.New("the mail server offers no TLS")
	errAuth  = errors.New("the mail server supports none of SCRAM-SHA-256, PLAIN and LOGIN")
)

const (
	mailAttempts     = 4               // limit for one e-mail
	firstMailBackoff = 3 * time.Second // longest wait after the first attempt; see backoff
)

// mailer sends e-mails over SMTP (RFC 5321). Each attempt uses a new connection.
type mailer struct {
	host, address string // name of the server; its host and port
	implicit      bool   // TLS from the start (RFC 8314)
	mustTLS       bool   // else TLS is opportunistic and unauthenticated (RFC 3207, RFC 7435)
	login         *url.Userinfo
	from          *mail.Address
	brand         brand.Brand
	writer        composer
	open          func(ctx context.Context) (net.Conn, error) // dial, or a test's function
}

func newMailer(t Target, from *mail.Address, c Config) *mailer {
	port := t.url.Port()
	if port == "" {
		port = map[string]string{"smtps": "465"}[t.scheme]
	}
	if port == "" {
		port = "587" // submission (RFC 6409)
	}
	host := t.url.Hostname()
	p := &mailer{
		host: host, address: net.JoinHostPort(host,
			port), login: t.url.User, from: from, brand: c.Brand,
		writer:   c.composer(),
		implicit: t.scheme == "smtps", mustTLS: t.scheme == "smtps" || t.scheme == "smtp" &&
			!webhook.IsLoopback(host),
	}
	p.open = p.dial
	return p
}

// Send sends m to the mail server. It retries, with the same Message-ID, only after a temporary
// failure (RFC 5321 section 4.2.1: 4yz). It does not retry when a connection breaks, because the
// server may have accepted the message.
func (p *mailer) Send(ctx context.Context, m account.Message) error {
	email, err := p.compose(m)
	if err != nil {
		return err
	}
	for n := range mailAttempts {
		if err = p.deliver(ctx, email); err == nil || email.IsDelivered() {
			return nil
		}
		if code := replyCode(err); code < 400 || code > 499 || n+1 == mailAttempts ||
			!pause(ctx, backoff(firstMailBackoff, n)) {
			break
		}
	}
	return fmt.Errorf("smtp: %w", mailKind(ctx, err))
}

func (p *mailer) compose(m account.Message) (*gomail.Msg, error) {
	text := p.writer.compose(m)
	email := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	email.FromMailAddress(p.from)
	if err := email.To(m.To); err != nil {
		return nil, errors.New("smtp: the address cannot be written in an e-mail")
	}
	email.SetDate()
	email.SetMessageIDWithValue(rand.Text() + "@" + heloName(p.brand.Host))
	email.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies
	email.SetGenHeader("Content-Language", text.language.Tag)
	email.Subject(text.subject)
	email.SetBodyString(gomail.TypeTextPlain, text.body)
	if logo := p.brand.MailLogo; logo != nil {
		email.EmbedReadSeeker("logo.png", bytes.NewReader(logo.Data),
			gomail.WithFileContentID("<"+logoID+">"), gomail.WithFileContentType("image/png"))
	}
	html, err := htmlOf(text, p.brand)
	if err != nil {
		return nil, err
	}
	email.AddAlternativeString(gomail.TypeTextHTML, html)
	return email, nil
}

// deliver sends email on a new connection, which is closed when ctx ends at the latest.
func (p *mailer) deliver(ctx context.Context, email *gomail.Msg) error {
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
	if err := sender.SendWithSMTPClient(session, email); err != nil {
		return err
	}
	return session.Quit()
}

func (p *mailer) dial(ctx context.Context) (net.Conn, error) {
	if p.implicit {
		return (&tls.Dialer{Config: &tls.Config{ServerName: p.host}}).DialContext(ctx, "tcp",
			p.address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
}

// greet sends EHLO, sets up TLS and authenticates.
func (p *mailer) greet(conn net.Conn) (*smtp.Client, error) {
	session, err := smtp.NewClient(conn, p.host)
	if err != nil {
		return nil, err
	}
	if err := session.Hello(heloName(p.brand.Host)); err != nil {
		return nil, err
	}
	if !p.implicit {
		offered, _ := session.Extension("STARTTLS")
		if !offered && p.mustTLS {
			return nil, errNoTLS
		}
		if offered {
			if err := session.StartTLS(&tls.Config{ServerName: p.host,
				InsecureSkipVerify: !p.mustTLS}); err != nil {
				return nil, err
			}
		}
	}
	return session, p.authenticate(session)
}

// authenticate authenticates to the mail server, if a password is configured.
func (p *mailer) authenticate(session *smtp.Client) error {
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

// heloName returns the issuer's host in SMTP form: a name without port, or an address in brackets
// (RFC 5321 section 4.1.3).
func heloName(issuer string) string {
	host := (&url.URL{Host: issuer}).Hostname()
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.Is6():
		return "[IPv6:" + host + "]"
	case err == nil:
		return "[" + host + "]"
	}
	return host
}

// mailKind returns the kind of an error. It leaves out the server's text, which may quote the
// address.
func mailKind(ctx context.Context, err error) error {
	if errors.Is(err, errNoTLS) || errors.Is(err, errAuth) {
		return err
	}
	if code := replyCode(err); code > 0 {
		return fmt.Errorf("the mail server replied %d", code)
	}
	return webhook.KindOf(ctx, err)
}

// replyCode returns the mail server's reply code; 0 = the error is not a reply.
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
