// Package signin serves the pages of an authorization request: sign-in, registration, password
// reset, account chooser, consent, and the redirect back to the client. The pages also work without
// a client.
package signin

import (
	"regexp"
	"slices"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// Config configures the endpoints. Fields are required unless they say otherwise.
type Config struct {
	Site   *visit.Site
	Tokens *token.Service
	People *people.Service
	Issuer string // base URL of the service, without a trailing slash
	// SkipChooserParameter is the name of the authorization parameter that skips the account
	// chooser. Optional: "" = "skip_account_chooser".
	SkipChooserParameter string
	// DefaultScopes are granted to an authorization request without scope; 0 = it fails with
	// invalid_scope.
	DefaultScopes oauth.Scopes
}

// service holds what the handlers share.
type service struct {
	*visit.Site
	tokens   *token.Service
	people   *people.Service
	issuer   string
	chooser  string // the parameter that skips the account chooser
	defaults oauth.Scopes
}

// Endpoints returns the endpoints.
func Endpoints(config Config) []endpoint.Endpoint {
	s := &service{config.Site, config.Tokens, config.People, config.Issuer,
		config.SkipChooserParameter, config.DefaultScopes}
	if s.chooser == "" {
		s.chooser = "skip_account_chooser"
	}
	register, phone, reset := s.registerFlow(), s.phoneFlow(), s.resetFlow()
	resetProof := s.resetProofFlow()
	browser, factor, connect := s.browserFlow(), s.factorFlow(), s.connectFlow()
	email := func(handle func(*visit.Visit)) fasthttp.RequestHandler {
		return s.Offered(account.Email, s.flow(handle))
	}
	sms := func(handle func(*visit.Visit)) fasthttp.RequestHandler {
		return s.Offered(account.SMS, s.flow(handle))
	}
	show := []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost}
	all := []endpoint.Endpoint{
		{Pattern: pages.PathLogin, Handle: s.flow(s.login)},
		{Pattern: pages.PathLoginCode, Handle: s.Replay(email(s.loginCode))},
		{Pattern: pages.PathLoginVerify, Handle: s.Coalesce(email(s.verifyBrowser(browser)))},
		{Pattern: pages.PathLoginResend, Handle: email(s.ResendCode(browser))},
		{Pattern: pages.PathLoginPasskey, Handle: s.Passkeys(s.Coalesce(s.flow(s.loginPasskey)))},
		{Pattern: pages.PathPasskeyOffer, Handle: s.Passkeys(s.Replay(s.flow(s.offerPasskey)))},
		{Pattern: pages.PathLoginFactor, Handle: s.Coalesce(s.flow(s.factor))},
		{Pattern: pages.PathFactorCode, Handle: s.Replay(s.flow(s.factorCode))},
		{Pattern: pages.PathFactorVerify, Handle: s.Coalesce(s.flow(s.verifyFactor(factor)))},
		{Pattern: pages.PathFactorResend, Handle: s.flow(s.ResendCode(factor))},
		{Pattern: pages.PathFactorKey, Handle: s.Passkeys(s.Coalesce(s.flow(s.factorKey)))},
		{Pattern: pages.PathStepUp, Handle: s.Coalesce(s.flow(s.stepUp(s.UseFactor)))},
		{Pattern: pages.PathStepUpKey, Handle: s.Passkeys(s.Coalesce(s.flow(s.stepUp(s.UseKeyFactor))))},
		{Pattern: pages.PathAccounts, Handle: s.flow(s.accounts)},
		{Pattern: pages.PathConsent, Handle: s.Coalesce(s.flow(s.consent))},
		{Pattern: pages.PathLogout, Handle: s.flow(s.logout)},
		{Pattern: pages.PathEndSession, Handle: s.endSession},
		{Pattern: pages.PathEndSessionConfirm, Handle: s.Handle(s.confirmEndSession)},
		{Pattern: pages.PathRegister, Handle: s.Replay(email(s.register))},
		{Pattern: pages.PathRegisterVerify, Handle: s.Coalesce(email(s.verify(register)))},
		{Pattern: pages.PathRegisterResend, Handle: email(s.ResendCode(&register.CodeFlow))},
		{Pattern: pages.PathPhone, Handle: s.Replay(sms(s.phone))},
		{Pattern: pages.PathPhoneVerify, Handle: s.Coalesce(sms(s.verify(phone)))},
		{Pattern: pages.PathPhoneResend, Handle: sms(s.ResendCode(&phone.CodeFlow))},
		{Pattern: pages.PathConnect, Handle: s.Replay(email(s.connect))},
		{Pattern: pages.PathConnectVerify, Handle: s.Coalesce(email(s.verify(connect)))},
		{Pattern: pages.PathConnectResend, Handle: email(s.ResendCode(&connect.CodeFlow))},
		{Pattern: pages.PathReset, Handle: s.Replay(email(s.reset))},
		{Pattern: pages.PathResetVerify, Handle: s.Coalesce(email(s.verify(reset)))},
		{Pattern: pages.PathResetResend, Handle: email(s.ResendCode(&reset.CodeFlow))},
		{Pattern: pages.PathResetConfirm, Handle: s.Coalesce(email(s.verify(resetProof)))},
		{Pattern: pages.PathResetConfirmResend, Handle: email(s.ResendCode(&resetProof.CodeFlow))},
		{Pattern: pages.PathLink, Handle: s.Replay(s.Handle(s.link))},
		{Pattern: pages.PathInvitation, Handle: s.Replay(s.Handle(s.invitation))},
	}
	for i := range all {
		all[i].Methods, all[i].Format = show, endpoint.Page
	}
	all = append(all, endpoint.Endpoint{
		Pattern: pages.PathDevice, Methods: show, Handle: s.Replay(s.Handle(s.device)),
		Format: endpoint.Page,
	})
	get := []string{fasthttp.MethodGet}
	return append(all, endpoint.Endpoint{
		Pattern: pages.PathWith, Methods: get, Handle: s.flow(s.beginWith), Format: endpoint.Page,
	}, endpoint.Endpoint{
		Pattern: pages.PathWithCallback, Methods: get, Handle: s.Handle(s.endWith),
		Format: endpoint.Page,
	}, endpoint.Endpoint{
		Pattern: pages.PathAuthorize, Methods: []string{fasthttp.MethodGet},
		Handle: s.flow(s.authorize), Form: s.authorizeByForm, Format: endpoint.Either,
	})
}

var chooserPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// IsChooserParameter reports whether name can be the name of the parameter that skips the account
// chooser; "" = the default.
func IsChooserParameter(name string) bool {
	return name == "" || chooserPattern.MatchString(name) && name != visit.ParamChoice &&
		name != visit.ParamProof && !slices.Contains(pendingParameters, name) &&
		!slices.Contains(openIDParameters, name)
}
