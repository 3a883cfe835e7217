package pages

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"

	"gatehouse/actors/oauth"
)

// submit is the script of FormPost.
const submit = "document.forms[0].submit()"

// SubmitSource is the source expression that lets the script of FormPost pass a
// Content-Security-Policy.
var SubmitSource = sourceOf(submit)

// FormPost is the page whose form takes a response to a client (OAuth 2.0 Form Post Response Mode).
// It sends itself. Without scripts, a person presses its button.
type FormPost struct {
	Client string
	Action string            // the redirect URI, which is registered: http or https
	Fields []oauth.Parameter // one without a value is left out
}

// Render returns the page.
func (p FormPost) Render(v *View) ([]byte, error) { return v.render(formPost, p) }

// Submit returns the script.
func (p FormPost) Submit() template.JS { return submit }

// Target returns the attribute action. A template would change some characters of the URL.
func (p FormPost) Target() template.HTMLAttr {
	return template.HTMLAttr(`action="` + template.HTMLEscapeString(p.Action) + `"`)
}

// sourceOf returns the source expression of a style sheet or script inside a page.
func sourceOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
