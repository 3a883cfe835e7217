package oauth

import "unicode/utf8"

// appendString appends name, which ends in a colon, and value as a JSON string (RFC 8259 section
// 7). Bytes that are not UTF-8 become U+FFFD.
func appendString(dst []byte, name, value string) []byte {
	const hex = "0123456789abcdef"
	dst = append(append(dst, name...), '"')
	for value != "" {
		n := plain(value)
		dst, value = append(dst, value[:n]...), value[n:]
		if value == "" {
			break
		}
		r, size := utf8.DecodeRuneInString(value)
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
		default:
			dst = utf8.AppendRune(dst, r)
		}
		value = value[size:]
	}
	return append(dst, '"')
}

// plain returns the number of bytes at the start of s that are ASCII and need no escape in JSON.
func plain(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}
