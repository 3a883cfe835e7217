package main

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"gatehouse/actors/oauth"
)

// roles checks which services are offered.
func (v *values) roles(name string, texts []string) (identity, geo bool) {
	texts = trimmed(texts)
	v.effective[name] = strings.Join(texts, ",")
	for _, t := range texts {
		if t != "identity" && t != "geo" {
			texts = nil
			break
		}
	}
	if len(texts) == 0 {
		v.refuse(name, "must be identity, geo or both with a comma between them")
	}
	return slices.Contains(texts, "identity"), slices.Contains(texts, "geo")
}

// database checks a database URL. What may be its password is never shown.
func (v *values) database(name, text string) string {
	path, isFile := strings.CutPrefix(text, "sqlite:")
	server := strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
	switch {
	case isFile:
		v.effective[name] = text
	case server:
		v.effective[name] = redactURL(text)
	default:
		v.effective[name] = redacted
	}
	if !server && (!isFile || path == "" || strings.HasPrefix(path, "//")) {
		v.refuse(name, "must be sqlite: and the path of a file, or postgres://USER:PASSWORD@HOST/DATABASE")
	}
	if server {
		v.postgres(name, text)
	}
	return text
}

// postgres checks the URL of a PostgreSQL server. What its parser says quotes the URL, so that it is never passed on.
func (v *values) postgres(name, text string) {
	if _, err := url.Parse(text); err != nil {
		v.refuse(name, "must be a URL: special characters of a password are written as %%XX")
		return
	}
	if _, err := pgx.ParseConfig(text); err != nil {
		v.refuse(name, "must be a PostgreSQL URL with a port from 1 to 65535, an sslmode such as require or verify-full, and files that exist")
	}
}

// issuer checks the URL that clients know the service by (RFC 8414 section 2). One slash at its end is taken off.
func (v *values) issuer(name, text string) string {
	text = strings.TrimSuffix(text, "/")
	v.effective[name] = redactURL(text)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Opaque != "":
		v.refuse(name, "must be a URL such as https://id.example.com")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#") || u.Path != "":
		v.refuse(name, "must be a URL with no user, no path, no query and no fragment")
	case strings.HasSuffix(u.Host, ":"):
		v.refuse(name, "must have a port behind its colon, or no colon")
	case u.Port() != "" && !isHostPort(u.Host, 1):
		v.refuse(name, "must have a port from 1 to 65535")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		v.refuse(name, "must be https, or http on loopback")
	}
	return text
}

// lifetimes checks how long codes and tokens last, one by one and against each other.
func (v *values) lifetimes(s identitySettings) oauth.Lifetimes {
	const year = 365 * 24 * time.Hour
	l := oauth.Lifetimes{
		Code:          v.duration("code-ttl", s.CodeTTL, time.Second, 10*time.Minute),
		AccessToken:   v.duration("access-token-ttl", s.AccessTokenTTL, time.Second, 30*24*time.Hour),
		RefreshToken:  v.duration("refresh-token-ttl", s.RefreshTokenTTL, time.Second, 10*year),
		RefreshFamily: v.duration("refresh-family-ttl", s.RefreshFamilyTTL, time.Second, 10*year),
		RefreshGrace:  v.duration("refresh-grace", s.RefreshGrace, 0, 5*time.Minute),
	}
	switch {
	case l.RefreshFamily < l.RefreshToken:
		v.refuse("refresh-family-ttl", "must be at least refresh-token-ttl, which is %v", l.RefreshToken)
	case l.RefreshGrace >= l.RefreshToken:
		v.refuse("refresh-grace", "must be less than refresh-token-ttl, which is %v", l.RefreshToken)
	case l.AccessToken%time.Second != 0:
		v.refuse("access-token-ttl", "must be whole seconds")
	}
	return l
}

// scopes checks the scope that stands for none.
func (v *values) scopes(name, text string) oauth.Scopes {
	text = first(text, "none")
	v.effective[name] = text
	if text == "none" {
		return 0
	}
	scopes, err := oauth.ParseScopes(text)
	if err != nil || !oauth.UserScopes.Contains(scopes) {
		v.refuse(name, "must be none, or %s, or a part of that", oauth.UserScopes)
	}
	return scopes
}

// parameter checks the name of a parameter of the authorization endpoint.
func (v *values) parameter(name, text string) string {
	v.effective[name] = text
	taken := []string{"response_type", "client_id", "redirect_uri", "scope", "state", "prompt", "code_challenge", "code_challenge_method"}
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
	}
	if text == "" || len(text) > 64 || strings.ContainsFunc(text, odd) || slices.Contains(taken, text) {
		v.refuse(name, "must be up to 64 letters, digits, dots, hyphens and underscores, and no parameter that has a meaning already")
	}
	return text
}

// checkIssuer checks that clients can be told where the service is.
func (v *values) checkIssuer(c config) {
	if !c.Identity || c.BaseURL != "" || strings.HasPrefix(c.Listen, "unix:") {
		return
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && !isLoopback(host) {
		v.refuse("base-url", "must be given, since the public address is not on loopback")
	}
}
