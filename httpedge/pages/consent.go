package pages

import (
	"net/url"
	"strings"
	"unicode"

	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
)

// Account is a signed-in person as the pages show it.
type Account struct {
	ID      int64
	Name    string
	Address string // email address or phone number; "" = none
}

// Initial returns the first letter or digit of the name, as a capital; "?" = there is none.
func (a Account) Initial() string {
	for _, r := range a.Name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return "?"
}

// Site is a page of a client's owner.
type Site struct {
	URL  string
	Host string // where the link leads, for people
}

// siteOf returns the site at uri, or nil unless it is an http or https URL.
func siteOf(uri string) *Site {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return nil
	}
	return &Site{u.String(), u.Host}
}

// Accounts is the page on which a person chooses one of the browser's accounts, and signs out of
// them.
type Accounts struct {
	Client       string // "" = no client asks for the choice
	Action       string // path and query that the choice is sent to, as field account
	FormToken    string
	Accounts     []Account
	Another      string // path and query of the page to sign in to one more
	SignOut      string // path and query of the form to sign out of one account; "" = not offered
	SignOutToken string // its anti-forgery token
	Me           string // path that a choice without a client leads to; "" = no choice
	Problems     Problems
}

// Render returns the page.
func (p Accounts) Render(v *View) ([]byte, error) { return v.render(accounts, p) }

// Chooses reports whether the accounts are buttons.
func (p Accounts) Chooses() bool { return p.Client != "" || p.Me != "" }

// Several reports whether there is more than one account.
func (p Accounts) Several() bool { return len(p.Accounts) > 1 }

// Permission is one thing that a client asks for.
type Permission struct {
	About   string     // key of the heading that it is below, "" = none
	Text    texts.Text // after "will be able to"
	Lead    texts.Text // Text without Parts; nil unless there are Parts
	Parts   []string   // what Text lists, in the words of an operator; nil unless there are several
	Granted bool       // it was allowed before
}

// PermissionGroup are permissions about one thing.
type PermissionGroup struct {
	About       string // key of the heading; "" = there is one group only
	Permissions []Permission
}

// grouped returns the groups of permissions that come one after the other.
func grouped(all []Permission) (groups []PermissionGroup) {
	for _, p := range all {
		if last := len(groups) - 1; last >= 0 && groups[last].About == p.About {
			groups[last].Permissions = append(groups[last].Permissions, p)
			continue
		}
		groups = append(groups, PermissionGroup{p.About, []Permission{p}})
	}
	if len(groups) == 1 {
		groups[0].About = ""
	}
	return groups
}

// Headings of permissions.
const (
	aboutYou      = "permission.about_you"
	aboutAway     = "permission.about_away"
	aboutServices = "permission.about_services"
)

// permissions are what each scope lets a client do, in the order of the page.
var permissions = []struct {
	scope oauth.Scopes
	key   string
}{
	{oauth.OpenID, "permission.openid"}, {oauth.ViewUser, "permission.view_user"},
	{oauth.DetailUser, "permission.detail_user"}, {oauth.Profile, "permission.profile"},
	{oauth.Email, "permission.email"}, {oauth.Phone, "permission.phone"},
	{oauth.Address, "permission.address"}, {oauth.Groups, "permission.groups"}, {oauth.OfflineAccess, "permission.offline_access"},
}

// Permissions says what scopes let a client do, each after "will be able to", and which of them
// were granted before.
func Permissions(scopes, granted oauth.Scopes) []Permission {
	var all []Permission
	for _, p := range permissions {
		if scopes.Contains(p.scope) {
			about := aboutYou
			if p.scope == oauth.OfflineAccess {
				about = aboutAway
			}
			all = append(all, Permission{About: about, Text: texts.Of(p.key),
				Granted: granted.Contains(p.scope)})
		}
	}
	return all
}

// Uncovered returns scopes without those that let a client do nothing that another one of them does not:
// a person reads nothing more than once. approved says that the client may see detailed profiles.
func Uncovered(scopes oauth.Scopes, approved bool) oauth.Scopes {
	if scopes.Contains(oauth.ViewUser) {
		scopes &^= oauth.Email
	}
	if approved && scopes.Contains(oauth.DetailUser) {
		scopes &^= oauth.Profile | oauth.Email | oauth.Phone | oauth.Address
	}
	return scopes
}

// ResourcePermissions says what a client can do at resources of others, each after "will be able
// to", and which of it was granted before.
func ResourcePermissions(reaches []oauth.Reach, granted oauth.Targets) []Permission {
	var all []Permission
	for _, r := range reaches {
		key, lead, slots := "permission.resource", "permission.resource", []any{"place", r.Place}
		if r.Name != "" {
			slots[1] = texts.Of("permission.resource_named", "name", r.Name, "place", r.Place)
		}
		var scopes []texts.Text
		for _, raw := range r.Raw {
			scopes = append(scopes, texts.Of("permission.quoted", "scope", raw))
		}
		said := strings.Join(r.Texts, "; ")
		if scopes != nil {
			lead = "permission.resource_raw"
		}
		switch {
		case scopes != nil && said != "":
			key = "permission.resource_both"
		case scopes != nil:
			key = lead
		case said != "":
			key = "permission.resource_texts"
		}
		slots = append(slots, "scopes", texts.List(scopes))
		p := Permission{About: aboutServices, Text: texts.Of(key, append(slots, "texts", said)...),
			Granted: granted.Contains(oauth.Targets{r.Target})}
		if len(r.Texts) > 1 {
			p.Lead, p.Parts = texts.Of(lead, slots...), r.Texts
		}
		all = append(all, p)
	}
	return all
}

// AppLogo returns the path of the picture that an app is shown with; "" = it has none.
func AppLogo(c *oauth.Client) string {
	logo := c.ShownLogo()
	if logo == "" {
		return ""
	}
	return strings.Replace(PathAppLogo, "{id}", url.PathEscape(c.ID), 1) + "?v=" + logo
}

// Consent is the page that asks a person to let a client in.
type Consent struct {
	Client      string
	ClientURI   string // page about the client; "" = none. Shown if http or https
	Logo        string // of AppLogo
	Account     Account
	Permissions []Permission
	Onward      []Permission // what the APIs among Permissions may do elsewhere
	Unapproved  bool         // the client cannot see the detailed profile before an operator approves it
	Destination string       // where the browser goes next; with a Scheme, the whole URI
	Scheme      string       // private-use one of Destination, which any program may have taken; "" = none
	Host        string       // that stands behind a client that nobody has checked; "" = a program here
	// Unverified says that nobody has checked the client. With it, ReturnsHere says that
	// Destination is a program on this computer.
	Unverified, ReturnsHere bool
	// Resembles is the name for which people could take Client: of this service, or of another client.
	// "" = none. Mixed says that Client has letters of several scripts that look alike. HostResembles
	// is the name of this service if people could take Host for its own. All are for Unverified.
	Resembles     string
	Mixed         bool
	HostResembles string

	Action    string
	FormToken string
	Another   string // path and query of the chooser
	Problems  Problems
}

// Render returns the page.
func (p Consent) Render(v *View) ([]byte, error) { return v.render(consent, p) }

// Groups returns the permissions by what they are about.
func (p Consent) Groups() []PermissionGroup { return grouped(p.Permissions) }

// Here reports whether a program on this computer gets the access. With a Scheme the page says more.
func (p Consent) Here() bool { return p.Scheme == "" && (p.ReturnsHere || p.Host == "") }

// Site returns where ClientURI leads, or nil.
func (p Consent) Site() *Site { return siteOf(p.ClientURI) }

// Logout is the page that asks whether to sign out.
type Logout struct {
	Accounts  []Account // that the browser is signed in to
	FormToken string
	Problems  Problems
}

// Render returns the page.
func (p Logout) Render(v *View) ([]byte, error) { return v.render(logout, p) }

// EndSession is the page that asks a person which account to sign out of, for a client. Its field is
// account.
type EndSession struct {
	Client    string // "" = it is not known
	Accounts  []Account
	Action    string
	FormToken string
	Problems  Problems
}

// Render returns the page.
func (p EndSession) Render(v *View) ([]byte, error) { return v.render(endSession, p) }

// Several reports whether there is more than one account.
func (p EndSession) Several() bool { return len(p.Accounts) > 1 }
