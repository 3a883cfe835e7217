package pages

import (
	"slices"

	"gatehouse/actors/texts"
)

// Me is the page of one's own account, which shows fewer rows when there is much in them. Its forms
// go to /me (the profile's documented field names), /me/apps (field client_id) and /me/sessions
// (field session, or all=true), all with FormToken; its links to /me/apps, /me/sessions, /me/history,
// /me/password, /me/email, /me/phone, /me/phone/sign-in and /me/delete.
type Me struct {
	Account         Account
	FormToken       string
	Fields          Profile // as it was entered, or as it is
	Attributes      []AttributeField
	Email           string // verified; "" = none
	Phone           string // verified, E.164; "" = none
	EmailOffered    bool   // the email address can be changed
	PhoneOffered    bool   // the phone number can be changed
	HasPassword     bool   // the account has one, which can be changed
	PhoneSignIn     bool   // a code to the phone can replace the password
	PhoneChoice     bool   // the person can choose that
	Connections     []Connection
	MoreConnections int // that are not among Connections
	Sessions        []Session
	MoreSessions    int        // that are not among Sessions
	Accounts        string     // path of the chooser; "" = not shown
	Logout          string     // path; "" = not shown
	Notice          texts.Text // something that has gone well; nil = nothing
	Problems        Problems
}

// Render returns the page. The first of Connections and Sessions are shown, of each as many as have
// room, but one session always.
func (p Me) Render(v *View) ([]byte, error) {
	return fit(max(len(p.Connections), len(p.Sessions)), func(rows int) ([]byte, error) {
		fewer := p
		fewer.Connections, fewer.Sessions = p.Connections[:min(rows, len(p.Connections))],
			p.Sessions[:min(max(rows, 1), len(p.Sessions))]
		fewer.MoreConnections += len(p.Connections) - len(fewer.Connections)
		fewer.MoreSessions += len(p.Sessions) - len(fewer.Sessions)
		return v.render(me, fewer)
	})
}

// AllConnections returns how many there are, shown or not.
func (p Me) AllConnections() int { return len(p.Connections) + p.MoreConnections }

// AllSessions returns how many there are, shown or not.
func (p Me) AllSessions() int { return len(p.Sessions) + p.MoreSessions }

// Others reports whether a session besides this browser's can be ended.
func (p Me) Others() bool {
	return p.MoreSessions > 0 || slices.ContainsFunc(p.Sessions, func(s Session) bool {
		return !s.Current
	})
}

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
	Permissions []texts.Text // each after "can"
	Granted     texts.Text   // a day, such as "3 May 2026"
	LastUsed    texts.Text   // such as "a day ago"; nil = never
}

// Site returns where URI leads, or nil.
func (c Connection) Site() *Site { return siteOf(c.URI) }

// Session is a browser in which a person is signed in.
type Session struct {
	ID      string     // value of the field session
	Device  texts.Text // browser and system in a few words
	Since   texts.Text // a day, such as "3 May 2026"
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
	Action    string
	FormToken string
	Problems  Problems
}

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
