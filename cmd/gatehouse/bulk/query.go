package bulk

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"unsafe"
)

// view returns b as a string that shares its memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// host returns the address or domain of a text: without space, brackets and a port. It returns any
// other text as it is.
func host(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") {
		if inner, port, ok := strings.Cut(text[1:], "]"); ok && isPort(port) {
			return inner
		}
		return text
	}
	name, _, ok := strings.Cut(text, ":")
	if ok && name != "" && isPort(text[len(name):]) {
		return name
	}
	return text
}

// isPort reports whether s is "" or a colon with a number of a port.
func isPort(s string) bool {
	if s == "" {
		return true
	}
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	if s[0] != ':' || len(s) < 2 || len(s) > 6 {
		return false
	}
	_, err := strconv.ParseUint(s[1:], 10, 16)
	return err == nil
}

// inAddress marks the bytes of addresses, and those that make a word of what is beside one.
var inAddress, inWord = func() (address, word [256]bool) {
	for _, b := range []byte("0123456789abcdefABCDEF.:") {
		address[b] = true
	}
	for b := range 256 {
		c := byte(b)
		word[b] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
	}
	return address, word
}()

// extract appends every address in a text. An IPv4 address may have a port, and an IPv6 address may
// stand in brackets. Times such as 10:15:00 and versions such as 1.2.3 are no addresses, and
// neither are those of browsers, such as Chrome/119.0.0.0.
func extract(dst [][]byte, text []byte) [][]byte {
	for i := 0; i < len(text); {
		if !inAddress[text[i]] {
			i++
			continue
		}
		from := i
		for i < len(text) && inAddress[text[i]] {
			i++
		}
		part := text[from:i]
		if from > 0 && (inWord[text[from-1]] || text[from-1] == '-') ||
			i < len(text) && inWord[text[i]] || isVersion(text[:from], part) {
			continue
		}
		if found := address(part); found != nil {
			dst = append(dst, found)
		}
	}
	return dst
}

// isVersion reports whether part is the version of a browser, after its name and a slash. Browsers
// send only the first number and zeros. No host has such an address.
func isVersion(before, part []byte) bool {
	n := len(before)
	return n > 1 && before[n-1] == '/' && inWord[before[n-2]] && bytes.HasSuffix(part, []byte(".0.0.0"))
}

// address returns the address that part is, or nil. Punctuation around it and a port are left out.
func address(part []byte) []byte {
	part = bytes.TrimRight(part, ".")
	if len(part) < len("::1") {
		return nil
	}
	switch colons := bytes.Count(part, []byte{':'}); {
	case colons == 0 || bytes.IndexByte(part, '.') < 0 && colons < 2:
	case colons == 1: // a port, or a colon after the address
		part, _, _ = bytes.Cut(part, []byte{':'})
	case bytes.HasSuffix(part, []byte{':'}) && !bytes.HasSuffix(part, []byte("::")):
		part = part[:len(part)-1]
	}
	if len(part) < len("::1") || bytes.IndexByte(part, '.') < 0 && bytes.IndexByte(part, ':') < 0 {
		return nil
	}
	if _, err := netip.ParseAddr(view(part)); err != nil {
		return nil
	}
	return part
}
