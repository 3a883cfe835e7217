package pages

import "gatehouse/actors/texts"

// menuItem is a link in the menu of the account's pages.
type menuItem struct {
	Path string
	Key  string // of its text
}

// menu leads to the pages of an account.
var menu = []menuItem{{PathMe, "menu.overview"}, {PathMeProfile, "menu.profile"},
	{PathMeApps, "menu.apps"}, {PathMeSessions, "menu.sessions"}, {PathMeHistory, "menu.history"},
	{PathMeData, "menu.data"}, {PathMeDelete, "menu.delete"}}

// Me is the overview of one's own account: how the person signs in, and the last sign-ins. It has no
// form; its links lead to /me/password, /me/email, /me/phone and /me/phone/sign-in.
type Me struct {
	Account      Account
	Email        string // verified; "" = none
	Phone        string // verified, E.164; "" = none
	EmailOffered bool   // the email address can be changed
	PhoneOffered bool   // the phone number can be changed
	HasPassword  bool   // the account has one, which can be changed
	HasPasskeys  bool   // the service has passkeys
	Passkeys     int    // that the account has
	PhoneSignIn  bool   // a code to the phone can replace the password
	PhoneChoice  bool   // the person can choose that
	Factor       bool   // the account has a second factor
	Providers    int    // connections to other providers
	// ProvidersShown says that the page of connections to other providers is there.
	ProvidersShown bool
	Sessions       []Session
	AllSessions    int        // shown or not
	Accounts       string     // path of the chooser; "" = not shown
	Logout         string     // path; "" = not shown
	Notice         texts.Text // something that has gone well; nil = nothing
}

// Render returns the page.
func (p Me) Render(v *View) ([]byte, error) { return v.render(me, p) }

// MeProfile is the page of one's own profile. Its form goes to /me/profile with FormToken, under the
// profile's documented field names.
type MeProfile struct {
	Account   Account
	FormToken string
	Fields    Profile    // as it was entered, or as it is
	Notice    texts.Text // something that has gone well; nil = nothing
	Problems  Problems
	// Attributes are those that operators let people change.
	Attributes []AttributeField
}

// Render returns the page.
func (p MeProfile) Render(v *View) ([]byte, error) { return v.render(meProfile, p) }

// MeData is the page from which a person downloads what is kept about the account.
type MeData struct{ Account Account }

// Render returns the page.
func (p MeData) Render(v *View) ([]byte, error) { return v.render(meData, p) }

// AttributeField is an attribute that operators let people change.
type AttributeField struct {
	Label string
	Field string // name of the field: letters, digits, dots and underscores
	Value string
}

// Profile is what a person may change without a code, under the documented field names.
type Profile struct {
	Name           string
	Username       string
	Gender         string
	Bio            string
	PlaceOfBirth   string
	DateOfBirth    string // YYYY-MM-DD
	Address        string
	ProfilePicture string // URL
}

// Connection is a client that a person has let in.
type Connection struct {
	ClientID    string
	Name        string
	URI         string       // page about the client; "" = none. Shown if it is http or https
	Host        string       // that stands behind a client that nobody has checked; "" = none. Shown without URI
	Permissions []Permission // each after "can"
	Granted     texts.Text   // a day, such as "3 May 2026"
	LastUsed    texts.Text   // such as "a day ago"; nil = never
}

// Site returns where URI leads, or nil.
func (c Connection) Site() *Site { return siteOf(c.URI) }

// MeConnections is the page of the connections to other providers. Its fields are remove, the ID of
// one, or current_password.
type MeConnections struct {
	Account       Account
	Connections   []ProviderConnection
	Providers     []Provider // that can be connected
	Proved        bool       // the person has proved who they are: only then anything can be changed
	NeedsPassword bool       // the page asks for the password, else Confirm does
	Confirm       string     // path and query
	Action        string
	FormToken     string
	Notice        texts.Text
	Problems      Problems
}

// Render returns the page.
func (p MeConnections) Render(v *View) ([]byte, error) { return v.render(meConnections, p) }

// ProviderConnection is an account at another provider that signs in.
type ProviderConnection struct {
	ID       string
	Provider string   // its name
	Name     string   // of the account there
	Offered  bool     // people can sign in with the provider
	Groups   []string // of the person, for which groups at the provider stand
	Added    texts.Text
	Used     texts.Text
}

// Session is a browser in which a person is signed in.
type Session struct {
	ID      string     // value of the field session
	Device  texts.Text // browser and system in a few words
	Since   texts.Text // when the person signed in, such as "3 May 2026, 12:04 UTC"
	At      string     // the same by RFC 3339
	Near    string     // where that was, such as "London, United Kingdom"; "" = unknown
	Seen    texts.Text // when it was last used, such as "a day ago"
	Current bool       // it is this browser's
}

// MePassword is the page that asks for a new password. Its fields are current_password and
// new_password.
type MePassword struct {
	Account       Account
	NeedsPassword bool // the page asks for the current password
	Action        string
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p MePassword) Render(v *View) ([]byte, error) { return v.render(mePassword, p) }

// MePhoneSignIn is the page that asks whether a code to the phone may replace the password. Its
// fields are allow, which is true or false, and current_password.
type MePhoneSignIn struct {
	Account Account
	Phone   string
	Allowed bool // it may now

	NeedsPassword bool // the page asks for the password
	Action        string
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p MePhoneSignIn) Render(v *View) ([]byte, error) { return v.render(mePhoneSignIn, p) }

// MeAddress is the page that asks for a new email address or phone number. Its fields are email or
// phone_number, or remove, which is true, and current_password.
type MeAddress struct {
	Account       Account
	Channel       string // "email" or "phone"
	Current       string // "" = none yet
	Address       string // as it was entered
	CanRemove     bool   // the page offers to remove Current
	NeedsPassword bool   // the page asks for the password
	Action        string
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p MeAddress) Render(v *View) ([]byte, error) { return v.render(meAddress, p) }

// ToPhone reports whether it is about the phone number.
func (p MeAddress) ToPhone() bool { return p.Channel == "phone" }

// MeDelete is the page that asks whether to delete the account. Its fields are confirm, which must
// be "delete", and current_password.
type MeDelete struct {
	Account       Account
	NeedsPassword bool // the page asks for the password
	Action        string
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p MeDelete) Render(v *View) ([]byte, error) { return v.render(meDelete, p) }

// MeConfirm is the page that sends a code to an older channel of the account, before a change of how
// the person signs in. Its field is channel: the Channel of a Choice.
type MeConfirm struct {
	Account   Account
	Choices   []Choice
	Password  bool       // the page asks for the password, in the field current_password
	Passkey   Passkey    // zero = not offered
	Providers []Provider // with which a sign-in proves it instead
	Action    string
	FormToken string
	Problems  Problems
}

// Scripted implements the rule of Passkey.
func (p MeConfirm) Scripted() bool { return p.Passkey.Scripted() }

// Choice is a channel that a code can be sent to.
type Choice struct {
	Channel string // value of the field channel
	Address string
}

// Render returns the page.
func (p MeConfirm) Render(v *View) ([]byte, error) { return v.render(meConfirm, p) }

// Link is the page that the links of notices lead to. Its field is token.
type Link struct {
	Restores  string // address or number that the link restores; "" = it ends sessions only
	Token     string
	Action    string
	FormToken string
	Problems  Problems
}

// Render returns the page.
func (p Link) Render(v *View) ([]byte, error) { return v.render(link, p) }
