package oauthapi_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"gatehouse/cmd/stack/stacktest"
)

// TestGoOAuth2Client runs golang.org/x/oauth2 as it is, with the client's credentials in both
// places.
func TestGoOAuth2Client(t *testing.T) {
	st := stacktest.NewIdentity(t)
	c := st.NewClient(t, nil)
	st.NewUser(t, "Rosa", rosa)
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, st.Client)
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams,
		oauth2.AuthStyleAutoDetect} {
		config := oauth2.Config{ClientID: c.ID, ClientSecret: c.Secret,
			RedirectURL: stacktest.RedirectURI, Scopes: []string{"view-user"},
			Endpoint: oauth2.Endpoint{AuthURL: st.URL + "/oauth/authorize",
				TokenURL: st.URL + "/oauth/token", AuthStyle: style}}
		pkce := oauth2.GenerateVerifier()
		start, err := url.Parse(config.AuthCodeURL("s t&ä", oauth2.S256ChallengeOption(pkce)))
		stacktest.Must(t, err)
		b := st.NewBrowser(t)
		next := b.SignIn(start.Query(), rosa)
		if next.Location == "" {
			next = b.Send(next, "decision", "allow")
		}
		token, err := config.Exchange(ctx, next.Code(t, st), oauth2.VerifierOption(pkce))
		stacktest.Must(t, err)
		if left := time.Until(token.Expiry); token.RefreshToken == "" || left < 59*time.Minute ||
			left > time.Hour {
			t.Errorf("got %v left and a refresh token %v, want an hour and one", left,
				token.RefreshToken != "")
		}
		first := token.AccessToken
		token.Expiry = time.Now().Add(-time.Minute)
		source := config.TokenSource(ctx, token)
		if token, err = source.Token(); err != nil || token.AccessToken == first {
			t.Fatalf("got %v, want a refreshed token", err)
		}
		res, err := oauth2.NewClient(ctx, source).Get(st.URL + "/api/user")
		stacktest.Must(t, err)
		if a := stacktest.ReadResponse(t, res); a.Status != 200 || a.Object(t)["email"] != rosa {
			t.Errorf("got %d %s, want Rosa's profile", a.Status, a.Body)
		}
		machine := clientcredentials.Config{ClientID: c.ID, ClientSecret: c.Secret,
			TokenURL: st.URL + "/oauth/token", AuthStyle: style}
		if token, err := machine.Token(ctx); err != nil || token.RefreshToken != "" {
			t.Errorf("got %v, want a token without a refresh token", err)
		}
	}
}
