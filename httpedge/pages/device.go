package pages

import "gatehouse/actors/texts"

// DeviceCode is the page on which a person enters the code that a device shows.
type DeviceCode struct {
	Account   Account
	Action    string // path that the code is sent to, as field user_code
	FormToken string
	UserCode  string // as it was entered, or from a link; "" = none
	Another   string // path and query of the chooser
	Problems  Problems
}

// Render returns the page.
func (p DeviceCode) Render(v *View) ([]byte, error) { return v.render(deviceCode, p) }

// Device is the page that asks a person to let a client in on a device.
type Device struct {
	Client      string
	ClientURI   string // page about the client; "" = none. Shown if http or https
	Logo        string // of AppLogo
	Account     Account
	Permissions []Permission
	Unapproved  bool // as in Consent
	// Unverified says that nobody has checked the client. Host is that of the document which
	// describes it; "" = none does.
	Unverified bool
	Host       string
	// Resembles, Mixed and HostResembles are as in Consent.
	Resembles     string
	Mixed         bool
	HostResembles string
	UserCode      string // that the device shows too
	Place         string // rough place of the device; "" = not known
	Minutes       int    // since the device asked
	Action        string // path that the decision is sent to, with field user_code
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p Device) Render(v *View) ([]byte, error) { return v.render(device, p) }

// Ago returns how long ago the device asked.
func (p Device) Ago() texts.Text {
	if p.Minutes == 0 {
		return texts.Of("ago.now")
	}
	return texts.Of("ago.minutes", "n", p.Minutes)
}

// Here reports whether a program on this computer gets the access: a device is another one.
func (p Device) Here() bool { return false }

// Groups returns the permissions by what they are about.
func (p Device) Groups() []PermissionGroup { return grouped(p.Permissions) }

// Site returns where ClientURI leads, or nil.
func (p Device) Site() *Site { return siteOf(p.ClientURI) }
