package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// values checks settings and gives them their types. It keeps the first error, so that a whole set can be read without
// asking after each. A method that refuses returns a value of no meaning.
type values struct {
	origins   map[string]origin
	effective map[string]string // what holds, by setting and as text that may be shown
	err       error
}

// redacted stands for the value of a secret.
const redacted = "redacted"

// given is the setting's name as it was given.
func (v *values) given(name string) string {
	o := v.origins[name]
	switch {
	case o.variable != "":
		return o.variable
	case o.file != "":
		return fmt.Sprintf("%s in %s", name, o.file)
	}
	return "--" + name
}

// refuse notes that the setting name cannot be what it is, and what it must be.
func (v *values) refuse(name, format string, args ...any) {
	if v.err != nil {
		return
	}
	must := fmt.Sprintf(format, args...)
	if s, _ := settingNamed(name); s.secret {
		v.err = usagef("%s: %s", v.given(name), must)
		return
	}
	v.err = usagef("%s %q: %s", v.given(name), v.effective[name], must)
}

func (v *values) oneOf(name, text string, allowed ...string) string {
	v.effective[name] = text
	for _, a := range allowed {
		if text == a {
			return text
		}
	}
	v.refuse(name, "must be %s or %s", strings.Join(allowed[:len(allowed)-1], ", "), allowed[len(allowed)-1])
	return ""
}

func (v *values) secret(name, text string) string {
	if text == "" {
		v.effective[name] = ""
		return ""
	}
	v.effective[name] = redacted
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		v.refuse(name, "must hold no spaces and nothing outside ASCII")
	}
	return text
}

func (v *values) number(name, text string, least, most int) int {
	v.effective[name] = text
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		v.refuse(name, "must be a whole number from %d to %d", least, most)
	}
	return n
}

func (v *values) share(name, text string) float64 {
	v.effective[name] = text
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(share) || share <= 0 || share > 1 {
		v.refuse(name, "must be a number above 0 and at most 1")
	}
	return share
}

func (v *values) duration(name, text string, least, most time.Duration) time.Duration {
	v.effective[name] = text
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		v.refuse(name, "must be a time with its unit, such as 1500ms or 5s, from %v to %v", least, most)
	}
	return d
}

func (v *values) level(name, text string) slog.Level {
	level := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	return level[v.oneOf(name, text, "debug", "info", "warn", "error")]
}

// maxSocketPath is how long the path of a Unix socket may be, in bytes (unix(7): sun_path less its end).
const maxSocketPath = 107

// address checks where to listen.
func (v *values) address(name, text string) string {
	v.effective[name] = text
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" || len(path) > maxSocketPath {
			v.refuse(name, "must be unix: and a path of at most %d bytes", maxSocketPath)
		}
		return text
	}
	if !isHostPort(text, 0) {
		v.refuse(name, "must be HOST:PORT or unix:/path, the port from 0 (any free one) to 65535")
	}
	return text
}

// hostPort checks where to listen on TCP.
func (v *values) hostPort(name, text string) string {
	v.effective[name] = text
	if !isHostPort(text, 0) {
		v.refuse(name, "must be HOST:PORT, the port from 0 (any free one) to 65535")
	}
	return text
}

// reverser checks who resolves reverse names.
func (v *values) reverser(name, text string) string {
	v.effective[name] = text
	if text != "off" && text != "system" && (!isHostPort(text, 1) || strings.HasPrefix(text, ":")) {
		v.refuse(name, "must be off, system or a DNS server's HOST:PORT")
	}
	return text
}

// isHostPort reports whether text is a host, possibly empty, and a port from least.
func isHostPort(text string, least uint64) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n < least {
		return false
	}
	return !strings.ContainsFunc(host, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("/@?#,", r)
	})
}

func (v *values) prefixes(name string, texts []string) []netip.Prefix {
	texts = trimmed(texts)
	v.effective[name] = strings.Join(texts, ",")
	var prefixes []netip.Prefix
	for _, t := range texts {
		prefix, err := netip.ParsePrefix(t)
		if err != nil {
			v.refuse(name, "must be CIDR prefixes such as 10.0.0.0/8, with commas between them")
			return nil
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes
}

func (v *values) files(name string, texts []string) []string {
	texts = trimmed(texts)
	v.effective[name] = strings.Join(texts, ",")
	for _, path := range texts {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			v.refuse(name, "must be files that exist; %q is none", path)
		}
	}
	return texts
}

// trimmed returns texts without the space around them and without the empty ones.
func trimmed(texts []string) []string {
	var kept []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// The public addresses of the upstream.
const (
	freeBase = "http://ip-api.com"
	proBase  = "https://pro.ip-api.com"
)

// base checks the address of the upstream that provider speaks to.
func (v *values) base(provider, text string) string {
	const name = "ip-api-base"
	text = first(text, map[string]string{"ip-api": freeBase, "ip-api-pro": proBase}[provider])
	v.effective[name] = redactURL(text)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		v.refuse(name, "must be a URL such as %s", freeBase)
		return ""
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		v.refuse(name, "must be a URL with no user, no query and no fragment")
	}
	if provider == "ip-api-pro" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		v.refuse(name, "must be https for ip-api-pro, or the key would travel in the clear")
	}
	return text
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// redactURL hides the parts of a URL that may hold a secret, also when it is none.
func redactURL(text string) string {
	text, _, cut := strings.Cut(text, "?")
	if cut {
		text += "?" + redacted
	}
	at := strings.LastIndex(text, "@")
	if at < 0 {
		return text
	}
	scheme, _, ok := strings.Cut(text[:at], "://")
	if !ok {
		return redacted + text[at:]
	}
	return scheme + "://" + redacted + text[at:]
}

// keyPair checks certificate and key for TLS.
func (v *values) keyPair(cert, key string) (string, string) {
	v.effective["tls-cert"], v.effective["tls-key"] = cert, key
	switch {
	case cert == "" && key == "":
	case key == "":
		v.refuse("tls-cert", "needs tls-key (GATEHOUSE_TLS_KEY) beside it")
	case cert == "":
		v.refuse("tls-key", "needs tls-cert (GATEHOUSE_TLS_CERT) beside it")
	default:
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			v.refuse("tls-cert", "must be a certificate that goes with tls-key: %v", err)
		}
	}
	return cert, key
}

// checkProvider checks what a provider needs.
func (v *values) checkProvider(c config) {
	switch {
	case c.Provider == "ip-api-pro" && c.Key == "":
		v.refuse("ip-provider", "needs the key of the commercial tier in IP_API_KEY (--ip-api-key)")
	case c.Provider == "mmdb" && len(c.MMDB) == 0:
		v.refuse("ip-provider", "needs the names of database files in IP_MMDB (--ip-mmdb)")
	}
}
