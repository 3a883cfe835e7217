package geo

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Lengths of domains, in octets (RFC 1035 section 2.3.4; 253 is 255 as text, without the root).
const (
	maxDomain = 253
	maxLabel  = 63
)

// acePrefix begins an A-label (RFC 5890 section 2.3.2.1).
const acePrefix = "xn--"

// lookupProfile maps and checks a domain as UTS 46 wants it for looking a name up: LDH within ASCII, no hyphens at the
// ends or as third and fourth character, joiners in their context (RFC 5892 appendix A), and the Bidi rule (RFC 5893).
// Its ToUnicode is never transitional: "ß" stays itself.
var lookupProfile = idna.New(idna.MapForLookup(), idna.BidiRule())

// parseDomain reads s, which holds letters, digits, hyphens, dots and bytes behind ASCII only; seen is its scan.
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
	case isSpecialUse(last):
		return Query{}, errReservedRange
	case labels < 2, !isTopLevel(last):
		return Query{}, errMalformed
	}
	return Query{domain: name}, nil
}

// toASCII returns "" for a name that IDNA refuses. Punycode takes time with the square of a label's length, so what
// is sure to be too long ends the work.
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

// countASCII counts the bytes that cannot take less room as part of an A-label.
func countASCII(s string) (n int) {
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// countLabels reports false when name, or a label of it, is too long, empty, or has a hyphen where none may be.
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

// isLabel checks length and hyphens of a label in lower case. Hyphens as third and fourth character are left alone where
// there is nothing for IDNA to do: hosts of large networks are named so.
func isLabel(s string) bool {
	return s != "" && len(s) <= maxLabel && s[0] != '-' && s[len(s)-1] != '-'
}

// isTopLevel reports whether s may end a domain: no top-level domain has a digit, lest it be taken for an address.
func isTopLevel(s string) bool {
	return scan(s).within(hexLower|lower) || strings.HasPrefix(s, acePrefix)
}
