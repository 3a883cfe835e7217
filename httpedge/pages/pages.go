// Package pages renders what a person sees in the browser: complete HTML that needs no scripts, but
// for passkeys, with one style sheet inside and nothing loaded from elsewhere. Whatever comes from outside is escaped
// where it stands.
package pages

import (
	"embed"
	"html/template"
	"strings"
	"sync"

	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
)

//go:embed *.html style.css passkey.js
var files embed.FS

var (
	login         = parse("login.html")
	register      = parse("register.html")
	phone         = parse("phone.html")
	reset         = parse("reset.html")
	connect       = parse("connect.html")
	meConnections = parse("meconnections.html")
	verify        = parse("verify.html")
	accounts      = parse("accounts.html")
	consent       = parse("consent.html")
	logout        = parse("logout.html")
	endSession    = parse("endsession.html")
	deviceCode    = parse("devicecode.html")
	device        = parse("device.html")
	me            = parse("me.html")
	meProfile     = parse("meprofile.html")
	meData        = parse("medata.html")
	mePassword    = parse("mepassword.html")
	mePhoneSignIn = parse("mephonesignin.html")
	meAddress     = parse("meaddress.html")
	meApps        = parse("meapps.html")
	meHistory     = parse("mehistory.html")
	meSessions    = parse("mesessions.html")
	meDelete      = parse("medelete.html")
	meConfirm     = parse("meconfirm.html")
	home          = parse("home.html")
	passkeyOffer  = parse("passkeyoffer.html")
	mePasskeys    = parse("mepasskeys.html")
	mePasskeyAdd  = parse("mepasskeyadd.html")
	meFactors     = parse("mefactors.html")
	meApp         = parse("meapp.html")
	meRecovery    = parse("merecovery.html")
	meRemove      = parse("meremove.html")
	factor        = parse("factor.html")
	link          = parse("link.html")
	invitation    = parse("invitation.html")
	message       = parse("message.html")
	formPost      = parse("formpost.html")

	consoleApps     = parse("consoleapps.html", "console.html")
	consolePeople   = parse("consolepeople.html", "console.html")
	consoleActivity = parse("consoleactivity.html", "console.html")
)

// pageTemplate is the template of a page. It is parsed when it is first needed: most commands show
// no page.
type pageTemplate struct {
	name   string
	parsed func() *template.Template
}

// parse returns the template of a page, which uses those of the layout and of others.
func parse(name string, others ...string) *pageTemplate {
	return &pageTemplate{name, sync.OnceValue(func() *template.Template {
		return template.Must(template.New(name).Funcs((&View{face: &face{}}).functions()).
			ParseFS(files, append([]string{"layout.html", name}, others...)...))
	})}
}

// Problem is something that a person has to correct.
type Problem struct {
	Field string // its name, which is also its id in the page; "" = the form as a whole
	Text  texts.Text
}

// Problems is all that a person has to correct on a page, in the order of the fields. The zero
// value says that nothing is wrong.
type Problems []Problem

// At returns the first problem with a field, or nil.
func (p Problems) At(field string) *Problem {
	for i := range p {
		if p[i].Field == field {
			return &p[i]
		}
	}
	return nil
}

// General returns the problem with the form as a whole, if there is one. Others stand beside their
// fields.
func (p Problems) General() Problems {
	for i := range p {
		if p[i].Field == "" {
			return p[i : i+1]
		}
	}
	return nil
}

// Mark returns the attributes that tie a field's input to what is said about it: to its hints,
// elements of the page, and, if it is wrong, to its problem. Names are the templates' own, never
// from outside.
func (p Problems) Mark(field string, hints ...string) template.HTMLAttr {
	var invalid string
	if p.At(field) != nil {
		hints = append(hints, field+"-wrong")
		invalid = ` aria-invalid="true"`
		if p[0].Field == field && p.General() == nil { // the first one to mend has the focus
			invalid += " autofocus"
		}
	}
	if len(hints) == 0 {
		return ""
	}
	return template.HTMLAttr(invalid + ` aria-describedby="` + strings.Join(hints, " ") + `"`)
}

// areaText escapes all that stands for anything but itself in a textarea (HTML section 13.2.5.2),
// and no more, so that long texts stay short.
var areaText = strings.NewReplacer("&", "&amp;", "<", "&lt;", "\x00", "\uFFFD")

// Area returns the field of a text of several lines, tied to what is said about it. Names and
// complete, the value of autocomplete ("" = none), are the templates' own, never from outside; text
// may be anything.
func (p Problems) Area(field, complete, text string) template.HTML {
	attributes := string(p.Mark(field))
	if complete != "" {
		attributes = ` autocomplete="` + complete + `"` + attributes
	}
	return template.HTML(`<textarea id="` + field + `" name="` + field + `" rows="3"` + attributes + ">\n" + // not part of the text
		areaText.Replace(text) + "</textarea>")
}

// Message is a page that says something and asks for nothing: an error, or that a person has signed
// out.
type Message struct {
	Title     texts.Text
	Text      texts.Text // what happened, in one or two sentences
	Fault     texts.Text // whose doing it is; nil = nothing to say
	Advice    texts.Text // what to do; nil = nothing
	Technical string     // what is wrong, for developers, in English; "" = nothing
	Reference string     // id by which operators find the request; "" = none
	Link      string     // path; "" = none
	LinkText  texts.Text
	Return    string // URI of a client, with a registered redirect URI; "" = none
	ReturnTo  string // where it leads, for people
}

// ReturnURL returns Return, whose scheme may be a private-use one; "" if browsers act on that.
func (p Message) ReturnURL() template.URL {
	scheme := oauth.PrivateScheme(p.Return)
	if scheme != "" && oauth.CheckRedirectScheme(scheme) != nil {
		return ""
	}
	return template.URL(p.Return)
}

// Render returns the page.
func (p Message) Render(v *View) ([]byte, error) { return v.render(message, p) }
