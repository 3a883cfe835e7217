package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
)

// The trials of OpenID Connect. Those with an id_token redeem codes, as redeemTrial does.
var (
	userInfoTrial = trial{
		name: "userinfo", requests: 60_000, tokens: accessTokens, proof: "Pragma: no-cache",
		prepare: prepareUserInfo, raw: newRawUserInfo, configure: configureIdentity,
	}
	rs256Trial = newIDTokenTrial("id-token-rs256", "RS256")
	es256Trial = newIDTokenTrial("id-token-es256", "ES256")
)

func newIDTokenTrial(name, alg string) trial {
	return trial{
		name: name, requests: 3_000, proof: "Pragma: no-cache",
		prepare: func(p plan) (func(string) [][]byte, error) {
			return prepareRedemptions(p, oauth.OpenID|oauth.ViewUser, oauth.ClientOptions{IDTokenAlg: alg})
		},
		raw: newRawIDToken, configure: configureIdentity,
		warm: func(s *stack.Stack) error { // the first key
			_, err := s.Tokens.Sign(context.Background(), alg, "JWT", struct{}{})
			return err
		},
	}
}

// newRawIDToken returns a handler that always sends the same tokens, with an id_token of usual size.
func newRawIDToken(string) (fasthttp.RequestHandler, error) {
	response := oauth.TokenResponse{AccessToken: sealedToken(1), RefreshToken: oauth.NewRefreshToken(),
		ExpiresIn: time.Hour, IDToken: strings.Repeat("x", 850)}
	return newFixedHandler(tokenHeaders, response.AppendJSON(nil)), nil
}
