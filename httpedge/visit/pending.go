package visit

import (
	"encoding/binary"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
)

// choiceLifetime is the time from choosing an account, or signing in, to consent.
const choiceLifetime = 10 * time.Minute

// The parameters that carry what belongs to a pending request from page to page, sealed.
const (
	ParamChoice = "chosen" // the user that continues
	ParamBegun  = "begun"  // when a request with prompt=login arrived
)

// Pending is an authorization request in progress. It travels in the URLs of the pages and is
// checked again on each.
type Pending struct {
	Request *oauth.AuthorizationRequest
	Client  *oauth.Client
	Query   string // its parameters, encoded
	// Begun is when the request arrived, in whole milliseconds as sign-ins are stored: a sign-in
	// before does not count for prompt=login. It is zero without prompt=login.
	Begun time.Time
}

// IsFresh reports whether a session was signed in for this request, and no code was issued for that
// sign-in before.
func (p *Pending) IsFresh(session *account.Session) bool {
	return !p.Begun.IsZero() && !session.SignedIn.Before(p.Begun) &&
		!session.Used.Equal(session.SignedIn)
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
	switch {
	case v.Pending == nil:
		return page
	case v.Pending.Begun.IsZero():
		return page + "?" + v.Pending.Query
	}
	return page + "?" + v.Pending.Query + v.sealed(ParamBegun, v.Pending.Begun.UnixMilli())
}

// PathChosen is Path with the user that continues. It needs a pending request.
func (v *Visit) PathChosen(page string, userID int64) string {
	return v.Path(page) + v.sealed(ParamChoice, userID)
}

// sealed returns a parameter with a number that only this browser can send, for this request.
func (v *Visit) sealed(name string, number int64) string {
	payload := binary.BigEndian.AppendUint64(nil, uint64(number))
	return "&" + name + "=" + v.Bind(name).Seal(payload, v.Now)
}

// open returns the number in a sealed parameter; false = there is none, or not a valid one.
func (v *Visit) open(name string, lifetime time.Duration) (int64, bool) {
	sealed := string(v.HTTP.QueryArgs().Peek(name))
	payload, _, ok := v.Bind(name).Open(sealed, 8, lifetime, v.Now)
	if !ok {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(payload)), true
}

// OpenPending reads what the URL of the request says of the pending request besides its parameters.
// A request with prompt=login that does not say when it arrived has arrived now.
func (v *Visit) OpenPending() {
	if v.Pending == nil {
		return
	}
	v.Chosen, _ = v.open(ParamChoice, choiceLifetime)
	if !v.Pending.Request.Prompt.Contains(oauth.PromptLogin) {
		return
	}
	v.Pending.Begun = v.Now.Truncate(time.Millisecond)
	if begun, ok := v.open(ParamBegun, oauth.FormLifetime); ok {
		v.Pending.Begun = time.UnixMilli(begun)
	}
}

// ClientName returns the name of the client of the pending request; "" = none.
func (v *Visit) ClientName() string {
	if v.Pending == nil {
		return ""
	}
	return v.Pending.Client.Name
}
