package signin

import (
	"cmp"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/lookalike"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/actors/token"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

var textWrongUserCode = texts.Of("connect.wrong")

// paramDone marks a visit to the page for devices right after a decision.
const paramDone = "done"

// device shows and handles the page on which a person enters the user code of a device, and decides
// about it (RFC 8628 section 3.3). It asks each time, whatever was granted before.
func (s *service) device(v *visit.Visit) {
	v.Secret = s.BrowserSecret(v.HTTP)
	userCode := v.OpenDevice()
	if done := string(v.HTTP.QueryArgs().Peek(paramDone)); !v.HTTP.IsPost() && done != "" {
		s.showDone(v, done)
		return
	}
	if v.Device == "" {
		v.Device = "user_code="
	}
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return
	}
	if len(visitors) == 0 {
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
		return
	}
	who := visitors[0]
	v.By(who.User.ID)
	switch {
	case !v.HTTP.IsPost():
		s.showUserCode(v, who, fasthttp.StatusOK, cmp.Or(userCode, v.Shown("user_code")))
	case v.Field("decision") != "":
		s.decideDevice(v, who)
	case !v.CheckForm(userCodeForm(v, who)):
		s.showUserCode(v, who, fasthttp.StatusForbidden, v.Shown("user_code"),
			pages.Problem{Text: visit.TextStaleForm})
	default:
		if c, client, ok := s.findDevice(v, who); ok {
			s.showDevice(v, who, c, client, fasthttp.StatusOK)
		}
	}
}

// userCodeForm and deviceForm bind the forms to the session, and the decision to the code as well.
func userCodeForm(v *visit.Visit, who visit.Visitor) visit.Binding {
	return v.Bind("user code " + who.Token)
}

func deviceForm(v *visit.Visit, who visit.Visitor, userCode string) visit.Binding {
	return v.Bind("device " + who.Token + " " + userCode)
}

// findDevice returns the device code for the user code that was entered, and its client. If there
// is none, it shows the page again and returns false.
func (s *service) findDevice(v *visit.Visit, who visit.Visitor) (
	*oauth.DeviceCode, *oauth.Client, bool) {
	entered := v.Field("user_code")
	userCode, ok := oauth.ParseUserCode(entered)
	if !ok {
		s.showUserCode(v, who, fasthttp.StatusUnprocessableEntity, v.Shown("user_code"),
			pages.Problem{Field: "user_code", Text: texts.Of("connect.missing")})
		return nil, nil, false
	}
	c, client, err := s.tokens.FindDevice(v.Ctx, token.UserCode{Code: userCode,
		UserID: who.User.ID, Browser: oauth.HashOf(v.Secret), Caller: s.Caller(v)}, v.Now)
	if err == nil && !who.User.Groups.MayUse(client.Options.RequireGroups) {
		s.refuseDevice(v, who, c, client)
		return nil, nil, false
	}
	if err == nil {
		return c, client, true
	}
	status, problems := visit.Again(v, err, "user_code", "verify.too_many_wrong")
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		s.showUserCode(v, who, fasthttp.StatusUnprocessableEntity, userCode,
			pages.Problem{Field: "user_code", Text: textWrongUserCode})
	case status != 0:
		s.showUserCode(v, who, status, userCode, problems...)
	default:
		s.WriteFailure(v.HTTP, "find a device", err)
	}
	return nil, nil, false
}

// refuseDevice tells a person who is in none of the groups that the client is for, and the device.
func (s *service) refuseDevice(v *visit.Visit, who visit.Visitor, c *oauth.DeviceCode,
	client *oauth.Client) {
	err := s.tokens.DecideDevice(v.Ctx, token.DeviceDecision{Code: c, UserID: who.User.ID,
		UserEpoch: who.User.Epoch}, v.Now)
	if err != nil && !errors.Is(err, oauth.ErrConflict) && !errors.Is(err, oauth.ErrNotFound) {
		s.WriteFailure(v.HTTP, "decide about a device", err)
		return
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusForbidden,
		noAccess("message.no_access_device", client.Name, who))
}

// decideDevice handles the form that allows or denies.
func (s *service) decideDevice(v *visit.Visit, who visit.Visitor) {
	decision := v.Field("decision")
	c, client, ok := s.findDevice(v, who)
	if !ok {
		return
	}
	userCode, _ := oauth.ParseUserCode(v.Field("user_code"))
	if decision == "allow" && s.stepsUpForDevice(v, who, client) {
		return
	}
	switch {
	case decision != "allow" && decision != "deny":
		s.showDevice(v, who, c, client, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Text: texts.Of("consent.choose")})
		return
	case !v.CheckForm(deviceForm(v, who, userCode)):
		s.showDevice(v, who, c, client, fasthttp.StatusForbidden,
			pages.Problem{Text: visit.TextStaleForm})
		return
	}
	d := token.DeviceDecision{
		Code: c, Allow: decision == "allow", UserID: who.User.ID, UserEpoch: who.User.Epoch,
		Details: oauth.GrantDetails{AuthTime: who.Session.SignedIn.Unix(), AMR: who.Session.AMR},
	}
	if d.Allow && c.Scopes.Contains(oauth.OpenID) {
		sid, err := s.people.ClientSession(v.Ctx, who.Session, c.ClientID)
		if err != nil {
			s.WriteFailure(v.HTTP, "add a client to a session", err)
			return
		}
		d.Session, d.Details.SID = who.Session.Hash, sid
	}
	err := s.tokens.DecideDevice(v.Ctx, d, v.Now)
	switch {
	case err == nil:
		visit.Redirect(v.HTTP, pages.PathDevice+"?"+paramDone+"="+decision)
	case errors.Is(err, oauth.ErrConflict), errors.Is(err, oauth.ErrNotFound):
		s.showUserCode(v, who, fasthttp.StatusUnprocessableEntity, userCode,
			pages.Problem{Field: "user_code", Text: textWrongUserCode})
	default:
		s.WriteFailure(v.HTTP, "decide about a device", err)
	}
}

// showDone says what follows from a decision.
func (s *service) showDone(v *visit.Visit, decision string) {
	m := pages.Message{Title: texts.Of("connect.denied"),
		Text: texts.Of("connect.denied_text"), Advice: texts.Of("connect.close")}
	if decision == "allow" {
		m = pages.Message{Title: texts.Of("connect.allowed"),
			Text: texts.Of("connect.allowed_text"), Advice: texts.Of("connect.close_allowed")}
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusOK, m)
}

func (s *service) showUserCode(v *visit.Visit, who visit.Visitor, status int, userCode string,
	problems ...pages.Problem) {
	s.Show(v, status, pages.DeviceCode{
		Account: who.Account(), Action: pages.PathDevice,
		FormToken: userCodeForm(v, who).NewFormToken(v.Now), UserCode: userCode,
		Another: v.Path(pages.PathAccounts), Problems: problems,
	})
}

func (s *service) showDevice(v *visit.Visit, who visit.Visitor, c *oauth.DeviceCode,
	client *oauth.Client, status int, problems ...pages.Problem) {
	userCode, _ := oauth.ParseUserCode(v.Field("user_code"))
	resembles, err := s.resembled(v, client)
	if err != nil {
		s.WriteFailure(v.HTTP, "read clients", err)
		return
	}
	s.Show(v, status, pages.Device{
		Client: client.Name, ClientURI: client.URI, Logo: pages.AppLogo(client),
		Account:    who.Account(),
		Unverified: client.IsUnverified(), Host: client.Host(),
		Resembles: resembles, Mixed: lookalike.MixesScripts(client.Name),
		HostResembles: s.resembledByHost(client, client.Host()),
		Permissions:   pages.Permissions(pages.Uncovered(c.Scopes, client.DetailApproved), 0),
		Unapproved:    c.Scopes.Contains(oauth.DetailUser) && !client.DetailApproved,
		UserCode:      userCode, Place: c.Place,
		Minutes: int(v.Now.Sub(c.Created) / time.Minute), Action: pages.PathDevice,
		FormToken: deviceForm(v, who, userCode).NewFormToken(v.Now), Problems: problems,
	})
}
