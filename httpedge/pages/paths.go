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
	PathLoginPasskey   = "/login/passkey"
	PathPasskeyOffer   = "/login/passkey/offer"
	PathLoginFactor    = "/login/factor" // the second step of a sign-in
	PathFactorCode     = "/login/factor/code"
	PathFactorVerify   = "/login/factor/verify"
	PathFactorResend   = "/login/factor/resend"
	PathFactorKey      = "/login/factor/key"
	PathStepUp         = "/login/step-up" // the second factor in a session
	PathStepUpKey      = "/login/step-up/key"
	PathWith           = people.PathWith + "{id}" // of sign-ins with other providers
	PathWithCallback   = PathWith + people.PathCallback
	PathConnect        = "/register/connect" // asks for the address of a person who comes from one
	PathConnectVerify  = "/register/connect/verify"
	PathConnectResend  = "/register/connect/resend"
	PathReset          = "/reset"
	PathResetVerify    = "/reset/verify"
	PathResetResend    = "/reset/resend"

	PathResetConfirm       = "/reset/confirm" // the code of an older channel
	PathResetConfirmResend = "/reset/confirm/resend"

	PathLink = people.PathLink // of notices
	// PathInvitation is where the links of invitations lead.
	PathInvitation = people.PathInvitation

	PathLogo           = "/service/logo"
	PathAppLogo        = "/service/apps/{id}/logo" // of a client
	PathIcon           = "/service/icon"           // in tabs of browsers
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
	PathMePasskeys    = "/me/passkeys"
	PathMePasskeyAdd  = "/me/passkeys/add"
	PathMeConnections = "/me/connections"      // to other providers
	PathMeConnect     = "/me/connections/{id}" // begins to connect one
	PathMeHistory     = "/me/history"
	PathMeData        = "/me/data"
	PathMeDataFile    = "/me/data/account.json" // the person's own data

	PathMeConfirm       = "/me/confirm" // sends the code that a change of credentials needs
	PathMeConfirmVerify = "/me/confirm/verify"
	PathMeConfirmResend = "/me/confirm/resend"
	// PathMeConfirmPasskey proves by a passkey in place of a code.
	PathMeConfirmPasskey = "/me/confirm/passkey"

	PathMeConfirmFactor = "/me/confirm/factor" // the second factor that such a change needs
	PathMeConfirmKey    = "/me/confirm/factor/key"

	PathMeFactors     = "/me/factors"
	PathMeApp         = "/me/factors/app"       // sets up an authenticator app
	PathMeKey         = "/me/factors/key"       // adds a security key
	PathMeRecovery    = "/me/factors/codes"     // new recovery codes
	PathMeRemove      = "/me/factors/remove"    // removes the app
	PathMeConfirmWith = "/me/confirm/with/{id}" // a sign-in with a provider instead

	PathConsole         = "/console"
	PathConsoleApps     = "/console/apps"
	PathConsolePeople   = "/console/people"
	PathConsoleActivity = "/console/activity"

	PathMeDelete  = "/me/delete"
	PathMeDeleted = "/me/deleted"
)
