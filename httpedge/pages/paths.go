package pages

import "gatehouse/actors/people"

// Paths of the pages, and of where browsers begin (interface document, section 4).
const (
	PathHome      = "/"
	PathAuthorize = "/oauth/authorize"
	PathLogin     = "/login"
	PathAccounts  = "/accounts"
	PathConsent   = "/consent"
	PathLogout    = "/logout"
	PathDevice    = "/device"

	PathEndSession        = "/oauth/logout"
	PathEndSessionConfirm = "/oauth/logout/confirm"

	PathRegister       = "/register"
	PathRegisterVerify = "/register/verify"
	PathRegisterResend = "/register/resend"
	PathPhone          = "/register/phone"
	PathPhoneVerify    = "/register/phone/verify"
	PathPhoneResend    = "/register/phone/resend"
	PathLoginCode      = "/login/code"
	PathLoginVerify    = "/login/verify"
	PathLoginResend    = "/login/resend"
	PathReset          = "/reset"
	PathResetVerify    = "/reset/verify"
	PathResetResend    = "/reset/resend"

	PathResetConfirm       = "/reset/confirm" // the code of an older channel
	PathResetConfirmResend = "/reset/confirm/resend"

	PathLink = people.PathLink // of notices

	PathLogo           = "/service/logo"
	PathIcon           = "/service/icon" // in tabs of browsers
	PathChangePassword = "/.well-known/change-password"

	PathMe            = "/me"
	PathMeProfile     = "/me/profile"
	PathMeApps        = "/me/apps"
	PathMeSessions    = "/me/sessions"
	PathMePassword    = "/me/password"
	PathMeEmail       = "/me/email"
	PathMeEmailVerify = "/me/email/verify"
	PathMeEmailResend = "/me/email/resend"
	PathMePhone       = "/me/phone"
	PathMePhoneVerify = "/me/phone/verify"
	PathMePhoneResend = "/me/phone/resend"
	PathMePhoneSignIn = "/me/phone/sign-in"
	PathMeHistory     = "/me/history"
	PathMeData        = "/me/data"
	PathMeDataFile    = "/me/data/account.json" // the person's own data

	PathMeConfirm       = "/me/confirm" // sends the code that a change of credentials needs
	PathMeConfirmVerify = "/me/confirm/verify"
	PathMeConfirmResend = "/me/confirm/resend"

	PathConsole         = "/console"
	PathConsoleApps     = "/console/apps"
	PathConsolePeople   = "/console/people"
	PathConsoleActivity = "/console/activity"

	PathMeDelete  = "/me/delete"
	PathMeDeleted = "/me/deleted"
)
