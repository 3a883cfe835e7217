package visit

import (
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
)

const (
	fieldLanguage  = "language"   // of the form in the footer of each page
	paramLocales   = "ui_locales" // of an authorization request (OpenID Connect Core 3.1.2.1)
	languageMaxAge = 365 * 24 * time.Hour
)

// accountLanguage is the key of the language of the account that a visit is about.
type accountLanguage struct{}

func setAccountLanguage(ctx *fasthttp.RequestCtx, tag string) {
	ctx.SetUserValue(accountLanguage{}, tag)
}

// viewOf returns the pages in the language of the person: the one chosen in the footer, what the
// client asks for, the account's, the browser's, or the service's.
func (s *Site) viewOf(ctx *fasthttp.RequestCtx) *pages.View {
	all := s.view.Languages()
	if len(all.All()) == 1 {
		return s.view
	}
	kept, _ := ctx.UserValue(accountLanguage{}).(string)
	for _, find := range []func() *texts.Language{
		func() *texts.Language {
			return all.Of(string(ctx.Request.Header.Cookie(s.cookies.language)))
		},
		func() *texts.Language { return all.Match(string(ctx.QueryArgs().Peek(paramLocales))) },
		func() *texts.Language { return all.Of(kept) },
		func() *texts.Language {
			return all.Match(string(ctx.Request.Header.Peek(fasthttp.HeaderAcceptLanguage)))
		},
	} {
		if l := find(); l != nil {
			return s.view.In(l)
		}
	}
	return s.view
}

// ChoosesLanguage reports whether a form is the one in the footer of each page. It has no token: the
// choice of a language does no harm.
func ChoosesLanguage(ctx *fasthttp.RequestCtx) bool {
	args := ctx.PostArgs()
	return ctx.IsPost() && args.Len() == 1 && args.Has(fieldLanguage)
}

// choseLanguage keeps the language that was chosen in the footer, in the browser and in the account
// that is signed in, and shows the page again. It returns false for any other form.
func (s *Site) choseLanguage(v *Visit) bool {
	if !ChoosesLanguage(v.HTTP) {
		return false
	}
	if l := s.view.Languages().Of(v.Field(fieldLanguage)); l != nil {
		s.cookies.write(v.HTTP, s.cookies.language, []string{l.Tag}, languageMaxAge)
		visitors, err := s.Visitors(v)
		if err == nil && len(visitors) > 0 {
			err = s.people.SetLanguage(v.Ctx, visitors[0].User, l.Tag)
		}
		if err != nil { // the browser has it
			s.LogFailure(v, "keep a language", err)
		}
	}
	path := string(v.HTTP.Path())
	if query := v.HTTP.URI().QueryString(); len(query) > 0 {
		path += "?" + string(query)
	}
	Redirect(v.HTTP, path)
	return true
}
