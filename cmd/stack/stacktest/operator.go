package stacktest

import (
	"testing"

	"gatehouse/actors/oauth"
)

// Operator calls the admin API.
type Operator struct {
	T     *testing.T
	st    *IdentityStack
	Token string
	ID    string // of the client
}

// NewOperator returns an Operator with a token of a new operator client.
func (st *IdentityStack) NewOperator(t *testing.T) *Operator {
	t.Helper()
	c := st.NewClient(t, func(c *oauth.Client) {
		c.Operator, c.Scopes, c.Grants, c.RedirectURIs = true, oauth.ServerOperations,
			oauth.ClientCredentialsGrant, nil
	})
	a := st.PostToken(t, Values("grant_type", "client_credentials", "client_id", c.ID,
		"client_secret", c.Secret, "scope", "server-operations"))
	token, _ := a.Object(t)["access_token"].(string)
	if token == "" {
		t.Fatalf("got %d %s, want an access token", a.Status, a.Body)
	}
	return &Operator{t, st, token, c.ID}
}

// Do sends one request to a path below /admin/v1 and checks the status.
func (o *Operator) Do(want int, method, path, body string) Response {
	o.T.Helper()
	a := o.st.Send(o.T, method, o.st.AdminURL+"/admin/v1"+path, body, "Authorization",
		"Bearer "+o.Token, "Content-Type", "application/json")
	if a.Status != want {
		o.T.Errorf("%s %s: got %d %s, want %d", method, path, a.Status, a.Body, want)
	}
	a.Has(o.T, "Cache-Control", "no-store")
	return a
}

// Refused checks the code of an error of the admin API and which fields it names.
func (a Response) Refused(t *testing.T, code string, fields ...string) {
	t.Helper()
	o := a.Object(t)
	named, _ := o["fields"].(map[string]any)
	if o["error"] != code || o["message"] == "" || len(named) != len(fields) {
		t.Errorf("got %d %s, want %s about %v", a.Status, a.Body, code, fields)
	}
	for _, f := range fields {
		if text, _ := named[f].(string); text == "" {
			t.Errorf("got %s, want a message about %s", a.Body, f)
		}
	}
}
