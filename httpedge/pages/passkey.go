package pages

import (
	"encoding/json"
	"html/template"
	"strings"

	"gatehouse/actors/texts"
)

// PasskeySource is the source expression that lets the script of pages with passkeys pass a
// Content-Security-Policy.
var PasskeySource = sourceOf(passkeyScript)

var passkeyScript = readScript("passkey.js")

// readScript returns a script for a page, without what only readers need.
func readScript(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\t", "")
}

// Passkey is a form that asks the browser for a passkey, or makes one. Its fields are challenge and
// credential, which the script sets. Without scripts the form is not there. The zero Passkey is none.
type Passkey struct {
	Action    string     // path and query that the form is sent to, and that PasskeyChallenge is read from
	Challenge string     // sealed
	Options   string     // JSON
	Autofill  bool       // the field of the e-mail address offers passkeys as well
	Names     bool       // the form has the field name
	Name      string     // as it was entered
	Button    texts.Text // nil = "Use a passkey"
	Signals   string     // as SignalText returns them; "" = none
	Key       bool       // it is about a security key, which is a second factor
	Trusts    bool       // the form has the field trust, as the box with that ID says
	// NeedsPassword says that the form has the field current_password. Problems are about that.
	NeedsPassword bool
	Problems      Problems
}

// PasskeyChallenge is what a script reads to renew the challenge of a form.
type PasskeyChallenge struct {
	Challenge string          `json:"challenge"`
	Options   json.RawMessage `json:"options"`
}

// Signal tells the browser what has become of a passkey: a method of PublicKeyCredential, and its
// argument (WebAuthn level 3, section 5.1.10).
type Signal struct {
	Method string
	About  map[string]string
}

// UnknownCredential tells that there is no passkey with that ID.
func UnknownCredential(domain, id string) Signal {
	return Signal{"signalUnknownCredential", map[string]string{"rpId": domain, "credentialId": id}}
}

// CurrentUserDetails tells how the user with that handle is called.
func CurrentUserDetails(domain, handle, name, displayName string) Signal {
	return Signal{"signalCurrentUserDetails", map[string]string{"rpId": domain, "userId": handle,
		"name": name, "displayName": displayName}}
}

// SignalText returns signals for the script; "" = none.
func SignalText(signals ...Signal) string {
	if signals == nil {
		return ""
	}
	var all [][2]any
	for _, s := range signals {
		all = append(all, [2]any{s.Method, s.About})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "" // strings have no error
	}
	return string(text)
}

// Script returns the script.
func (p Passkey) Script() template.JS { return template.JS(passkeyScript) }

// ButtonText returns the text of the button.
func (p Passkey) ButtonText() texts.Text {
	if p.Button == nil {
		return texts.Of("passkey.use")
	}
	return p.Button
}

// CancelledText returns the text for when the browser has given nothing.
func (p Passkey) CancelledText() texts.Text {
	if p.Key {
		return texts.Of("factor.key_cancelled")
	}
	return texts.Of("passkey.cancelled")
}

// Scripted reports whether the page has the script.
func (p Passkey) Scripted() bool { return p.Action != "" || p.Signals != "" }

// PasskeyOffer is the page that offers a passkey after a sign-in by password.
type PasskeyOffer struct {
	Account  Account
	Passkey  Passkey
	Next     string // path and query of the page to go on to without one
	Problems Problems
}

// Render returns the page.
func (p PasskeyOffer) Render(v *View) ([]byte, error) { return v.render(passkeyOffer, p) }

// Scripted implements the rule of Passkey.
func (p PasskeyOffer) Scripted() bool { return p.Passkey.Scripted() }

// MePasskeys is the page of a person's passkeys. Its forms have the fields id, name, and do, which is
// rename or remove.
type MePasskeys struct {
	Account   Account
	FormToken string
	Passkeys  []MyPasskey
	Most      bool    // no more can be added
	Told      Passkey // its Signals are sent
	Notice    texts.Text
	Problems  Problems
}

// MyPasskey is a passkey of a person.
type MyPasskey struct {
	ID      string // value of the field id
	Name    string
	SignsIn bool       // false = it only is a second factor
	Synced  bool       // it is on more than one device
	Created texts.Text // a day
	Used    texts.Text // such as "a day ago"; nil = never
}

// Render returns the page.
func (p MePasskeys) Render(v *View) ([]byte, error) { return v.render(mePasskeys, p) }

// Scripted implements the rule of Passkey.
func (p MePasskeys) Scripted() bool { return p.Told.Scripted() }

// MePasskeyAdd is the page that makes a passkey.
type MePasskeyAdd struct {
	Account  Account
	Factor   bool // a security key that only is a second factor
	Required bool // the service or an app asks for a second factor
	Passkey  Passkey
	App      string // path and query of the page that sets up an authenticator app; "" = not shown
	Back     string // path of the page to go back to
	Problems Problems
}

// Render returns the page.
func (p MePasskeyAdd) Render(v *View) ([]byte, error) { return v.render(mePasskeyAdd, p) }

// Scripted implements the rule of Passkey.
func (p MePasskeyAdd) Scripted() bool { return p.Passkey.Scripted() }
