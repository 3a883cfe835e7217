package oauth_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

// exchanged returns a token with all fields that one from n exchanges has.
func exchanged(n int, clientID func() string) oauth.AccessToken {
	t := fullToken()
	t.ClientID, t.Scopes = clientID(), 0
	t.Audience = [oauth.MostTargets]oauth.Target{fullAudience()[0]}
	for range n {
		t.Subject = &oauth.SubjectToken{ID: oauth.TokenID([]byte(strings.Repeat(clientID(), 24)[:24])),
			ClientID: clientID(), Epoch: 1_800_000_000_000_000, Resource: 65534, Subject: t.Subject}
	}
	return t
}

// TestExchangedTokenSaysWhereItComesFrom seals tokens that were exchanged, up to the longest one.
func TestExchangedTokenSaysWhereItComesFrom(t *testing.T) {
	key := tokenKey(65535, 1)
	for n := range oauth.MostExchanges + 1 {
		for _, id := range []func() string{uuid.NewString, func() string { return strings.Repeat("x", 40) },
			func() string { return "app" }} {
			said := exchanged(n, id)
			for _, seal := range []func(*oauth.AccessToken) string{key.Seal, key.SealForJWT} {
				token := seal(&said)
				opened, ok := key.Open(token)
				if !ok || !reflect.DeepEqual(opened, said) || len(token) > oauth.MaxExchangedToken ||
					n == 0 && len(token) > oauth.MaxAccessToken {
					t.Errorf("got %+v, %t of %d bytes\nwant %+v", opened, ok, len(token), said)
				}
				if id, number, ok := oauth.PeekAccessToken(token); !ok || id != said.ID || number != 65535 {
					t.Errorf("got id %s, key %d, %t", id, number, ok)
				}
			}
			if said.Exchanges() != n || len(said.Actors()) != n {
				t.Errorf("got %d exchanges with the actors %q, want %d", said.Exchanges(), said.Actors(), n)
			}
		}
	}
	token := oauth.AccessToken{ClientID: "third", Subject: &oauth.SubjectToken{ClientID: "second",
		Subject: &oauth.SubjectToken{ClientID: "app"}}}
	if got := token.Actors(); !slices.Equal(got, []string{"third", "second"}) {
		t.Errorf("got %q, want the client that uses it and the one before", got)
	}
}

// TestExchangedTokenCannotBeChanged changes each bit of the text of a token.
func TestExchangedTokenCannotBeChanged(t *testing.T) {
	key, said := tokenKey(1, 1), exchanged(2, uuid.NewString)
	token := key.Seal(&said)
	for bit := range 8 * len(token) {
		text := []byte(token)
		text[bit/8] ^= 1 << (bit % 8)
		if _, ok := key.Open(string(text)); ok {
			t.Errorf("bit %d of the text can be changed", bit)
		}
	}
}

// ruled returns a client with rules, that serves resources.
func ruled(id string, serves []string, rules ...oauth.ExchangeRule) *oauth.Client {
	confidential, _, _ := valid()
	confidential.ID, confidential.Grants = id, confidential.Grants|oauth.TokenExchangeGrant
	confidential.Options.Serves, confidential.Options.Exchange = serves, rules
	return &confidential
}

func TestExchangeRulesAreChecked(t *testing.T) {
	const a, b = "https://a.example", "https://b.example"
	good := oauth.ExchangeRule{From: a, To: b, Scopes: []string{"read"}}
	for name, row := range map[string]struct {
		change func(*oauth.Client)
		field  string // "" = it may be registered
	}{
		"a rule":    {func(*oauth.Client) {}, ""},
		"no scopes": {func(c *oauth.Client) { c.Options.Exchange[0].Scopes = nil }, ""},
		"two rules": {func(c *oauth.Client) {
			c.Options.Exchange = append(c.Options.Exchange, oauth.ExchangeRule{From: b, To: a})
		}, ""},
		"no grant": {func(c *oauth.Client) { c.Grants &^= oauth.TokenExchangeGrant }, "exchange"},
		"no rule":  {func(c *oauth.Client) { c.Options.Exchange = nil }, "exchange"},
		"public": {func(c *oauth.Client) {
			c.Public, c.Secrets, c.Grants = true, nil, c.Grants&^oauth.ClientCredentialsGrant
		}, "exchange"},
		"registered itself": {func(c *oauth.Client) { c.Options.SelfRegistered = true }, "exchange"},
		"to itself":         {func(c *oauth.Client) { c.Options.Exchange[0].To = "https://A.example/" }, "exchange"},
		"no URI":            {func(c *oauth.Client) { c.Options.Exchange[0].From = "notes" }, "exchange"},
		"a fragment":        {func(c *oauth.Client) { c.Options.Exchange[0].To = b + "#x" }, "exchange"},
		"the same again": {func(c *oauth.Client) {
			c.Options.Exchange = append(c.Options.Exchange, oauth.ExchangeRule{From: a + "/", To: b})
		}, "exchange"},
		"too many rules": {func(c *oauth.Client) {
			c.Options.Exchange = slices.Repeat(c.Options.Exchange, oauth.MostExchangeRules+1)
		}, "exchange"},
		"a scope with a space": {func(c *oauth.Client) { c.Options.Exchange[0].Scopes = []string{"a b"} }, "exchange"},
		"a scope again":        {func(c *oauth.Client) { c.Options.Exchange[0].Scopes = []string{"a", "a"} }, "exchange"},
		"serves no URI":        {func(c *oauth.Client) { c.Options.Serves = []string{"notes"} }, "serves"},
		"serves one again":     {func(c *oauth.Client) { c.Options.Serves = []string{a, a} }, "serves"},
		"serves too many": {func(c *oauth.Client) {
			c.Options.Serves = slices.Repeat([]string{a}, oauth.MostServed+1)
		}, "serves"},
	} {
		c := ruled("app", []string{a}, good)
		row.change(c)
		err := c.CheckRegistration()
		fault, _ := err.(*oauth.RegistrationError)
		if row.field == "" && err != nil || row.field != "" && (fault == nil || fault.Field != row.field) {
			t.Errorf("%s: got %v, want an error about %q", name, err, row.field)
		}
	}
}

// TestOnwardFollowsExchanges asks where tokens for one resource lead, by several exchanges.
func TestOnwardFollowsExchanges(t *testing.T) {
	const notes, mail, crm, other = "https://notes.example", "https://mail.example", "https://crm.example", "https://other.example"
	known := oauth.NewResources("https://id.example", []oauth.Resource{{Number: 1, URI: notes},
		{Number: 2, URI: mail, Scopes: []string{"read", "send"}}, {Number: 3, URI: crm, Scopes: []string{"list"}}, {Number: 4, URI: other}})
	app := ruled("app", nil, oauth.ExchangeRule{From: notes, To: other})
	disabled := ruled("disabled", []string{notes}, oauth.ExchangeRule{From: notes, To: other})
	disabled.Disabled = true
	all := []*oauth.Client{app, disabled,
		ruled("notes", []string{notes}, oauth.ExchangeRule{From: notes, To: mail, Scopes: []string{"send", "gone"}}),
		ruled("mail", []string{mail}, oauth.ExchangeRule{From: mail, To: crm, Scopes: []string{"list"}},
			oauth.ExchangeRule{From: mail, To: notes}, oauth.ExchangeRule{From: mail, To: "https://gone.example"}),
		ruled("stranger", nil, oauth.ExchangeRule{From: notes, To: other})}
	at := oauth.Targets{{Resource: 1}}
	for client, want := range map[*oauth.Client]string{
		ruled("agent", nil): "1:0 2:2 3:1", // by notes, mail, and back
		app:                 "1:0 2:2 3:1 4:0",
	} {
		if got := known.Onward(client, at, all).String(); got != want {
			t.Errorf("%s: got %s, want %s", client.ID, got, want)
		}
	}
	if got := known.Onward(app, oauth.Targets{{Resource: 3}, {Resource: oauth.OwnResource}}, all); got != nil {
		t.Errorf("got %s from where no rule begins, want nothing", got)
	}
}
