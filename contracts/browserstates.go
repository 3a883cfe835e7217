package contracts

import (
	"context"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// sessionCookie is what the cookie of browser sessions is called when the service is reached by plain HTTP.
const sessionCookie = "gatehouse"

func browserStates() []State {
	cookie := Value{"cookie", "What the browser sends in the header Cookie."}
	owners := append(append([]Value{cookie}, clientValues...), userValues...)
	return []State{
		{"nobody is signed in", "A browser without a session. It has to sign in, or gets login_required with prompt=none.",
			nil, nil, always(func(context.Context, *fixture) error { return nil })},
		{"a person is signed in", "A browser with the session of a user, who has allowed no client yet.",
			nil, append([]Value{cookie}, userValues...), always(signIn)},
		{"a person has allowed the client", "A browser with the session of a user who has allowed the client these scopes. An " +
			"authorization request with skip_account_chooser=true, or with prompt=none, is answered with a code at once.",
			[]Parameter{{"scope", String, DefaultScope, nil, "The scopes that were allowed."}}, owners, parseConsent},
		{"a person answers the question for consent", "There is a browser between client and service: an authorization request is answered " +
			"with the redirect that ends it when a signed-in person has gone through all its pages.",
			[]Parameter{{"decision", String, "allow", []string{"allow", "deny"}, "What the person answers."}}, owners, parseDecision},
	}
}

func signIn(ctx context.Context, f *fixture) error {
	if err := f.needUser(ctx); err != nil {
		return err
	}
	now, token := time.Now(), account.NewSecret()
	session := &account.Session{Hash: oauth.HashOf(token), UserID: f.user.ID, Created: now, SignedIn: now, Seen: now,
		Expires: now.Add(sessionLifetime), Device: "Contract test"}
	if err := f.store.CreateSession(ctx, session); err != nil {
		return err
	}
	f.values["cookie"] = sessionCookie + "=" + token
	return nil
}

// needSession makes a client and a session unless there are some.
func (f *fixture) needSession(ctx context.Context) error {
	if err := f.needClient(ctx); err != nil {
		return err
	}
	return f.setUpDefault(ctx, "a person is signed in")
}

func parseConsent(a arguments) (setUp, error) {
	scopes, err := scopesOf(a)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *fixture) error {
		if err := f.needSession(ctx); err != nil {
			return err
		}
		return f.identity.GrantConsent(ctx, f.user.ID, f.client.ID, scopes, time.Now())
	}, nil
}

func parseDecision(a arguments) (setUp, error) {
	return func(ctx context.Context, f *fixture) error {
		f.decision = a.text("decision")
		return f.needSession(ctx)
	}, nil
}
