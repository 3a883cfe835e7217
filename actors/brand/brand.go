// Package brand says whose service people see: name, logo, colour and links. It checks what an
// operator gives, so that nothing is served that could run, and that text can be read on it.
package brand

import (
	"cmp"
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of a service, in characters: it has room in a text message.
const MaxName = 40

// Brand is the face of a service. The zero value has neither logo nor links, and the default colour.
type Brand struct {
	Name     string // for people; "" = the host of the issuer
	Host     string // of the issuer, perhaps with a port; "" = not known
	Logo     *Image // of pages; nil = none
	MailLogo *Image // of mails, a PNG; nil = none
	Color    Color  // accent
	// Support is an https or mailto URL, Terms and Privacy are https URLs; "" = none.
	Support, Terms, Privacy string
}

// Of returns b for the service at issuer, a base URL; "" = not known.
func (b Brand) Of(issuer string) Brand {
	_, b.Host, _ = strings.Cut(issuer, "://")
	b.Name = cmp.Or(b.Name, b.Host, "gatehouse")
	return b
}

// Initial returns the first letter or digit of the name, as a capital; "" = there is none.
func (b Brand) Initial() string {
	for _, r := range b.Name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return ""
}

// ParseName checks the name of a service.
func ParseName(text string) (string, error) {
	unfit := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.Is(unicode.Zl, r) }
	if name := strings.TrimSpace(text); name == "" || utf8.RuneCountInString(text) > MaxName ||
		name != text || !utf8.ValidString(text) || strings.ContainsFunc(text, unfit) {
		return "", errors.New("must be a name such as Atlas, in one line of at most 40 characters")
	}
	return text, nil
}

// ParseLink checks the URL of a page, or with mail also of an address.
func ParseLink(text string, mail bool) (string, error) {
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil {
		return u.String(), nil
	}
	if mail && err == nil && u.Scheme == "mailto" && strings.Contains(u.Opaque, "@") {
		return u.String(), nil
	}
	if mail {
		return "", errors.New("must be https://… or mailto:help@example.com")
	}
	return "", errors.New("must be the address of a page, https://…")
}
