package oauth

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// longestRedirectURI is the maximum length of a registered redirect URI, in bytes.
const longestRedirectURI = 2000

// CheckRedirectURI returns an error for people to read, unless an operator may register uri. It must
// be absolute, with the scheme https, or http on 127.0.0.1, [::1] or localhost, or for a public
// client a private-use scheme (RFC 8252 section 7), which is none that browsers and systems act on.
// It must have no fragment (RFC 6749 section 3.1.2), user information or wildcard.
func CheckRedirectURI(uri string, public bool) error {
	if err := checkURICharacters(uri); err != nil {
		return err
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return errors.New("it is not a URI")
	case u.Scheme == "":
		return errors.New("it must be absolute, such as https://app.example/callback")
	case !strings.HasPrefix(uri, u.Scheme+":"):
		return errors.New("its scheme must be in lower case")
	case u.User != nil:
		return errors.New("it must not contain a user name or password")
	}
	if err := checkRedirectQuery(u); err != nil {
		return err
	}
	switch {
	case u.Scheme == "https":
		return checkHost(u)
	case u.Scheme == "http":
		return checkLocal(u)
	case isActedOn(u.Scheme):
		return errors.New("its scheme is one that browsers or systems act on: use https, http on loopback, or a scheme of the app's own, such as com.example.app:/callback")
	case !public:
		return errors.New("a private-use scheme is for public clients only")
	case !strings.HasPrefix(u.Path, "/") && u.Host == "":
		return errors.New("it must have a path after the scheme, such as com.example.app:/callback")
	}
	return nil
}

// isActedOn reports whether browsers or operating systems do something of their own with URIs of a
// scheme, so that no app can have it.
func isActedOn(scheme string) bool {
	switch scheme {
	case "http", "https", "javascript", "data", "file", "blob", "vbscript", "about", "ftp", "ws", "wss",
		"intent", "view-source", "search-ms":
		return true
	}
	return strings.HasPrefix(scheme, "ms-")
}

// ownSchemes are schemes without a dot that apps use which register themselves.
var ownSchemes = []string{"cursor", "vscode", "vscode-insiders", "windsurf", "zed"}

// CheckRedirectScheme returns an error for people to read, unless clients that register themselves
// may be allowed a private-use scheme.
func CheckRedirectScheme(scheme string) error {
	isOther := func(r rune) bool {
		return r >= 0x80 || !digit(byte(r)) && !letter(byte(r)) && !strings.ContainsRune("+-.", r)
	}
	switch {
	case scheme == "" || !letter(scheme[0]) || strings.ContainsFunc(scheme, isOther) ||
		scheme != strings.ToLower(scheme):
		return errors.New("must be the name of a scheme in lower case, such as myapp")
	case isActedOn(scheme):
		return errors.New("is a scheme that browsers or systems act on")
	}
	return nil
}

// checkOwnScheme returns an error for people to read, unless a client may register uri for itself: a
// scheme without a dot must be one of ownSchemes or of more, with an authority. CheckRedirectURI has
// accepted uri.
func checkOwnScheme(uri string, more []string) error {
	scheme, rest, _ := strings.Cut(uri, ":")
	switch {
	case scheme == "https" || scheme == "http" || strings.Contains(scheme, "."):
		return nil
	case !slices.Contains(ownSchemes, scheme) && !slices.Contains(more, scheme):
		return errors.New("its scheme has no dot, and is none that the operator allows to clients that register themselves")
	case !strings.HasPrefix(rest, "//"):
		return errors.New("it must begin with " + scheme + "://")
	case strings.Contains(rest, "?") || isCommand(rest):
		return errors.New("it is a command of the program that has this scheme, not its callback")
	}
	return nil
}

// isCommand reports whether what follows the scheme of an editor makes it open or install something,
// such as a folder on another machine.
func isCommand(rest string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	host = strings.ToLower(host)
	return host == "file" || host == "ssh" || host == "vscode.git" || host == "vscode-remote" ||
		strings.HasSuffix(host, "-deeplink")
}

// PrivateScheme returns the scheme of a registered redirect URI; "" = it is https or http.
func PrivateScheme(uri string) string {
	scheme, _, _ := strings.Cut(uri, ":")
	if scheme == "https" || scheme == "http" {
		return ""
	}
	return scheme
}

// Destination returns where a response to the request leads, for people: the origin of its redirect
// URI, or all of one with a private-use scheme, which may be a command of the program.
func (r *AuthorizationRequest) Destination() string {
	if PrivateScheme(r.RedirectURI) != "" {
		return r.RedirectURI
	}
	return RedirectOrigin(r.RedirectURI)
}

// checkURICharacters returns an error for characters that RFC 3986 does not allow, for fragments
// and for wildcards.
func checkURICharacters(uri string) error {
	if uri == "" || len(uri) > longestRedirectURI {
		return errors.New("it must have 1 to " + strconv.Itoa(longestRedirectURI) + " bytes")
	}
	for i := range len(uri) {
		switch c := uri[i]; {
		case c == '#':
			return errors.New("it must not have a fragment")
		case c == '*':
			return errors.New("it must not contain a wildcard")
		case c == '%' && (len(uri) < i+3 || !hexDigit(uri[i+1]) || !hexDigit(uri[i+2])):
			return errors.New("it contains a % without two hexadecimal digits after it")
		case !unreserved(c) && !strings.ContainsRune("%:/?[]@!$&'()+,;=", rune(c)):
			return errors.New("it contains a character that must be percent-encoded")
		}
	}
	return nil
}

func hexDigit(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// checkRedirectQuery rejects the parameters that authorization responses add.
func checkRedirectQuery(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("its query is malformed")
	}
	for _, name := range []string{"code", "state", "iss", "error", "error_description"} {
		if query.Has(name) {
			return errors.New("its query must not contain " + name + ", which the response adds")
		}
	}
	return nil
}

func checkHost(u *url.URL) error {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() || addr.Zone() != "" {
			return errors.New("its host is not an address")
		}
	} else if host == "" || strings.ContainsFunc(host, func(r rune) bool {
		return r >= 0x80 || !letter(byte(r)) && !digit(byte(r)) && r != '-' && r != '.' && r != '_'
	}) {
		return errors.New("its host is not a name or address")
	} else if _, err := netip.ParseAddr(host); err != nil && isNumeric(host) {
		return errors.New("its host is a number that browsers read as an address: write that as 192.0.2.1")
	}
	if port, found := strings.CutPrefix(u.Host[hostLength(u):], ":"); found && !validPort(port) {
		return errors.New("its port must be 1 to 65535")
	}
	return nil
}

// isNumeric reports whether browsers and some resolvers read a host as an IPv4 address: its last part
// is a number, also a hexadecimal one (WHATWG URL section 3.5).
func isNumeric(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return !strings.ContainsFunc(hex, func(r rune) bool { return !hexDigit(byte(r)) })
	}
	return last != "" && !strings.ContainsFunc(last, func(r rune) bool { return !digit(byte(r)) })
}

// hostLength returns the length of u.Host without the port.
func hostLength(u *url.URL) int {
	if end := strings.IndexByte(u.Host, ']'); end >= 0 {
		return end + 1
	}
	return len(u.Hostname())
}

func validPort(s string) bool {
	port, err := strconv.ParseUint(s, 10, 16)
	return err == nil && port > 0 && s[0] != '0'
}

func checkLocal(u *url.URL) error {
	if slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname()) {
		return checkHost(u)
	}
	return errors.New("http is for 127.0.0.1, [::1] and localhost only: use https")
}

// AllowsRedirect reports whether uri is registered for c, byte for byte. With LoopbackAnyPort the
// port after http://127.0.0.1 or http://[::1] may differ or be missing (RFC 8252 section 7.3). For a
// client that registered itself, that is so after http://localhost as well.
func (c *Client) AllowsRedirect(uri string) bool {
	if slices.Contains(c.RedirectURIs, uri) {
		return true
	}
	hosts := loopbackHosts
	switch {
	case c.Options.SelfRegistered:
		hosts = localHosts
	case !c.LoopbackAnyPort:
		return false
	}
	host, rest, ok := cutHost(uri, hosts)
	if !ok {
		return false
	}
	return slices.ContainsFunc(c.RedirectURIs, func(registered string) bool {
		h, r, ok := cutHost(registered, hosts)
		return ok && h == host && r == rest
	})
}

// cutLoopback splits an http URI on a loopback address into the parts before and after its port. If
// another host begins like a loopback address, its rest equals that of no registered URI.
func cutLoopback(uri string) (host, rest string, ok bool) { return cutHost(uri, loopbackHosts) }

var (
	loopbackHosts = []string{"http://127.0.0.1", "http://[::1]"}
	localHosts    = []string{"http://127.0.0.1", "http://[::1]", "http://localhost"}
)

// cutHost is cutLoopback with other hosts.
func cutHost(uri string, hosts []string) (host, rest string, ok bool) {
	for _, host := range hosts {
		rest, ok := strings.CutPrefix(uri, host)
		if !ok {
			continue
		}
		if port, found := strings.CutPrefix(rest, ":"); found {
			end := strings.IndexAny(port+"/", "/?")
			if !validPort(port[:end]) {
				return "", "", false
			}
			rest = port[end:]
		}
		return host, rest, true
	}
	return "", "", false
}

// impersonable reports whether any program on the user's machine could receive the redirect of a
// public client: its URI is on loopback or has a private-use scheme (RFC 8252 section 8.6).
func impersonable(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "https" {
		return true
	}
	return isThisComputer(u.Hostname())
}

// isThisComputer reports whether browsers reach the user's machine at a host. They read numbers as
// addresses, such as 127.1 and 0x7f000001 (WHATWG URL section 3.5).
func isThisComputer(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if number, ok := ipv4Number(host); err != nil && ok {
		addr = netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, number)))
	}
	addr = addr.Unmap()
	return addr.IsLoopback() || addr.IsUnspecified()
}

// ipv4Number returns the IPv4 address that browsers read in a host of up to four numbers: decimal,
// octal or hexadecimal, the last of which fills the rest of the address.
func ipv4Number(host string) (address uint32, ok bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return 0, false
	}
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 32 - 8*i
		}
		if strings.ContainsAny(part, "_bo") && !strings.HasPrefix(part, "0x") {
			return 0, false
		}
		n, err := strconv.ParseUint(part, 0, bits)
		if err != nil {
			return 0, false
		}
		address = address<<bits | uint32(n)
	}
	return address, true
}

// RedirectOrigin returns the origin of a registered redirect URI, for Content-Security-Policy and
// CORS: scheme, host and port, or the scheme and a colon if it is a private-use one.
func RedirectOrigin(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "":
		return ""
	case u.Scheme != "https" && u.Scheme != "http":
		return u.Scheme + ":"
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}
