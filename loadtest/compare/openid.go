package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
)

// userInfoTrial reads the claims of a user, for an access token in use.
var userInfoTrial = trial{
	name: "userinfo", requests: 90_000, tokens: accessTokens,
	proof:   "X-RateLimit-Limit: 100",
	prepare: prepareUserInfo, raw: newRawUserInfo, configure: configureIdentity,
}

func prepareUserInfo(p plan) (func(host string) [][]byte, error) {
	return prepareReads(p, "/oauth/userinfo", oauth.OpenID|oauth.Email, func(u *account.User) []byte {
		return fmt.Appendf(nil, `{"sub":"%d","email":%q,"email_verified":true}`, u.ID, u.Email)
	})
}

// newRawUserInfo is newRawProfiles with the headers of userinfo.
func newRawUserInfo(dir string) (fasthttp.RequestHandler, error) {
	return newRawReads(dir, "Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers",
		"Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Cache, "+
			"X-Geo-Source, X-Request-Id")
}

// These redeem codes, as redeemTrial does, for an id_token as well.
var rs256Trial, es256Trial = newIDTokenTrial("RS256", 717), newIDTokenTrial("ES256", 461)

// newIDTokenTrial measures an algorithm, whose id_tokens have a length.
func newIDTokenTrial(alg string, length int) trial {
	return trial{
		name: "id-token-" + strings.ToLower(alg), requests: 3_000, proof: "Pragma: no-cache",
		prepare: func(p plan) (func(string) [][]byte, error) {
			return prepareRedemptions(p, oauth.OpenID|oauth.ViewUser,
				oauth.ClientOptions{IDTokenAlg: alg})
		},
		raw: func(string) (fasthttp.RequestHandler, error) {
			response := oauth.TokenResponse{AccessToken: sealedToken(1),
				RefreshToken: oauth.NewRefreshToken(), ExpiresIn: time.Hour,
				IDToken: "eyJ" + strings.Repeat("x", length-3)}
			return newFixedHandler(tokenHeaders, response.AppendJSON(nil)), nil
		},
		configure: configureIdentity,
		warm: func(s *stack.Stack) error { // makes the first key
			_, err := s.Tokens.Sign(context.Background(), alg, "JWT", struct{}{})
			return err
		},
	}
}
