package endpoint

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
)

// maxParameters bounds how many parameters a form or query may have: several times what any endpoint knows.
const maxParameters = 64

// ParseParameters decodes application/x-www-form-urlencoded. Nothing it returns shares memory with src. False says that src
// has a broken escape, or more than maxParameters.
func ParseParameters(src []byte) ([]oauth.Parameter, bool) {
	text := string(src)
	all := make([]oauth.Parameter, 0, min(maxParameters, 1+strings.Count(text, "&")))
	for more := true; more; {
		var pair string
		pair, text, more = strings.Cut(text, "&")
		if pair == "" {
			continue
		}
		if len(all) == maxParameters {
			return nil, false
		}
		name, value, _ := strings.Cut(pair, "=")
		decodedName, ok := unescape(name)
		decodedValue, ok2 := unescape(value)
		if !ok || !ok2 {
			return nil, false
		}
		all = append(all, oauth.Parameter{Name: decodedName, Value: decodedValue})
	}
	return all, true
}

// unescape decodes one name or value.
func unescape(src string) (string, bool) {
	if strings.IndexByte(src, '%') < 0 && strings.IndexByte(src, '+') < 0 {
		return src, true
	}
	dst := make([]byte, 0, len(src))
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '+':
			dst = append(dst, ' ')
		case '%':
			if i+2 >= len(src) {
				return "", false
			}
			high, ok := unhex(src[i+1])
			low, ok2 := unhex(src[i+2])
			if !ok || !ok2 {
				return "", false
			}
			dst = append(dst, high<<4|low)
			i += 2
		default:
			dst = append(dst, src[i])
		}
	}
	return string(dst), true
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// IsForm reports whether the request says that its body is a form.
func IsForm(ctx *fasthttp.RequestCtx) bool {
	kind, _, _ := bytes.Cut(ctx.Request.Header.ContentType(), []byte(";"))
	return bytes.EqualFold(bytes.TrimSpace(kind), []byte("application/x-www-form-urlencoded"))
}

// Value returns the value of the one parameter called name; "" when there is none, or more than one.
func Value(all []oauth.Parameter, name string) string {
	found, times := "", 0
	for _, p := range all {
		if p.Name == name {
			found = p.Value
			times++
		}
	}
	if times != 1 {
		return ""
	}
	return found
}
