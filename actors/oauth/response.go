package oauth

import (
	"strconv"
	"time"
)

// AppendJSON appends the body of the response (RFC 6749 section 5.1, OpenID Connect Core section
// 3.1.3.3). A token needs no escape.
func (r *TokenResponse) AppendJSON(dst []byte) []byte {
	dst = append(append(append(dst, `{"access_token":"`...), r.AccessToken...), '"')
	if r.IssuedTokenType != "" {
		dst = appendString(dst, `,"issued_token_type":`, r.IssuedTokenType)
	}
	tokenType := `,"token_type":"Bearer","expires_in":`
	if r.IssuedTokenType == IDJAGTokenType { // it opens nothing by itself (RFC 8693 section 2.2.1)
		tokenType = `,"token_type":"N_A","expires_in":`
	}
	dst = append(dst, tokenType...)
	dst = strconv.AppendInt(dst, int64(r.ExpiresIn/time.Second), 10)
	if r.RefreshToken != "" {
		dst = append(append(append(dst, `,"refresh_token":"`...), r.RefreshToken...), '"')
	}
	if r.ShowScope {
		dst = appendString(dst, `,"scope":`, ScopeText(r.Scopes, r.ResourceScopes))
	}
	if r.IDToken != "" {
		dst = append(append(append(dst, `,"id_token":"`...), r.IDToken...), '"')
	}
	return append(dst, '}')
}

// AppendJSON appends the body of the response (RFC 7662 section 2.2). It reveals nothing else about
// a token that is not active.
func (i *Introspection) AppendJSON(dst []byte) []byte {
	if !i.Active {
		return append(dst, `{"active":false}`...)
	}
	dst = appendString(dst, `{"active":true,"scope":`, ScopeText(i.Scopes, i.ResourceScopes))
	dst = appendString(dst, `,"client_id":`, i.ClientID)
	if !i.Refresh {
		dst = append(dst, `,"token_type":"Bearer"`...)
	}
	for n, uri := range i.Audience {
		dst = appendString(dst, map[bool]string{true: `,"aud":[`, false: ","}[n == 0], uri)
	}
	if len(i.Audience) > 0 {
		dst = append(dst, ']')
	}
	if i.UserID != 0 {
		dst = append(dst, `,"sub":"`...)
		dst = append(strconv.AppendInt(dst, i.UserID, 10), '"')
	}
	if len(i.Actors) > 0 {
		dst = append(append(dst, `,"act":`...), encode(NewActor(i.Actors))...)
	}
	if i.AuthTime != 0 {
		dst = strconv.AppendInt(append(dst, `,"auth_time":`...), i.AuthTime, 10)
		dst = append(append(append(dst, `,"acr":"`...), i.ACR...), '"')
	}
	if !i.Issued.IsZero() {
		dst = strconv.AppendInt(append(dst, `,"iat":`...), i.Issued.Unix(), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"exp":`...), i.Expires.Unix(), 10)
	return append(append(dst, i.Claims...), '}')
}
