package visit

import (
	"errors"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/httpedge/pages"
)

// SessionFactor asks a person who is signed in for a second factor. Paths may have a query.
type SessionFactor struct {
	Visitor
	Client        string // name of the client that needs it; "" = none does
	Path, KeyPath string // of the page, and of its form for a security key
	Form, KeyForm Binding
	Back          string // path of the page to go back to; "" = not shown
	TooMany       string // key of the text after too many attempts
	Next          string // path that the browser goes on to
}

// UseFactor shows and handles the page.
func (s *Site) UseFactor(v *Visit, f *SessionFactor) {
	hasApp, code := f.User.Credentials.Authenticator != nil, v.Field("code")
	switch {
	case !v.HTTP.IsPost():
		s.showFactor(v, f, fasthttp.StatusOK)
	case !v.CheckForm(f.Form):
		s.showFactor(v, f, fasthttp.StatusForbidden, pages.Problem{Text: TextStaleForm})
	case code == "" || len(code) > MaxSecretText:
		s.showFactor(v, f, fasthttp.StatusUnprocessableEntity,
			pages.Problem{Field: "code", Text: FactorText("missing", hasApp)})
	default:
		err := s.people.UseFactor(v.Ctx, f.User, f.Session, code, s.Browser(v, f.Account().Address),
			v.Now)
		status, problems := Again(v, err, "code", f.TooMany)
		if errors.Is(err, people.ErrWrongCode) {
			problems = []pages.Problem{{Field: "code", Text: FactorText("wrong", hasApp)}}
		}
		if errors.Is(err, people.ErrFactorCode) {
			err = account.ErrNotFound // a code confirms the browser at the next sign-in
		}
		s.factorUsed(v, f, err, status, problems)
	}
}

// UseKeyFactor handles the form for a security key. For the script of the page, it has a new challenge.
func (s *Site) UseKeyFactor(v *Visit, f *SessionFactor) {
	switch {
	case v.WantsChallenge():
		s.SendChallenge(v, s.SecurityKey(v, f.User, f.KeyForm, f.KeyPath))
		return
	case !v.HTTP.IsPost():
		Redirect(v.HTTP, f.Path) // a reload after the form was sent
		return
	}
	answer, _, err := s.PasskeyAnswer(v, f.KeyForm, 0)
	if err == nil {
		err = s.people.UseFactorByKey(v.Ctx, f.User, f.Session, answer, v.Now)
	}
	status, problems := AgainByKey(v, err, f.TooMany)
	s.factorUsed(v, f, err, status, problems)
}

// factorUsed responds to a form. status and problems are what Again says of err.
func (s *Site) factorUsed(v *Visit, f *SessionFactor, err error, status int,
	problems []pages.Problem) {
	switch {
	case err == nil:
		Redirect(v.HTTP, f.Next)
	case errors.Is(err, account.ErrNotFound):
		Redirect(v.HTTP, v.Path(pages.PathLogin))
	case status != 0:
		s.showFactor(v, f, status, problems...)
	default:
		s.WriteFailure(v.HTTP, "check a second factor", err)
	}
}

func (s *Site) showFactor(v *Visit, f *SessionFactor, status int, problems ...pages.Problem) {
	s.Show(v, status, pages.Factor{
		Client: f.Client, Address: f.Account().Address, Action: f.Path,
		FormToken: f.Form.NewFormToken(v.Now), StepsUp: true, Back: f.Back, Problems: problems,
		App: f.User.Credentials.Authenticator != nil, Key: s.SecurityKey(v, f.User, f.KeyForm, f.KeyPath),
	})
}
