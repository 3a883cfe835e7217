package signin

import (
	"encoding/json"
	"slices"
	"strconv"
)

// idTokenHint is what an id_token says of its user and session. It may have expired.
type idTokenHint struct {
	user    int64
	clients []string // its audience
	sid     string   // "" = none
}

// isFor reports whether the id_token was issued to a client.
func (h *idTokenHint) isFor(clientID string) bool { return slices.Contains(h.clients, clientID) }

// openHint returns what an id_token of this service says. It returns false for anything else.
func (s *service) openHint(token string) (*idTokenHint, bool) {
	var claims struct {
		Issuer   string    `json:"iss"`
		Subject  string    `json:"sub"`
		Audience oneOrMany `json:"aud"`
		SID      string    `json:"sid"`
	}
	if _, err := s.tokens.Verify(token, "JWT", &claims); err != nil || claims.Issuer != s.issuer {
		return nil, false
	}
	user, err := strconv.ParseInt(claims.Subject, 10, 64)
	if err != nil || user <= 0 {
		return nil, false
	}
	return &idTokenHint{user, claims.Audience, claims.SID}, true
}

// oneOrMany is the audience of a JWT: a string or a list of strings (RFC 7519 section 4.1.3).
type oneOrMany []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *oneOrMany) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*a = make(oneOrMany, 1)
		return json.Unmarshal(text, &(*a)[0])
	}
	return json.Unmarshal(text, (*[]string)(a))
}
