package messenger

import (
	"errors"
	"net/url"
	"strings"

	"gatehouse/actors/account"
	"gatehouse/providers/messenger/webhook"
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
		return t, webhook.CheckURL(t.url)
	case "smtp", "smtp+insecure", "smtps":
		if !t.serves.Email {
			return Target{}, errMailOnly
		}
		t.serves.SMS = false
		return t, t.validateMail()
	}
	return Target{}, errTarget
}

func (t Target) validateMail() error {
	password, _ := t.url.User.Password()
	switch {
	case !webhook.HasValidHost(t.url):
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

// IsLog reports whether the target writes codes to the log.
func (t Target) IsLog() bool { return t.scheme == "log" }

// IsWebhook reports whether the target needs Config.Secret.
func (t Target) IsWebhook() bool { return t.scheme == "http" || t.scheme == "https" }

// IsMail reports whether the target needs Config.From.
func (t Target) IsMail() bool { return t.url != nil && !t.IsWebhook() }
