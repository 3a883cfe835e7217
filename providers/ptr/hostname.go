package ptr

import "strings"

// Hostname returns name in lower case and without its trailing dot. ok is false if name is not a
// hostname: at most 253 bytes, with labels of 1 to 63 letters, digits, hyphens and underscores, no
// hyphen at the end of a label, and a last label with a non-digit (RFC 1123 section 2.1, except for
// underscores, which are common). A PTR record may contain any text, so names must be checked
// before they are shown.
func Hostname(name string) (hostname string, ok bool) {
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 {
		return "", false
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if !validLabel(label) {
			return "", false
		}
		last = label
	}
	if strings.Trim(last, "0123456789") == "" {
		return "", false
	}
	return strings.ToLower(name), true
}

func validLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '-' || c == '_') {
			return false
		}
	}
	return true
}
