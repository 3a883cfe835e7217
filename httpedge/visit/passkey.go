package visit

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// The fields of a form with a passkey.
const (
	fieldChallenge  = "challenge"
	fieldCredential = "credential"
)

// Passkeys wraps the handler of a page that needs passkeys. Without them, the page does not exist.
func (s *Site) Passkeys(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if s.people.PasskeyDomain() == "" {
			s.ShowProblem(ctx, endpoint.ErrNotFound)
			return
		}
		handle(ctx)
	}
}

// ServiceName returns what people call the service.
func (s *Site) ServiceName() string { return s.view.ServiceName() }

// Host returns the host of the issuer, without a port.
func (s *Site) Host() string {
	u, err := url.Parse(s.issuer)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// NewChallenge returns a challenge of WebAuthn, sealed for a binding, with what else the form keeps.
func (v *Visit) NewChallenge(b Binding, kept ...byte) (challenge []byte, sealed string) {
	challenge = make([]byte, people.ChallengeLength)
	rand.Read(challenge)
	return challenge, b.Seal(append(bytes.Clone(challenge), kept...), v.Now)
}

// PasskeyAnswer returns the answer in a form, and the n bytes that NewChallenge has kept. It returns
// people.ErrPasskeyExpired for a challenge of another binding, or one that is too old.
func (s *Site) PasskeyAnswer(v *Visit, b Binding, n int) (
	a people.PasskeyAnswer, kept []byte, err error) {
	payload, made, ok := b.Open(v.Field(fieldChallenge), people.ChallengeLength+n,
		account.PasskeyChallengeLifetime, v.Now)
	if !ok {
		return a, nil, people.ErrPasskeyExpired
	}
	return people.PasskeyAnswer{Challenge: payload[:people.ChallengeLength], Made: made,
		Response: []byte(v.Field(fieldCredential)), Caller: s.Caller(v)}, payload[people.ChallengeLength:], nil
}

// WantsChallenge reports whether the script of a page renews its challenge.
func (v *Visit) WantsChallenge() bool {
	return !v.HTTP.IsPost() &&
		string(v.HTTP.Request.Header.Peek(fasthttp.HeaderAccept)) == "application/json"
}

// SendChallenge responds to the script of a page with the challenge of a form.
func (s *Site) SendChallenge(v *Visit, p pages.Passkey) {
	if p.Action == "" {
		s.ShowProblem(v.HTTP, endpoint.ErrNotFound) // there is nothing to ask the browser for
		return
	}
	text, err := json.Marshal(pages.PasskeyChallenge{Challenge: p.Challenge, Options: json.RawMessage(p.Options)})
	if err != nil {
		s.WriteFailure(v.HTTP, "write a challenge", err)
		return
	}
	endpoint.SetPrivateJSON(&v.HTTP.Response.Header)
	v.HTTP.SetBody(text)
}

// SecurityKey returns the form that asks for a security key of u; zero = the service cannot ask for
// one. path is what the form is sent to.
func (s *Site) SecurityKey(v *Visit, u *account.User, b Binding, path string) pages.Passkey {
	if !s.people.HasSecurityKey(u) {
		return pages.Passkey{}
	}
	challenge, sealed := v.NewChallenge(b)
	return pages.Passkey{Action: path, Challenge: sealed, Key: true, Button: texts.Of("factor.key_use"),
		Options: string(s.people.SecurityKeyOptions(u, challenge))}
}

// NewPasskey returns p as a form that makes a passkey for u, or a security key.
func (s *Site) NewPasskey(v *Visit, u *account.User, b Binding, p pages.Passkey) pages.Passkey {
	handle := people.NewHandle(u)
	challenge, sealed := v.NewChallenge(b, handle...)
	p.Challenge = sealed
	p.Options = string(s.people.NewPasskeyOptions(u, s.ServiceName(), challenge, handle, p.Key))
	return p
}

// keyTexts are the texts of errors about a security key, where those about passkeys do not fit.
var keyTexts = map[error]string{
	people.ErrPasskeyWrong: "factor.key_wrong", people.ErrPasskeyUnknown: "factor.key_wrong",
	people.ErrPasskeyRefused: "factor.key_refused",
}

// AgainByKey is Again for an error about a security key.
func AgainByKey(v *Visit, err error, tooMany string) (status int, problems []pages.Problem) {
	status, problems = Again(v, err, "", tooMany)
	for about, key := range keyTexts {
		if errors.Is(err, about) {
			problems = []pages.Problem{{Text: texts.Of(key)}}
		}
	}
	return status, problems
}

// PasskeyName returns the name of a new passkey: what the form says, or the browser.
func PasskeyName(v *Visit) string {
	return cmp.Or(v.Shown("name"), DeviceOf(string(v.HTTP.UserAgent())))
}
