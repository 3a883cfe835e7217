package signin

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// link shows what the link of a notice does, and does it when the form is sent: programs that look
// at mails open links.
func (s *service) link(v *visit.Visit) {
	v.Secret = s.BrowserSecret(v.HTTP)
	token := string(v.HTTP.QueryArgs().Peek("token"))
	if v.HTTP.IsPost() {
		token = v.Field("token")
	}
	l, err := s.people.Link(v.Ctx, token, v.Now)
	switch {
	case err != nil:
		s.refuseLink(v, err)
	case !v.HTTP.IsPost():
		s.showLink(v, l, token, fasthttp.StatusOK)
	case !v.CheckForm(v.Bind("link")):
		s.showLink(v, l, token, fasthttp.StatusForbidden, pages.Problem{Text: visit.TextStaleForm})
	default:
		s.useLink(v, l, token)
	}
}

func (s *service) showLink(v *visit.Visit, l *account.Link, token string, status int,
	problems ...pages.Problem) {
	s.WritePage(v.HTTP, status, pages.Link{Restores: l.Address, Token: token, Action: pages.PathLink,
		FormToken: v.Bind("link").NewFormToken(v.Now), Problems: problems})
}

// refuseLink responds when the link of a notice cannot be used.
func (s *service) refuseLink(v *visit.Visit, err error) {
	if !errors.Is(err, account.ErrNotFound) {
		s.WriteFailure(v.HTTP, "use a link", err)
		return
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusGone, pages.Message{Title: texts.Of("link.gone"),
		Text: texts.Of("link.gone_text"), Advice: texts.Of("link.gone_advice"),
		Link: pages.PathLogin, LinkText: texts.Of("login.heading")})
}

// useLink does what the link does, and starts to recover the account.
func (s *service) useLink(v *visit.Visit, l *account.Link, token string) {
	u, err := s.people.UseLink(v.Ctx, token, v.Now)
	switch {
	case errors.Is(err, account.ErrTaken):
		s.DropSessions(v)
		s.WriteMessage(v.HTTP, fasthttp.StatusConflict, pages.Message{
			Title: texts.Of("link.signed_out"), Text: texts.Of("link.taken_text", "address", l.Address),
			Advice: texts.Of("link.taken_advice"),
			Link:   pages.PathLogin, LinkText: texts.Of("login.heading")})
	case err != nil:
		s.refuseLink(v, err)
	default:
		s.DropSessions(v)
		v.Secret = s.RenewBrowserSecret(v.HTTP)
		s.recoverAccount(v, l, u)
	}
}

// recoverAccount sends a code that gets the owner back in, by the channel of the link if that signs
// in. If none can be sent now, it shows where to ask for one. A new address may be a thief's: it gets
// no code.
func (s *service) recoverAccount(v *visit.Visit, l *account.Link, u *account.User) {
	flow, begin, address := &s.resetFlow().CodeFlow, s.people.BeginReset, u.Email
	byPhone := !u.MustUsePassword(s.people.PhoneReplacesPassword()) && u.Phone != ""
	if byPhone && (l.Channel == account.SMS || u.Email == "") {
		flow, begin, address = &s.phoneFlow().CodeFlow, s.people.BeginPhone, u.Phone
	}
	if s.people.Channels().Has(flow.Channel) &&
		u.IsSettled(account.WayOf(flow.Channel), v.Now) {
		code, err := begin(v.Ctx, address, s.Browser(v, address), v.Now)
		if err == nil {
			s.GoOnToCode(v, flow, code)
			return
		}
	}
	s.WriteMessage(v.HTTP, fasthttp.StatusOK, pages.Message{Title: texts.Of("link.signed_out"),
		Text: texts.Of("link.signed_out_text"), Advice: texts.Of("link.recover_advice"),
		Link: flow.Start, LinkText: texts.Of("link.recover")})
}
