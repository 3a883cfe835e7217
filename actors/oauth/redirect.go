package oauth

import "strings"

// CodeResponse returns the parameters of a successful response: code, state and iss (RFC 6749
// section 4.1.2, RFC 9207 section 2). One without a value is not sent.
func (r *AuthorizationRequest) CodeResponse(code, issuer string) []Parameter {
	return []Parameter{{"code", code}, {"state", r.State}, {"iss", issuer}}
}

// ErrorResponse returns the parameters of an error response (RFC 6749 section 4.1.2.1), likewise.
func (r *AuthorizationRequest) ErrorResponse(e *Error, issuer string) []Parameter {
	return []Parameter{{"error", string(e.Code)}, {"error_description", e.Description},
		{"state", r.State}, {"iss", issuer}}
}

// ResponseURL returns the redirect URI with the parameters of a response appended to its query.
func (r *AuthorizationRequest) ResponseURL(params []Parameter) string {
	return withQuery(r.RedirectURI, params)
}

// withQuery returns uri with the non-empty parameters appended to its query.
func withQuery(uri string, params []Parameter) string {
	var all strings.Builder
	all.WriteString(uri)
	separator := "?"
	if _, query, found := strings.Cut(uri, "?"); found {
		separator = "&"
		if query == "" || strings.HasSuffix(query, "&") {
			separator = ""
		}
	}
	for _, p := range params {
		if p.Value == "" {
			continue
		}
		all.WriteString(separator + p.Name + "=")
		writeEscaped(&all, p.Value)
		separator = "&"
	}
	return all.String()
}

// writeEscaped writes s and percent-encodes all but unreserved characters (RFC 3986 section 2.1).
func writeEscaped(dst *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; unreserved(c) {
			dst.WriteByte(c)
		} else {
			dst.Write([]byte{'%', hex[c>>4], hex[c&0xf]})
		}
	}
}
