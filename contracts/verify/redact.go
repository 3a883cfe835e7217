package verify

import (
	"regexp"
	"slices"
	"strings"

	"gatehouse/contracts/matching"
	"gatehouse/contracts/report"
)

// secretName is a regular expression for the end of names whose values are secret.
const secretName = `(?:\b|_)(?:secret|password|code|code_verifier|assertion|token|id_token_hint|csrf|api_?key)`

// prefixed is a regular expression for the beginning of gatehouse's codes, tokens and client
// secrets, and of signed tokens.
const prefixed = `gt[a-z]{2}_|eyJ`

var (
	// secrets matches what is a secret wherever it is. The last alternative is a user code (RFC 8628
	// section 6.1).
	secrets = regexp.MustCompile(`\b(` + prefixed + `)[0-9A-Za-z_.-]+` +
		`|\b[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}\b`)
	// named match secret members and parameters: of a form or query, of JSON with a text or a number,
	// of JSON inside a JSON text, and of the inputs of a page. A text may be cut.
	named = []struct {
		pattern *regexp.Regexp
		kept    string
	}{
		{regexp.MustCompile(`(?i)(` + secretName + `=)(` + prefixed + `)?[^&"\s<>]+`), "${1}${2}…"},
		{regexp.MustCompile(`(?i)(` + secretName + `"\s*:\s*")(` + prefixed + `)?(?:[^"\\]|\\.)+`), "${1}${2}…"},
		{regexp.MustCompile(`(?i)(` + secretName + `\\?"\s*:\s*)-?[0-9][0-9.eE+-]*`), "${1}…"},
		{regexp.MustCompile(`(?i)(` + secretName + `\\"\s*:\s*\\")(` + prefixed +
			`)?(?:[^"\\]|\\\\(?:\\\\|\\"|[^\\"]))+`), "${1}${2}…"},
		{regexp.MustCompile(`(?i)(name=\\?"[^"]*` + secretName + `\\?"[^<>]*?value=\\?")[^"\\]*`), "${1}…"},
		{regexp.MustCompile(`(?i)(value=\\?")[^"\\]*(\\?"[^<>]*?name=\\?"[^"]*` + secretName + `\\?")`),
			"${1}…${2}"},
	}
	isSecret = regexp.MustCompile(`(?i)` + secretName + `$`)
	// secretHeader matches the names of headers with credentials, cookie the value of a cookie.
	secretHeader = regexp.MustCompile(`(?i)authorization$|cookie2?$|api-?key|token$|secret|password|^dpop$`)
	cookie       = regexp.MustCompile(`^([^=;\s]+=)[^;]*`)
	prefix       = regexp.MustCompile(`^"?(?:` + prefixed + `)?`)
)

// redacted returns text without codes, tokens and other secrets, by their form and by the names of
// members and parameters.
func redacted(s string) string {
	for _, n := range named {
		s = n.pattern.ReplaceAllString(s, n.kept)
	}
	return secrets.ReplaceAllString(s, "${1}…")
}

// headerValue returns the value of a header without credentials. It keeps what kind they are.
func headerValue(name, value string) string {
	if !secretHeader.MatchString(name) {
		return redacted(value)
	}
	if scheme, _, found := strings.Cut(value, " "); found && strings.HasSuffix(strings.ToLower(name), "authorization") {
		return scheme + " …"
	}
	if strings.EqualFold(name, "Set-Cookie") && cookie.MatchString(value) {
		return cookie.ReplaceAllString(value, "${1}…")
	}
	return "…"
}

// cleaned returns a problem without secrets. Its values are shortened.
func cleaned(p report.Problem) report.Problem {
	clean := redacted
	if name, ok := strings.CutPrefix(p.Where, "header "); ok && secretHeader.MatchString(name) {
		clean = func(value string) string { return headerValue(name, value) }
	} else if place, ok := strings.CutPrefix(p.Where, "body "); ok && leadsToSecret(place) {
		clean = func(value string) string { return prefix.FindString(value) + "…" }
	}
	for _, value := range []*string{&p.Expected, &p.Actual} {
		if slices.Contains([]string{"", `""`, "null", "true", "false", "{}", "[]"}, *value) {
			continue
		}
		bare := strings.Trim(*value, `"`)
		p.Reason = strings.ReplaceAll(p.Reason, bare, clean(bare)) // the library repeats values there
		*value = shortened(clean(*value))
	}
	p.Reason = redacted(p.Reason)
	return p
}

// leadsToSecret reports whether a path of a body has a name whose values are secret.
func leadsToSecret(place string) bool {
	path, err := matching.ParsePath(place)
	return err == nil && slices.ContainsFunc(path, func(s matching.Step) bool {
		return !s.IsIndex && isSecret.MatchString(s.Name)
	})
}
