// Command goidc is a web application with coreos/go-oidc and golang.org/x/oauth2.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"programs/app"
)

// session is the only one: the app has one visitor.
type session struct {
	mu                     sync.Mutex
	state, nonce, verifier string
	token                  *oauth2.Token
	rawIDToken             string
	claims                 map[string]any
}

func main() {
	issuer, clientID, clientSecret, base := app.Issuer, app.ID, app.Secret, app.Base
	ctx := context.Background()
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		log.Fatal(err)
	}
	var found struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := provider.Claims(&found); err != nil {
		log.Fatal(err)
	}
	config := &oauth2.Config{
		ClientID: clientID, ClientSecret: clientSecret, Endpoint: provider.Endpoint(),
		RedirectURL: base + "/callback",
		Scopes:      []string{oidc.ScopeOpenID, "profile", "email", oidc.ScopeOfflineAccess},
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: clientID})
	s := &session{}
	check := func(token *oauth2.Token, nonce string) error {
		raw, _ := token.Extra("id_token").(string)
		idToken, err := verifier.Verify(ctx, raw)
		if err != nil {
			return err
		}
		// OpenID Connect Core section 12.2: a refreshed id_token may have the nonce of the first.
		if idToken.Nonce != nonce && !(nonce == "" && idToken.Nonce == s.nonce) {
			return errors.New("got another nonce")
		}
		if idToken.AccessTokenHash != "" {
			if err := idToken.VerifyAccessToken(token.AccessToken); err != nil {
				return err
			}
		}
		s.token, s.rawIDToken, s.claims = token, raw, nil
		return idToken.Claims(&s.claims)
	}
	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.state, s.nonce, s.verifier = oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
		http.Redirect(w, r, config.AuthCodeURL(s.state, oidc.Nonce(s.nonce), oauth2.S256ChallengeOption(s.verifier)), http.StatusFound)
	})
	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.FormValue("state") != s.state || r.FormValue("iss") != "" && r.FormValue("iss") != issuer {
			app.Fail(w, errors.New("got another state or issuer"))
			return
		}
		token, err := config.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(s.verifier))
		if err == nil {
			err = check(token, s.nonce)
		}
		if err != nil {
			app.Fail(w, err)
			return
		}
		http.Redirect(w, r, "/", http.StatusFound)
	})
	http.HandleFunc("/refresh", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.token.AccessToken
		old := *s.token
		old.Expiry = time.Now().Add(-time.Hour)
		token, err := config.TokenSource(ctx, &old).Token()
		if err == nil {
			err = check(token, "")
		}
		if err != nil {
			app.Fail(w, err)
			return
		}
		app.Show(w, map[string]any{"refreshed": token.AccessToken != before, "claims": s.claims})
	})
	http.HandleFunc("/userinfo", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(s.token))
		claims := map[string]any{}
		if err == nil {
			err = info.Claims(&claims)
		}
		if err != nil {
			app.Fail(w, err)
			return
		}
		app.Show(w, map[string]any{"userinfo": claims})
	})
	http.HandleFunc("/logout", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		query := url.Values{"id_token_hint": {s.rawIDToken}, "post_logout_redirect_uri": {base}, "state": {"bye"}}
		s.token, s.claims = nil, nil
		http.Redirect(w, r, found.EndSession+"?"+query.Encode(), http.StatusFound)
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		app.Show(w, map[string]any{"signedIn": s.token != nil, "claims": s.claims})
	})
	app.Listen()
}
