package account

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// letterOrDigit reports whether c is an ASCII letter or digit.
func letterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// emailProblem allows dot-atom "@" domain (RFC 5321 section 4.1.2), but no quoted local part,
// address literal or single-label domain. Like all problem functions it returns the zero problem for
// a valid value.
func emailProblem(s string) problem {
	not := problem{message: "is not an email address", rule: "email_form"}
	local, domain, found := strings.Cut(s, "@")
	switch {
	case len(s) > 254:
		return tooLong(254)
	case !found || len(local) > 64 || !dotAtom(local) || !hostname(domain):
		return not
	}
	return problem{}
}

func dotAtom(s string) bool {
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return false
		}
		for i := range len(atom) {
			if !letterOrDigit(atom[i]) && !strings.Contains("!#$%&'*+-/=?^_`{|}~", atom[i:i+1]) {
				return false
			}
		}
	}
	return true
}

// hostname reports whether s has at least two labels of letters, digits and hyphens, and the last
// label is not a number.
func hostname(s string) bool {
	labels := strings.Split(s, ".")
	if len(labels) < 2 || len(s) > 253 {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !letterOrDigit(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// phoneProblem allows E.164: a plus sign and 7 to 15 digits, the first not 0.
func phoneProblem(s string) problem {
	not := problem{rule: "phone_form",
		message: "must be a plus sign, the country code and the number, such as +14155550123"}
	digits, found := strings.CutPrefix(s, "+")
	if !found || len(digits) < 7 || len(digits) > 15 || digits[0] == '0' ||
		strings.Trim(digits, "0123456789") != "" {
		return not
	}
	return problem{}
}

// usernameProblem allows 3 to 30 ASCII letters and digits, with single dots, hyphens and
// underscores between them.
func usernameProblem(s string) problem {
	if len(s) < 3 || len(s) > 30 {
		return problem{message: "must have 3 to 30 characters", rule: "username_length"}
	}
	separated := true
	for i := range len(s) {
		separator := strings.Contains("._-", s[i:i+1])
		if !separator && !letterOrDigit(s[i]) {
			return problem{rule: "username_characters",
				message: "may contain only letters a to z, digits, dots, hyphens and underscores"}
		}
		if separator && separated {
			return problem{rule: "username_separators",
				message: "must begin with a letter or digit and have no two separators in a row"}
		}
		separated = separator
	}
	if separated {
		return problem{message: "must end with a letter or digit", rule: "username_end"}
	}
	return problem{}
}

// pictureProblem allows absolute http and https URLs.
func pictureProblem(s string) problem {
	not := problem{message: "must be an http or https URL", rule: "picture_form"}
	if len(s) > 2048 {
		return tooLong(2048)
	}
	if !utf8.ValidString(s) || strings.ContainsAny(s, " \"<>\\^`{|}\n") ||
		strings.ContainsFunc(s, unseen) {
		return not
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.User != nil {
		return not
	}
	return problem{}
}

// dateProblem allows calendar days (RFC 3339 full-date) since 1850 that have begun in some time
// zone.
func dateProblem(s string, now time.Time) problem {
	day, err := time.Parse(time.DateOnly, s)
	switch {
	case err != nil || len(s) != len(time.DateOnly):
		return problem{message: "must be a valid date in the form YYYY-MM-DD", rule: "date_form"}
	case day.After(now.UTC().Add(14 * time.Hour)):
		return problem{message: "must not be in the future", rule: "date_future"}
	case day.Year() < 1850:
		return problem{message: "is too long ago", rule: "date_past"}
	}
	return problem{}
}
