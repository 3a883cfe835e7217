package oauth

import "slices"

// LogoutRequest is a request to end a session (OpenID Connect RP-Initiated Logout section 2).
type LogoutRequest struct {
	IDTokenHint string // not verified; "" = none
	LogoutHint  string // an address or ID of the user; "" = none
	ClientID    string // "" = none
	RedirectURI string // post_logout_redirect_uri; "" = none
	State       string // "" = none; returned unchanged
}

// LogoutParameters are the parameters of a LogoutRequest. ui_locales is ignored.
var LogoutParameters = []string{"id_token_hint", "logout_hint", "client_id",
	"post_logout_redirect_uri", "state"}

// ParseLogoutRequest parses the parameters of a logout request. Show its error on a page.
func ParseLogoutRequest(params []Parameter) (*LogoutRequest, *Error) {
	f := form{params: params}
	r := &LogoutRequest{IDTokenHint: f.value("id_token_hint"), LogoutHint: f.value("logout_hint"),
		ClientID: f.value("client_id"), RedirectURI: f.value("post_logout_redirect_uri"),
		State: f.value("state")}
	f.rest()
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

// CheckClient returns an error if the request must not be served for c, which may be nil: the
// client that asks is unknown or disabled, or the redirect URI is not registered. Show it on a
// page, and never redirect.
func (r *LogoutRequest) CheckClient(c *Client) *Error {
	switch {
	case c == nil && r.ClientID != "":
		return &Error{Code: InvalidClient, Description: "The client is unknown.",
			Hint: "Check client_id."}
	case r.RedirectURI == "":
		return nil
	case c == nil:
		return invalidRequest("The client that asks for the redirect is not known.",
			"Send client_id, or a valid id_token_hint.")
	case c.Disabled:
		return &Error{Code: InvalidClient, Description: "The client is disabled.",
			Hint: "Ask the operator to enable it."}
	case !slices.Contains(c.Options.PostLogoutRedirectURIs, r.RedirectURI):
		return invalidRequest("The post_logout_redirect_uri is not registered for the client.",
			"Send a registered URI; it must match byte for byte.")
	}
	return nil
}

// RedirectURL returns the redirect URI with the state appended to its query.
func (r *LogoutRequest) RedirectURL() string {
	return withQuery(r.RedirectURI, []Parameter{{"state", r.State}})
}
