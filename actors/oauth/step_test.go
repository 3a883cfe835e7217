package oauth_test

import (
	"strings"
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
	twoFactors := func(b *oauth.Browser) { b.HasFactor, b.TwoFactors = true, true }
	hasFactor := func(b *oauth.Browser) { b.HasFactor = true }
	enrols := func(b *oauth.Browser) { b.MustEnrol = true }
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

		{"another class than ours", "acr_values=urn:a", false, web, out, oauth.StepRefuse, oauth.UnmetAuthenticationRequirements},
		{"another class, silently", "acr_values=urn:a&prompt=none", false, web, known, oauth.StepRefuse, oauth.UnmetAuthenticationRequirements},
		{"two factors, not signed in", "acr_values=2", false, web, out, oauth.StepLogin, ""},
		{"two factors, used", "acr_values=2", false, web, with(with(chosen, consented), twoFactors), oauth.StepIssue, ""},
		{"two factors, one used", "acr_values=2", false, web, with(with(chosen, consented), hasFactor), oauth.StepFactor, ""},
		{"two factors, one used, and a decision", "acr_values=2", false, web, with(with(chosen, allowed), hasFactor), oauth.StepFactor, ""},
		{"two factors, there is one", "acr_values=2", false, web, with(chosen, consented), oauth.StepRefuse, oauth.UnmetAuthenticationRequirements},
		{"two factors or one, one used", "acr_values=2+1", false, web, with(with(chosen, consented), hasFactor), oauth.StepFactor, ""},
		{"two factors or one, there is one", "acr_values=2+1", false, web, with(chosen, consented), oauth.StepIssue, ""},
		{"one factor or two", "acr_values=1+2", false, web, with(with(chosen, consented), hasFactor), oauth.StepIssue, ""},
		{"must enrol", "", false, web, with(with(chosen, consented), enrols), oauth.StepEnrol, ""},
		{"two factors, must enrol", "acr_values=2", false, web, with(with(chosen, consented), enrols), oauth.StepEnrol, ""},
		{"must enrol, no account chosen", "", false, web, with(in, enrols), oauth.StepChooseAccount, ""},

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

// TestNextStepWithOpenID asks for the scope openid, which the web client and the public one are
// registered for.
func TestNextStepWithOpenID(t *testing.T) {
	const (
		web      = "https://app.example/cb"
		loopback = "http://127.0.0.1/cb"
	)
	granted := oauth.OpenID
	out := oauth.Browser{}
	one := oauth.Browser{SignedIn: true, Consent: granted}
	new := oauth.Browser{SignedIn: true}
	two := oauth.Browser{SignedIn: true, Several: true, Consent: granted}
	with := func(b oauth.Browser, changes ...func(*oauth.Browser)) oauth.Browser {
		for _, change := range changes {
			change(&b)
		}
		return b
	}
	chosen := func(b *oauth.Browser) { b.Chosen = true }
	fresh := func(b *oauth.Browser) { b.Chosen, b.Fresh = true, true }
	outdated := func(b *oauth.Browser) { b.Outdated = true }
	hintAgrees := func(b *oauth.Browser) { b.HintAgrees = true }
	hintDiffers := func(b *oauth.Browser) { b.HintDiffers = true }
	allowed := func(b *oauth.Browser) { b.Decision = oauth.Allowed }
	const skip, none = chooser + "=true", "prompt=none"
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
		{"one session", "", false, web, one, oauth.StepIssue, ""},
		{"one session, no consent", "", false, web, new, oauth.StepConsent, ""},
		{"one session, scopes grew", "scope=openid+offline_access", false, web, one, oauth.StepConsent, ""},
		{"two sessions", "", false, web, two, oauth.StepChooseAccount, ""},
		{"two sessions, chosen", "", false, web, with(two, chosen), oauth.StepIssue, ""},
		{"two sessions, just signed in", "", false, web, with(two, fresh), oauth.StepIssue, ""},
		{"two sessions, bypass", skip, false, web, two, oauth.StepIssue, ""},
		{"two sessions, one is hinted", "", false, web, with(two, hintAgrees), oauth.StepIssue, ""},
		{"another scope with two sessions", "scope=view-user", false, web, two, oauth.StepChooseAccount, ""},
		{"another scope with one session", "scope=view-user", false, web, one, oauth.StepChooseAccount, ""},

		{"select_account, not signed in", "prompt=select_account", false, web, out, oauth.StepLogin, ""},
		{"select_account", "prompt=select_account", false, web, one, oauth.StepChooseAccount, ""},
		{"select_account, hinted", "prompt=select_account", false, web, with(one, hintAgrees), oauth.StepChooseAccount, ""},
		{"select_account with the bypass", "prompt=select_account&" + skip, false, web, one, oauth.StepChooseAccount, ""},
		{"select_account, chosen", "prompt=select_account", false, web, with(one, chosen), oauth.StepIssue, ""},
		{"select_account and login", "prompt=select_account+login", false, web, with(one, chosen), oauth.StepLogin, ""},
		{"select_account and login, done", "prompt=select_account+login", false, web, with(one, fresh), oauth.StepIssue, ""},
		{"select_account and consent", "prompt=select_account+consent", false, web, with(one, chosen), oauth.StepConsent, ""},

		{"outdated", "max_age=9", false, web, with(one, outdated), oauth.StepLogin, ""},
		{"outdated, chosen", "max_age=9", false, web, with(two, outdated, chosen), oauth.StepLogin, ""},
		{"outdated, nothing chosen", "max_age=9", false, web, with(two, outdated), oauth.StepChooseAccount, ""},
		{"outdated, signed in again", "max_age=0", false, web, with(one, outdated, fresh), oauth.StepIssue, ""},
		{"outdated with a decision", "max_age=9", false, web, with(one, outdated, allowed), oauth.StepLogin, ""},

		{"another user is hinted", "", false, web, with(one, hintDiffers), oauth.StepLogin, ""},
		{"another user is hinted, two sessions", "", false, web, with(two, hintDiffers), oauth.StepLogin, ""},
		{"another user than the hinted", "", false, web, with(one, hintDiffers, chosen), oauth.StepRefuse, oauth.LoginRequired},
		{"another user than the hinted, decided", "", false, web, with(one, hintDiffers, fresh, allowed), oauth.StepRefuse, oauth.LoginRequired},

		{"none, not signed in", none, false, web, out, oauth.StepRefuse, oauth.LoginRequired},
		{"none", none, false, web, one, oauth.StepIssue, ""},
		{"none, outdated", none + "&max_age=9", false, web, with(one, outdated), oauth.StepRefuse, oauth.LoginRequired},
		{"none, no consent", none, false, web, new, oauth.StepRefuse, oauth.ConsentRequired},
		{"none, two sessions", none, false, web, two, oauth.StepRefuse, oauth.AccountSelectionRequired},
		{"none, two sessions, bypass", none + "&" + skip, false, web, two, oauth.StepIssue, ""},
		{"none, two sessions, hinted", none, false, web, with(two, hintAgrees), oauth.StepIssue, ""},
		{"none, another is hinted", none, false, web, with(one, hintDiffers), oauth.StepRefuse, oauth.LoginRequired},
		{"none, two sessions without openid", none + "&scope=view-user", false, web, with(two, func(b *oauth.Browser) { b.Consent = oauth.ViewUser }), oauth.StepIssue, ""},

		{"public on loopback", "", true, loopback, one, oauth.StepConsent, ""},
		{"public on loopback, two sessions, bypass", skip, true, loopback, two, oauth.StepChooseAccount, ""},
		{"public on loopback, none", none, true, loopback, one, oauth.StepRefuse, oauth.InteractionRequired},
		{"public on loopback, none, no consent", none, true, loopback, new, oauth.StepRefuse, oauth.ConsentRequired},
		{"public on loopback, allowed", "", true, loopback, with(one, allowed), oauth.StepIssue, ""},
	} {
		c := webClient()
		if row.public {
			c = publicClient()
		}
		c.Scopes |= oauth.OpenIDScopes
		changes := row.changes + "&redirect_uri=" + row.uri
		if !strings.Contains(changes, "scope=") {
			changes += "&scope=openid"
		}
		r, err := oauth.ParseAuthorizationRequest(append(query(changes), oauth.Parameter{}), chooser)
		if err == nil {
			err = r.CheckClient(c)
		}
		if err == nil {
			err = r.Check(c, 0)
		}
		if err != nil {
			t.Fatalf("%s: the request is rejected: %v", row.name, err)
		}
		got, refusal := oauth.NextStep(r, c, row.browser)
		if got != row.want || (refusal == nil) != (row.refusal == "") || refusal != nil &&
			refusal.Code != row.refusal {
			t.Errorf("%s: got step %d, %v, want %d, %s", row.name, got, refusal, row.want,
				row.refusal)
		}
	}
}
