package contracts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/cmd/stack"
)

// adminPath is the path of the admin API, which has a listener of its own.
const adminPath = "/admin/v1/"

func operatorStates() []State {
	return []State{
		{"an operator has sent requests", "The admin API has accepted requests with the last access token of an operator, or with one of a client that the state makes.",
			[]Parameter{{"requests", String, "PUT groups/staff {}", nil, "Requests in lines: the method, the path below `" + adminPath +
				"` and, if there is one, the body, separated by spaces. The path may have `${user_id}`, and `${id}` of what the request before has created."}},
			[]Value{{"created", "The path of what the last request has created."}}, parseOperations},
		{"the server's own files declare an object", "An object that only the server's files change.", []Parameter{
			{"kind", String, "group", []string{"client", "resource", "group", "attribute", "claim", "provider"}, "What it is."},
			{"id", String, "staff", nil, "Its id or name."},
			{"body", String, "{}", nil, "The JSON object that describes it, as in a request with PUT."},
		}, nil, parseDeclared},
		{"an event in the audit trail", "An event about the user 17 and a client, or one about nothing.", []Parameter{
			{"action", String, "sign_in", nil, "What has happened."},
			{"outcome", String, "ok", []string{"ok", "failed", "refused"}, "How it ended."},
			{"actor", String, "system", []string{"system", "user", "client", "operator"}, "Who has done it."},
			{"known", Boolean, true, nil, "Whether the members that may be null have a value."},
		}, nil, parseEvent},
		{"a user with all ways to sign in", "A user with a password, sign-in by phone, passkeys, an authenticator app and recovery codes.",
			nil, userValues, always(createWholeUser)},
		{"the client has used its secret", "The client has got an access token for itself, and has then sent a wrong secret.",
			nil, clientValues, always(useSecret)},
		{"the service can send e-mails", "Messages to people are accepted, and sent to nobody.", nil, nil, always(sendMessages)},
	}
}

func parseOperations(a arguments) (setUp, error) {
	var requests [][]string
	for line := range strings.Lines(a.text("requests")) {
		request := append(strings.SplitN(strings.TrimSpace(line), " ", 3), "")
		if len(request) < 3 {
			return nil, errors.New("requests: each has a method and a path")
		}
		requests = append(requests, request)
	}
	return func(ctx context.Context, f *fixture) error {
		if f.operator == "" {
			if err := f.issueToOperator(ctx); err != nil {
				return err
			}
		}
		for _, request := range requests {
			created, _ := f.values["created"].(string)
			path := strings.NewReplacer("${user_id}", fmt.Sprint(f.values["user_id"]),
				"${id}", created[strings.LastIndexByte(created, '/')+1:]).Replace(request[1])
			response, err := f.send(ctx, request[0], f.AdminURL+adminPath+path, "application/json", request[2],
				"Bearer "+f.operator)
			if err != nil {
				return err
			}
			if response.StatusCode >= http.StatusBadRequest {
				return stateErrorf("the admin API refuses %s %s with %d", request[0], path, response.StatusCode)
			}
			f.values["created"] = response.Header.Get("Location")
		}
		return nil
	}, nil
}

// issueToOperator makes a client of an operator the current one and issues an access token to it.
func (f *fixture) issueToOperator(ctx context.Context) error {
	const scope = "server-operations"
	for _, s := range []struct {
		name      string
		arguments map[string]any
	}{
		{"another client", map[string]any{"operator": true, "scope": scope, "grants": "client_credentials", "redirect_uri": ""}},
		{"an access token", map[string]any{"scope": scope, "user": false}},
	} {
		resolved, err := resolve(s.name, s.arguments)
		if err != nil {
			return err
		}
		if _, err := f.setUp(ctx, resolved); err != nil {
			return err
		}
	}
	return nil
}

// send sends a request and discards the body of the response.
func (f *fixture) send(ctx context.Context, method, to, kind, body, authorization string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Authorization", authorization)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response, errors.Join(err, response.Body.Close())
}

func parseDeclared(a arguments) (setUp, error) {
	set := &oauth.DeclaredSet{Name: "files"}
	if err := stack.Describe(set, a.text("kind"), a.text("id"), []byte(a.text("body")), time.Now()); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return func(ctx context.Context, f *fixture) error {
		_, err := f.Tokens.Declare(ctx, []*oauth.DeclaredSet{set})
		return err
	}, nil
}

func parseEvent(a arguments) (setUp, error) {
	e := audit.Event{Action: audit.Action(a.text("action")), Outcome: audit.Outcome(a.text("outcome"))}
	source := audit.Source{Actor: audit.Actor{Kind: audit.ActorKind(a.text("actor"))}}
	if source.Actor.Kind == "system" {
		source.Actor.Kind = audit.System
	}
	if a.flag("known") {
		e.Subject = audit.Subject{UserID: 17, ClientID: DefaultClientID}
		e.Target, e.Details, e.Data = "17", []string{"name"}, audit.Data{"session": "s"}
		source.Actor.ID, source.RequestID, source.Browser = "17", "r1", "Firefox on Linux"
		source.Caller = netip.MustParseAddr("192.0.2.7")
	}
	return func(ctx context.Context, f *fixture) error {
		return f.Store.Record(audit.With(audit.WithSource(ctx, source), e))
	}, nil
}

func createWholeUser(ctx context.Context, f *fixture) error {
	s, err := resolve("a user with every profile field set", nil)
	if err != nil {
		return err
	}
	now := time.Now()
	u := newUser(s.arguments, now)
	u.PasswordHash, u.Language = account.NewHasher(account.CheapCost()).Hash("correct horse battery"), "en"
	u.PhoneSignIn = true
	code := sha256.Sum256([]byte("code"))
	key := account.Passkey{ID: []byte("passkey-1"), PublicKey: []byte("key"), SignsIn: true,
		BackupEligible: true, BackedUp: true, Name: "Phone", Created: now, Used: now}
	other := key
	other.ID, other.Name, other.Used = []byte("passkey-2"), "Key ring", time.Time{}
	u.Credentials = account.Credentials{
		Authenticator: &account.Authenticator{Secret: f.store.SealFactor([]byte("12345678901234567890")), Created: now},
		RecoveryCodes: [][]byte{code[:]}}
	part := &account.ImportPart{ID: "0b7a3c1e-52d4-4f0a-9c1b-7d2f4e6a8c99", Line: 1,
		Users: []account.ImportedUser{{Line: 1, User: u}}} // which seals the secret of the app
	if err := f.People.ImportUsers(ctx, part, now); err != nil {
		return err
	}
	if part.Created != 1 {
		return stateErrorf("the user is refused: %v", part.Refused)
	}
	if f.user, err = f.store.UserByEmail(ctx, u.Email); err != nil {
		return err
	}
	f.user.Credentials.Handle = bytes.Repeat([]byte{7}, people.HandleLength)
	f.user.Credentials.Passkeys = []account.Passkey{key, other}
	if err := f.store.UpdateUser(ctx, f.user); err != nil {
		return err
	}
	f.nameUser()
	return nil
}

func useSecret(ctx context.Context, f *fixture) error {
	if err := f.needClient(ctx); err != nil {
		return err
	}
	for _, secret := range []string{f.secret, OtherClientSecret + "0"} {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {f.client.ID}, "client_secret": {secret}}
		response, err := f.send(ctx, http.MethodPost, f.URL+"/oauth/token", "application/x-www-form-urlencoded", form.Encode(), "")
		if err != nil {
			return err
		}
		if ok := response.StatusCode == http.StatusOK; ok != (secret == f.secret) {
			return stateErrorf("the client gets no access token for itself: %d", response.StatusCode)
		}
	}
	return nil
}

// nobody is a sender that drops messages.
type nobody struct{}

func (nobody) Send(context.Context, account.Message) error { return nil }

func sendMessages(ctx context.Context, f *fixture) error {
	return f.restart(ctx, func(c *stack.Config) {
		c.Identity.Sender, c.Identity.Channels = nobody{}, account.Channels{Email: true}
	})
}
