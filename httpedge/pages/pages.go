// Package pages renders what a person sees in the browser: complete HTML without scripts, with one style sheet inside
// and nothing loaded from elsewhere. Whatever comes from outside is escaped where it stands.
package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
)

//go:embed *.html style.css
var files embed.FS

var (
	style = readStyle()

	login    = parse("login.html")
	accounts = parse("accounts.html")
	consent  = parse("consent.html")
	logout   = parse("logout.html")
	message  = parse("message.html")
)

// StyleSource is the source expression that lets the pages' style sheet pass a Content-Security-Policy.
var StyleSource = styleSource()

func readStyle() string {
	text, err := files.ReadFile("style.css")
	if err != nil {
		panic(err) // it is part of the program
	}
	return strings.TrimSpace(string(text))
}

func styleSource() string {
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func parse(name string) *template.Template {
	functions := template.FuncMap{"style": func() template.CSS { return template.CSS(style) }}
	return template.Must(template.New(name).Funcs(functions).ParseFS(files, "layout.html", name))
}

func render(t *template.Template, data any) ([]byte, error) {
	var page bytes.Buffer
	if err := t.ExecuteTemplate(&page, "page", data); err != nil {
		return nil, fmt.Errorf("render %s: %w", t.Name(), err)
	}
	return page.Bytes(), nil
}

// Problem is something that a person has to correct.
type Problem struct {
	Field string // its name, which is also its id in the page; "" = the form as a whole
	Text  string // one sentence
}

// Account is a signed-in person as the pages show it.
type Account struct {
	ID      int64
	Name    string
	Address string // e-mail address or phone number; "" = none
}

// Login is the page that asks for an e-mail address and a password.
type Login struct {
	Client    string // name of the client that asked for it; "" = none did
	Action    string // path and query that the form is sent to
	FormToken string // anti-forgery token
	Email     string // as it was entered
	Problems  []Problem
}

// Render returns the page.
func (p Login) Render() ([]byte, error) { return render(login, p) }

// Problem returns the text of the first problem with a field, or "".
func (p Login) Problem(field string) string {
	for _, problem := range p.Problems {
		if problem.Field == field {
			return problem.Text
		}
	}
	return ""
}

// Accounts is the page on which a person chooses one of the browser's accounts for a client, or sees them.
type Accounts struct {
	Client    string // "" = nobody asks for a choice, it only shows the accounts
	Action    string
	FormToken string
	Accounts  []Account
	Another   string // path and query of the page to sign in to one more
	Problems  []Problem
}

// Render returns the page.
func (p Accounts) Render() ([]byte, error) { return render(accounts, p) }

// Consent is the page that asks a person to let a client in.
type Consent struct {
	Client      string
	Account     Account
	Permissions []string // what the client will be able to do, each after "will be able to"
	Destination string   // where the browser goes next, whatever is decided
	Action      string
	FormToken   string
	Another     string // path and query of the chooser
	Problems    []Problem
}

// Render returns the page.
func (p Consent) Render() ([]byte, error) { return render(consent, p) }

// Logout is the page that asks whether to sign out.
type Logout struct {
	Accounts  []Account // that the browser is signed in to
	FormToken string
	Problems  []Problem
}

// Render returns the page.
func (p Logout) Render() ([]byte, error) { return render(logout, p) }

// Message is a page that says something and asks for nothing: an error, or that a person has signed out.
type Message struct {
	Title     string
	Text      string // one or two sentences
	Advice    string // what to do; "" = nothing
	Reference string // id by which operators find the request; "" = none
	Link      string // path; "" = none
	LinkText  string
}

// Render returns the page.
func (p Message) Render() ([]byte, error) { return render(message, p) }
