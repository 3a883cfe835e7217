package signin

import (
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// passkeyForm returns the form that asks for any passkey; zero = there are no passkeys.
func (s *service) passkeyForm(v *visit.Visit) pages.Passkey {
	if s.people.PasskeyDomain() == "" {
		return pages.Passkey{}
	}
	challenge, sealed := v.NewChallenge(v.Bind("passkey"))
	return pages.Passkey{Action: v.Path(pages.PathLoginPasskey), Challenge: sealed,
		Options: string(s.people.SignInOptions(challenge)), Autofill: true}
}

// loginPasskey signs in by a passkey. For the script of the page to sign in, it has a new challenge.
func (s *service) loginPasskey(v *visit.Visit) {
	switch {
	case v.WantsChallenge():
		s.SendChallenge(v, s.passkeyForm(v))
		return
	case !v.HTTP.IsPost():
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin)) // a reload after the form was sent
		return
	}
	answer, _, err := s.PasskeyAnswer(v, v.Bind("passkey"), 0)
	var signedIn *people.SignedIn
	if err == nil {
		signedIn, err = s.people.SignInByPasskey(v.Ctx, people.PasskeySignIn{
			PasskeyAnswer: answer, App: v.ClientID(),
			Device: visit.DeviceOf(string(v.HTTP.UserAgent())),
			Known:  func(address string) string { return s.KnownMark(v.HTTP, address) },
		}, v.Now)
	}
	if err == nil {
		s.finishSignIn(v, signedIn)
		return
	}
	status, problems := visit.Again(v, err, "", "login.too_many")
	if errors.Is(err, people.ErrDisabled) {
		status, problems = fasthttp.StatusForbidden, []pages.Problem{{Text: visit.TextOf(err)}}
	}
	if status == 0 {
		s.WriteFailure(v.HTTP, "sign in by a passkey", err)
		return
	}
	p := s.loginPage(v)
	p.Problems = problems
	if errors.Is(err, people.ErrPasskeyUnknown) {
		p.Passkey.Signals = s.unknownPasskey(answer.Response)
	}
	s.Show(v, status, p)
}

// unknownPasskey tells the browser that a passkey does not sign in here.
func (s *service) unknownPasskey(response []byte) string {
	var credential struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(response, &credential) != nil || credential.ID == "" {
		return ""
	}
	return pages.SignalText(pages.UnknownCredential(s.people.PasskeyDomain(), credential.ID))
}

// afterPassword returns the path of the page that offers a passkey to somebody who has just signed in
// by password, or next.
func (s *service) afterPassword(v *visit.Visit, user *account.User, next string) string {
	if v.Field("passkeys") == "" { // a browser without scripts or passkeys
		return next
	}
	offer, err := s.people.OfferPasskey(v.Ctx, user, v.Now)
	if err != nil || !offer { // a failure must not keep anybody from signing in
		return next
	}
	return v.PathChosen(pages.PathPasskeyOffer, user.ID)
}

// offerPasskey shows and handles the page that offers a passkey after a sign-in by password.
func (s *service) offerPasskey(v *visit.Visit) {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return
	}
	if len(visitors) == 0 {
		visit.Redirect(v.HTTP, v.Path(pages.PathLogin))
		return
	}
	who, next := visitors[0], v.Home()
	if v.Pending != nil {
		next = v.Path(pages.PathAuthorize)
		var ok bool
		if who, ok = visit.FindVisitor(visitors, v.Chosen); !ok {
			visit.Redirect(v.HTTP, next)
			return
		}
		next = v.PathChosen(pages.PathAuthorize, who.User.ID)
	}
	v.By(who.User.ID)
	form := v.Bind("passkey offer " + who.Token)
	made := func() pages.Passkey {
		return s.NewPasskey(v, who.User, form, pages.Passkey{Button: texts.Of("passkey.add"),
			Action: v.PathChosen(pages.PathPasskeyOffer, who.User.ID)})
	}
	show := func(status int, problems ...pages.Problem) {
		s.Show(v, status, pages.PasskeyOffer{Account: who.Account(), Passkey: made(), Next: next,
			Problems: problems})
	}
	switch {
	case v.WantsChallenge():
		s.SendChallenge(v, made())
		return
	case !v.HTTP.IsPost():
		show(fasthttp.StatusOK)
		return
	}
	answer, handle, err := s.PasskeyAnswer(v, form, people.HandleLength)
	if err == nil {
		_, err = s.people.AddPasskey(v.Ctx, who.User,
			people.Proof{Session: who.Session, Caller: s.Caller(v), Offered: true},
			people.NewPasskey{PasskeyAnswer: answer, Handle: handle, Name: visit.PasskeyName(v)}, v.Now)
	}
	status, problems := visit.Again(v, err, "", "proof.too_many")
	switch {
	case err == nil, errors.Is(err, people.ErrProofNeeded), errors.Is(err, people.ErrWrongCredentials),
		errors.Is(err, account.ErrNotFound):
		visit.Redirect(v.HTTP, next) // the sign-in is too long ago, or has ended
	case status != 0:
		show(status, problems...)
	default:
		s.WriteFailure(v.HTTP, "add a passkey", err)
	}
}
