package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// redeemTrial redeems authorization codes with PKCE for access and refresh tokens. The codes are
// stored before the measurement. Each request has its own.
var redeemTrial = trial{
	name: "redeem", requests: 9_000, proof: "Pragma: no-cache",
	prepare: prepareCodes, raw: newRawRedemption, configure: configureIdentity,
}

// The verifier of all codes and its challenge, from RFC 7636 appendix B.
const (
	codeVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	codeChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func prepareCodes(p plan) (func(host string) [][]byte, error) {
	return prepareRedemptions(p, oauth.ViewUser, oauth.ClientOptions{})
}

// prepareRedemptions stores codes for scopes, of a client with these options.
func prepareRedemptions(p plan, scopes oauth.Scopes, options oauth.ClientOptions) (
	_ func(host string) [][]byte, err error) {
	store, err := openStore(p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	client, secret, err := register(store, options)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	user := &account.User{Name: "Rosa Ibarra", Email: "rosa@people.example", Username: "rosa",
		Created: now, Updated: now}
	if err := store.CreateUser(context.Background(), user); err != nil {
		return nil, err
	}
	codes := make([]string, p.requests)
	for i := range codes {
		codes[i] = oauth.NewAuthorizationCode()
	}
	err = submitAll(len(codes), fillConcurrency, func(i int) oauth.Operation {
		return &oauth.SaveCode{Code: oauth.AuthorizationCode{
			Hash: oauth.HashOf(codes[i]), ClientID: client.ID, UserID: user.ID,
			Epochs:      oauth.Epochs{Client: client.Epoch, User: user.Epoch},
			RedirectURI: client.RedirectURIs[0],
			Scopes:      scopes, CodeChallenge: codeChallenge, Expires: now.Add(time.Hour),
		}}
	}, store)
	form := url.Values{
		"grant_type": {"authorization_code"}, "redirect_uri": {client.RedirectURIs[0]},
		"code_verifier": {codeVerifier},
		"client_id":     {client.ID}, "client_secret": {secret},
	}.Encode() + "&code="
	return func(host string) [][]byte {
		requests := make([][]byte, len(codes))
		for i, code := range codes {
			requests[i] = fmt.Appendf(nil,
				"POST /oauth/token HTTP/1.1\r\nHost: %s\r\nUser-Agent: compare\r\nAccept: application/json\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s%s",
				host, len(form)+len(code), form, code)
		}
		return requests
	}, err
}

// newRawRedemption returns a handler that always sends the same tokens.
func newRawRedemption(string) (fasthttp.RequestHandler, error) {
	response := oauth.TokenResponse{AccessToken: sealedToken(1),
		RefreshToken: oauth.NewRefreshToken(), ExpiresIn: time.Hour}
	return newFixedHandler(tokenHeaders, response.AppendJSON(nil)), nil
}
