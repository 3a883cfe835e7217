package contracts

import (
	"context"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// sessionCookie is the name of the session cookie on plain HTTP.
const sessionCookie = "gatehouse"

func browserStates() []State {
	cookie := Value{"cookie", "The browser's Cookie header."}
	owners := append(append([]Value{cookie}, clientValues...), userValues...)
	return []State{
		{"nobody is signed in",
			"A browser without a session. It must sign in; with prompt=none it gets login_required.",
			nil, nil, always(func(context.Context, *fixture) error { return nil })},
		{"a person is signed in",
			"A browser with the session of a user who has not allowed any client yet.",
			[]Parameter{{"browser", String, device, nil, "Browser and system, in a few words; \"\" = they are not known."}},
			append([]Value{cookie, {"session", "The session's id, as operators see it."}}, userValues...), parseSignIn},
		{"a person has allowed the client",
			"A browser with the session of a user who has allowed the client these scopes. An " +
				"authorization request with skip_account_chooser=true, or with prompt=none, gets a code at once.",
			[]Parameter{{"scope", String, DefaultScope, nil, "The scopes that were allowed."}},
			owners, parseConsent},
		{"a person answers the question for consent",
			"A simulated browser of a signed-in person goes through all pages of an authorization request. " +
				"The response is the redirect at the end.",
			[]Parameter{{"decision", String, "allow", []string{"allow", "deny"},
				"The person's decision."}}, owners, parseDecision},
	}
}

// device is the browser of a session.
const device = "Contract test"

func parseSignIn(a arguments) (setUp, error) {
	return func(ctx context.Context, f *fixture) error {
		if err := f.needUser(ctx); err != nil {
			return err
		}
		session, err := f.newSession(ctx, f.user.ID, a.text("browser"))
		f.values["cookie"] = sessionCookie + "=" + session
		f.values["session"] = (&account.Session{Hash: oauth.HashOf(session)}).ID()
		return err
	}, nil
}

// newSession creates a session of a user in a browser and returns its token.
func (f *fixture) newSession(ctx context.Context, user int64, browser string) (string, error) {
	now, token := time.Now(), account.NewSecret()
	_, err := f.store.CreateSession(ctx, &account.Session{Hash: oauth.HashOf(token), UserID: user,
		Created: now, SignedIn: now, Seen: now, Expires: now.Add(sessionLifetime),
		Device: browser})
	return token, err
}

// needSession creates a client and a session unless they exist.
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
		return f.consent(ctx, f.user.ID, scopes)
	}, nil
}

// consent lets a user allow the current client scopes.
func (f *fixture) consent(ctx context.Context, user int64, scopes oauth.Scopes) error {
	before, err := f.People.Consent(ctx, user, f.client.ID)
	if err != nil {
		return err
	}
	return f.People.GrantConsent(ctx, user, f.client.ID, scopes, nil, nil,
		before.Granted, time.Now())
}

func parseDecision(a arguments) (setUp, error) {
	return func(ctx context.Context, f *fixture) error {
		f.decision = a.text("decision")
		return f.needSession(ctx)
	}, nil
}
