package contracts

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// An access token is sealed: no state can make a given text valid. So a given text stands in for a
// token that the state issues. The provider puts the issued token in its place before the service
// sees the request. The text can have the form of any release of gatehouse.

// standIn is what a text must match to stand in for an access token.
var standIn = regexp.MustCompile(`^gtat_[0-9A-Za-z_-]{1,250}$`)

// maxForm limits the part of a form in which stand-ins are replaced, in bytes. The service accepts
// shorter forms only.
const maxForm = 1 << 17

// standIns holds the issued access tokens by the texts that stand in for them.
type standIns map[string]string

// issued returns the token that text stands in for, or text itself.
func (s standIns) issued(text string) string {
	if token, ok := s[text]; ok {
		return token
	}
	return text
}

// replace puts issued tokens into the header Authorization, the query and the form of a request.
func (s standIns) replace(r *http.Request) error {
	if len(s) == 0 {
		return nil
	}
	for i, value := range r.Header["Authorization"] {
		token := strings.LastIndexByte(value, ' ') + 1
		r.Header["Authorization"][i] = value[:token] + s.issued(value[token:])
	}
	r.URL.RawQuery = s.replaceValues(r.URL.RawQuery)
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return nil
	}
	form, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	if err != nil {
		return fmt.Errorf("read a form: %w", err)
	}
	replaced := s.replaceValues(string(form))
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(replaced), r.Body))
	if r.ContentLength > 0 {
		r.ContentLength += int64(len(replaced) - len(form))
	}
	return nil
}

// replaceValues replaces the values of a form or query. All else keeps its spelling.
func (s standIns) replaceValues(form string) string {
	pairs := strings.Split(form, "&")
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if text, err := url.QueryUnescape(value); err == nil {
			if token, ok := s[text]; ok {
				pairs[i] = name + "=" + token
			}
		}
	}
	return strings.Join(pairs, "&")
}
