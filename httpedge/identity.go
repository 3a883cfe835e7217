package httpedge

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// Paths of the identity service (interface document, section 4).
const (
	pathToken      = "/oauth/token"
	pathRevoke     = "/oauth/revoke"
	pathIntrospect = "/oauth/introspect"
	pathAuthorize  = "/oauth/authorize"
	pathMetadata   = "/.well-known/oauth-authorization-server"
	pathBasic      = "/api/user"
	pathDetailed   = "/api/user/details"
	pathLogin      = "/login"
	pathAccounts   = "/accounts"
	pathConsent    = "/consent"
	pathLogout     = "/logout"

	pathRegister       = "/register"
	pathRegisterVerify = "/register/verify"
	pathRegisterResend = "/register/resend"
	pathPhone          = "/register/phone"
	pathPhoneVerify    = "/register/phone/verify"
	pathPhoneResend    = "/register/phone/resend"
	pathReset          = "/reset"
	pathResetVerify    = "/reset/verify"
	pathResetResend    = "/reset/resend"
)

// identityEdge is what the identity endpoints share.
type identityEdge struct {
	cookies  cookieNames
	origins  *clientOrigins
	spent    *spent // tokens of forms that can be sent once
	answers  *answers
	metadata []byte // the answer of pathMetadata
	database *databaseCheck
}

func newIdentityEdge(config *Config) identityEdge {
	if config.SkipChooserParameter == "" {
		config.SkipChooserParameter = "skip_account_chooser"
	}
	return identityEdge{
		cookies:  newCookieNames(config.Issuer),
		origins:  &clientOrigins{list: config.Identity.Clients, log: config.Logger},
		spent:    newSpent(time.Now()),
		answers:  newAnswers(),
		metadata: oauth.Metadata(config.Issuer),
		database: &databaseCheck{identity: config.Identity, log: config.Logger},
	}
}

func (s *Server) identityEndpoints() []endpoint {
	get := []string{fasthttp.MethodGet, fasthttp.MethodHead}
	post := []string{fasthttp.MethodPost}
	show := []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost}
	return append(s.personEndpoints(), []endpoint{
		{pattern: pathToken, methods: post, handle: s.token, head: aboutCredentials, clients: true},
		{pattern: pathRevoke, methods: post, handle: s.revoke, head: aboutCredentials, clients: true},
		{pattern: pathIntrospect, methods: post, handle: s.introspect, head: aboutCredentials},
		{pattern: pathMetadata, methods: get, handle: s.showMetadata, cors: true},
		{pattern: pathBasic, methods: get, handle: s.basicProfile, head: unstored, clients: true},
		{pattern: pathDetailed, methods: get, handle: s.detailedProfile, head: unstored, clients: true},
		{pattern: pathAuthorize, methods: []string{fasthttp.MethodGet}, handle: s.flow(s.authorize)},
		{pattern: pathLogin, methods: show, handle: s.flow(s.login)},
		{pattern: pathAccounts, methods: show, handle: s.flow(s.accounts)},
		{pattern: pathConsent, methods: show, handle: s.flow(s.consent)},
		{pattern: pathLogout, methods: show, handle: s.flow(s.logout)},
		{pattern: pathRegister, methods: show, handle: s.once(s.offered(account.Email, s.register))},
		{pattern: pathRegisterVerify, methods: show, handle: s.together(s.offered(account.Email, s.verify(registerFlow)))},
		{pattern: pathRegisterResend, methods: show, handle: s.offered(account.Email, s.resendCode(registerFlow))},
		{pattern: pathPhone, methods: show, handle: s.once(s.offered(account.SMS, s.phone))},
		{pattern: pathPhoneVerify, methods: show, handle: s.together(s.offered(account.SMS, s.verify(phoneFlow)))},
		{pattern: pathPhoneResend, methods: show, handle: s.offered(account.SMS, s.resendCode(phoneFlow))},
		{pattern: pathReset, methods: show, handle: s.once(s.offered(account.Email, s.reset))},
		{pattern: pathResetVerify, methods: show, handle: s.together(s.offered(account.Email, s.verify(resetFlow)))},
		{pattern: pathResetResend, methods: show, handle: s.offered(account.Email, s.resendCode(resetFlow))},
	}...)
}

// isTokenPath reports whether errors at path have the four members of the token endpoint's.
func isTokenPath(path []byte) bool {
	switch string(path) {
	case pathToken, pathRevoke, pathIntrospect:
		return true
	}
	return false
}

// isIdentity reports whether path is one of the identity service.
func isIdentity(path []byte) bool {
	switch string(path) {
	case pathAuthorize, pathMetadata, pathBasic, pathDetailed:
		return true
	}
	return isTokenPath(path) || isPage(path)
}

// isIssuer reports whether s can be the issuer identifier (RFC 8414 section 2): an origin, since cookies and pages claim
// all of it.
func isIssuer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Path == "" &&
		!strings.ContainsAny(s, "?#")
}

// isChooserParameter reports whether name can be that of the parameter that skips the account chooser; "" stands for the
// usual one.
func isChooserParameter(name string) bool {
	return name == "" || isEvery(name, "-_") && name != paramChoice && !slices.Contains(pendingParameters, name)
}
