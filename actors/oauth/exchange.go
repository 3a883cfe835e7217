package oauth

import (
	"slices"
	"strconv"
	"strings"
)

// Limits of the rules of one client.
const (
	MostServed        = 20 // resources that a client serves
	MostExchangeRules = 20
)

// The types of tokens in an exchange (RFC 8693 section 3).
const (
	AccessTokenType  = "urn:ietf:params:oauth:token-type:access_token" // of either form
	IDTokenType      = "urn:ietf:params:oauth:token-type:id_token"
	RefreshTokenType = "urn:ietf:params:oauth:token-type:refresh_token"
	IDJAGTokenType   = "urn:ietf:params:oauth:token-type:id-jag" // of the draft, section 4.3
)

// ExchangeRule lets a client exchange access tokens for one resource for access tokens for another
// (RFC 8693). The client may use tokens that were issued to it, and tokens for a resource that it
// serves.
type ExchangeRule struct {
	From   string   `json:"from"` // URI of the resource that the subject token is for
	To     string   `json:"to"`   // URI of the resource that the new token is for
	Scopes []string `json:"scopes,omitempty"`
}

// Actor is a client that uses a token in the name of its user (RFC 8693 section 4.1).
type Actor struct {
	ClientID string `json:"sub"`
	Before   *Actor `json:"act,omitempty"` // client whose token ClientID exchanged; nil = none
}

// NewActor returns the clients with these ids, the current one first; nil = there are none.
func NewActor(ids []string) (current *Actor) {
	for _, id := range slices.Backward(ids) {
		current = &Actor{ClientID: id, Before: current}
	}
	return current
}

// checkExchange checks what the client serves and may exchange.
func (c *Client) checkExchange() *RegistrationError {
	o := &c.Options
	if len(o.Serves) > MostServed {
		return &RegistrationError{"serves", "a client can serve at most 20"}
	}
	for i, uri := range o.Serves {
		if err := CheckResourceURI(uri); err != nil {
			return atIndex("serves", i, err.Error())
		}
		if slices.Contains(o.Serves[:i], uri) {
			return atIndex("serves", i, "it is there twice")
		}
	}
	const field = "exchange"
	switch has := c.Grants.Contains(TokenExchangeGrant); {
	case len(o.Exchange) == 0 && has && len(o.IDJAG.Audiences) == 0:
		return &RegistrationError{field, "the grant " + TokenExchangeGrant.String() +
			" needs a rule, or audiences of id_jag"}
	case len(o.Exchange) == 0:
		return nil
	case !has:
		return &RegistrationError{field, "it needs the grant " + TokenExchangeGrant.String()}
	case c.Public || o.SelfRegistered:
		return &RegistrationError{field,
			"it is for confidential clients that an operator has registered"}
	case len(o.Exchange) > MostExchangeRules:
		return &RegistrationError{field, "a client can have at most 20 rules"}
	}
	for i := range o.Exchange {
		if text := checkRule(o.Exchange[:i], &o.Exchange[i]); text != "" {
			return atIndex(field, i, text)
		}
	}
	return nil
}

// checkRule returns what is wrong with a rule after others, for operators; "" = nothing.
func checkRule(others []ExchangeRule, rule *ExchangeRule) string {
	if err := CheckResourceURI(rule.From); err != nil {
		return "from: " + err.Error()
	}
	if err := CheckResourceURI(rule.To); err != nil {
		return "to: " + err.Error()
	}
	from, to := resourceKey(rule.From), resourceKey(rule.To)
	if from == to {
		return "from and to must differ"
	}
	for i := range others {
		if resourceKey(others[i].From) == from && resourceKey(others[i].To) == to {
			return "there is a rule from and to these resources"
		}
	}
	if len(rule.Scopes) > MostResourceScopes {
		return "scopes: a resource has at most 16"
	}
	for i, name := range rule.Scopes {
		if !isScopeName(name) || slices.Contains(rule.Scopes[:i], name) {
			return "scopes: the name at index " + strconv.Itoa(i) +
				" must be that of a scope, and different from others"
		}
	}
	return ""
}

// serves reports whether the client serves a resource.
func (c *Client) serves(r *Resource) bool {
	return slices.ContainsFunc(c.Options.Serves, func(uri string) bool {
		return resourceKey(uri) == resourceKey(r.URI)
	})
}

// InvalidRequest errors about a subject token (RFC 8693 section 2.2.2). They must not be modified.
var (
	// ErrSubject is the error for a subject token that is unknown or has ended.
	ErrSubject = errSubject("The subject_token is unknown, or has been revoked.",
		"Send a valid access token of this service.")
	// ErrSubjectExpired is the error for a subject token that has expired.
	ErrSubjectExpired = errSubject("The subject_token has expired.", "Send one that is valid.")
	// ErrSubjectUser is the error for a user who may not use the client.
	ErrSubjectUser = errSubject("The user of the subject_token may not use this client.",
		"The user must be in a group that the client is for.")
	// ErrSubjectFactors is the error for a sign-in that is too weak for the client.
	ErrSubjectFactors = errSubject("The user has signed in without a second factor.",
		"This client needs one: ask the user to sign in with it.")

	errNoSubjectUser = errSubject("The subject_token has no user.",
		"Send a token that a user has allowed; a client gets its own with client_credentials.")
	errStrangeSubject = errSubject("The subject_token was issued to another client, "+
		"and is for no resource that this client serves.",
		"Send a token that was issued to this client, or that is for a resource that it serves.")
	errManyExchanges = errSubject("The subject_token comes from 4 exchanges, which is the most.",
		"Exchange a token that comes from fewer.")
)

func errSubject(description, hint string) *Error { return invalidRequest(description, hint) }

// ErrRequestedType is the error for a type of token that is not issued. It must not be modified.
var ErrRequestedType = invalidRequest("The requested_token_type is not supported.",
	"Send "+AccessTokenType+", or leave it out.")

var (
	errActorToken = invalidRequest("An actor_token is not supported.",
		"Leave it out: the client that authenticates is the actor.")
	errOneTarget = &Error{Code: InvalidTarget,
		Description: "A token exchange is for exactly one resource.",
		Hint:        "Send the URI of one registered resource as resource or audience."}
	errNoRule = &Error{Code: InvalidTarget,
		Description: "The client may not exchange this subject_token for a token for the resource.",
		Hint:        "Ask the operator to add a rule to the client."}
	errRuleScope = invalidScope("The scope is more than the client may have by an exchange.",
		"Request scopes of the client's rule only, or leave scope out.")
)

// checkExchange returns an error unless the request has all parameters of a token exchange, and no
// others that change its meaning (RFC 8693 section 2.1).
func (r *TokenRequest) checkExchange() *Error {
	subject, types := "an access token", []string{AccessTokenType}
	if r.AsksIDJAG() {
		subject, types = "an id_token", []string{IDTokenType, RefreshTokenType}
	}
	switch {
	case r.SubjectToken == "":
		return invalidRequest("The parameter subject_token is missing.", "Send "+subject+".")
	case !slices.Contains(types, r.SubjectTokenType):
		return invalidRequest("The subject_token_type is missing, or is not supported.",
			"Send "+strings.Join(types, " or ")+".")
	case r.RequestedTokenType != "" && r.RequestedTokenType != AccessTokenType && !r.AsksIDJAG():
		return ErrRequestedType
	case r.HasActorToken:
		return errActorToken
	case r.AsksIDJAG():
		return r.checkIDJAG()
	case len(r.Resources) == 0:
		return errOneTarget
	}
	return nil
}

// Exchange returns the target of the access token that c gets for a subject token which is valid,
// and the number of the resource at which the exchange begins. uris and scope are those of the
// request. The scopes are at most those of the rule, whatever the subject token has: they are of
// another resource.
func (r *Resources) Exchange(
	subject *AccessToken, c *Client, uris []string, scope string,
) (to Target, from uint16, fault *Error) {
	begins, fault := r.begins(subject, c)
	if fault != nil {
		return to, 0, fault
	}
	var target *Resource
	for _, uri := range uris {
		found := r.byKey[resourceKey(uri)]
		switch {
		case found == nil:
			return to, 0, errTarget
		case target != nil && target != found:
			return to, 0, errOneTarget
		}
		target = found
	}
	for _, resource := range begins {
		if rule := c.rule(resource, target); rule != nil {
			to, fault = r.ruled(rule, target, scope)
			return to, resource.Number, fault
		}
	}
	return to, 0, errNoRule
}

// begins returns the resources of a subject token at which an exchange by c may begin.
func (r *Resources) begins(subject *AccessToken, c *Client) (all []*Resource, fault *Error) {
	switch {
	case subject.UserID == 0:
		return nil, errNoSubjectUser
	case subject.Exchanges() >= MostExchanges:
		return nil, errManyExchanges
	case !r.HaveBegun(subject.Subject):
		return nil, ErrSubject
	}
	for _, target := range subject.Targets() {
		resource := r.byNumber[target.Resource]
		if resource != nil && (subject.ClientID == c.ID || c.serves(resource)) {
			all = append(all, resource)
		}
	}
	if all == nil && subject.ClientID != c.ID {
		return nil, errStrangeSubject
	}
	return all, nil
}

// HaveBegun reports whether the resources of all subject tokens are still registered; true for nil.
func (r *Resources) HaveBegun(subject *SubjectToken) bool {
	for ; subject != nil; subject = subject.Subject {
		if r.byNumber[subject.Resource] == nil {
			return false
		}
	}
	return true
}

// rule returns the client's rule from one resource to another; nil = there is none.
func (c *Client) rule(from, to *Resource) *ExchangeRule {
	if to == nil {
		return nil
	}
	for i := range c.Options.Exchange {
		rule := &c.Options.Exchange[i]
		if resourceKey(rule.From) == resourceKey(from.URI) && resourceKey(rule.To) == resourceKey(to.URI) {
			return rule
		}
	}
	return nil
}

// ruled returns a target with the scopes that a request asks for, or all of the rule.
func (r *Resources) ruled(rule *ExchangeRule, to *Resource, scope string) (t Target, fault *Error) {
	t.Resource = to.Number
	own, names, ok := splitScopes(scope)
	switch {
	case !ok:
		return t, errUnknownScope
	case own != 0:
		return t, errRuleScope
	case scope == "":
		names = rule.Scopes
	}
	for _, name := range names {
		bit := r.bit(to.Number, name)
		if scope != "" && (bit == 0 || !slices.Contains(rule.Scopes, name)) {
			return t, errRuleScope
		}
		t.Scopes |= bit
	}
	return t, nil
}

// Onward returns what other clients may do elsewhere with tokens for targets that are issued to c: the
// resources that they reach by one or more exchanges, with all scopes of the rules. exchangers are all
// clients with rules.
func (r *Resources) Onward(c *Client, targets Targets, exchangers []*Client) Targets {
	type place struct {
		at *Resource
		by *Client // that the token is issued to
	}
	var places []place
	for _, target := range targets {
		if resource := r.byNumber[target.Resource]; resource != nil {
			places = append(places, place{resource, c})
		}
	}
	var reached Targets
	for i := 0; i < len(places); i++ {
		for _, exchanger := range exchangers {
			if exchanger.Disabled || exchanger.ID != places[i].by.ID && !exchanger.serves(places[i].at) {
				continue
			}
			for j := range exchanger.Options.Exchange {
				rule := &exchanger.Options.Exchange[j]
				to := r.byKey[resourceKey(rule.To)]
				if to == nil || exchanger.rule(places[i].at, to) != rule {
					continue
				}
				t, _ := r.ruled(rule, to, "")
				reached = reached.Union(Targets{t})
				if next := (place{to, exchanger}); !slices.Contains(places, next) {
					places = append(places, next)
				}
			}
		}
	}
	return reached
}
