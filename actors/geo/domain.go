package geo

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Longest domain and label, in octets (RFC 1035 section 2.3.4). The 255 octets of a domain on the
// wire are 253 as text without the root.
const (
	maxDomain = 253
	maxLabel  = 63
)

// acePrefix begins an A-label (RFC 5890 section 2.3.2.1).
const acePrefix = "xn--"

// lookupProfile maps and checks a domain as UTS 46 requires for lookups: letters, digits and
// hyphens within ASCII, no hyphens at the ends or as third and fourth character, joiners in their
// context (RFC 5892 appendix A), and the Bidi rule (RFC 5893). Its ToUnicode is non-transitional:
// "ß" stays.
var lookupProfile = idna.New(idna.MapForLookup(), idna.BidiRule())

// parseDomain parses s, which consists of letters, digits, hyphens, dots and non-ASCII bytes. seen
// is the result of scan(s).
func parseDomain(s string, seen class) (Query, *Error) {
	name := s
	if seen&nonASCII == 0 {
		name = strings.ToLower(s)
	}
	if seen&nonASCII != 0 || strings.Contains(name, acePrefix) {
		if name = toASCII(name); name == "" {
			return Query{}, errMalformed
		}
	}
	name = strings.TrimSuffix(name, ".")
	labels, valid := countLabels(name)
	if !valid {
		return Query{}, errMalformed
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case IsSpecialUse(last):
		return Query{}, errReservedRange
	case labels < 2, !isTopLevel(last):
		return Query{}, errMalformed
	}
	return Query{domain: name}, nil
}

// toASCII returns the A-label form of s, or "" if IDNA rejects it. Punycode takes quadratic time in
// the length of a label, so names and labels that must become too long are rejected first.
func toASCII(s string) string {
	if countASCII(s) > maxDomain+1 || strings.ContainsRune(s, utf8.RuneError) {
		return ""
	}
	rest, err := lookupProfile.ToUnicode(s)
	if err != nil {
		return ""
	}
	var name []byte
	for more := true; more; {
		var label string
		label, rest, more = strings.Cut(rest, ".")
		if utf8.RuneCountInString(label) > maxLabel {
			return ""
		}
		ascii, err := idna.Punycode.ToASCII(label)
		if err != nil || len(ascii) > maxLabel {
			return ""
		}
		name = append(name, ascii...)
		if more {
			name = append(name, '.')
		}
	}
	return string(name)
}

// countASCII counts the ASCII bytes: each takes at least one octet in the A-label form.
func countASCII(s string) (n int) {
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// countLabels returns the number of labels. valid is false if name or one of its labels is too long
// or empty, or if a label begins or ends with a hyphen.
func countLabels(name string) (n int, valid bool) {
	if len(name) > maxDomain {
		return 0, false
	}
	for more := true; more; n++ {
		var label string
		label, name, more = strings.Cut(name, ".")
		if !isLabel(label) {
			return 0, false
		}
	}
	return n, true
}

// isLabel checks the length of a label, and that no hyphen is at its ends. It allows hyphens as
// third and fourth character of an ASCII label: large networks name hosts that way.
func isLabel(s string) bool {
	return s != "" && len(s) <= maxLabel && s[0] != '-' && s[len(s)-1] != '-'
}

// isTopLevel reports whether s can be a top-level domain: letters only, or an A-label. A digit
// would make it look like an address.
func isTopLevel(s string) bool {
	return scan(s).within(hexLower|lower) || strings.HasPrefix(s, acePrefix)
}
