package messenger

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"gatehouse/actors/account"
)

// Target is a destination of messages: log, an http or https URL, or an smtp, smtp+insecure or
// smtps URL. With the prefix sms= or email= it serves only that channel. The zero value is invalid.
type Target struct {
	scheme string   // log, http, https, smtp, smtp+insecure or smtps
	url    *url.URL // nil for log
	serves account.Channels
}

// Errors of an entry in the list of messengers. They do not quote the entry, which may contain a
// password.
var (
	errTarget   = errors.New("must be log, an https:// URL, smtp://HOST or smtps://HOST, with the prefix sms= or email= to serve one channel only")
	errChannel  = errors.New("must have the prefix sms= or email=, or none")
	errMailOnly = errors.New("must not send text messages by SMTP")
	errHost     = errors.New("must have a host, and a port from 1 to 65535 if any")
	errFragment = errors.New("must have no fragment")
	errClear    = errors.New("must be https, or http on loopback")
	errMailPath = errors.New("must have neither path nor query for SMTP")
	errLogin    = errors.New("must have a user and a password for SMTP, or neither")
)

// ParseTarget parses an entry of the list of messengers. Its error continues a sentence that begins
// with the entry's name.
func ParseTarget(text string) (Target, error) {
	t := Target{serves: account.Channels{SMS: true, Email: true}}
	if channel, rest, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(channel, ":/?@") {
		t.serves = account.Channels{SMS: channel == string(account.SMS),
			Email: channel == string(account.Email)}
		if t.serves == (account.Channels{}) {
			return Target{}, errChannel
		}
		text = rest
	}
	if text == "log" {
		t.scheme = text
		return t, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return Target{}, errTarget
	}
	t.scheme, t.url = u.Scheme, u
	switch u.Scheme {
	case "http", "https":
		return t, t.validateWebhook()
	case "smtp", "smtp+insecure", "smtps":
		if !t.serves.Email {
			return Target{}, errMailOnly
		}
		t.serves.SMS = false
		return t, t.validateMail()
	}
	return Target{}, errTarget
}

func (t Target) validateWebhook() error {
	switch {
	case !validHost(t.url):
		return errHost
	case t.url.Fragment != "":
		return errFragment
	case t.url.Scheme == "http" && !isLoopback(t.url.Hostname()):
		return errClear
	}
	return nil
}

func (t Target) validateMail() error {
	password, _ := t.url.User.Password()
	switch {
	case !validHost(t.url):
		return errHost
	case t.url.Fragment != "":
		return errFragment
	case t.url.Path != "" && t.url.Path != "/", t.url.RawQuery != "":
		return errMailPath
	case t.url.User != nil && (t.url.User.Username() == "" || password == ""):
		return errLogin
	}
	return nil
}

// validHost reports whether u has a host and, if any, a port from 1 to 65535.
func validHost(u *url.URL) bool {
	if u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
		return false
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// IsLog reports whether the target writes codes to the log.
func (t Target) IsLog() bool { return t.scheme == "log" }

// IsWebhook reports whether the target needs Config.Secret.
func (t Target) IsWebhook() bool { return t.scheme == "http" || t.scheme == "https" }

// IsMail reports whether the target needs Config.From.
func (t Target) IsMail() bool { return t.url != nil && !t.IsWebhook() }
