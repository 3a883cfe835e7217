// Command cap is a web application with hashicorp/cap, the library of Vault and Boundary.
package main

import (
	"context"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/cap/oidc"

	"programs/app"
)

func main() {
	issuer, clientID, clientSecret, base := app.Issuer, app.ID, app.Secret, app.Base
	ctx := context.Background()
	config, err := oidc.NewConfig(issuer, clientID, oidc.ClientSecret(clientSecret),
		[]oidc.Alg{oidc.RS256}, []string{base + "/callback"})
	if err != nil {
		log.Fatal(err)
	}
	provider, err := oidc.NewProvider(config)
	if err != nil {
		log.Fatal(err)
	}
	var mu sync.Mutex
	var request *oidc.Req
	claims := map[string]any{}
	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		verifier, err := oidc.NewCodeVerifier()
		if err == nil {
			request, err = oidc.NewRequest(time.Minute, base+"/callback",
				oidc.WithScopes("profile", "email"), oidc.WithPKCE(verifier), oidc.WithMaxAge(600))
		}
		address := ""
		if err == nil {
			address, err = provider.AuthURL(ctx, request)
		}
		if err != nil {
			app.Fail(w, err)
			return
		}
		http.Redirect(w, r, address, http.StatusFound)
	})
	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		token, err := provider.Exchange(ctx, request, r.FormValue("state"), r.FormValue("code"))
		if err == nil {
			err = token.IDToken().Claims(&claims)
		}
		if err == nil {
			subject, _ := claims["sub"].(string)
			err = provider.UserInfo(ctx, token.StaticTokenSource(), subject, &claims)
		}
		if err != nil {
			app.Fail(w, err)
			return
		}
		http.Redirect(w, r, "/", http.StatusFound)
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		app.Show(w, map[string]any{"signedIn": len(claims) > 0, "claims": claims})
	})
	app.Listen()
}
