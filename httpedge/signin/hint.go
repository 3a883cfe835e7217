package signin

import (
	"strconv"

	"gatehouse/actors/token"
)

// idTokenHint is what an id_token says of its user and session. It may have expired.
type idTokenHint struct {
	user   int64
	client string // that it was issued to
	sid    string // "" = none
}

// openHint returns what an id_token of this service says. It returns false for anything else.
func (s *service) openHint(text string) (*idTokenHint, bool) {
	var claims token.IDToken
	_, err := s.tokens.Verify(text, token.IDTokenTyp, &claims)
	if err != nil || claims.Issuer != s.issuer {
		return nil, false
	}
	user, err := strconv.ParseInt(claims.Subject, 10, 64)
	if err != nil || user <= 0 {
		return nil, false
	}
	return &idTokenHint{user, claims.Audience, claims.SID}, true
}
