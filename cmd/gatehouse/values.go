package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/messenger"
	"gatehouse/providers/messenger/trail"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/otlp"
	"gatehouse/providers/sim"
)

// This file has the type of each setting with the rule for its values. A rule's error says what the
// value must be; it is printed after the setting's name and value.

// settingTypes tells kong how the types of settings are read.
func settingTypes() []kong.Option {
	return []kong.Option{
		settingType(parseDuration), settingType(parseNumber), settingType(parseFraction),
		settingType(parseChoice), settingType(parseSecret),
		kong.TypeMapper(reflect.TypeFor[toggle](), toggleMapper{settingMapper(parseToggle)}),
		settingType(parseListenAddress), settingType(parseHostPort), settingType(parseNameServer),
		settingType(parsePrefixes), settingType(parseCountries), settingType(parseRedirectSchemes), settingType(parseDrafts),
		settingType(parseFiles), settingType(parseKeyFiles), settingType(parseMappingFile), settingType(parseUpdateSettings), settingType(parseKeyNames),
		settingType(parseNameLanguage),
		settingType(parseUpstreamURL), settingType(parseDatabaseURL), settingType(parseIssuerURL),
		settingType(parseRoles), settingType(parseCompat), settingType(parseScopes), settingType(parseParameterName),
		settingType(parseMessengers), settingType(parseMailAddress), settingType(parseFault), settingType(parseHookURL),
		settingType(parseOTLPURL), settingType(parseOTLPHeaders),
		settingType(parseAuditAction), settingType(parseSince),
		settingType(parseServiceName), settingType(parseLogoFile), settingType(parseMailLogoFile),
		settingType(parseAccentColor), settingType(parseSupportLink), settingType(parsePageLink),
		settingType(parseLanguageTag), settingType(parseHomePage), settingType(parseLanguageDir),
		settingType(parsePeerAddress), settingType(parseNodeName), settingType(parseEgressLabel),
		settingType(parseHostName),
	}
}

// settingType makes kong read a T by parse.
func settingType[T any](parse func(text string, tag *kong.Tag) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), settingMapper(parse))
}

// settingMapper reads a T by parse. A list grows with each flag that gives more of it. The tag holds
// the bounds of the setting.
func settingMapper[T any](parse func(text string, tag *kong.Tag) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("value", &text); err != nil {
			return err
		}
		parsed, err := parse(text, ctx.Value.Tag)
		if err != nil {
			return &settingError{ctx.Value.Name, shown[T](text), err}
		}
		value := reflect.ValueOf(parsed)
		if target.Kind() == reflect.Slice {
			value = reflect.AppendSlice(target, value)
		}
		target.Set(value)
		return nil
	}
}

// settingError is a setting that cannot be what it is. The command line's error names it as it was
// given.
type settingError struct {
	setting string // its name
	value   string // as it may be shown; "" = not at all
	must    error  // what it must be
}

// Error names the setting by its flag.
func (e *settingError) Error() string { return e.line("--" + e.setting) }

// line is the error of a setting that was given by that name.
func (e *settingError) line(name string) string {
	if e.value == "" {
		return fmt.Sprintf("%s: %v", name, e.must)
	}
	return fmt.Sprintf("%s %s: %v", name, e.value, e.must)
}

// refuse returns the error of a setting whose value does not go with others.
func refuse(setting string, value any, must string, args ...any) error {
	text := fmt.Sprint(value)
	if text != "" {
		text = strconv.Quote(text)
	}
	return &settingError{setting, text, fmt.Errorf(must, args...)}
}

// redacted stands for what must not be shown.
const redacted = "redacted"

// redacter is a type whose values may hold a secret.
type redacter interface {
	// redact returns what of a text may be shown, also when it is no value of the type; "" =
	// nothing.
	redact(text string) string
}

// shown returns a text that was given for a T as errors show it.
func shown[T any](text string) string {
	var zero T
	if secret, ok := any(zero).(redacter); ok {
		if text = secret.redact(text); text == "" {
			return ""
		}
	}
	return strconv.Quote(text)
}

// duration is a time with its unit, within the tags min and max.
type duration struct {
	time.Duration
	text string // as it was given
}

// String returns the duration as it was given.
func (d duration) String() string { return d.text }

func parseDuration(text string, tag *kong.Tag) (duration, error) {
	least, most := bound(tag, "min", time.ParseDuration), bound(tag, "max", time.ParseDuration)
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return duration{}, fmt.Errorf(
			"must be a time with its unit, such as 1500ms or 5s, from %v to %v", least, most)
	}
	return duration{d, text}, nil
}

// parseNumber reads a whole number within the tags min and max.
func parseNumber(text string, tag *kong.Tag) (int, error) {
	least, most := bound(tag, "min", strconv.Atoi), bound(tag, "max", strconv.Atoi)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
	}
	return n, nil
}

// bound returns the bound that a setting's tag names.
func bound[T any](tag *kong.Tag, name string, parse func(string) (T, error)) T {
	value, err := parse(tag.Get(name))
	if err != nil {
		panic(fmt.Sprintf("tag %s: %v", name, err)) // a mistake in the program
	}
	return value
}

// parseFraction reads a part of a whole. It may be 0 if the tag min says so.
func parseFraction(text string, tag *kong.Tag) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	nothing := tag.Get("min") == "0"
	switch {
	case err == nil && f > 0 && f <= 1, err == nil && f == 0 && nothing:
		return f, nil
	case nothing:
		return 0, errors.New("must be a number from 0 to 1")
	}
	return 0, errors.New("must be a number above 0 and at most 1")
}

// choice is one of the words of the tag oneof, in lower case.
type choice string

func parseChoice(text string, tag *kong.Tag) (choice, error) {
	words := strings.Fields(tag.Get("oneof"))
	if word := strings.ToLower(text); slices.Contains(words, word) {
		return choice(word), nil
	}
	last := len(words) - 1
	return "", fmt.Errorf("must be %s or %s", strings.Join(words[:last], ", "), words[last])
}

// toggle is true or false. A flag without a value is true.
type toggle bool

func parseToggle(text string, _ *kong.Tag) (toggle, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// toggleMapper lets a flag stand without a value.
type toggleMapper struct{ kong.Mapper }

// IsBool implements kong.BoolMapper.
func (toggleMapper) IsBool() bool { return true }

// Decode implements kong.Mapper.
func (m toggleMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		target.SetBool(true)
		return nil
	}
	return m.Mapper.Decode(ctx, target)
}

// secretText is never shown. It has as many characters as the tag min says; "" = there is none.
type secretText string

func (secretText) redact(string) string { return "" }

// String hides the secret.
func (s secretText) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

func parseSecret(text string, tag *kong.Tag) (secretText, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("must hold no spaces and nothing outside ASCII")
	}
	if text != "" && tag.Has("min") && len(text) < bound(tag, "min", strconv.Atoi) {
		return "", fmt.Errorf(
			"must have at least %s characters, such as openssl rand -hex 32 makes", tag.Get("min"))
	}
	return secretText(text), nil
}

// listenAddress is what httpedge.Listen takes.
type listenAddress string

func (a listenAddress) isSocket() bool { return strings.HasPrefix(string(a), "unix:") }

// isRemote reports whether other machines may reach the address.
func (a listenAddress) isRemote() bool {
	host, _, err := net.SplitHostPort(string(a))
	return !a.isSocket() && err == nil && !isLoopback(host)
}

func parseListenAddress(text string, _ *kong.Tag) (listenAddress, error) {
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		if path, _, _ := strings.Cut(socket, "?"); !isSocketPath(path) {
			return "", fmt.Errorf("must be unix: and a path of at most %d bytes", maxSocketPath)
		}
		return listenAddress(text), nil // the server reads the options
	}
	if !isHostPort(text, 0) {
		return "", errors.New(
			"must be HOST:PORT or unix:/path, the port from 0 (any free one) to 65535")
	}
	return listenAddress(text), nil
}

// maxSocketPath is the longest path of a Unix socket in bytes (unix(7): sun_path without its end).
const maxSocketPath = 107

func isSocketPath(path string) bool { return path != "" && len(path) <= maxSocketPath }

// hostPort is HOST:PORT to listen on.
type hostPort string

func parseHostPort(text string, _ *kong.Tag) (hostPort, error) {
	if !isHostPort(text, 0) {
		return "", errors.New("must be HOST:PORT, the port from 0 (any free one) to 65535")
	}
	return hostPort(text), nil
}

// peerAddress is the HOST:PORT where other machines reach this one; "" = as it listens.
type peerAddress string

func parsePeerAddress(text string, _ *kong.Tag) (peerAddress, error) {
	host, _, _ := net.SplitHostPort(text)
	if !isHostPort(text, 1) || isUnspecified(host) {
		return "", errors.New("must be the HOST:PORT where other nodes reach this one")
	}
	return peerAddress(text), nil
}

// isUnspecified reports whether a host is no certain one: it is missing, or means every address.
func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.Unmap().IsUnspecified()
}

// nodeName is the name of a node of a cluster for people; "" = it depends on the machine.
type nodeName string

func parseNodeName(text string, _ *kong.Tag) (nodeName, error) {
	if !isLabel(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_:") {
		return "", errors.New("must be up to 64 letters, digits, dots, colons, hyphens and underscores")
	}
	return nodeName(text), nil
}

// egressLabel names the address that a process asks the upstream from.
type egressLabel string

func parseEgressLabel(text string, _ *kong.Tag) (egressLabel, error) {
	if !isLabel(text, "") {
		return "", errors.New("must be up to 64 lower-case letters, digits, dots and hyphens")
	}
	return egressLabel(text), nil
}

// hostName is a domain in lower case.
type hostName string

func parseHostName(text string, _ *kong.Tag) (hostName, error) {
	if text = strings.ToLower(text); !isLabel(text, "") {
		return "", errors.New("must be a host name, such as example.com")
	}
	return hostName(text), nil
}

// isLabel reports whether text has 1 to 64 characters: lower-case letters, digits, dots, hyphens
// and more.
func isLabel(text, more string) bool {
	return text != "" && len(text) <= 64 && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-"+more, r)
	})
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

// nameServer is off, system or the HOST:PORT of a DNS server; "" = it depends on the provider.
type nameServer string

func parseNameServer(text string, _ *kong.Tag) (nameServer, error) {
	switch {
	case text == "", text == "off", text == "system":
	case !isHostPort(text, 1), strings.HasPrefix(text, ":"):
		return "", errors.New("must be off, system or a DNS server's HOST:PORT")
	}
	return nameServer(text), nil
}

// prefixes are CIDR prefixes, written with commas between them. An address alone is its own prefix.
type prefixes []netip.Prefix

// String returns the prefixes as they are written.
func (p prefixes) String() string { return joined(p, netip.Prefix.String) }

func parsePrefixes(text string, _ *kong.Tag) (prefixes, error) {
	var all prefixes
	for _, t := range list(text) {
		prefix, err := netip.ParsePrefix(t)
		if address, none := netip.ParseAddr(t); none == nil && address.Zone() == "" {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, errors.New("must be addresses or CIDR prefixes such as 10.0.0.0/8, " +
				"with commas between them")
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}

// countries are ISO 3166 codes, written with commas between them; none = all countries.
type countries []string

// String returns the codes as they are written.
func (c countries) String() string { return strings.Join(c, ",") }

func parseCountries(text string, _ *kong.Tag) (countries, error) {
	all := list(strings.ToUpper(text))
	for _, code := range all {
		if !account.IsCountry(code) {
			return nil, fmt.Errorf(
				"must be country codes such as DE,AT with commas between them; %q is none", code)
		}
	}
	return all, nil
}

// redirectSchemes are schemes of redirect URIs, written with commas between them.
type redirectSchemes []string

// String returns the schemes as they are written.
func (s redirectSchemes) String() string { return strings.Join(s, ",") }

func parseRedirectSchemes(text string, _ *kong.Tag) (redirectSchemes, error) {
	all := list(text)
	for _, scheme := range all {
		if err := oauth.CheckRedirectScheme(scheme); err != nil {
			return nil, fmt.Errorf("%q %w", scheme, err)
		}
	}
	return all, nil
}

// drafts are names of oauth.Drafts, written with commas between them.
type drafts []string

// String returns the names as they are written.
func (d drafts) String() string { return strings.Join(d, ",") }

func parseDrafts(text string, _ *kong.Tag) (drafts, error) {
	all := list(text)
	for _, name := range all {
		if !slices.Contains(oauth.Drafts, name) {
			return nil, fmt.Errorf("%q must be one of: %s", name, strings.Join(oauth.Drafts, ", "))
		}
	}
	return all, nil
}

// files are the names of files that exist, written with commas between them.
type files []string

// String returns the files as they are written.
func (f files) String() string { return strings.Join(f, ",") }

func parseFiles(text string, _ *kong.Tag) (files, error) {
	all := list(text)
	for _, path := range all {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("must be files that exist; %q is none", path)
		}
	}
	return all, nil
}

// mappingFile is a file that says where records of database files have their members.
type mappingFile struct {
	path    string
	mapping *mmdb.Mapping // nil = none
}

// String returns the file's name.
func (f mappingFile) String() string { return f.path }

func parseMappingFile(text string, _ *kong.Tag) (mappingFile, error) {
	if text == "" {
		return mappingFile{}, nil
	}
	mapping, err := mmdb.ReadMapping(text)
	return mappingFile{text, mapping}, err
}

// keyNames are names of API keys, written with commas between them.
type keyNames []string

// String returns the names as they are written.
func (n keyNames) String() string { return strings.Join(n, ",") }

func parseKeyNames(text string, _ *kong.Tag) (keyNames, error) { return list(text), nil }

// nameLanguage is a language of names in database files.
type nameLanguage string

var languageForm = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

func parseNameLanguage(text string, _ *kong.Tag) (nameLanguage, error) {
	if !languageForm.MatchString(text) {
		return "", errors.New("must be a language as the files have it, such as en, de or pt-BR")
	}
	return nameLanguage(text), nil
}

// list returns the parts of a comma list without the space around them and without empty ones.
func list(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// readCertificates returns the certificates in a PEM file.
func readCertificates(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return nil, fmt.Errorf("must be a file that can be read: %w", pathError.Err)
	}
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("must be a PEM file of certificates")
	}
	return pool, nil
}

func joined[T any](all []T, text func(T) string) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = text(v)
	}
	return strings.Join(texts, ",")
}

// upstreamURL is where the upstream is; "" = it depends on the provider.
type upstreamURL string

func (upstreamURL) redact(text string) string { return redactURL(text) }

func parseUpstreamURL(text string, _ *kong.Tag) (upstreamURL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil || !isHTTP(u):
		return "", fmt.Errorf("must be a URL such as %s", freeBase)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("must be a URL with no user, no query and no fragment")
	}
	return upstreamURL(text), nil
}

// isSafe reports whether a key may be sent there: by TLS, or on this machine.
func (u upstreamURL) isSafe() bool {
	parsed, err := url.Parse(string(u))
	return err == nil && (parsed.Scheme == "https" || isLoopback(parsed.Hostname()))
}

func isHTTP(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// redactURL hides the parts of a URL that may hold a secret, also in a text that is no URL.
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

// databaseURL is sqlite: and a path, or the URL of a PostgreSQL server.
type databaseURL string

// String hides what may be a password.
func (u databaseURL) String() string { return u.redact(string(u)) }

func (databaseURL) redact(text string) string {
	switch {
	case strings.HasPrefix(text, "sqlite:"):
		return text
	case isPostgres(text):
		return redactURL(text)
	}
	return redacted
}

func isPostgres(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// parseDatabaseURL passes on nothing of what PostgreSQL's parser says, since that quotes the URL.
func parseDatabaseURL(text string, _ *kong.Tag) (databaseURL, error) {
	if !isPostgres(text) {
		path, isFile := strings.CutPrefix(text, "sqlite:")
		if !isFile || path == "" || strings.HasPrefix(path, "//") {
			return "", errors.New("must be sqlite: and the path of a file, or " +
				"postgres://USER:PASSWORD@HOST/DATABASE")
		}
		return databaseURL(text), nil
	}
	if _, err := url.Parse(text); err != nil {
		return "", errors.New(
			"must be a URL: special characters of a password are written as %XX")
	}
	if _, err := pgx.ParseConfig(text); err != nil {
		return "", errors.New("must be a PostgreSQL URL with a port from 1 to 65535, an sslmode " +
			"such as require or verify-full, and files that exist")
	}
	return databaseURL(text), nil
}

// issuerURL is the URL that clients know the service by (RFC 8414 section 2), without a slash at
// its end; "" = that of the public listener.
type issuerURL string

func (issuerURL) redact(text string) string { return redactURL(text) }

func parseIssuerURL(text string, _ *kong.Tag) (issuerURL, error) {
	text = strings.TrimSuffix(text, "/")
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || !isHTTP(u) || u.Opaque != "":
		return "", errors.New("must be a URL such as https://id.example.com")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") ||
		u.Path != "":
		return "", errors.New("must be a URL with no user, no path, no query and no fragment")
	case strings.HasSuffix(u.Host, ":"):
		return "", errors.New("must have a port after its colon, or no colon")
	case u.Port() != "" && !isHostPort(u.Host, 1):
		return "", errors.New("must have a port from 1 to 65535")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "", errors.New("must be https, or http on loopback")
	}
	return issuerURL(text), nil
}

// roles are the services that a process offers.
type roles []string

// String returns the roles as they are written.
func (r roles) String() string { return strings.Join(r, ",") }

func parseRoles(text string, _ *kong.Tag) (roles, error) {
	all := list(text)
	unknown := func(role string) bool { return role != "identity" && role != "geo" }
	if len(all) == 0 || slices.ContainsFunc(all, unknown) {
		return nil, errors.New("must be identity, geo or both with a comma between them")
	}
	return all, nil
}

// compatNames are services whose clients gatehouse can serve.
type compatNames []string

// String returns the names as they are written.
func (c compatNames) String() string { return strings.Join(c, ",") }

func parseCompat(text string, _ *kong.Tag) (compatNames, error) {
	all := compatNames(list(text))
	unknown := func(name string) bool { return name != "ip-api" && name != "ipinfo" }
	if slices.ContainsFunc(all, unknown) {
		return nil, errors.New("must be ip-api, ipinfo or both with a comma between them")
	}
	return all, nil
}

// grantableScopes are scopes that a person can grant.
type grantableScopes struct{ oauth.Scopes }

// String returns the scopes, or none.
func (s grantableScopes) String() string {
	if s.Scopes == 0 {
		return "none"
	}
	return s.Scopes.String()
}

func parseScopes(text string, _ *kong.Tag) (grantableScopes, error) {
	if text == "" || text == "none" {
		return grantableScopes{}, nil
	}
	scopes, err := oauth.ParseScopes(text)
	if err != nil || !oauth.UserScopes.Contains(scopes) {
		return grantableScopes{}, fmt.Errorf("must be none, or %s, or a part of that",
			oauth.UserScopes)
	}
	return grantableScopes{scopes}, nil
}

// parameterName is the name of a parameter of the authorization endpoint.
type parameterName string

// authorizationParameters have a meaning already.
var authorizationParameters = []string{"response_type", "client_id", "redirect_uri", "scope",
	"state", "prompt", "code_challenge", "code_challenge_method"}

func parseParameterName(text string, _ *kong.Tag) (parameterName, error) {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("_-.", r)
	}
	if text == "" || len(text) > 64 || strings.ContainsFunc(text, odd) ||
		slices.Contains(authorizationParameters, text) {
		return "", errors.New("must be up to 64 letters, digits, dots, hyphens and underscores, " +
			"and no parameter that has a meaning already")
	}
	return parameterName(text), nil
}

// messengers are the ways to send codes to people, written with commas between them.
type messengers []messengerTarget

type messengerTarget struct {
	messenger.Target
	shown string
}

// String returns the ways without passwords.
func (m messengers) String() string {
	return joined(m, func(t messengerTarget) string { return t.shown })
}

// redact hides a password also when it is cut in two by a comma that should be written as %2C.
func (messengers) redact(text string) string { return redactURL(text) }

func (m messengers) targets() []messenger.Target {
	var all []messenger.Target
	for _, t := range m {
		all = append(all, t.Target)
	}
	return all
}

func parseMessengers(text string, _ *kong.Tag) (messengers, error) {
	var all messengers
	for _, t := range list(text) {
		target, err := messenger.ParseTarget(t)
		if err != nil {
			return nil, err
		}
		all = append(all, messengerTarget{target, redactURL(t)})
	}
	return all, nil
}

// hookURL is where a webhook's requests go; "" = there is none.
type hookURL string

// String hides what may be a password.
func (u hookURL) String() string { return u.redact(string(u)) }

func (hookURL) redact(text string) string { return redactURL(text) }

func parseHookURL(text string, _ *kong.Tag) (hookURL, error) {
	if text == "" {
		return "", nil
	}
	return hookURL(text), trail.CheckURL(text)
}

// otlpURL is where spans are sent; "" = nowhere.
type otlpURL string

func (otlpURL) redact(text string) string { return redactURL(text) }

// isSafe reports whether secrets may be sent there: by TLS, or on this machine.
func (u otlpURL) isSafe() bool { return upstreamURL(u).isSafe() }

func parseOTLPURL(text string, _ *kong.Tag) (otlpURL, error) {
	if text == "" {
		return "", nil
	}
	return otlpURL(text), otlp.CheckEndpoint(text)
}

// otlpHeaders are headers that go along with spans, as otlp.ParseHeaders reads them; "" = none.
type otlpHeaders string

func (otlpHeaders) redact(string) string { return "" }

// String hides the secrets.
func (h otlpHeaders) String() string { return secretText(h).String() }

func parseOTLPHeaders(text string, _ *kong.Tag) (otlpHeaders, error) {
	_, err := otlp.ParseHeaders(text)
	return otlpHeaders(text), err
}

// mailAddress is the address that e-mails are from; "" = there is none.
type mailAddress string

func parseMailAddress(text string, _ *kong.Tag) (mailAddress, error) {
	if text == "" {
		return "", nil
	}
	if _, err := messenger.ParseSender(text); err != nil {
		return "", err
	}
	return mailAddress(text), nil
}

// parseFault reads a fault of the simulator.
func parseFault(text string, _ *kong.Tag) (sim.Fault, error) { return sim.ParseFault(text) }
