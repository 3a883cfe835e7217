package pages

import "gatehouse/actors/texts"

// Login is the page that asks for an email address and a password. With CodePath, it asks the
// owner of the account to request a code instead.
type Login struct {
	Client    string     // name of the client that asked for it; "" = none did
	Device    bool       // a device is connected next
	SignedIn  []Account  // the account that the browser is signed in to; nil = none
	Stay      string     // path and query to go on with that
	Action    string     // path and query that the form is sent to
	FormToken string     // anti-forgery token
	Email     string     // as it was entered
	Providers []Provider // with which people sign in instead
	Waits     Waits      // the person signs in so that a connection is made; zero = not so
	Register  string     // path and query of the page to register by email; "" = not offered
	Phone     string     // path and query of the page to sign in by phone number; "" = not offered
	Reset     string     // path and query of the page for a forgotten password; "" = not offered
	CodePath  string     // path and query that the form to request a code is sent to; "" = not needed
	CodeToken string     // its anti-forgery token
	Passkey   Passkey    // its button and autofill; zero = not offered
	Notice    texts.Text // something that has gone well; nil = nothing
	Problems  Problems
}

// Scripted implements the rule of Passkey.
func (p Login) Scripted() bool { return p.Passkey.Scripted() }

// Render returns the page.
func (p Login) Render(v *View) ([]byte, error) { return v.render(login, p) }

// Register is the page that asks for what an account by email needs. Its fields are name, email
// and password.
type Register struct {
	Client    string
	Action    string
	FormToken string
	Name      string // as it was entered
	Email     string // as it was entered
	Login     string // path and query of the page to sign in
	Phone     string // path and query of the page to register by phone number; "" = not offered
	Providers []Provider
	Problems  Problems
}

// Render returns the page.
func (p Register) Render(v *View) ([]byte, error) { return v.render(register, p) }

// Invitation is the page of an invitation. Its fields are name and password.
type Invitation struct {
	Email     string
	Name      string // as it was entered, or as the invitation has it
	Token     string // of the link
	Action    string
	FormToken string
	Providers []Provider // with which the person may continue instead
	Problems  Problems
}

// Render returns the page.
func (p Invitation) Render(v *View) ([]byte, error) { return v.render(invitation, p) }

// Phone is the page that asks for a phone number, to sign in or to register. Its field is
// phone_number.
type Phone struct {
	Client    string
	Action    string
	FormToken string
	Number    string // as it was entered
	Login     string // path and query of the page to sign in by email
	Problems  Problems
}

// Render returns the page.
func (p Phone) Render(v *View) ([]byte, error) { return v.render(phone, p) }

// Reset is the page that asks for the address of an account whose password is forgotten. Its field
// is email.
type Reset struct {
	Client    string
	Action    string
	FormToken string
	Email     string // as it was entered
	Login     string // path and query of the page to sign in
	Problems  Problems
}

// Render returns the page.
func (p Reset) Render(v *View) ([]byte, error) { return v.render(reset, p) }

// VerifyKind says what a code that was sent is for.
type VerifyKind uint8

// What a code can be for. The zero value is VerifyRegistration.
const (
	VerifyRegistration VerifyKind = iota // a new account by email
	// to sign in or register by phone number: the page asks for a name too
	VerifyPhone
	VerifyReset       // a forgotten password: the page asks for a new one too
	VerifyEmailChange // a new email address of an account
	VerifyPhoneChange // a new phone number of an account
	VerifyBrowser     // to sign in with a browser that is not known to the account
	VerifyEmailProof  // to change how the person signs in, sent to the email address
	VerifyPhoneProof  // the same, sent to the phone number
)

// Verify is the page that asks for the code that was sent to an address. Its fields are code, password
// (VerifyReset), and name after the right code of a new number (VerifyPhone).
type Verify struct {
	Kind      VerifyKind
	Client    string
	Action    string
	FormToken string
	Address   string // where the code was sent
	Name      string // as it was entered
	// Entered is the right code of a new phone number: the page asks for the name then.
	Entered     string
	Long        bool       // a long code was sent
	Resend      string     // path and query that the form for a new code is sent to
	ResendToken string     // its anti-forgery token
	Wait        int        // seconds until a new code may be sent; 0 = now
	Back        string     // path and query of the page before, to correct the address; "" = none
	Notice      texts.Text // something that has gone well; nil = nothing
	Problems    Problems
}

// Render returns the page.
func (p Verify) Render(v *View) ([]byte, error) { return v.render(verify, p) }

// ToPhone reports whether the code went to a phone number.
func (p Verify) ToPhone() bool {
	return p.Kind == VerifyPhone || p.Kind == VerifyPhoneChange || p.Kind == VerifyPhoneProof
}

// Proves reports whether the code went to a channel that the account had before, which the person
// cannot correct.
func (p Verify) Proves() bool { return p.Kind == VerifyEmailProof || p.Kind == VerifyPhoneProof }

// AsksName reports whether the page has the field name.
func (p Verify) AsksName() bool { return p.Entered != "" }

// AsksPassword reports whether the page has the field password.
func (p Verify) AsksPassword() bool { return p.Kind == VerifyReset }

// Changes reports whether the code is for something of an account that is signed in.
func (p Verify) Changes() bool {
	return p.Kind == VerifyEmailChange || p.Kind == VerifyPhoneChange || p.Proves()
}

// WaitText returns Wait in words.
func (p Verify) WaitText() texts.Text { return texts.Wait(p.Wait) }

// Factor is the page that asks for a second factor. Its fields are code, of the authenticator app or a
// recovery code, and trust, which is true. With CodePath, it asks for a code to a channel of the
// account before that: its field is channel. A security key can be used without one.
type Factor struct {
	Client      string
	Address     string // of the account
	Action      string
	FormToken   string
	OffersTrust bool     // the page has the field trust
	App         bool     // the person has an authenticator app
	Key         Passkey  // asks for a security key; zero = the person has none
	StepsUp     bool     // the person is signed in
	CodePath    string   // path and query that the form to request a code is sent to; "" = not needed
	CodeToken   string   // its anti-forgery token
	Channels    []string // to which a code can be sent: "email" or "sms"
	Back        string   // path and query of the page to sign in; "" = not shown
	Problems    Problems
}

// Render returns the page.
func (p Factor) Render(v *View) ([]byte, error) { return v.render(factor, p) }

// Scripted implements the rule of Passkey.
func (p Factor) Scripted() bool { return p.Key.Scripted() }

// Lead returns the key of the text that says what to use.
func (p Factor) Lead() string {
	switch {
	case p.Key.Action == "" && p.App:
		return "factor.lead"
	case p.Key.Action == "":
		return "factor.recovery_lead"
	case p.App:
		return "factor.key_or_app"
	}
	return "factor.key_lead"
}

// Provider is a button that begins a sign-in with another provider.
type Provider struct {
	Name string
	Icon string // one of oauth.ProviderIcons; "" = none
	Path string // path and query
	Away bool   // it did not respond the last time
}

// Waits is a connection to a provider that is made when the person has signed in.
type Waits struct {
	Provider string // its name
	Address  string // of the account
}

// Connect is the page that asks a person who comes from a provider for an email address. Its field is
// email.
type Connect struct {
	Client    string
	Provider  string // its name
	Action    string
	FormToken string
	Email     string // as it was entered, or as the provider says it
	Login     string // path and query of the page to sign in
	Problems  Problems
}

// Render returns the page.
func (p Connect) Render(v *View) ([]byte, error) { return v.render(connect, p) }
