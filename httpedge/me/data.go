package me

import (
	"encoding/json"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// maxDataEvents limits the history in a person's data: the newest are there.
const maxDataEvents = 10_000

// personalData is what is kept about a person, without secrets.
type personalData struct {
	Profile   json.RawMessage `json:"profile"` // the detailed one
	Language  *string         `json:"language"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	WaysIn    []wayData       `json:"ways_in"`
	// PhoneSignIn says that a code to the phone may replace the password.
	PhoneSignIn  bool          `json:"phone_sign_in"`
	SecondFactor *factorData   `json:"second_factor"` // null = there is none
	Apps         []appData     `json:"apps"`
	Sessions     []sessionData `json:"sessions"`
	History      []eventData   `json:"history"` // the newest first
}

// wayData is a way to sign in.
type wayData struct {
	Kind  account.Way `json:"kind"` // password, email, phone or passkey
	Name  *string     `json:"name"` // of a passkey
	Since time.Time   `json:"since"`
	// Issuer, Account and Groups are of a connection: the provider, the account there, and the groups
	// here that its groups stood for at the last sign-in.
	Issuer  string   `json:"issuer,omitempty"`
	Account string   `json:"account,omitempty"`
	Groups  []string `json:"groups,omitempty"`
}

// factorData is the second factor of an account.
type factorData struct {
	AppSince      *time.Time `json:"app_since"` // null = there is no authenticator app
	SecurityKeys  []keyData  `json:"security_keys"`
	RecoveryCodes int        `json:"recovery_codes_left"`
}

// keyData is a security key that only is a second factor.
type keyData struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// secondFactor returns the second factor of u; nil = there is none.
func secondFactor(u *account.User) *factorData {
	if !u.HasSecondFactor() {
		return nil
	}
	f := &factorData{SecurityKeys: []keyData{}, RecoveryCodes: len(u.Credentials.RecoveryCodes)}
	for _, key := range u.Credentials.Passkeys {
		if !key.SignsIn {
			f.SecurityKeys = append(f.SecurityKeys, keyData{key.Name, key.Created.UTC()})
		}
	}
	if a := u.Credentials.Authenticator; a != nil {
		since := a.Created.UTC()
		f.AppSince = &since
	}
	return f
}

// appData is an app that may use the account.
type appData struct {
	ClientID   string         `json:"client_id"`
	Name       string         `json:"name"`
	Scopes     []string       `json:"scopes"`
	Resources  []resourceData `json:"resources"`
	GrantedAt  time.Time      `json:"granted_at"`
	LastUsedAt *time.Time     `json:"last_used_at"`
}

// resourceData is a resource at which an app may use the account.
type resourceData struct {
	URI    string   `json:"uri"`
	Scopes []string `json:"scopes"`
}

type sessionData struct {
	Browser    *string   `json:"browser"`
	Current    bool      `json:"current"`
	Factors    []string  `json:"factors"` // RFC 8176
	CreatedAt  time.Time `json:"created_at"`
	SignedInAt time.Time `json:"signed_in_at"`
	LastSeenAt time.Time `json:"last_seen_at"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// eventData is an event as the page of the history tells it: where operators and servers are is not
// the person's business.
type eventData struct {
	Time     time.Time       `json:"time"`
	Action   audit.Action    `json:"action"`
	Outcome  audit.Outcome   `json:"outcome"`
	By       audit.ActorKind `json:"by"`
	ClientID *string         `json:"client_id"`
	Details  []string        `json:"details"`
	Count    int             `json:"count"`
	Place    *string         `json:"place"`
	Browser  *string         `json:"browser"`
}

// showData shows the page from which a person downloads the data.
func (s *service) showData(p *person) {
	s.WritePage(p.HTTP, fasthttp.StatusOK, pages.MeData{Account: p.Account()})
}

// data sends the person's own data as a file.
func (s *service) data(p *person) {
	d, err := s.dataOf(p)
	if err != nil {
		s.WriteFailure(p.HTTP, "read the data of a person", err)
		return
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		s.WriteFailure(p.HTTP, "write the data of a person", err)
		return
	}
	endpoint.SetPrivateJSON(&p.HTTP.Response.Header)
	p.HTTP.Response.Header.Set(fasthttp.HeaderContentDisposition, `attachment; filename="account.json"`)
	p.HTTP.SetBody(append(text, '\n'))
}

func (s *service) dataOf(p *person) (*personalData, error) {
	u := p.User
	d := &personalData{Profile: u.AppendDetailed(nil), Language: textOrNull(u.Language),
		CreatedAt: u.Created.UTC(), UpdatedAt: u.Updated.UTC(), WaysIn: []wayData{},
		PhoneSignIn: u.PhoneSignIn, SecondFactor: secondFactor(u), Apps: []appData{}, Sessions: []sessionData{}, History: []eventData{}}
	for _, way := range u.Ways() {
		since := u.Since(way)
		if since.IsZero() {
			since = u.Created
		}
		data := wayData{Kind: way, Since: since.UTC()}
		for i := range u.Credentials.Connections {
			if c := &u.Credentials.Connections[i]; c.Way() == way {
				data.Kind, data.Issuer, data.Account = "connection", c.Issuer, c.Name
				data.Groups = c.Groups
			}
		}
		if !way.IsPasskey() {
			d.WaysIn = append(d.WaysIn, data)
		}
	}
	for _, key := range u.Credentials.Passkeys {
		if !key.SignsIn {
			continue
		}
		d.WaysIn = append(d.WaysIn, wayData{Kind: "passkey", Name: textOrNull(key.Name), Since: key.Created.UTC()})
	}
	if err := s.addApps(p, d); err != nil {
		return nil, err
	}
	sessions, err := s.sessionsOf(p)
	if err != nil {
		return nil, err
	}
	for _, one := range sessions {
		d.Sessions = append(d.Sessions, sessionData{textOrNull(one.Device),
			one.Hash == p.Session.Hash, append([]string{}, one.AMR...), one.Created.UTC(),
			one.SignedIn.UTC(), one.Seen.UTC(), one.Expires.UTC()})
	}
	return d, s.addHistory(p, d)
}

func (s *service) addApps(p *person, d *personalData) error {
	connections, err := s.people.Connections(p.Ctx, p.User.ID)
	if err != nil {
		return err
	}
	resources, err := s.tokens.Resources(p.Ctx)
	if err != nil {
		return err
	}
	for _, c := range connections {
		app := appData{ClientID: c.Client.ID, Name: c.Client.Name, Scopes: append([]string{}, c.Scopes.Names()...),
			Resources: []resourceData{}, GrantedAt: c.Granted.UTC()}
		if used := c.Used.UTC(); !c.Used.IsZero() {
			app.LastUsedAt = &used
		}
		for _, reach := range resources.Reaches(c.Targets) {
			app.Resources = append(app.Resources, resourceData{reach.URI, append([]string{}, reach.Scopes...)})
		}
		d.Apps = append(d.Apps, app)
	}
	return nil
}

func (s *service) addHistory(p *person, d *personalData) error {
	f := audit.Filter{UserID: p.User.ID, Since: p.User.Created, Newest: true, Limit: 500}
	for len(d.History) < maxDataEvents {
		events, err := s.audit.Events(p.Ctx, f)
		if err != nil {
			return err
		}
		for _, e := range events {
			one := eventData{Time: e.Time.UTC(), Action: e.Action, Outcome: e.Outcome, By: actorOf(&e),
				ClientID: textOrNull(clientOf(&e)), Details: append([]string{}, e.Details...), Count: e.Count}
			switch one.By {
			case audit.User:
				one.Place, one.Browser = textOrNull(e.From), textOrNull(e.Browser)
			case audit.System:
				one.By = "system"
			}
			d.History = append(d.History, one)
			f.Before = e.Number
		}
		if len(events) < f.Limit {
			return nil
		}
	}
	return nil
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
