package visit

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

const (
	choiceLifetime = 10 * time.Minute // from choosing an account, or signing in, to consent
	choiceSize     = 9 + nonceSize    // bytes of a sealed choice
)

// ParamChoice is the parameter that carries a choice from page to page.
const ParamChoice = "chosen"

// Pending is an authorization request in progress. It travels in the URLs of the pages and is
// checked again on each.
type Pending struct {
	Request *oauth.AuthorizationRequest
	Client  *oauth.Client
	Query   string // its parameters, encoded
}

// Choice is the account that a person continues a pending request with.
type Choice struct {
	UserID   int64
	SignedIn bool // for this request
	nonce    [nonceSize]byte
	made     time.Time // time of the seal; set by OpenChoice
}

// NewChoice returns the choice of a user.
func NewChoice(userID int64, signedIn bool) Choice {
	c := Choice{UserID: userID, SignedIn: signedIn}
	rand.Read(c.nonce[:])
	return c
}

// Refuse redirects to the client with an error.
func (s *Site) Refuse(v *Visit, fault *oauth.Error) {
	Redirect(v.HTTP, v.Pending.Request.ErrorURL(fault, s.issuer))
}

// RefuseFailure redirects to the client with an error of the service: temporarily_unavailable when
// the same request may succeed later, else server_error (RFC 6749 section 4.1.2.1).
func (s *Site) RefuseFailure(v *Visit, step string, err error) {
	s.failures.Log(step, err)
	fault := &oauth.Error{Code: oauth.TemporarilyUnavailable,
		Description: "The service could not do this just now. Try again in a few seconds."}
	if endpoint.Failure(err).Unexpected {
		fault = &oauth.Error{Code: oauth.ServerError, Description: endpoint.ErrPanic.Message}
	}
	s.Refuse(v, fault)
}

// Path returns the path of a page, with the pending request in its query.
func (v *Visit) Path(page string) string {
	if v.Pending == nil {
		return page
	}
	return page + "?" + v.Pending.Query
}

// PathChosen is Path with a choice. It needs a pending request.
func (v *Visit) PathChosen(page string, c Choice) string {
	payload := binary.BigEndian.AppendUint64(nil, uint64(c.UserID))
	if c.SignedIn {
		payload = append(payload, 1)
	} else {
		payload = append(payload, 0)
	}
	payload = append(payload, c.nonce[:]...)
	return v.Path(page) + "&" + ParamChoice + "=" + v.Bind("choice").Seal(payload, v.Now)
}

// OpenChoice returns the choice in the URL of the request; zero = none, or not a valid one. A
// sign-in that a code was issued for is not counted again.
func (s *Site) OpenChoice(v *Visit) Choice {
	sealed := v.HTTP.QueryArgs().Peek(ParamChoice)
	payload, made, ok := v.Bind("choice").Open(string(sealed), choiceSize, choiceLifetime, v.Now)
	if !ok || v.Pending == nil {
		return Choice{}
	}
	c := Choice{int64(binary.BigEndian.Uint64(payload)), payload[8] == 1,
		[nonceSize]byte(payload[9:]), made}
	if c.SignedIn && s.used.isUsed(c.made, c.nonce) {
		c.SignedIn = false
	}
	return c
}

// UseSignIn marks the choice's sign-in as used for a code. It returns false when it was used
// before.
func (s *Site) UseSignIn(c Choice) bool { return s.used.use(c.made, c.nonce) }

// ClientName returns the name of the client of the pending request; "" = none.
func (v *Visit) ClientName() string {
	if v.Pending == nil {
		return ""
	}
	return v.Pending.Client.Name
}
