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

// ParamChoice carries a choice through the steps.
const ParamChoice = "chosen"

// Pending is an authorization request on its way through the pages. It travels in their URLs and is checked anew at each.
type Pending struct {
	Request *oauth.AuthorizationRequest
	Client  *oauth.Client
	Query   string // its parameters
}

// Choice is the account with which a person goes on with a pending request.
type Choice struct {
	UserID   int64
	SignedIn bool // in answer to this request
	nonce    [nonceSize]byte
	made     time.Time // or last carried on; set by OpenChoice
}

// NewChoice returns the choice of a user.
func NewChoice(userID int64, signedIn bool) Choice {
	c := Choice{UserID: userID, SignedIn: signedIn}
	rand.Read(c.nonce[:])
	return c
}

// Refuse ends the flow with an error for the client.
func (s *Site) Refuse(v *Visit, fault *oauth.Error) {
	Redirect(v.HTTP, v.Pending.Request.ErrorURL(fault, s.issuer))
}

// RefuseFailed ends the flow with an error that is not the client's: temporarily_unavailable when the same request may
// succeed later, else server_error (RFC 6749 section 4.1.2.1).
func (s *Site) RefuseFailed(v *Visit, step string, err error) {
	s.log.Error(step, "error", err)
	fault := &oauth.Error{Code: oauth.TemporarilyUnavailable, Description: "The service could not do this just now. Try again in a few seconds."}
	if endpoint.Failure(err).Unexpected {
		fault = &oauth.Error{Code: oauth.ServerError, Description: endpoint.ErrPanic.Message}
	}
	s.Refuse(v, fault)
}

// Path returns where a page is, with the pending request.
func (v *Visit) Path(page string) string {
	if v.Pending == nil {
		return page
	}
	return page + "?" + v.Pending.Query
}

// PathChosen is path with a choice, which needs a pending request.
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

// OpenChoice returns the choice that the request carries; zero = none, or none that can be believed. A sign-in that a code
// was issued for counts as none.
func (s *Site) OpenChoice(v *Visit) Choice {
	sealed := v.HTTP.QueryArgs().Peek(ParamChoice)
	payload, made, ok := v.Bind("choice").Open(string(sealed), choiceSize, choiceLifetime, v.Now)
	if !ok || v.Pending == nil {
		return Choice{}
	}
	c := Choice{int64(binary.BigEndian.Uint64(payload)), payload[8] == 1, [nonceSize]byte(payload[9:]), made}
	if c.SignedIn && s.spent.knows(c.made, c.nonce) {
		c.SignedIn = false
	}
	return c
}

// SpendChoice reports whether the sign-in of the choice was not used for a code before, and marks it.
func (s *Site) SpendChoice(c Choice) bool { return s.spent.spend(c.made, c.nonce) }

// ClientName returns the name of the client that asked for the page; "" = none did.
func (v *Visit) ClientName() string {
	if v.Pending == nil {
		return ""
	}
	return v.Pending.Client.Name
}
