// Package console serves the pages at which operators manage apps and people, and see what happens.
// It decides nothing of its own but who may use it: the services do, and record, what the admin API
// has them do.
package console

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// Config configures the console. All fields but Networks are required.
type Config struct {
	Site     *visit.Site
	People   *people.Service
	Tokens   *token.Service
	Audit    audit.Store
	Failures *endpoint.Failures
	Caller   func(*fasthttp.RequestCtx) netip.Addr // address of the client, or zero
	Networks []netip.Prefix                        // for whose callers it exists; empty = for all
	Health   func() Health
}

// Health is what the server knows of itself.
type Health struct {
	Unready      string // why it serves no requests; "" = it does
	Up, Nodes    int    // nodes of the cluster that are up, and all of them; 0 = there is none
	Certificates []Certificate
}

// Certificate is a TLS certificate of a listener.
type Certificate struct {
	Use  string // public or admin
	Ends time.Time
}

// service holds what the handlers share.
type service struct {
	*visit.Site
	config Config
	people *people.Service
	tokens *token.Service
	audit  audit.Store
}

// Endpoints returns the endpoints.
func Endpoints(config Config) []endpoint.Endpoint {
	s := &service{config.Site, config, config.People, config.Tokens, config.Audit}
	show := []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost}
	all := []endpoint.Endpoint{
		{Pattern: pages.PathConsole, Methods: show[:2], Handle: s.operators(func(o *operator) {
			visit.Redirect(o.HTTP, pages.PathConsoleApps)
		})},
		{Pattern: pages.PathConsoleApps, Methods: show, Handle: s.operators(s.apps)},
		{Pattern: pages.PathConsolePeople, Methods: show, Handle: s.operators(s.persons)},
		{Pattern: pages.PathConsoleActivity, Methods: show, Handle: s.operators(s.activity)},
	}
	for i := range all {
		all[i].Format = endpoint.Page
		all[i].Hidden = func(ctx *fasthttp.RequestCtx) bool {
			return isHidden(config.Networks, config.Caller(ctx))
		}
	}
	return all
}

// operator is a request of a person who may use the console.
type operator struct {
	*visit.Visit
	visit.Visitor
	left flash // by the form before
}

// bound binds what is kept in the browser to the session as well.
func (o *operator) bound() visit.Binding { return o.Bind("console " + o.Token) }

// operators returns a handler for those who may use the console. A form also needs a factor that was
// just used, unless it only searches, and it must be a form of ours.
func (s *service) operators(handle func(*operator)) fasthttp.RequestHandler {
	return s.Replay(s.Handle(func(v *visit.Visit) {
		v.Secret = s.BrowserSecret(v.HTTP)
		visitors, err := s.Visitors(v)
		if err != nil {
			s.WriteFailure(v.HTTP, "read sessions", err)
			return
		}
		if len(visitors) == 0 {
			visit.Redirect(v.HTTP, signIn)
			return
		}
		o := &operator{Visit: v, Visitor: visitors[0]}
		source := audit.SourceOf(v.Ctx)
		source.Actor = audit.Actor{Kind: audit.User, ID: strconv.FormatInt(o.User.ID, 10)}
		v.Ctx = audit.WithSource(v.Ctx, source)
		why, changes := mayEnter(o.User, o.Session, v.Now), v.HTTP.IsPost() && o.Field(fieldDo) != doSearch
		if changes && why == "" {
			why = mayChange(o.User, o.Session, v.Now)
		}
		if why != "" {
			s.refuse(o, why)
			return
		}
		if changes && !v.CheckForm(o.bound()) {
			s.WriteMessage(v.HTTP, fasthttp.StatusForbidden,
				pages.Message{Title: texts.Of("message.cannot"), Text: visit.TextStaleForm,
					Link: string(v.HTTP.Path()), LinkText: texts.Of("page.back")})
			return
		}
		// Messages to people are in their own language, not in that of the operator.
		source.AsOperator, source.Language = true, ""
		v.Ctx = audit.WithSource(v.Ctx, source)
		o.left = s.takeFlash(o)
		handle(o)
	}))
}

// refuse says why a person may not use the console, and what to do.
func (s *service) refuse(o *operator, why refusal) {
	m := pages.Message{Title: texts.Of("console.refused"), Text: texts.Of("console." + string(why))}
	switch why {
	case notOperator:
		s.record(audit.With(o.Ctx, audit.Event{Action: audit.AdminRefused, Outcome: audit.Refused,
			Target: string(o.HTTP.Path()), Details: []string{string(why)}}))
		m.Link, m.LinkText = pages.PathAccounts, texts.Of("me.switch")
	case oneFactor:
		m.Link, m.LinkText = stepUp, texts.Of("console.confirm_now")
		if !o.User.HasSecondFactor() {
			m.Link, m.LinkText = pages.PathMeFactors, texts.Of("factors.heading")
		}
	case oldSignIn:
		m.Link, m.LinkText = signIn, texts.Of("console.sign_in_again")
	case oldFactor:
		m.Link, m.LinkText = confirmAt(o.User), texts.Of("console.confirm_now")
	}
	s.WriteMessage(o.HTTP, fasthttp.StatusForbidden, m)
}

// Where a person signs in or uses a second factor, and then comes to the console.
const (
	signIn = pages.PathLogin + "?" + visit.ToConsole
	stepUp = pages.PathStepUp + "?" + visit.ToConsole
)

// confirmAt returns where a person uses a factor again: who has passkeys alone signs in by one.
func confirmAt(u *account.User) string {
	if u.HasSecondFactor() {
		return stepUp
	}
	return signIn
}

// recordTimeout is how long the record of a read may take.
const recordTimeout = 2 * time.Second

// record writes the events of ctx. The request goes on without them if that fails: what cannot be
// written is in the log.
func (s *service) record(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if err := s.audit.Record(ctx); err != nil {
		s.config.Failures.Log("record a request at the console", err)
	}
}

// recordRead records that the operator has read something.
func (s *service) recordRead(o *operator, e audit.Event) { s.record(audit.With(o.Ctx, e)) }

// screen returns what all screens share.
func (s *service) screen(o *operator, at string) pages.Console {
	c := pages.Console{At: at, FormToken: o.bound().NewFormToken(o.Now), Problems: o.left.problems()}
	if o.left.Notice != "" {
		c.Notice = texts.Of(o.left.Notice)
	}
	if mayChange(o.User, o.Session, o.Now) == oldFactor {
		c.Confirm = confirmAt(o.User)
	}
	return c
}

// missing responds that there is no such app or person.
func (s *service) missing(o *operator, key, back string) {
	s.WriteMessage(o.HTTP, fasthttp.StatusNotFound, pages.Message{Title: texts.Of("message.cannot"),
		Text: texts.Of(key), Link: back, LinkText: texts.Of("page.back")})
}

// forbid responds that the console does not change something.
func (s *service) forbid(o *operator, text texts.Text, back string) {
	s.WriteMessage(o.HTTP, fasthttp.StatusForbidden, pages.Message{Title: texts.Of("message.cannot"),
		Text: text, Link: back, LinkText: texts.Of("page.back")})
}

// param returns a parameter of the query; "" when it is missing, repeated or too long.
func (o *operator) param(name string) string {
	params, _ := endpoint.ParseParameters(o.HTTP.URI().QueryString())
	if text := endpoint.Value(params, name); len(text) <= visit.MaxSecretText {
		return text
	}
	return ""
}

// Fields and values of forms.
const (
	fieldDo  = "do" // what to do
	doSearch = "search"
)
