package oauth_test

import (
	"testing"

	"gatehouse/actors/oauth"
)

func TestNextStep(t *testing.T) {
	const (
		web      = "https://app.example/cb"
		local    = "http://localhost/cb"
		loopback = "http://127.0.0.1/cb"
		private  = "com.example.app:/cb"
	)
	out := oauth.Browser{}
	in := oauth.Browser{SignedIn: true}
	known := oauth.Browser{SignedIn: true, Consent: oauth.ViewUser}
	chosen := oauth.Browser{SignedIn: true, Chosen: true}
	fresh := oauth.Browser{SignedIn: true, Fresh: true}
	with := func(b oauth.Browser, change func(*oauth.Browser)) oauth.Browser {
		change(&b)
		return b
	}
	consented := func(b *oauth.Browser) { b.Consent = oauth.ViewUser }
	allowed := func(b *oauth.Browser) { b.Decision = oauth.Allowed }
	denied := func(b *oauth.Browser) { b.Decision = oauth.Denied }
	for _, row := range []struct {
		name    string
		changes string
		public  bool
		uri     string
		browser oauth.Browser
		want    oauth.Step
		refusal oauth.Code
	}{
		{"not signed in", "", false, web, out, oauth.StepLogin, ""},
		{"a decision, not signed in", "", false, web, with(out, allowed), oauth.StepLogin, ""},
		{"a session", "", false, web, in, oauth.StepChooseAccount, ""},
		{"a session and remembered consent", "", false, web, known, oauth.StepChooseAccount, ""},
		{"a decision without a choice", "", false, web, with(known, allowed), oauth.StepChooseAccount, ""},
		{"chosen", "", false, web, chosen, oauth.StepConsent, ""},
		{"just signed in", "", false, web, fresh, oauth.StepConsent, ""},
		{"chosen, consent remembered", "", false, web, with(chosen, consented), oauth.StepIssue, ""},
		{"just signed in, consent remembered", "", false, web, with(fresh, consented), oauth.StepIssue, ""},
		{"scopes grew", "scope=view-user+detail-user", false, web, with(chosen, consented), oauth.StepConsent, ""},
		{"allowed", "", false, web, with(chosen, allowed), oauth.StepIssue, ""},
		{"denied", "", false, web, with(chosen, denied), oauth.StepRefuse, oauth.AccessDenied},
		{"denied what was granted before", "", false, web, with(with(chosen, consented), denied), oauth.StepRefuse, oauth.AccessDenied},

		{"bypass, not signed in", chooser + "=true", false, web, out, oauth.StepLogin, ""},
		{"bypass, never authorized", chooser + "=true", false, web, in, oauth.StepChooseAccount, ""},
		{"bypass", chooser + "=true", false, web, known, oauth.StepIssue, ""},
		{"bypass, scopes grew", chooser + "=true&scope=view-user+detail-user", false, web, known, oauth.StepConsent, ""},
		{"bypass, public on the web", chooser + "=true", true, web, known, oauth.StepIssue, ""},

		{"prompt=login", "prompt=login", false, web, known, oauth.StepLogin, ""},
		{"prompt=login after a choice", "prompt=login", false, web, with(chosen, consented), oauth.StepLogin, ""},
		{"prompt=login and a decision", "prompt=login", false, web, with(chosen, allowed), oauth.StepLogin, ""},
		{"prompt=login done", "prompt=login", false, web, with(fresh, consented), oauth.StepIssue, ""},
		{"prompt=login with the bypass", "prompt=login&" + chooser + "=true", false, web, known, oauth.StepLogin, ""},
		{"prompt=consent", "prompt=consent", false, web, with(chosen, consented), oauth.StepConsent, ""},
		{"prompt=consent with the bypass", "prompt=consent&" + chooser + "=true", false, web, known, oauth.StepConsent, ""},
		{"prompt=consent, allowed", "prompt=consent", false, web, with(with(chosen, consented), allowed), oauth.StepIssue, ""},
		{"prompt=login consent", "prompt=login+consent", false, web, with(chosen, consented), oauth.StepLogin, ""},
		{"prompt=login consent, signed in", "prompt=login+consent", false, web, with(fresh, consented), oauth.StepConsent, ""},

		{"prompt=none, not signed in", "prompt=none", false, web, out, oauth.StepRefuse, oauth.LoginRequired},
		{"prompt=none, no consent", "prompt=none", false, web, in, oauth.StepRefuse, oauth.ConsentRequired},
		{"prompt=none", "prompt=none", false, web, known, oauth.StepIssue, ""},
		{"prompt=none, a decision does not count", "prompt=none", false, web, with(in, allowed), oauth.StepRefuse, oauth.ConsentRequired},
		{"prompt=none, scopes grew", "prompt=none&scope=detail-user", false, web, known, oauth.StepRefuse, oauth.ConsentRequired},

		{"confidential on loopback", "", false, local, with(chosen, consented), oauth.StepIssue, ""},
		{"public on the web", "", true, web, with(chosen, consented), oauth.StepIssue, ""},
		{"public on localhost", "", true, local, with(chosen, consented), oauth.StepConsent, ""},
		{"public on loopback", "", true, loopback, with(chosen, consented), oauth.StepConsent, ""},
		{"public, private-use scheme", "", true, private, with(chosen, consented), oauth.StepConsent, ""},
		{"public, private-use scheme, allowed", "", true, private, with(chosen, allowed), oauth.StepIssue, ""},
		{"public on loopback, bypass", chooser + "=true", true, loopback, known, oauth.StepChooseAccount, ""},
		{"public, private-use scheme, none", "prompt=none", true, private, known, oauth.StepRefuse, oauth.ConsentRequired},
	} {
		c := webClient()
		if row.public {
			c = publicClient()
		}
		r, err := oauth.ParseAuthorizationRequest(append(query(row.changes+"&redirect_uri="+
			row.uri), oauth.Parameter{}), chooser)
		if err != nil || r.CheckClient(c) != nil || r.Check(c, 0) != nil {
			t.Fatalf("%s: the request is rejected", row.name)
		}
		got, refusal := oauth.NextStep(r, c, row.browser)
		if got != row.want || (refusal == nil) != (row.refusal == "") || refusal != nil &&
			refusal.Code != row.refusal {
			t.Errorf("%s: got step %d, %v, want %d, %s", row.name, got, refusal, row.want,
				row.refusal)
		}
	}
}
