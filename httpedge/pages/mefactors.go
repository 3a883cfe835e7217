package pages

import (
	"html/template"
	"strconv"
	"strings"

	"rsc.io/qr"

	"gatehouse/actors/texts"
)

// MeFactors is the page of the second factors of an account.
type MeFactors struct {
	Account  Account
	App      texts.Text // the day since which there is an authenticator app; nil = there is none
	HasKeys  bool       // the service can ask for security keys
	Keys     int        // that the account has
	Codes    int        // recovery codes that are left
	Notice   texts.Text // something that has gone well; nil = nothing
	Problems Problems
}

// Render returns the page.
func (p MeFactors) Render(v *View) ([]byte, error) { return v.render(meFactors, p) }

// MeApp is the page that sets up an authenticator app. Its fields are secret, code and
// current_password.
type MeApp struct {
	Account       Account
	Secret        string // base32
	URL           string // of the QR code and of the link, of scheme otpauth
	NeedsPassword bool   // the page asks for the password
	Required      bool   // the service or an app asks for it
	KeyPage       string // path and query of the page that adds a security key; "" = not shown
	Action        string
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p MeApp) Render(v *View) ([]byte, error) { return v.render(meApp, p) }

// Key returns the secret in groups of 4, for typing.
func (p MeApp) Key() string {
	var groups []string
	for rest := p.Secret; rest != ""; {
		n := min(4, len(rest))
		groups, rest = append(groups, rest[:n]), rest[n:]
	}
	return strings.Join(groups, " ")
}

// Link returns URL for a person whose app is on the device that shows the page.
func (p MeApp) Link() template.URL { return template.URL(p.URL) }

// qrQuiet is the margin of a QR code in modules (ISO/IEC 18004 section 6.3.8).
const qrQuiet = 4

// QR returns the QR code of URL as a path of an SVG and the width of its image, each dark module a
// square of 1.
func (p MeApp) QR() (image struct {
	Size int
	Path template.HTMLAttr
}, err error) {
	code, err := qr.Encode(p.URL, qr.M)
	if err != nil {
		return image, err
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			width := 0
			for code.Black(x+width, y) { // Black is false beyond the code
				width++
			}
			if width > 0 {
				w := strconv.Itoa(width)
				path.WriteString("M" + strconv.Itoa(x+qrQuiet) + " " + strconv.Itoa(y+qrQuiet) + "h" + w +
					"v1h-" + w + "z")
				x += width
			}
		}
	}
	image.Size = code.Size + 2*qrQuiet
	image.Path = template.HTMLAttr(`d="` + path.String() + `"`)
	return image, nil
}

// MeRecovery is the page that asks whether to make new recovery codes, or with Codes, shows them once.
// Its field is current_password.
type MeRecovery struct {
	Account       Account
	Codes         []string // nil = it asks
	New           bool     // Codes came with a second factor
	Then          string   // path and query of the next page, with Codes
	NeedsPassword bool     // the page asks for the password
	Action        string
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p MeRecovery) Render(v *View) ([]byte, error) { return v.render(meRecovery, p) }

// MeRemove is the page that asks whether to remove the authenticator app. Its field is
// current_password.
type MeRemove struct {
	Account       Account
	Keys          bool // a security key stays
	NeedsPassword bool // the page asks for the password
	Action        string
	FormToken     string
	Problems      Problems
}

// Render returns the page.
func (p MeRemove) Render(v *View) ([]byte, error) { return v.render(meRemove, p) }
