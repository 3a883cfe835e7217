package ptr

import "strings"

// Hostname returns name in lower case and without its trailing dot, and whether it may be shown to others: at most 253
// bytes, labels of 1 to 63 letters, digits, hyphens and underscores with no hyphen at either end, the last one not all
// digits (RFC 1123 section 2.1; underscores are no part of it, but common). Whoever holds an address may write anything
// into its PTR record.
func Hostname(name string) (string, bool) {
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
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}
