package pages_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"gatehouse/actors/brand"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
)

// providers are buttons of providers.
var providers = []pages.Provider{
	{Name: "Google", Icon: "google", Path: "/login/with/google?start=token"},
	{Name: "Microsoft", Icon: "microsoft", Path: "/login/with/microsoft?start=token", Away: true},
	{Name: "GitHub", Icon: "github", Path: "/login/with/github?start=token"},
	{Name: "GitLab", Icon: "gitlab", Path: "/login/with/gitlab?start=token"},
	{Name: "Acme", Path: "/login/with/acme?start=token"},
}

var (
	update = flag.Bool("update", false, "write the golden files anew")
	keep   = flag.String("pages", "", "folder for the pages in all languages, as package pagestest needs them")
)

type page interface {
	Render(v *pages.View) ([]byte, error)
}

// languages are those without drafts.
var languages = texts.Default()

var (
	noon       = time.Date(2026, time.May, 3, 12, 4, 0, 0, time.UTC)
	may3, may1 = texts.Day(noon), texts.Day(noon.AddDate(0, 0, -2))
	april20    = texts.Day(noon.AddDate(0, 0, -13))
	december12 = texts.Day(noon.AddDate(0, -5, 9))
	recently   = texts.Ago(noon, noon)
	yesterday  = texts.Ago(noon.AddDate(0, 0, -1), noon)
)

// plain is the view of pages without settings.
var plain = pages.NewView(brand.Brand{}.Of("https://id.example"), languages)

// branded is a page in the brand of an operator.
type branded struct{ page }

var atlas = pages.NewView(brand.Brand{Name: "Atlas", Host: "id.atlas.example",
	Logo: &brand.Image{Type: "image/svg+xml", Data: []byte("<svg/>")}, Color: brand.Color{R: 0x7a, B: 0x19},
	Support: "mailto:help@atlas.example", Terms: "https://atlas.example/terms", Privacy: "https://atlas.example/privacy"}, languages)

// Render returns the page in that brand.
func (b branded) Render(*pages.View) ([]byte, error) { return b.page.Render(atlas) }

// hostile is what somebody could call himself or his program.
const hostile = `</title><script>alert(1)</script>" onfocus="x" ' {{.}} &amp; ` + "\u202egnp\u202c `"

const (
	historyRows = 10 // as many as a page has
	flowQuery   = "?client_id=a&state=%26%3D+x"
	atlasLogo   = "/service/apps/atlas/logo?v=abc"
)

// appSecret and appURL are those of an authenticator app.
const (
	appSecret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	appURL    = "otpauth://totp/Gatehouse:rosa%40example.com?secret=" + appSecret + "&issuer=Gatehouse&algorithm=SHA1&digits=6&period=30"
)

var (
	rosa  = pages.Account{ID: 7, Name: "Rosa Liebermann", Address: "rosa@example.com"}
	kofi  = pages.Account{ID: 9007199254740991, Name: "Kofi", Address: "+4915112345678"}
	bare  = pages.Account{ID: 9, Name: "李小龍"}
	rogue = pages.Account{ID: 8, Name: hostile, Address: hostile}
	long  = pages.Account{ID: 10, Name: strings.Repeat("Wolfeschlegelsteinhausenbergerdorff", 5), Address: strings.Repeat("x", 60) + "@" + strings.Repeat("sub.", 20) + "example.com"}

	wrong = []pages.Problem{{Text: texts.Literal(hostile)}}
	basic = pages.Permission{Text: texts.Of("permission.view_user")}
	full  = pages.Permission{Text: texts.Of("permission.detail_user")}
	seen  = pages.Permission{Text: basic.Text, Granted: true}

	profile = pages.Profile{Name: "Rosa Liebermann", Username: "rosa", Gender: "female", Bio: "I mend clocks.\nAnd boats.", PlaceOfBirth: "Lübeck",
		DateOfBirth: "1990-12-31", Address: "Hafenstraße 12\n23568 Lübeck", ProfilePicture: "https://example.com/rosa.png"}
	rosaApps = []pages.Connection{
		{ClientID: "a", Name: "Atlas", URI: "https://atlas.example/about", Permissions: []pages.Permission{basic}, Granted: may3, LastUsed: recently},
		{ClientID: "b", Name: "Bureau of Weights and Measures", Host: "weights.example", Permissions: append([]pages.Permission{basic, full}, pages.ResourcePermissions([]oauth.Reach{{Name: "Notes", Place: "notes.example", Texts: []string{"read your notes", "share them"}}}, nil)...), Granted: december12},
	}
	rosaSessions = []pages.Session{
		{ID: "1", Device: texts.Device("Firefox on Linux"), Since: texts.Moment(noon), At: "2026-05-03T12:04:00Z", Near: "London, United Kingdom", Seen: recently, Current: true},
		{ID: "2", Device: texts.Device("Chrome on Android"), Since: texts.Moment(noon.AddDate(0, 0, -2)), At: "2026-05-01T12:04:00Z", Seen: yesterday},
		{ID: "3", Device: texts.Device(""), Since: texts.Moment(noon.AddDate(0, -5, 9)), At: "2025-12-12T12:04:00Z", Seen: april20},
	}
	rosaMe = pages.Me{
		Account: rosa, Email: "rosa@example.com", Phone: "+4915112345678",
		EmailOffered: true, PhoneOffered: true, HasPassword: true, Accounts: "/accounts", Logout: "/logout",
		Sessions: rosaSessions, AllSessions: 3,
	}
	rosaProfile = pages.MeProfile{Account: rosa, FormToken: "token", Fields: profile}
)

// rows is a result of a lookup.
var rows = []pages.HomeRow{{Name: texts.Of("home.ip"), Value: texts.Literal("2001:db8:85a3:8d3:1319:8a2e:370:7348")},
	{Name: texts.Of("home.place"), Value: texts.Literal("Lübeck, Schleswig-Holstein, Germany")}, {Name: texts.Of("home.as"), Value: texts.Literal("AS64500 Example Network GmbH & Co. KG")},
	{Name: texts.Of("home.kind"), Value: texts.List([]texts.Text{texts.Of("home.mobile"), texts.Of("home.proxy"), texts.Of("home.hosting")})}}

// apps returns n connected apps.
func apps(n int) []pages.Connection {
	var all []pages.Connection
	for i := range n {
		all = append(all, pages.Connection{ClientID: fmt.Sprintf("6ba7b810-9dad-11d1-80b4-00c04fd430%02x", i), Name: fmt.Sprintf("Atlas %d", i+1),
			URI: "https://atlas.example/about", Permissions: []pages.Permission{basic}, Granted: may3, LastUsed: recently})
	}
	return all
}

// options and the forms with them are those of passkeys.
var (
	options        = `{"challenge":"AAEC","rpId":"id.example","userVerification":"required"}`
	hostileOptions = `{"challenge":"` + hostile + `"}`
	loginPasskey   = pages.Passkey{Action: "/login/passkey" + flowQuery, Challenge: "sealed", Options: options, Autofill: true}
	newPasskey     = pages.Passkey{Action: "/login/passkey/offer" + flowQuery, Challenge: "sealed", Options: options, Button: texts.Of("passkey.add")}
	namedKey       = pages.Passkey{Action: "/me/factors/key", Challenge: "sealed", Options: options, Names: true, Key: true, NeedsPassword: true,
		Button: texts.Of("passkey.add_key"), Problems: []pages.Problem{{Field: "current_password", Text: texts.Of("wrong.own_password")}}}
	namedPasskey = pages.Passkey{Action: "/me/passkeys/add", Challenge: "sealed", Options: options, Names: true, Button: texts.Of("passkey.add")}
	signalled    = pages.Passkey{Action: "/login/passkey", Challenge: "sealed", Options: options, Autofill: true,
		Signals: pages.SignalText(pages.UnknownCredential("id.example", "AQ"), pages.CurrentUserDetails("id.example", "Ag", "rosa@example.com", "Rosa Liebermann"))}
)

// consoleApp is an app on its screen, with problems in its form.
func consoleApp(problems pages.Problems) pages.ConsoleApps {
	const path = "/console/apps?id=shop"
	form := &pages.AppForm{Action: path, FormToken: "token", Do: "change", Button: texts.Of("page.save"), Texts: []pages.AppField{
		problems.Line("name", texts.Of("console.field_name"), nil, "Atlas"),
		problems.Lines("redirect_uris", texts.Of("console.field_redirect_uris"), texts.Of("console.hint_redirect_uris"), "https://atlas.example/callback\nhttps://atlas.example/again"),
		problems.Line("scopes", texts.Of("console.field_scopes"), texts.Of("console.hint_scopes"), "openid email"),
	}, Flags: []pages.Flag{{Name: "require_pkce", Label: texts.Of("console.flag_require_pkce"), On: true}, {Name: "loopback_any_port", Label: texts.Of("console.flag_loopback_any_port")}}}
	page := pages.ConsoleApps{Console: pages.Console{At: "apps", FormToken: "token", Problems: problems}, App: &pages.ConsoleApp{Path: path, Name: "Atlas", ID: "shop", Form: form,
		Facts: []pages.Fact{{Label: texts.Of("console.client_id"), Values: []string{"shop"}}, {Label: texts.Of("console.kind"), Text: texts.Of("console.confidential")}},
		Actions: []pages.Action{{Do: "approve", Text: texts.Of("console.not_approve"), Label: texts.Of("console.do_approve")},
			{Do: "end-secret:AbCd1234", Of: "AbCd1234", Text: texts.Of("console.secret_since", "id", "AbCd1234", "day", may3), Label: texts.Of("console.end_secret"), Danger: true}}}}
	if problems == nil {
		page.Notice, page.Secret = texts.Of("console.app_created"), "gtcs_0123456789abcdefghijklmnopqrstuvwxyz"
	}
	return page
}

// inviteForm is the form that invites somebody, with problems.
func inviteForm(problems pages.Problems) *pages.AppForm {
	return &pages.AppForm{Action: "/console/people", FormToken: "token", Do: "invite", Button: texts.Of("console.do_invite"), Texts: []pages.AppField{
		problems.Line("email", texts.Of("field.email"), nil, "rosa@example.com"),
		problems.Line("groups", texts.Of("console.groups"), texts.Of("console.hint_groups"), "")}}
}

// all is every page in every state that a person can see.
var all = map[string]page{
	"login": pages.Login{Client: "Atlas", Action: "/login" + flowQuery, FormToken: "token", Register: "/register" + flowQuery,
		Phone: "/register/phone" + flowQuery, Reset: "/reset" + flowQuery},
	"brand":              branded{pages.Login{Action: "/login", FormToken: "token", Register: "/register", Phone: "/register/phone", Reset: "/reset"}},
	"brand_me":           branded{rosaMe},
	"brand_error":        branded{pages.Message{Title: texts.Of("message.try_again"), Text: texts.Of("message.failed"), Reference: "0f8c6a4e9d2b4f1b"}},
	"login_providers":    pages.Login{Action: "/login", FormToken: "token", Register: "/register", Phone: "/register/phone", Reset: "/reset", Providers: providers},
	"login_waits":        pages.Login{Action: "/login", FormToken: "token", Email: rosa.Address, Reset: "/reset", Waits: pages.Waits{Provider: "Google", Address: rosa.Address}},
	"register_providers": pages.Register{Action: "/register", FormToken: "token", Login: "/login", Providers: providers},
	"connect":            pages.Connect{Client: "Atlas", Provider: "GitHub", Action: "/register/connect" + flowQuery, FormToken: "token", Email: rosa.Address, Login: "/login" + flowQuery},
	"connect_hostile":    pages.Connect{Client: hostile, Provider: hostile, Action: "/register/connect", FormToken: hostile, Email: hostile, Login: "/login", Problems: wrong},
	"me_connections": pages.MeConnections{Account: rosa, Action: "/me/connections", FormToken: "token", Proved: true, Providers: providers, Notice: texts.Of("connections.added"),
		Connections: []pages.ProviderConnection{{ID: "c1", Provider: "Google", Name: rosa.Address, Offered: true, Groups: []string{"sales", "support"}, Added: december12, Used: april20}, {ID: "c2", Provider: "https://old.example", Name: "rosa"}}},
	"me_connections_password": pages.MeConnections{Account: rosa, Action: "/me/connections", FormToken: "token", NeedsPassword: true},
	"me_connections_code":     pages.MeConnections{Account: rosa, Action: "/me/connections", FormToken: "token", Confirm: "/me/confirm?for=connections"},
	"me_connections_hostile": pages.MeConnections{Account: rogue, Action: "/me/connections", FormToken: hostile, Proved: true, Problems: wrong, Providers: []pages.Provider{{Name: hostile, Icon: hostile, Path: "/me/connections/acme?start=token", Away: true}},
		Connections: []pages.ProviderConnection{{ID: hostile, Provider: hostile, Name: hostile, Offered: true, Groups: []string{hostile}, Added: texts.Literal(hostile), Used: texts.Literal(hostile)}}},
	"login_alone":  pages.Login{Action: "/login", FormToken: "token"},
	"login_notice": pages.Login{Action: "/login", FormToken: "token", Notice: texts.Of("delete.done"), Register: "/register", Reset: "/reset"},
	"login_again": pages.Login{Action: "/login", FormToken: "token", Email: "rosa@example.com", Problems: []pages.Problem{
		{Field: "email", Text: texts.Of("wrong.email_missing")}, {Field: "password", Text: texts.Of("wrong.password_missing")}, {Text: texts.Of("login.too_many", "wait", texts.Wait(9))}}},
	"login_code": pages.Login{Client: "Atlas", Action: "/login" + flowQuery, Email: "rosa@example.com", CodePath: "/login/code" + flowQuery, CodeToken: "token", Register: "/register" + flowQuery,
		Reset: "/reset" + flowQuery, Problems: []pages.Problem{{Text: texts.Of("login.many_attempts")}}},
	"login_code_hostile": pages.Login{Client: hostile, Action: "/login", Email: hostile, CodePath: "/login/code", CodeToken: hostile, Problems: wrong},
	"login_hostile": pages.Login{Client: hostile, Action: "/login?state=" + `%22%3E%3Cscript%3E`, FormToken: hostile, Email: hostile, Notice: texts.Literal(hostile),
		Problems: []pages.Problem{{Field: "email", Text: texts.Literal(hostile)}}},
	"login_long": pages.Login{Client: long.Name, Action: "/login", FormToken: "token", Email: long.Address, Register: "/register", Phone: "/register/phone", Reset: "/reset"},

	"login_passkey": pages.Login{Client: "Atlas", Action: "/login" + flowQuery, FormToken: "token", Register: "/register" + flowQuery,
		Phone: "/register/phone" + flowQuery, Reset: "/reset" + flowQuery, Passkey: loginPasskey},
	"login_passkey_unknown": pages.Login{Action: "/login", FormToken: "token", Passkey: signalled,
		Problems: []pages.Problem{{Text: texts.Of("passkey.unknown")}}},
	"passkey_offer": pages.PasskeyOffer{Account: rosa, Next: "/oauth/authorize" + flowQuery, Passkey: newPasskey},
	"passkey_offer_hostile": pages.PasskeyOffer{Account: rogue, Next: "/me", Problems: wrong,
		Passkey: pages.Passkey{Action: "/login/passkey/offer", Challenge: hostile, Options: hostileOptions}},
	"me_passkeys": pages.MePasskeys{Account: rosa, FormToken: "token", Told: pages.Passkey{Signals: signalled.Signals}, Notice: texts.Of("passkey.added"), Passkeys: []pages.MyPasskey{
		{ID: "AQ", Name: "Chrome on Linux", SignsIn: true, Synced: true, Created: may1, Used: recently},
		{ID: "Ag", Name: "YubiKey", Created: december12}}},
	"me_passkeys_none": pages.MePasskeys{Account: kofi, FormToken: "token"},
	"me_passkeys_many": pages.MePasskeys{Account: kofi, FormToken: "token", Most: true, Problems: []pages.Problem{{Text: texts.Of("passkey.last_way")}},
		Passkeys: []pages.MyPasskey{{ID: "AQ", Name: long.Name[:60], SignsIn: true, Created: may1}}},
	"me_passkeys_hostile": pages.MePasskeys{Account: rogue, FormToken: hostile, Problems: wrong, Notice: texts.Literal(hostile),
		Passkeys: []pages.MyPasskey{{ID: hostile, Name: hostile, Created: texts.Literal(hostile), Used: texts.Literal(hostile)}},
		Told:     pages.Passkey{Signals: pages.SignalText(pages.UnknownCredential(hostile, hostile))}},
	"me_passkey_add": pages.MePasskeyAdd{Account: rosa, Passkey: namedPasskey, Back: "/me/passkeys"},
	"me_key": pages.MePasskeyAdd{Account: rosa, Factor: true, Passkey: namedKey, Back: "/me/factors",
		Problems: []pages.Problem{{Field: "passkey_name", Text: texts.Of("wrong.passkey_name_missing")}}},
	"me_key_required": pages.MePasskeyAdd{Account: rosa, Factor: true, Required: true, Passkey: namedKey, App: "/me/factors/app?then=%2Fdevice",
		Back: "/me/factors"},
	"me_passkey_add_hostile": pages.MePasskeyAdd{Account: rogue, Problems: wrong, Back: "/me/passkeys",
		Passkey: pages.Passkey{Action: "/me/passkeys/add", Challenge: hostile, Options: hostileOptions, Names: true, Name: hostile}},
	"me_confirm_passkey": pages.MeConfirm{Account: rosa, Action: "/me/confirm?for=passkeys", FormToken: "token", Password: true,
		Passkey: pages.Passkey{Action: "/me/confirm/passkey?for=passkeys", Challenge: "sealed", Options: options}},
	"me_full": func() pages.Me {
		me := rosaMe
		me.HasPasskeys, me.Passkeys, me.Factor, me.Notice = true, 2, true, texts.Of("address.phone_changed")
		me.ProvidersShown, me.Providers, me.PhoneChoice = true, 2, true
		return me
	}(),

	"register": pages.Register{Client: "Atlas", Action: "/register" + flowQuery, FormToken: "token", Login: "/login" + flowQuery, Phone: "/register/phone" + flowQuery},
	"register_again": pages.Register{Action: "/register", FormToken: "token", Name: "Rosa Liebermann", Email: "rosa@example", Login: "/login", Problems: []pages.Problem{
		{Field: "name", Text: texts.Of("wrong.name_missing")}, {Field: "email", Text: texts.Of("wrong.email_form")}, {Field: "password", Text: texts.Of("wrong.password_short", "n", 10)}}},
	"register_hostile": pages.Register{Client: hostile, Action: "/register", FormToken: hostile, Name: hostile, Email: hostile, Login: "/login", Problems: wrong},

	"phone": pages.Phone{Client: "Atlas", Action: "/register/phone" + flowQuery, FormToken: "token", Login: "/login" + flowQuery},
	"phone_again": pages.Phone{Action: "/register/phone", FormToken: "token", Number: "0151 12345678", Login: "/login",
		Problems: []pages.Problem{{Field: "phone_number", Text: texts.Of("wrong.phone_form")}}},
	"phone_hostile": pages.Phone{Client: hostile, Action: "/register/phone", FormToken: hostile, Number: hostile, Login: "/login", Problems: wrong},

	"reset":         pages.Reset{Client: "Atlas", Action: "/reset" + flowQuery, FormToken: "token", Login: "/login" + flowQuery},
	"reset_again":   pages.Reset{Action: "/reset", FormToken: "token", Email: "rosa", Login: "/login", Problems: []pages.Problem{{Field: "email", Text: texts.Of("wrong.email_form")}}},
	"reset_hostile": pages.Reset{Client: hostile, Action: "/reset", FormToken: hostile, Email: hostile, Login: "/login", Problems: wrong},

	"verify_registration": pages.Verify{Client: "Atlas", Action: "/register/verify" + flowQuery, FormToken: "token", Resend: "/register/resend" + flowQuery, ResendToken: "token", Address: "rosa@example.com", Wait: 30, Back: "/register" + flowQuery},
	"verify_resend": pages.Verify{Action: "/register/verify", FormToken: "token", Address: "rosa@example.com", Resend: "/register/resend",
		ResendToken: "token", Back: "/register", Notice: texts.Of("verify.sent")},
	"verify_again": pages.Verify{Action: "/register/verify", FormToken: "token", Address: "rosa@example.com", Resend: "/register/resend", ResendToken: "token", Wait: 3000,
		Problems: []pages.Problem{{Field: "code", Text: texts.Of("wrong.code")}}},
	"verify_phone": pages.Verify{Kind: pages.VerifyPhone, Client: "Atlas", Action: "/register/phone/verify", FormToken: "token", Address: "+4915112345678",
		Resend: "/register/phone/resend", ResendToken: "token", Back: "/register/phone"},
	"verify_phone_name": pages.Verify{Kind: pages.VerifyPhone, Action: "/register/phone/verify", FormToken: "token", Entered: "246810", Resend: "/register/phone/resend", ResendToken: "token", Address: "+4915112345678"},
	"verify_long":       pages.Verify{Kind: pages.VerifyReset, Long: true, Action: "/reset/verify", FormToken: "token", Resend: "/reset/resend", ResendToken: "token", Address: "rosa@example.com", Wait: 20000, Back: "/reset"},
	"login_signed_in":   pages.Login{Device: true, SignedIn: []pages.Account{rosa}, Stay: "/device?user_code=BCDF-GHJK", Action: "/login?user_code=BCDF-GHJK", FormToken: "token"},
	"verify_phone_again": pages.Verify{Kind: pages.VerifyPhone, Entered: "246810", Action: "/register/phone/verify", FormToken: "token", Resend: "/register/phone/resend", ResendToken: "token", Address: "+4915112345678", Wait: 1,
		Problems: []pages.Problem{{Field: "name", Text: texts.Of("wrong.name_missing")}}},
	"verify_reset": pages.Verify{Kind: pages.VerifyReset, Client: "Atlas", Action: "/reset/verify", FormToken: "token", Resend: "/reset/resend", ResendToken: "token", Address: "rosa@example.com", Wait: 30, Back: "/reset"},
	"verify_reset_again": pages.Verify{Kind: pages.VerifyReset, Action: "/reset/verify", FormToken: "token", Resend: "/reset/resend", ResendToken: "token", Address: "rosa@example.com", Wait: 20000, Back: "/reset",
		Problems: []pages.Problem{{Field: "code", Text: texts.Of("verify.missing")}, {Field: "password", Text: texts.Of("wrong.password_common")}}},
	"verify_browser":      pages.Verify{Kind: pages.VerifyBrowser, Client: "Atlas", Action: "/login/verify" + flowQuery, FormToken: "token", Resend: "/login/resend" + flowQuery, ResendToken: "token", Address: "rosa@example.com", Wait: 30, Back: "/login" + flowQuery},
	"verify_email_change": pages.Verify{Kind: pages.VerifyEmailChange, Action: "/me/email/verify", FormToken: "token", Resend: "/me/email/resend", ResendToken: "token", Address: "rosa@example.com", Wait: 30, Back: "/me/email"},
	"verify_phone_change": pages.Verify{Kind: pages.VerifyPhoneChange, Action: "/me/phone/verify", FormToken: "token", Resend: "/me/phone/resend", ResendToken: "token", Address: "+4915112345678", Wait: 30, Back: "/me/phone"},
	"verify_proof":        pages.Verify{Kind: pages.VerifyPhoneProof, Action: "/me/confirm/verify?for=email", FormToken: "token", Address: kofi.Address, Resend: "/me/confirm/resend?for=email", ResendToken: "token", Back: "/me/confirm?for=email"},
	"verify_hostile": pages.Verify{Kind: pages.VerifyPhone, Client: hostile, Action: "/register/phone/verify", FormToken: hostile, Address: hostile, Name: hostile,
		Resend: "/register/phone/resend", ResendToken: hostile, Back: "/register/phone", Notice: texts.Literal(hostile), Problems: wrong},

	"device_code":         pages.DeviceCode{Account: rosa, Action: "/device", FormToken: "token", UserCode: "BCDF-GHJK", Another: "/accounts?user_code=BCDF-GHJK"},
	"device_code_again":   pages.DeviceCode{Account: bare, Action: "/device", FormToken: "token", Another: "/accounts?user_code=", Problems: []pages.Problem{{Field: "user_code", Text: texts.Of("connect.missing")}}},
	"device_code_hostile": pages.DeviceCode{Account: rogue, Action: "/device", FormToken: hostile, UserCode: hostile, Another: "/accounts", Problems: wrong},
	"device": pages.Device{Client: "Atlas", ClientURI: "https://atlas.example/about", Account: rosa, Permissions: []pages.Permission{basic}, UserCode: "BCDF-GHJK",
		Place: "Lübeck, Germany", Minutes: 2, Action: "/device", FormToken: "token"},
	"device_unknown": pages.Device{Client: "Atlas", Account: bare, UserCode: "BCDF-GHJK", Unapproved: true, Minutes: 1, Action: "/device", FormToken: "token",
		Problems: []pages.Problem{{Text: texts.Of("consent.choose")}}},
	"device_long": pages.Device{Client: long.Name, Account: long, Permissions: []pages.Permission{basic, full}, UserCode: "BCDF-GHJK", Place: strings.Repeat("x", 80), Action: "/device", FormToken: "token"},
	"device_hostile": pages.Device{Client: hostile, ClientURI: "javascript:alert(1)", Account: rogue, Permissions: []pages.Permission{{Text: texts.Literal(hostile)}}, UserCode: hostile, Place: hostile,
		Action: "/device", FormToken: hostile, Problems: wrong},

	"accounts": pages.Accounts{Client: "Atlas", Action: "/accounts" + flowQuery, FormToken: "token", Accounts: []pages.Account{rosa, kofi, bare},
		Another: "/login" + flowQuery, SignOut: "/accounts/signout" + flowQuery, SignOutToken: "token"},
	"accounts_again": pages.Accounts{Client: "Atlas", Action: "/accounts", FormToken: "token", Accounts: []pages.Account{rosa}, Another: "/login",
		Problems: []pages.Problem{{Text: texts.Of("accounts.choose_problem")}}},
	"accounts_me":    pages.Accounts{Action: "/accounts", FormToken: "token", Accounts: []pages.Account{rosa, kofi}, Another: "/login", SignOut: "/accounts/signout", SignOutToken: "token", Me: "/me"},
	"accounts_shown": pages.Accounts{Accounts: []pages.Account{rosa, bare}, Another: "/login"},
	"accounts_none":  pages.Accounts{Another: "/login"},
	"accounts_long": pages.Accounts{Client: long.Name, Action: "/accounts", FormToken: "token", Accounts: []pages.Account{long, rosa},
		Another: "/login", SignOut: "/accounts/signout", SignOutToken: "token"},
	"accounts_hostile": pages.Accounts{Client: hostile, Action: "/accounts", FormToken: hostile, Accounts: []pages.Account{rogue}, Another: "/login",
		SignOut: "/accounts/signout", SignOutToken: hostile, Problems: wrong},

	"consent": pages.Consent{Client: "Atlas", ClientURI: "https://atlas.example/about", Account: rosa, Permissions: []pages.Permission{basic},
		Destination: "https://atlas.example", Action: "/consent" + flowQuery, FormToken: "token", Another: "/accounts" + flowQuery},
	"consent_logo": pages.Consent{Client: "Atlas", Logo: atlasLogo, Account: rosa, Permissions: []pages.Permission{basic},
		Destination: "https://atlas.example", Action: "/consent" + flowQuery, FormToken: "token", Another: "/accounts" + flowQuery},
	"consent_more": pages.Consent{Client: "Atlas", Account: rosa, Permissions: []pages.Permission{seen, full}, Unapproved: true,
		Destination: "https://atlas.example", Action: "/consent" + flowQuery, FormToken: "token", Another: "/accounts" + flowQuery},
	"consent_nothing": pages.Consent{Client: "Atlas", Account: kofi, Destination: "com.example.atlas:/callback", Scheme: "com.example.atlas", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_openid": pages.Consent{Client: "Atlas", Account: rosa, Permissions: append(pages.Permissions(pages.Uncovered(oauth.GrantableScopes, false), oauth.OpenID|oauth.Groups), pages.ResourcePermissions([]oauth.Reach{{Name: "Notes", Place: "notes.example", Texts: []string{"Read your notes", "Write and delete notes", "Share notes with others"}}, {Place: "mail.example", Raw: []string{"list"}, Texts: []string{"Read your mail", "Send mail"}}}, nil)...), Unapproved: true,
		Destination: "https://atlas.example", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_document": pages.Consent{Client: "Atlas", Account: rosa, Permissions: []pages.Permission{basic}, Unverified: true, Host: "atlas.example",
		Destination: "https://atlas.example", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_registered": pages.Consent{Client: "Atlas", Account: rosa, Permissions: []pages.Permission{basic}, Unverified: true, ReturnsHere: true,
		Destination: "http://localhost:4711", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_scheme": pages.Consent{Client: "Atlas", Account: rosa, Permissions: []pages.Permission{basic}, Unverified: true, ReturnsHere: true,
		Destination: "cursor://atlas/callback", Scheme: "cursor", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_phishing": pages.Consent{Client: "Google Account Security", ClientURI: "https://google.example/", Account: rosa, Permissions: []pages.Permission{basic, full}, Unverified: true,
		Unapproved: true, Host: "evil.example", Destination: "https://evil.example", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"device_unverified": pages.Device{Client: "Google Account Security", Account: rosa, Permissions: []pages.Permission{basic}, Unverified: true, Host: "evil.example", UserCode: "BCDF-GHJK",
		Minutes: 2, Action: "/device", FormToken: "token"},
	"consent_lookalike": pages.Consent{Client: "\u0410tl\u0430s", Account: rosa, Permissions: []pages.Permission{basic}, Unverified: true, Resembles: "Atlas", Mixed: true, HostResembles: "Atlas",
		Host: "atlas.evil.example", Destination: "https://atlas.evil.example", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"device_lookalike": pages.Device{Client: "G\u043e\u043egle", Account: rosa, Permissions: []pages.Permission{basic}, Unverified: true, Mixed: true, UserCode: "BCDF-GHJK",
		Minutes: 2, Action: "/device", FormToken: "token"},
	"consent_onward": pages.Consent{Client: "Atlas", Account: rosa,
		Permissions: pages.ResourcePermissions([]oauth.Reach{{Place: "tasks.example/mcp", Name: "Tasks"}}, nil),
		Onward: pages.ResourcePermissions([]oauth.Reach{{Place: "crm.example", Raw: []string{"list"}},
			{Place: "mail.example", Name: "Mail", Texts: []string{"Read your mail"}}}, nil),
		Destination: "https://atlas.example", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_again": pages.Consent{Client: "Atlas", Account: rosa, Permissions: []pages.Permission{basic}, Destination: "https://atlas.example", Action: "/consent", FormToken: "token", Another: "/accounts",
		Problems: []pages.Problem{{Text: texts.Of("consent.choose")}}},
	"consent_long": pages.Consent{Client: long.Name, ClientURI: "https://" + strings.Repeat("sub.", 40) + "example/", Account: long, Permissions: []pages.Permission{basic, full},
		Unapproved: true, Destination: "https://" + strings.Repeat("sub.", 40) + "example", Action: "/consent", FormToken: "token", Another: "/accounts"},
	"consent_hostile": pages.Consent{Client: hostile, ClientURI: "javascript:alert(1)//" + hostile, Account: rogue, Permissions: []pages.Permission{{Text: texts.Literal(hostile)}},
		Destination: hostile, Scheme: hostile, Action: "/consent", FormToken: hostile, Another: "/accounts", Problems: wrong},

	"logout":       pages.Logout{Accounts: []pages.Account{rosa, kofi}, FormToken: "token"},
	"logout_none":  pages.Logout{},
	"logout_again": pages.Logout{Accounts: []pages.Account{rosa}, FormToken: "token", Problems: []pages.Problem{{Text: texts.Of("wrong.stale")}}},

	"end_session":         pages.EndSession{Client: "Atlas", Accounts: []pages.Account{rosa}, Action: "/oauth/logout/confirm?client_id=a", FormToken: "token"},
	"end_session_several": pages.EndSession{Accounts: []pages.Account{rosa, kofi}, Action: "/oauth/logout/confirm?", FormToken: "token", Problems: []pages.Problem{{Text: texts.Of("accounts.choose_one")}}},
	"end_session_hostile": pages.EndSession{Client: hostile, Accounts: []pages.Account{rogue}, Action: "/oauth/logout/confirm", FormToken: hostile, Problems: wrong},

	"me": rosaMe,
	"me_saved": func() pages.Me {
		me := rosaMe
		me.Notice = texts.Of("password.changed")
		me.Sessions, me.AllSessions = me.Sessions[:1], 1
		return me
	}(),
	"me_phone":  pages.Me{Account: kofi, Phone: kofi.Address, EmailOffered: true, Sessions: rosaSessions[:2], AllSessions: 9},
	"me_closed": pages.Me{Account: rosa, Email: rosa.Address, HasPassword: true, Sessions: rosaSessions[:2], AllSessions: 2},
	"me_phone_choice": pages.Me{Account: rosa, Email: rosa.Address, Phone: kofi.Address,
		EmailOffered: true, PhoneOffered: true, HasPassword: true, PhoneChoice: true, PhoneSignIn: true, Sessions: rosaSessions[:1], AllSessions: 1},
	"me_phone_only_way": pages.Me{Account: kofi, Phone: kofi.Address,
		PhoneOffered: true, HasPassword: true, PhoneSignIn: true, Sessions: rosaSessions[:1], AllSessions: 1},
	"me_long": func() pages.Me {
		me := rosaMe
		me.Account, me.Email = long, long.Address
		me.Sessions = []pages.Session{{ID: "1", Device: texts.Literal(long.Name), Since: texts.Moment(noon), At: "2026-05-03T12:04:00Z", Seen: recently, Current: true}, {ID: "2", Device: texts.Literal(long.Name), Since: texts.Moment(noon), At: "2026-05-03T12:04:00Z", Seen: recently}}
		return me
	}(),
	"me_hostile": pages.Me{Account: rogue, Email: hostile, Phone: hostile, Notice: texts.Literal(hostile),
		Sessions: []pages.Session{{ID: hostile, Device: texts.Literal(hostile), Since: texts.Literal(hostile), At: hostile, Near: hostile, Seen: texts.Literal(hostile)}}},

	"me_profile": rosaProfile,
	"me_profile_saved": func() pages.MeProfile {
		p := rosaProfile
		p.Notice = texts.Of("me.saved")
		return p
	}(),
	"me_profile_again": func() pages.MeProfile {
		p := rosaProfile
		p.Fields = pages.Profile{Name: "", Username: "r!", DateOfBirth: "31.12.1990", ProfilePicture: "rosa.png", Gender: strings.Repeat("x", 120), Bio: "b", Address: "a"}
		p.Problems = []pages.Problem{{Field: "name", Text: texts.Of("wrong.name_missing")}, {Field: "username", Text: texts.Of("wrong.username_length")},
			{Field: "gender", Text: texts.Of("wrong.too_long", "n", 50)}, {Field: "profile_picture", Text: texts.Of("wrong.picture_form")},
			{Field: "date_of_birth", Text: texts.Of("wrong.date_form")}}
		return p
	}(),
	"me_profile_hostile": pages.MeProfile{Account: rogue, FormToken: hostile, Fields: pages.Profile{Name: hostile, Username: hostile, Gender: hostile, Bio: hostile, PlaceOfBirth: hostile,
		DateOfBirth: hostile, Address: hostile, ProfilePicture: hostile}, Problems: wrong, Notice: texts.Literal(hostile)},
	"me_data": pages.MeData{Account: rosa},

	"home":         pages.Home{SignIn: true},
	"home_in":      pages.Home{SignIn: true, SignedIn: true},
	"home_lookup":  pages.Home{Lookup: &pages.HomeLookup{Own: "81.2.69.142", OwnPlace: "London, United Kingdom"}},
	"home_own":     pages.Home{SignIn: true, Lookup: &pages.HomeLookup{Own: "81.2.69.142", CanLookUpOwn: true}},
	"home_result":  pages.Home{Lookup: &pages.HomeLookup{Own: "81.2.69.142", Query: "example.com", Curl: "curl 'https://id.example/api/lookup?q=example.com'", Rows: rows}},
	"home_again":   pages.Home{Lookup: &pages.HomeLookup{Query: "10.0.0.1", Problems: pages.Problems{{Field: "q", Text: texts.Of("home.reserved")}}}},
	"home_hostile": pages.Home{SignIn: true, Lookup: &pages.HomeLookup{Own: hostile, OwnPlace: hostile, Query: hostile, Curl: hostile, Problems: wrong, Rows: []pages.HomeRow{{Name: texts.Literal(hostile), Value: texts.Literal(hostile)}}}},

	"me_apps":      pages.MeApps{Account: rosa, FormToken: "token", Connections: rosaApps, Step: 12},
	"me_apps_many": pages.MeApps{Account: rosa, FormToken: "token", Connections: apps(12), From: 12, More: 16, Step: 12, Notice: texts.Of("apps.removed")},
	"me_apps_none": pages.MeApps{Account: rosa, FormToken: "token", Step: 12},
	"me_apps_again": pages.MeApps{Account: rosa, FormToken: "token", Connections: apps(4), From: 36, Step: 12,
		Problems: []pages.Problem{{Text: texts.Of("apps.unknown")}}},
	"me_apps_hostile": pages.MeApps{Account: rogue, FormToken: hostile, Notice: texts.Literal(hostile), Problems: wrong, More: 1, Step: 12,
		Connections: []pages.Connection{{ClientID: hostile, Name: hostile, URI: "javascript:alert(1)", Permissions: []pages.Permission{{Text: texts.Literal(hostile)}}, Granted: texts.Literal(hostile), LastUsed: texts.Literal(hostile)}}},

	"me_sessions": pages.MeSessions{Account: rosa, FormToken: "token", Sessions: rosaSessions, From: 12, More: 3, Step: 12,
		Notice: texts.Of("sessions.ended")},
	"me_sessions_many": pages.MeSessions{Account: rosa, FormToken: "token", Sessions: slices.Repeat(rosaSessions, 4), More: 40, Step: 12, Notice: texts.Of("sessions.ended")},
	"me_sessions_again": pages.MeSessions{Account: rosa, FormToken: "token", Sessions: rosaSessions, Step: 12,
		Problems: []pages.Problem{{Text: texts.Of("sessions.gone")}}},
	"me_sessions_hostile": pages.MeSessions{Account: rogue, FormToken: hostile, Notice: texts.Literal(hostile), Problems: wrong, More: 1, Step: 12,
		Sessions: []pages.Session{{ID: hostile, Device: texts.Literal(hostile), Since: texts.Literal(hostile), At: hostile, Near: hostile, Seen: texts.Literal(hostile)}}},
	"me_history": pages.MeHistory{Account: rosa, Later: true, More: true, Events: []pages.HistoryEvent{
		{Number: 71, Time: texts.Moment(noon), At: "2026-05-03T12:04:59Z", Text: texts.Of("history.in_new_browser", "what", texts.Of("history.by_password")), Count: 1, Device: texts.Device("Chrome on Linux"), Near: "London, United Kingdom", Place: "192.0.2.0/24"},
		{Number: 64, Time: texts.Moment(noon), At: "2026-05-03T12:01:07Z", Text: texts.Of("history.wrong_password"), Count: 12, Place: "2001:db8:1::/48"},
		{Number: 9, Time: texts.Moment(noon.AddDate(0, -5, 9)), At: "2025-12-12T08:30:00Z", Text: texts.Of("history.you_consent", "app", "Atlas", "permissions", basic.Text), Count: 1},
	}},
	"me_history_many": pages.MeHistory{Account: rosa, More: true, Events: slices.Repeat([]pages.HistoryEvent{
		{Number: 71, Time: texts.Moment(noon), At: "2026-05-03T12:04:59Z", Text: texts.Of("history.in_new_browser", "what", texts.Of("history.by_password")), Count: 1, Device: texts.Device("Chrome on Linux"), Near: "London, United Kingdom", Place: "192.0.2.0/24"},
	}, historyRows)},
	"me_history_none": pages.MeHistory{Account: kofi},
	"me_history_end":  pages.MeHistory{Account: kofi, Later: true},
	"me_history_hostile": pages.MeHistory{Account: rogue, Events: []pages.HistoryEvent{
		{Number: 1, Time: texts.Literal(hostile), At: hostile, Text: texts.Literal(hostile), Count: 2, Device: texts.Literal(hostile), Near: hostile, Place: hostile}}},

	"console_apps": pages.ConsoleApps{Console: pages.Console{At: "apps", FormToken: "token", Next: "/console/apps?after=shop"}, Apps: []pages.ConsoleRow{
		{Path: "/console/apps?id=shop", Name: "Atlas", ID: "shop", Tags: []texts.Text{texts.Of("console.tag_approved")}},
		{Path: "/console/apps?id=6ba7b810-9dad-11d1-80b4-00c04fd430c8", Name: "Bureau of Weights and Measures", ID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", Tags: []texts.Text{texts.Of("console.tag_disabled"), texts.Of("console.tag_declared")}}},
		Recipes: []pages.ConsoleRow{{Path: "/console/apps?recipe=Apache", Name: "Apache"}, {Path: "/console/apps?recipe=openid-client", Name: "openid-client"}, {Path: "/console/apps?recipe=-"}}},
	"console_apps_none": pages.ConsoleApps{Console: pages.Console{At: "apps", FormToken: "token", Confirm: "/login/step-up?to=console"}, Query: "nothing", Cut: true},
	"console_app":       consoleApp(nil),
	"console_app_again": consoleApp([]pages.Problem{{Field: "redirect_uris", Text: texts.Of("console.wrong_grants")}, {Field: "scopes", Text: texts.Of("console.wrong_scopes")}}),
	"console_people": pages.ConsolePeople{Console: pages.Console{At: "people", FormToken: "token"}, Query: "rosa", More: true, People: []pages.ConsoleRow{
		{Path: "/console/people?id=7", Name: rosa.Name, Addresses: []string{rosa.Address, "+4915112345678", "7"}},
		{Path: "/console/people?id=8", Name: "Rosa Kofi", Addresses: []string{"8"}, Tags: []texts.Text{texts.Of("console.tag_disabled"), texts.Of("console.tag_operator")}}}},
	"console_people_first": pages.ConsolePeople{Console: pages.Console{At: "people", FormToken: "token", Notice: texts.Of("console.invited")}, Invite: inviteForm(nil)},
	"console_people_again": pages.ConsolePeople{Console: pages.Console{At: "people", FormToken: "token", Problems: []pages.Problem{{Field: "email", Text: texts.Of("console.taken")}}},
		Invite: inviteForm([]pages.Problem{{Field: "email", Text: texts.Of("console.taken")}})},
	"console_person": pages.ConsolePeople{Console: pages.Console{At: "people", FormToken: "token"}, Person: &pages.ConsolePerson{Path: "/console/people?id=7", Name: rosa.Name, ID: 7,
		Facts:   []pages.Fact{{Label: texts.Of("field.email"), Values: []string{rosa.Address}}, {Label: texts.Of("console.ways"), Text: texts.List([]texts.Text{texts.Of("console.has_password"), texts.Of("console.has_passkeys", "n", 2)})}, {Label: texts.Of("console.created"), Text: may3}},
		Actions: []pages.Action{{Do: "disable", Text: texts.Of("console.person_not_disabled"), Label: texts.Of("console.do_disable"), Danger: true}, {Do: "reset-factors", Text: texts.Of("console.factors_lead"), Label: texts.Of("console.do_reset"), Danger: true}},
		Groups:  []pages.ConsoleGroup{{Name: "engineering"}, {Name: "support", Issuer: "https://accounts.google.com"}}, AllGroups: []string{"sales"}, Sessions: rosaMe.Sessions[:2]}},
	"console_operator": pages.ConsolePeople{Console: pages.Console{At: "people", FormToken: "token"}, Person: &pages.ConsolePerson{Path: "/console/people?id=9", Name: "Ada", ID: 9, Operator: true,
		Groups: []pages.ConsoleGroup{{Name: "gatehouse-operators"}}, Sessions: rosaMe.Sessions[:1]}},
	"console_activity": pages.ConsoleActivity{Console: pages.Console{At: "activity", FormToken: "token", Next: "/console/activity?before=9"}, Actions: []string{"sign_in", "sign_out"},
		Health: []pages.Health{{Label: texts.Of("console.service"), Lines: []texts.Text{texts.Of("console.ready"), texts.Of("console.nodes_up", "n", 3, "up", 3)}},
			{Label: texts.Of("console.messages"), Lines: []texts.Text{texts.Of("console.messages_waiting", "n", 1)}},
			{Label: texts.Of("console.keys"), Lines: []texts.Text{texts.Of("console.key_age", "purpose", "tokens", "ago", yesterday)}},
			{Label: texts.Of("console.certificates"), Lines: []texts.Text{texts.Of("console.certificate_ends", "use", "public", "day", may3, "n", 12)}}},
		Filter: pages.ActivityFilter{Since: "2026-05-01"}, Events: []pages.ActivityEvent{
			{HistoryEvent: pages.HistoryEvent{Number: 10, Time: texts.Moment(noon), At: "2026-05-03T12:04:59Z", Count: 1, Place: "192.0.2.0/24", Text: texts.Of("trail.account_disabled", "who", "Ada", "account", texts.Of("trail.account_of", "whom", rosa.Name))}, Action: "account_disabled", Who: "/console/people?id=7"},
			{HistoryEvent: pages.HistoryEvent{Number: 9, Time: texts.Moment(noon), At: "2026-05-03T12:01:07Z", Count: 12, Text: texts.Of("trail.client_failed", "app", "Atlas", "what", "invalid client")}, Action: "client_failed", App: "/console/apps?id=shop"}}},
	"console_activity_again": pages.ConsoleActivity{Console: pages.Console{At: "activity", FormToken: "token", First: "/console/activity?", Problems: []pages.Problem{{Field: "user", Text: texts.Of("console.wrong_user")}}}, Filter: pages.ActivityFilter{User: "rosa"}},
	"console_apps_hostile":   pages.ConsoleApps{Console: pages.Console{At: "apps", FormToken: hostile, Problems: wrong}, Query: hostile, Apps: []pages.ConsoleRow{{Path: "/console/apps?id=x", Name: hostile, ID: hostile}}},
	"console_app_hostile": pages.ConsoleApps{Console: pages.Console{At: "apps", FormToken: hostile}, Secret: hostile, App: &pages.ConsoleApp{Path: "/console/apps?id=x", Name: hostile, ID: hostile, ReadOnly: texts.Literal(hostile),
		Facts: []pages.Fact{{Label: texts.Of("console.client_id"), Values: []string{hostile, hostile}}}, Actions: []pages.Action{{Do: hostile, Of: hostile, Text: texts.Literal(hostile), Label: texts.Literal(hostile)}},
		Form: &pages.AppForm{Action: "/console/apps?id=x", FormToken: hostile, Do: "change", Button: texts.Of("page.save"), Texts: []pages.AppField{pages.Problems(nil).Line("name", texts.Of("console.field_name"), nil, hostile), pages.Problems(nil).Lines("jwks", texts.Of("console.field_jwks"), nil, hostile)}}}},
	"console_person_hostile": pages.ConsolePeople{Console: pages.Console{At: "people", FormToken: hostile}, Query: hostile, Person: &pages.ConsolePerson{Path: "/console/people?id=7", Name: hostile, Groups: []pages.ConsoleGroup{{Name: hostile, Issuer: hostile}}, Group: hostile, AllGroups: []string{hostile},
		Sessions: []pages.Session{{ID: hostile, Device: texts.Literal(hostile), Since: texts.Literal(hostile), Seen: texts.Literal(hostile)}}}},
	"console_activity_hostile": pages.ConsoleActivity{Console: pages.Console{At: "activity", FormToken: hostile, Problems: wrong}, Actions: []string{hostile}, Filter: pages.ActivityFilter{Action: hostile, Since: hostile, User: hostile, Client: hostile},
		Events: []pages.ActivityEvent{{HistoryEvent: pages.HistoryEvent{Number: 1, Time: texts.Literal(hostile), At: hostile, Text: texts.Literal(hostile), Count: 2, Place: hostile}, Action: hostile}}},

	"me_password": pages.MePassword{Account: rosa, NeedsPassword: true, Action: "/me/password", FormToken: "token"},
	"me_password_again": pages.MePassword{Account: rosa, NeedsPassword: true, Action: "/me/password", FormToken: "token", Problems: []pages.Problem{
		{Field: "current_password", Text: texts.Of("wrong.own_password")}, {Field: "new_password", Text: texts.Of("wrong.password_personal")}}},
	"me_password_hostile": pages.MePassword{Account: rogue, NeedsPassword: true, Action: "/me/password", FormToken: hostile, Problems: wrong},

	"me_phone_sign_in": pages.MePhoneSignIn{Account: rosa, NeedsPassword: true, Phone: kofi.Address, Action: "/me/phone/sign-in", FormToken: "token"},
	"me_phone_sign_in_again": pages.MePhoneSignIn{Account: rosa, NeedsPassword: true, Phone: kofi.Address, Allowed: true, Action: "/me/phone/sign-in", FormToken: "token",
		Problems: []pages.Problem{{Field: "current_password", Text: texts.Of("wrong.own_password")}}},
	"me_phone_sign_in_hostile": pages.MePhoneSignIn{Account: rogue, NeedsPassword: true, Phone: hostile, Action: "/me/phone/sign-in", FormToken: hostile, Problems: wrong},

	"factor": pages.Factor{Client: "Atlas", Address: rosa.Address, Action: "/login/factor" + flowQuery, FormToken: "token", App: true,
		OffersTrust: true, Back: "/login" + flowQuery},
	"factor_again": pages.Factor{Address: rosa.Address, Action: "/login/factor", FormToken: "token", App: true, OffersTrust: true, Back: "/login",
		Problems: []pages.Problem{{Field: "code", Text: texts.Of("factor.wrong")}}},
	"factor_step_up": pages.Factor{Client: "Atlas", Address: kofi.Address, Action: "/login/step-up" + flowQuery, FormToken: "token", App: true, StepsUp: true},
	"factor_code_first": pages.Factor{Address: rosa.Address, Action: "/login/factor", FormToken: "token", CodePath: "/login/factor/code",
		CodeToken: "token", Channels: []string{"email", "sms"}, Back: "/login"},
	"factor_hostile": pages.Factor{Client: hostile, Address: hostile, Action: "/login/factor", FormToken: hostile, OffersTrust: true, Problems: wrong},
	"factor_key": pages.Factor{Client: "Atlas", Address: rosa.Address, Action: "/login/factor" + flowQuery, FormToken: "token",
		OffersTrust: true, Back: "/login" + flowQuery, Key: keyForm("/login/factor/key" + flowQuery)},
	"factor_key_or_app": pages.Factor{Address: rosa.Address, Action: "/me/confirm/factor?for=app", FormToken: "token", App: true, StepsUp: true,
		Key: keyForm("/me/confirm/factor/key?for=app"), Problems: []pages.Problem{{Text: texts.Of("factor.key_wrong")}}},
	"factor_key_code_first": pages.Factor{Address: rosa.Address, Action: "/login/factor", FormToken: "token", CodePath: "/login/factor/code",
		CodeToken: "token", Channels: []string{"email"}, Back: "/login", Key: keyForm("/login/factor/key")},
	"factor_recovery": pages.Factor{Address: rosa.Address, Action: "/login/factor", FormToken: "token", OffersTrust: true, Back: "/login",
		Problems: []pages.Problem{{Field: "code", Text: texts.Of("factor.recovery_wrong")}}},
	"me_factors":      pages.MeFactors{Account: rosa},
	"me_factors_keys": pages.MeFactors{Account: rosa, HasKeys: true, Keys: 2, Codes: 10, Notice: texts.Of("factors.key_added")},
	"me_factors_none": pages.MeFactors{Account: rosa, HasKeys: true},
	"me_remove_keys":  pages.MeRemove{Account: rosa, Keys: true, Action: "/me/factors/remove", FormToken: "token"},
	"me_factors_on": pages.MeFactors{Account: rosa, App: texts.Day(time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)), Codes: 9,
		Notice: texts.Of("factors.replaced")},
	"me_factors_hostile": pages.MeFactors{Account: rogue, Problems: wrong},
	"me_app":             pages.MeApp{Account: rosa, KeyPage: "/me/factors/key", Secret: appSecret, URL: appURL, NeedsPassword: true, Action: "/me/factors/app", FormToken: "token"},
	"me_app_again": pages.MeApp{Account: rosa, Secret: appSecret, URL: appURL, Required: true, Action: "/me/factors/app", FormToken: "token",
		Problems: []pages.Problem{{Field: "code", Text: texts.Of("factor.app_wrong")}}},
	"me_app_hostile": pages.MeApp{Account: rogue, Secret: hostile, URL: "otpauth://totp/" + hostile, NeedsPassword: true, Action: "/me/factors/app", FormToken: hostile, Problems: wrong},
	"me_recovery":    pages.MeRecovery{Account: rosa, NeedsPassword: true, Action: "/me/factors/codes", FormToken: "token"},
	"me_recovery_shown": pages.MeRecovery{Account: rosa, Codes: []string{"abcd-efgh-ijkl-mnop", "2345-6722-3344-5566"}, New: true,
		Then: "/oauth/authorize" + flowQuery},
	"me_recovery_hostile": pages.MeRecovery{Account: rogue, NeedsPassword: true, Action: "/me/factors/codes", FormToken: hostile, Problems: wrong},
	"me_remove":           pages.MeRemove{Account: rosa, NeedsPassword: true, Action: "/me/factors/remove", FormToken: "token"},
	"me_remove_hostile":   pages.MeRemove{Account: rogue, NeedsPassword: true, Action: "/me/factors/remove", FormToken: hostile, Problems: wrong},

	"me_email":           pages.MeAddress{Account: rosa, Channel: "email", Current: rosa.Address, NeedsPassword: true, Action: "/me/email", FormToken: "token"},
	"me_email_remove":    pages.MeAddress{Account: rosa, Channel: "email", Current: rosa.Address, CanRemove: true, NeedsPassword: true, Action: "/me/email", FormToken: "token"},
	"me_password_proved": pages.MePassword{Account: rosa, Action: "/me/password", FormToken: "token"},
	"me_confirm": pages.MeConfirm{Account: rosa, Action: "/me/confirm?for=email", FormToken: "token",
		Choices: []pages.Choice{{Channel: "sms", Address: kofi.Address}, {Channel: "email", Address: rosa.Address}}},
	"me_confirm_hostile": pages.MeConfirm{Account: rogue, Action: "/me/confirm?for=email", FormToken: hostile, Problems: wrong,
		Choices: []pages.Choice{{Channel: "sms", Address: hostile}}},
	"invitation":           pages.Invitation{Email: rosa.Address, Name: "Rosa Liebermann", Token: "token", Action: "/invitation", FormToken: "token"},
	"invitation_providers": pages.Invitation{Email: rosa.Address, Token: "token", Action: "/invitation", FormToken: "token", Providers: providers},
	"invitation_hostile":   pages.Invitation{Email: hostile, Name: hostile, Token: hostile, Action: "/invitation", FormToken: hostile, Problems: wrong},
	"link_undo":            pages.Link{Restores: rosa.Address, Token: "token", Action: "/link", FormToken: "token"},
	"link_secure":          pages.Link{Token: "token", Action: "/link", FormToken: "token"},
	"link_hostile":         pages.Link{Restores: hostile, Token: hostile, Action: "/link", FormToken: hostile, Problems: wrong},
	"me_email_add":         pages.MeAddress{Account: kofi, Channel: "email", Action: "/me/email", FormToken: "token"},
	"me_confirm_providers": pages.MeConfirm{Account: rosa, Action: "/me/confirm?for=connections", FormToken: "token", Providers: providers},
	"me_email_again": pages.MeAddress{Account: rosa, Channel: "email", Current: rosa.Address, Address: "rosa@", NeedsPassword: true, Action: "/me/email", FormToken: "token", Problems: []pages.Problem{
		{Field: "email", Text: texts.Of("wrong.email_form")}, {Field: "current_password", Text: texts.Of("wrong.password_missing")}}},
	"me_phone_change":    pages.MeAddress{Account: kofi, Channel: "phone", Current: kofi.Address, NeedsPassword: true, Action: "/me/phone", FormToken: "token"},
	"me_address_hostile": pages.MeAddress{Account: rogue, Channel: "email", Current: hostile, Address: hostile, Action: "/me/email", FormToken: hostile, Problems: wrong},

	"me_delete":         pages.MeDelete{Account: rosa, NeedsPassword: true, Action: "/me/delete", FormToken: "token"},
	"me_delete_again":   pages.MeDelete{Account: rosa, Action: "/me/delete", FormToken: "token", Problems: []pages.Problem{{Field: "confirm", Text: texts.Of("delete.tick")}}},
	"me_delete_hostile": pages.MeDelete{Account: rogue, Action: "/me/delete", FormToken: hostile, Problems: wrong},

	"message": pages.Message{Title: texts.Of("message.cannot"), Text: texts.Of("message.unknown_client"), Fault: texts.Of("message.application"),
		Advice: texts.Of("message.tell_developers"), Technical: "The client is unknown. Check client_id.", Reference: "0f8c6a4e9d2b4f1b"},
	"message_link":    pages.Message{Title: texts.Of("delete.done"), Text: texts.Of("delete.done_text"), Link: "/login", LinkText: texts.Of("login.heading")},
	"message_return":  pages.Message{Title: texts.Of("message.denied"), Text: texts.Of("message.denied_host", "host", "atlas.example", "client", "Atlas"), Return: "cursor://anysphere.cursor-mcp/oauth/callback?error=access_denied", ReturnTo: "cursor://anysphere.cursor-mcp/oauth/callback"},
	"message_hostile": pages.Message{Title: texts.Literal(hostile), Text: texts.Literal(hostile), Fault: texts.Literal(hostile), Advice: texts.Literal(hostile), Technical: hostile, Reference: hostile, Link: "/login", LinkText: texts.Literal(hostile)},
}

func TestGolden(t *testing.T) {
	written, err := filepath.Glob("testdata/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range written {
		if _, ok := all[strings.TrimSuffix(filepath.Base(path), ".html")]; ok {
			continue
		}
		if !*update {
			t.Errorf("got golden file %s, want one for each page only (-update removes it)", path)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, p := range all {
		got := render(t, p)
		path := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got another page than %s (-update writes it anew):\n%s", name, path, got)
		}
	}
}

// TestPagesInEveryLanguage renders all pages in all languages, drafts too. No sentence of a page in a
// language of ours may be English.
func TestPagesInEveryLanguage(t *testing.T) {
	set, err := texts.Load(texts.Options{Drafts: true})
	if err != nil {
		t.Fatal(err)
	}
	v := pages.NewView(brand.Brand{}.Of("https://id.example"), set)
	for name, p := range all {
		if strings.HasPrefix(name, "brand") { // they have a view of their own
			continue
		}
		english := sentences(t, p, v)
		for _, l := range set.All()[1:] {
			got, err := p.Render(v.In(l))
			if err != nil {
				t.Fatalf("%s in %s: %v", name, l.Tag, err)
			}
			if *keep != "" {
				path := filepath.Join(*keep, name+"."+l.Tag+".html")
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Contains(got, []byte(`<html lang="`+l.Tag+`" dir="`+l.Direction+`"`)) {
				t.Errorf("%s in %s: got %.80s, want its language", name, l.Tag, got)
			}
			if languages.Of(l.Tag) == nil { // a draft
				continue
			}
			for text := range sentences(t, p, v.In(l)) {
				if english[text] {
					t.Errorf("%s in %s: got the English %q", name, l.Tag, text)
				}
			}
		}
	}
}

// sentences returns the texts of a page with more than one word that are ours: not those that come
// from outside, and not what is there for developers.
func sentences(t *testing.T, p page, v *pages.View) map[string]bool {
	t.Helper()
	source, err := p.Render(v)
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if slices.Contains([]string{"bdi", "textarea", "style", "script", "title", "footer", "code"},
			n.Data) || attr(n, "lang") == "en" && n.Data != "html" {
			return
		}
		if text := strings.TrimSpace(n.Data); n.Type == html.TextNode &&
			len(strings.Fields(text)) > 1 && !strings.Contains(hostile, text) &&
			strings.ContainsFunc(text, unicode.IsLetter) {
			found[text] = true
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return found
}

// keyForm returns a form that asks for a security key.
func keyForm(action string) pages.Passkey {
	return pages.Passkey{Action: action, Challenge: "sealed", Options: options, Key: true,
		Trusts: strings.HasPrefix(action, "/login/factor/key?"), Button: texts.Of("factor.key_use")}
}
