package oauthapi_test

import (
	"strings"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestConsentNamesWhoAsks shows the host of an app that registered itself, until an operator says who
// it is.
func TestConsentNamesWhoAsks(t *testing.T) {
	st := stacktest.NewIdentity(t, withRegistration(oauth.RegistrationOpen))
	st.NewUser(t, "Rosa", rosa)
	const back = "https://evil.example/cb"
	c := register(t, st, `{"client_name":"Google Account Security","redirect_uris":["`+back+`"]}`).Object(t)
	id, _ := c["client_id"].(string)
	o := st.NewOperator(t)
	for _, test := range []struct{ step, heading string }{
		{"", "An unverified app at <bdi>evil.example</bdi> wants to use your account"},
		{"verify", "Allow <bdi>Google Account Security</bdi> to use your account?"},
		{"unverify", "An unverified app at <bdi>evil.example</bdi> wants to use your account"},
	} {
		if test.step != "" {
			record := o.Do(200, "POST", "/clients/"+id+"/"+test.step, "").Object(t)
			if verified, _ := record["verified"].(bool); verified != (test.step == "verify") {
				t.Errorf("%s: got %v, want it in the record", test.step, record)
			}
		}
		b := st.NewBrowser(t)
		page := b.Send(b.Authorize(askedByRegistered(id, back)), "email", rosa, "password",
			stacktest.Password)
		page.Shows(t, 200, "/consent")
		if !strings.Contains(page.Body, "<h1>"+test.heading+"</h1>") {
			t.Errorf("after %q: got %s, want the heading %s", test.step, page.Body, test.heading)
		}
	}
	own := st.NewClient(t, nil)
	if record := o.Do(200, "POST", "/clients/"+own.ID+"/verify", "").Object(t); record["verified"] != nil {
		t.Errorf("got %v, want no mark on a client that an operator registered", record)
	}
}
