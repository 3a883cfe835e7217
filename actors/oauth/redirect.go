package oauth

import "strings"

// CodeURL returns the redirect URI with code, state and iss appended to its query (RFC 6749 section
// 4.1.2, RFC 9207 section 2).
func (r *AuthorizationRequest) CodeURL(code, issuer string) string {
	return r.withQuery([]Parameter{{"code", code}, {"state", r.State}, {"iss", issuer}})
}

// ErrorURL returns the redirect URI with the error, state and iss appended to its query (RFC 6749
// section 4.1.2.1).
func (r *AuthorizationRequest) ErrorURL(e *Error, issuer string) string {
	return r.withQuery([]Parameter{{"error", string(e.Code)}, {"error_description", e.Description},
		{"state", r.State}, {"iss", issuer}})
}

// withQuery returns the redirect URI with the non-empty parameters appended to its query.
func (r *AuthorizationRequest) withQuery(params []Parameter) string {
	var uri strings.Builder
	uri.WriteString(r.RedirectURI)
	separator := "?"
	if _, query, found := strings.Cut(r.RedirectURI, "?"); found {
		separator = "&"
		if query == "" || strings.HasSuffix(query, "&") {
			separator = ""
		}
	}
	for _, p := range params {
		if p.Value == "" {
			continue
		}
		uri.WriteString(separator + p.Name + "=")
		writeEscaped(&uri, p.Value)
		separator = "&"
	}
	return uri.String()
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
