package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

const adaMail = "ada@example.com"

// newPasskeyService is newService at localhost, where browsers have passkeys. Ada has an account.
func newPasskeyService(t *testing.T) *service {
	t.Helper()
	mailbox := stacktest.NewMailbox()
	s := &service{stacktest.NewIdentity(t, mailbox.Deliver, stacktest.Localhost), mailbox, nil}
	s.app = s.newApp(t, "Atlas", nil)
	s.NewUser(t, "Ada", adaMail)
	return s
}

// authenticator is a virtual authenticator of a browser.
type authenticator struct {
	p  *person
	id webauthn.AuthenticatorID
}

// authenticator adds a virtual authenticator to the browser of p.
func (p *person) authenticator(o webauthn.VirtualAuthenticatorOptions) *authenticator {
	p.t.Helper()
	if _, err := chromedp.Call(p.tab, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		p.t.Fatal(err)
	}
	o.Protocol, o.AutomaticPresenceSimulation = webauthn.AuthenticatorProtocolCtap2, true
	if o.Transport == "" {
		o.Transport = webauthn.AuthenticatorTransportInternal
	}
	added, err := chromedp.Call(p.tab, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &o})
	if err != nil {
		p.t.Fatal(err)
	}
	return &authenticator{p, added.AuthenticatorID}
}

// phone are the options of an authenticator that keeps passkeys and verifies its user.
var phone = webauthn.VirtualAuthenticatorOptions{HasResidentKey: true, HasUserVerification: true,
	IsUserVerified: true}

// call calls a command of CDP.
func call[P, R any](p *person, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.tab, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// passkeys returns the passkeys that the authenticator keeps.
func (a *authenticator) passkeys() []*webauthn.Credential {
	a.p.t.Helper()
	return call(a.p, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: a.id}).Credentials
}

// stay presses a button that leads nowhere, and waits for a text of the page.
func (p *person) stay(button, text string) {
	p.t.Helper()
	p.do("press "+button, click(`//button[normalize-space(.)="`+button+`"]`))
	for end := time.Now().Add(timeout); !strings.Contains(p.read(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("got no %q at %s: %s", text, p.path, p.read())
		}
	}
}

// toAddPasskey signs Ada in by password and opens the page that adds a passkey.
func (p *person) toAddPasskey() {
	p.t.Helper()
	p.visit("/login")
	p.do("take no offer", removePasskeyOffer())
	p.signIn(adaMail, stacktest.Password)
	p.follow("Manage passkeys")
	p.sees("/me/passkeys", "Passkeys", "You have no passkey yet.")
	p.follow("Add a passkey")
	p.fill("current_password", stacktest.Password)
	p.press("Continue")
	p.sees("/me/passkeys/add", "Add a passkey")
}

// addPasskey adds a passkey from the account of Ada.
func (p *person) addPasskey() {
	p.t.Helper()
	p.toAddPasskey()
	p.fill("name", "Phone")
	p.press("Add a passkey")
	p.sees("/me/passkeys", "The passkey was added.", "Phone")
}

// removePasskeyOffer says that the browser has no passkeys, so that none is offered after a password.
func removePasskeyOffer() chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`void document.querySelector("[name=passkeys]").remove()`)
}

// leaveSession signs out of this browser.
func (p *person) leaveSession() {
	p.t.Helper()
	p.visit("/logout")
	p.press("Sign out")
}

// without runs a script in each page before its own.
func (p *person) runs(script string) {
	p.t.Helper()
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// noAutofill keeps virtual authenticators from signing in as soon as a page opens.
const noAutofill = `if (window.PublicKeyCredential) PublicKeyCredential.isConditionalMediationAvailable = async () => false`

// TestPasskeyInBrowser offers a passkey after a password, and signs in by it for an app, by the button
// and by autofill.
func TestPasskeyInBrowser(t *testing.T) {
	s := newPasskeyService(t)
	p := s.person(t, true)
	a := p.authenticator(phone)
	p.visit(s.app.authorizeURL("view-user"))
	p.signIn(adaMail, stacktest.Password)
	p.sees("/login/passkey/offer", "Next time without a password", "Ada")
	p.press("Add a passkey")
	p.sees("/consent", "Allow Atlas to use your account?")
	p.press("Allow")
	p.token(s.app)
	keys := a.passkeys()
	if len(keys) != 1 || !keys[0].IsResidentCredential || keys[0].RpID != "localhost" ||
		len(keys[0].UserHandle) != 32 || keys[0].UserName != adaMail {
		t.Fatalf("got the passkeys %+v, want one of Ada", keys)
	}
	p.leaveSession()

	// Headless browsers show no autofill: this one chooses the passkey at once.
	p.runs(`const get = navigator.credentials.get.bind(navigator.credentials);
navigator.credentials.get = o => o.mediation === "conditional" && o.signal ? get({publicKey: o.publicKey}) : Promise.reject(o)`)
	p.do("open the page", chromedp.Steps(chromedp.Navigate(p.URL+s.app.authorizeURL("view-user")),
		chromedp.WaitVisible(chromedp.Search(`//h1[contains(., "Back at")]`))))
	p.visit("/me")
	p.sees("/me", "Your account", "Ada")
}

func TestPasskeyByButton(t *testing.T) {
	s := newPasskeyService(t)
	p := s.person(t, true)
	p.runs(noAutofill)
	a := p.authenticator(phone)
	p.addPasskey()
	p.leaveSession()
	p.visit("/login")
	p.press("Use a passkey")
	p.sees("/me", "Your account", "Ada")

	// A dialog that is cancelled leaves the page, and the next one signs in.
	p.leaveSession()
	p.visit("/login")
	call(p, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: a.id})
	p.stay("Use a passkey", "No passkey was used.")
	call(p, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: a.id, IsUserVerified: true})
	p.press("Use a passkey")
	p.sees("/me", "Your account", "Ada")
}

// buttonIsThere reports whether the page shows the button of a passkey.
func (p *person) buttonIsThere() bool {
	p.t.Helper()
	return evaluate[bool](p, `[...document.querySelectorAll("form[data-options]")].some(f => !f.hidden)`)
}

// TestNoPasskeyButton has browsers without scripts, and without passkeys.
func TestNoPasskeyButton(t *testing.T) {
	s := newPasskeyService(t)
	for _, scripts := range []bool{true, false} {
		p := s.person(t, scripts)
		if scripts {
			p.runs(`Object.defineProperty(navigator, "credentials", {value: undefined})`)
		}
		p.visit("/login")
		if p.buttonIsThere() {
			t.Errorf("scripts %v: got the button, want none", scripts)
		}
		p.signIn(adaMail, stacktest.Password)
		p.sees("/me", "Your account")
	}
}

// TestAuthenticatorsWithoutWhatPasskeysNeed adds what cannot sign in alone as a second factor, and signs
// in by password and that.
func TestAuthenticatorsWithoutWhatPasskeysNeed(t *testing.T) {
	for name, o := range map[string]webauthn.VirtualAuthenticatorOptions{
		"no user verification": {HasResidentKey: true},
		"nothing resident":     {HasUserVerification: true, IsUserVerified: true},
		"neither":              {Transport: webauthn.AuthenticatorTransportUsb},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPasskeyService(t)
			p := s.person(t, true)
			p.runs(noAutofill)
			p.authenticator(o)
			p.toAddPasskey()
			p.stay("Add a passkey", "No passkey was used.")
			p.addKey()
			p.leaveSession()
			p.visit("/login")
			p.stay("Use a passkey", "No passkey was used.")
			p.toSecondStep()
			p.press("Use your security key")
			p.sees("/me", "Your account", "Ada")
		})
	}
}

// addKey adds a security key from the account of Ada, whose browser was not known before.
func (p *person) addKey() {
	p.t.Helper()
	p.visit("/me/factors")
	p.follow("Add Security keys")
	p.sees("/me/confirm", "Confirm that it is you")
	p.press("Send a code to " + adaMail)
	p.fill("code", p.code(adaMail, account.ProofCode))
	p.press("Confirm")
	p.sees("/me/factors/key", "Add a security key")
	p.fill("current_password", stacktest.Password)
	p.press("Add a security key")
	p.sees("/me/factors/key", "Two-step sign-in is on.")
	p.follow("I have saved them")
	p.sees("/me/factors", "1 key", "10 left")
}

// toSecondStep signs Ada in by password, up to the second step.
func (p *person) toSecondStep() {
	p.t.Helper()
	p.visit("/login")
	p.do("take no offer", removePasskeyOffer())
	p.signIn(adaMail, stacktest.Password)
	p.sees("/login/factor", "One more step", "Use your security key for")
}

// usb is a key as of U2F.
var usb = webauthn.VirtualAuthenticatorOptions{Transport: webauthn.AuthenticatorTransportUsb}

// newKeyPerson returns Ada in a browser with a security key, signed out, and the key.
func newKeyPerson(t *testing.T) (*person, *authenticator) {
	t.Helper()
	p := newPasskeyService(t).person(t, true)
	p.runs(noAutofill)
	a := p.authenticator(usb)
	p.visit("/login")
	p.do("take no offer", removePasskeyOffer())
	p.signIn(adaMail, stacktest.Password)
	p.addKey()
	p.leaveSession()
	return p, a
}

// TestSecurityKeyInBrowser has a security key refused that may be a copy, trusts the browser by it, and
// steps up.
func TestSecurityKeyInBrowser(t *testing.T) {
	p, a := newKeyPerson(t)
	for _, row := range []struct {
		count   float64
		refused bool
	}{{100, false}, {50, true}, {200, false}} {
		call(p, webauthn.SetCredentialProperties, webauthn.SetCredentialPropertiesParams{
			AuthenticatorID: a.id, CredentialID: a.passkeys()[0].CredentialID, SignCount: &row.count})
		p.toSecondStep()
		if row.count == 200 {
			p.tick("trust")
		}
		p.press("Use your security key")
		if row.refused {
			p.refused("/login/factor/key", "", "This security key may be a copy")
			continue
		}
		p.sees("/me", "Your account", "Ada")
		p.leaveSession()
	}
	p.visit("/login")
	p.do("take no offer", removePasskeyOffer())
	p.signIn(adaMail, stacktest.Password)
	p.sees("/me", "Your account", "Ada") // the browser is trusted
	p.visit("/login/step-up")
	p.sees("/login/step-up", "One more step", "but this needs the second step as well")
	p.press("Use your security key")
	p.sees("/me", "Your account", "Ada")
}

// TestSecurityKeyOfOtherHost opens the second step by the server's address, for which the key is not.
func TestSecurityKeyOfOtherHost(t *testing.T) {
	p, _ := newKeyPerson(t)
	p.visit(strings.Replace(p.URL, "localhost", "127.0.0.1", 1) + "/login")
	p.do("take no offer", removePasskeyOffer())
	p.signIn(adaMail, stacktest.Password)
	p.sees("/login/factor", "One more step")
	p.stay("Use your security key", "No security key was used.")
}

// TestSecurityKeyAnswerIsReplayed sends an answer to the second step two times.
func TestSecurityKeyAnswerIsReplayed(t *testing.T) {
	p, _ := newKeyPerson(t)
	p.runs(sendTwice)
	p.toSecondStep()
	p.stay("Use your security key", "sent: 200 "+p.URL+"/me, then 200 "+p.URL+"/me")
	sessions, err := p.Store.Sessions(t.Context(), 1)
	if err != nil || len(sessions) != 1 {
		t.Errorf("got %d sessions and error %v, want one: the second form finds it", len(sessions), err)
	}
}

// TestCopiedPasskeyInBrowser sets the counter of a passkey back.
func TestCopiedPasskeyInBrowser(t *testing.T) {
	s := newPasskeyService(t)
	p := s.person(t, true)
	p.runs(noAutofill)
	a := p.authenticator(phone)
	p.addPasskey()
	count := 100.0
	set := func() {
		call(p, webauthn.SetCredentialProperties, webauthn.SetCredentialPropertiesParams{
			AuthenticatorID: a.id, CredentialID: a.passkeys()[0].CredentialID, SignCount: &count})
	}
	set()
	p.leaveSession()
	p.visit("/login")
	p.press("Use a passkey")
	p.sees("/me", "Your account")
	p.leaveSession()
	count = 50
	set()
	p.visit("/login")
	p.press("Use a passkey")
	p.refused("/login/passkey", "", "This passkey may be a copy")
}

// TestPasskeyOfOtherHost opens the same server by its address, for which there are no passkeys.
func TestPasskeyOfOtherHost(t *testing.T) {
	s := newPasskeyService(t)
	p := s.person(t, true)
	p.runs(noAutofill)
	p.authenticator(phone)
	p.addPasskey()
	p.visit(strings.Replace(p.URL, "localhost", "127.0.0.1", 1) + "/login")
	p.stay("Use a passkey", "No passkey was used.")
}

// sendTwice has scripts send forms two times, and say what came.
const sendTwice = `HTMLFormElement.prototype.requestSubmit = async function() {
	const send = () => fetch(this.action, {method: "POST", body: new URLSearchParams(new FormData(this))}).then(r => r.status + " " + r.url);
	const all = [await send(), await send()];
	document.body.append("sent: " + all.join(", then "));
}`

// TestPasskeyAnswerIsReplayed sends the form of a sign-in twice.
func TestPasskeyAnswerIsReplayed(t *testing.T) {
	s := newPasskeyService(t)
	p := s.person(t, true)
	p.runs(noAutofill)
	p.authenticator(phone)
	p.addPasskey()
	p.leaveSession()
	p.runs(sendTwice)
	p.visit("/login")
	p.stay("Use a passkey", "sent: 200 "+p.URL+"/me, then 422 "+p.URL+"/login/passkey")
}
