// Command rolesapi is an API with roles: groups of people say what they may do.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"programs/app"
)

// rights are what the members of a group may do.
var rights = map[string][]string{
	"readers": {http.MethodGet},
	"editors": {http.MethodGet, http.MethodPut, http.MethodDelete},
}

type claims struct {
	Scope    string   `json:"scope"`
	Groups   []string `json:"groups"`
	ACR      string   `json:"acr"`
	AuthTime int64    `json:"auth_time"`
}

func main() {
	issuer, base := app.Issuer, app.Base
	ctx := context.Background()
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		log.Fatal(err)
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: base + "/notes"}) // its audience
	http.HandleFunc("/notes", func(w http.ResponseWriter, r *http.Request) {
		bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		token, err := verifier.Verify(r.Context(), bearer)
		var c claims
		if err == nil {
			err = token.Claims(&c)
		}
		mayUse := slices.ContainsFunc(c.Groups, func(group string) bool {
			return slices.Contains(rights[group], r.Method)
		})
		isOld := time.Since(time.Unix(c.AuthTime, 0)) > 10*time.Minute
		switch challenge := "WWW-Authenticate"; {
		case err != nil:
			w.Header().Set(challenge, `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
		case !slices.Contains(strings.Fields(c.Scope), "notes:edit"):
			w.Header().Set(challenge, `Bearer error="insufficient_scope", scope="notes:edit"`)
			w.WriteHeader(http.StatusForbidden)
		case !mayUse:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodDelete && (c.ACR != "2" || isOld):
			w.Header().Set(challenge,
				`Bearer error="insufficient_user_authentication", acr_values="2", max_age=600`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprintf(w, "%s may do that\n", token.Subject)
		}
	})
	app.Listen()
}
