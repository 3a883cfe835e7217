package oauth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of resources.
const (
	MostTargets        = 8    // resources of one request, and so of one token
	MostResourceScopes = 16   // of one resource
	MostRegistered     = 1000 // resources
	longestScopeName   = 64   // bytes

	// OwnResource is the number of this service among Targets.
	OwnResource = 65535
)

// Resource is a registered resource server: an API of others that accepts access tokens of this
// service (RFC 8707). Scopes may be added to it. It never loses one: see ReplacedBy.
type Resource struct {
	Number  uint16 // from 1; none is given twice
	URI     string
	Scopes  []string // names of scopes that only this resource has
	Created time.Time
	// Name and Texts are what people read of the resource, and of each scope; "" and nil = URI and
	// names of scopes.
	Name  string
	Texts map[string]string
	// Claims are the names of claims about people that JWTs for the resource have (RFC 9068).
	Claims []string
	// Set and Declared are those of ClientOptions.
	Set      string
	Declared bool
}

// ReplacedBy returns r as d describes it. New scopes get the next places. The Number is 0, for a new
// resource, if d lacks a scope of r: places have a meaning in grants and tokens.
func (r *Resource) ReplacedBy(d *Resource) *Resource {
	next := *d
	next.Created = r.Created
	lacks := func(name string) bool { return !slices.Contains(d.Scopes, name) }
	if next.Number = r.Number; slices.ContainsFunc(r.Scopes, lacks) {
		next.Number = 0
		return &next
	}
	next.Scopes = slices.Clone(r.Scopes)
	for _, name := range d.Scopes {
		if !slices.Contains(r.Scopes, name) {
			next.Scopes = append(next.Scopes, name)
		}
	}
	return &next
}

// ResourceStore keeps resources. Its methods may be called by many goroutines.
type ResourceStore interface {
	// Resources returns all resources, sorted by number.
	Resources(ctx context.Context) ([]Resource, error)
	// CreateResource inserts r and sets its Number. It returns ErrConflict if there is one with the
	// URI, and ErrBusy if there are MostRegistered.
	CreateResource(ctx context.Context, r *Resource) error
	// ReplaceResource replaces old, as it was read, by r in one step. It returns ErrConflict if old
	// was changed since. An r without a Number gets a new one, and old is deleted.
	ReplaceResource(ctx context.Context, old, r *Resource) error
	// DeleteResource deletes a resource, or returns ErrNotFound.
	DeleteResource(ctx context.Context, number uint16) error
}

// CheckRegistration returns a *RegistrationError, or nil if r can be registered.
func (r *Resource) CheckRegistration() error {
	if err := CheckResourceURI(r.URI); err != nil {
		return &RegistrationError{"uri", err.Error()}
	}
	if len(r.Scopes) > MostResourceScopes {
		return &RegistrationError{"scopes", "a resource can have at most 16"}
	}
	if r.Name != "" && !isLabel(r.Name) {
		return &RegistrationError{"name", mustBeLabel}
	}
	if err := r.checkClaims(); err != nil {
		return err
	}
	for name, text := range r.Texts {
		switch {
		case !slices.Contains(r.Scopes, name):
			return &RegistrationError{"scope_texts", "each must be of one of the scopes"}
		case !isLabel(text):
			return &RegistrationError{"scope_texts", mustBeLabel}
		}
	}
	for i, name := range r.Scopes {
		switch {
		case !isScopeName(name) || len(name) > longestScopeName:
			return &RegistrationError{"scopes",
				"each must have 1 to 64 ASCII characters without spaces, quotes and backslashes"}
		case scopeNamed(name) != 0:
			return &RegistrationError{"scopes", name + " is a scope of this service"}
		case slices.Contains(r.Scopes[:i], name):
			return &RegistrationError{"scopes", "each must be different"}
		}
	}
	return nil
}

const mustBeLabel = "it must have 1 to 100 characters, all of them visible"

// isLabel reports whether people can read text as one line, in the order in which it is written.
func isLabel(text string) bool {
	return clean(text) && strings.TrimSpace(text) != "" &&
		utf8.RuneCountInString(text) <= longestName && !strings.ContainsFunc(text, isUnseen)
}

// isScopeName reports whether name is a scope-token (RFC 6749 section 3.3).
func isScopeName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return name != ""
}

// Target is a resource that a grant or a token is for, with the scopes that are granted there.
type Target struct {
	Resource uint16
	Scopes   uint16 // bit i is the resource's scope i
}

// Targets are sorted by resource, each of which is there once. None means this service alone.
type Targets []Target

// String returns the stored form: "3:5 7:0".
func (t Targets) String() string {
	var text strings.Builder
	for i, target := range t {
		if i > 0 {
			text.WriteByte(' ')
		}
		fmt.Fprintf(&text, "%d:%d", target.Resource, target.Scopes)
	}
	return text.String()
}

// ParseTargets is the inverse of String.
func ParseTargets(text string) (t Targets, err error) {
	for part := range strings.FieldsSeq(text) {
		number, scopes, _ := strings.Cut(part, ":")
		n, errNumber := strconv.ParseUint(number, 10, 16)
		s, errScopes := strconv.ParseUint(scopes, 10, 16)
		if err := errors.Join(errNumber, errScopes); err != nil {
			return nil, fmt.Errorf("parse targets: %w", err)
		}
		t = append(t, Target{uint16(n), uint16(s)})
	}
	return t, nil
}

// MarshalText returns the stored form.
func (t Targets) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (t *Targets) UnmarshalText(text []byte) (err error) {
	*t, err = ParseTargets(string(text))
	return err
}

// find returns the target of a resource.
func (t Targets) find(number uint16) (Target, bool) {
	i, ok := slices.BinarySearchFunc(t, number, func(target Target, number uint16) int {
		return int(target.Resource) - int(number)
	})
	if !ok {
		return Target{}, false
	}
	return t[i], true
}

// Contains reports whether all of other is in t, but for this service, which needs no consent.
func (t Targets) Contains(other Targets) bool {
	for _, o := range other {
		mine, ok := t.find(o.Resource)
		if o.Resource != OwnResource && (!ok || o.Scopes&^mine.Scopes != 0) {
			return false
		}
	}
	return true
}

// Union returns what is in t or in other, but for this service.
func (t Targets) Union(other Targets) (all Targets) {
	for _, target := range slices.Concat(t, other) {
		i := slices.IndexFunc(all, func(known Target) bool { return known.Resource == target.Resource })
		switch {
		case target.Resource == OwnResource:
		case i < 0:
			all = append(all, target)
		default:
			all[i].Scopes |= target.Scopes
		}
	}
	all.sort()
	return all
}

func (t Targets) sort() {
	slices.SortFunc(t, func(a, b Target) int { return int(a.Resource) - int(b.Resource) })
}

// AreForeign reports whether this service is not among the targets.
func (t Targets) AreForeign() bool {
	_, own := t.find(OwnResource)
	return len(t) > 0 && !own
}

// Resources are the registered resources at one time. They are not changed.
type Resources struct {
	own      string // key of this service
	issuer   string
	byKey    map[string]*Resource
	byNumber map[uint16]*Resource
}

// NewResources returns all as Resources of the service at issuer.
func NewResources(issuer string, all []Resource) *Resources {
	r := &Resources{own: resourceKey(issuer), issuer: issuer, byKey: map[string]*Resource{},
		byNumber: map[uint16]*Resource{}}
	for i := range all {
		r.byKey[resourceKey(all[i].URI)] = &all[i]
		r.byNumber[all[i].Number] = &all[i]
	}
	return r
}

// resourceKey returns what is equal for the spellings of one URI: scheme and host have no case, the
// default port may be left out, and an empty path is the path / (RFC 3986 sections 6.2.2.1 and 6.2.3).
func resourceKey(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return uri
	}
	start := len(u.Scheme) + len("://")
	if len(uri) < start+len(u.Host) {
		return uri
	}
	rest := uri[start+len(u.Host):]
	if rest == "" || rest[0] == '?' {
		rest = "/" + rest
	}
	host := strings.TrimSuffix(strings.ToLower(u.Host), defaultPorts[u.Scheme])
	return u.Scheme + "://" + host + rest
}

var defaultPorts = map[string]string{"https": ":443", "http": ":80"}

var errTarget = &Error{Code: InvalidTarget,
	Description: "The resource is unknown, or the client may not ask for it.",
	Hint:        "Send the URI of a registered resource, or leave resource out."}

// TakenError says that there is a resource with that URI. It is an ErrConflict.
type TakenError struct{ URI string }

// Error implements error.
func (e *TakenError) Error() string { return "the resource " + e.URI + " exists already" }

// Is reports whether target is ErrConflict.
func (*TakenError) Is(target error) bool { return target == ErrConflict }

// mostNamed is how many resources an error names.
const mostNamed = 5

// unknownScope returns the error about a name that is no scope of what c asks for. It names the scope
// only with the resource that has it, since no error repeats what was sent.
func (r *Resources) unknownScope(name string, c *Client) *Error {
	var uris []string
	for _, resource := range r.All() {
		if slices.Contains(resource.Scopes, name) && c.mayReach(&resource) {
			uris = append(uris, resource.URI)
		}
	}
	switch {
	case len(uris) == 0:
		return errUnknownScope
	case len(uris) == 1:
		return invalidScope("The scope "+name+" belongs to the resource "+uris[0]+".",
			"Send the parameter resource="+uris[0]+" as well, or leave the scope out.")
	}
	few := uris[:min(len(uris), mostNamed)]
	return invalidScope("The scope "+name+" belongs to the resources "+listOf(few)+".",
		"Send the parameter resource with one of them as well, or leave the scope out.")
}

// number returns the number of the resource that c may ask for at uri; false = there is none.
func (r *Resources) number(uri string, c *Client) (uint16, bool) {
	key := resourceKey(uri)
	found := r.byKey[key]
	switch {
	case key == r.own:
		return OwnResource, true
	case found == nil || !c.mayReach(found):
		return 0, false
	}
	return found.Number, true
}

// mayReach reports whether the client may ask for tokens for a resource.
func (c *Client) mayReach(r *Resource) bool {
	return len(c.Options.Resources) == 0 || c.names(r)
}

// names reports whether the client is registered for a resource.
func (c *Client) names(r *Resource) bool {
	return slices.ContainsFunc(c.Options.Resources, func(uri string) bool {
		return resourceKey(uri) == resourceKey(r.URI)
	})
}

// Resolve returns the resources with these URIs, with those of the named scopes that each has. The
// error is InvalidTarget for a resource that c may not ask for, and InvalidScope for a name that none
// of them has. For a client that registered itself such a name is left out.
func (r *Resources) Resolve(c *Client, uris, names []string) (Targets, *Error) {
	var t Targets
	for _, uri := range uris {
		number, ok := r.number(uri, c)
		if !ok {
			return nil, errTarget
		}
		if !slices.ContainsFunc(t, func(known Target) bool { return known.Resource == number }) {
			t = append(t, Target{Resource: number})
		}
	}
	if len(t) > MostTargets {
		return nil, &Error{Code: InvalidTarget,
			Description: "A token is for at most 8 resources.", Hint: "Ask for fewer at a time."}
	}
	t.sort()
	for _, name := range names {
		found := false
		for i := range t {
			bit := r.bit(t[i].Resource, name)
			t[i].Scopes |= bit
			found = found || bit != 0
		}
		if !found && !c.Options.SelfRegistered {
			return nil, r.unknownScope(name, c)
		}
	}
	if len(t) == 1 && t[0].Resource == OwnResource {
		return nil, nil
	}
	return t, nil
}

// bit returns the bit of a resource's scope; 0 = it has none of that name.
func (r *Resources) bit(number uint16, name string) uint16 {
	resource := r.byNumber[number]
	if resource == nil {
		return 0
	}
	i := slices.Index(resource.Scopes, name)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// First returns the part of granted for one resource, which the authorization request has named
// first: what a refresh is for that names none.
func (r *Resources) First(granted *GrantDetails, c *Client) Targets {
	known := r.reached(granted.Targets, c)
	if len(known) == 0 {
		return granted.Targets // which Narrow refuses
	}
	if first, ok := known.find(granted.First); ok {
		return Targets{first}
	}
	return known[:1]
}

// reached returns the part of t that is registered and that c may ask for.
func (r *Resources) reached(t Targets, c *Client) (reached Targets) {
	for _, target := range t {
		resource := r.byNumber[target.Resource]
		if target.Resource == OwnResource || resource != nil && c.mayReach(resource) {
			reached = append(reached, target)
		}
	}
	return reached
}

// Narrow returns the part of granted that c asks for at the token endpoint: the resources with
// these URIs, or all of them, with the named scopes, or all of them if names is nil. Resources that
// were deleted since, or that the client may no longer ask for, are left out. The error is
// InvalidTarget or InvalidScope.
func (r *Resources) Narrow(granted Targets, c *Client, uris, names []string) (Targets, *Error) {
	asked, fault := r.Resolve(c, uris, nil)
	if fault != nil {
		return nil, fault
	}
	if len(granted) == 0 {
		switch {
		case len(asked) > 0:
			return nil, notGranted(r.URIs(asked)[0])
		case len(names) > 0 && !c.Options.SelfRegistered:
			return nil, r.unknownScope(names[0], c)
		}
		return nil, nil
	}
	if len(uris) > 0 && len(asked) == 0 {
		asked = Targets{{Resource: OwnResource}}
	}
	t := r.reached(granted, c)
	if len(uris) > 0 {
		for i := range asked {
			target, ok := t.find(asked[i].Resource)
			if !ok {
				return nil, notGranted(r.URIs(asked[i : i+1])[0])
			}
			asked[i] = target
		}
		t = asked
	}
	if len(t) == 0 {
		return nil, &Error{Code: InvalidTarget, Description: "The resource is no longer registered.",
			Hint: "Ask the user to authorize again."}
	}
	if names == nil {
		return t, nil
	}
	return r.narrowScopes(t, c, names)
}

// narrowScopes returns t with the named scopes only, each of which must be granted.
func (r *Resources) narrowScopes(t Targets, c *Client, names []string) (Targets, *Error) {
	narrow := slices.Clone(t)
	for i := range narrow {
		narrow[i].Scopes = 0
	}
	for _, name := range names {
		found := false
		for i := range t {
			bit := r.bit(t[i].Resource, name) & t[i].Scopes
			narrow[i].Scopes |= bit
			found = found || bit != 0
		}
		if !found && !c.Options.SelfRegistered {
			return nil, errScopeNotGranted
		}
	}
	return narrow, nil
}

func notGranted(uri string) *Error {
	return &Error{Code: InvalidTarget,
		Description: "The resource " + uri + " is not among those of the grant.",
		Hint:        "Send resources of the authorization request only, or leave resource out."}
}

var errScopeNotGranted = invalidScope("The scope is more than the user granted.",
	"Request granted scopes only, or leave scope out.")

// OfClient returns the resources that a client may have tokens for without a user, with the named
// scopes: those that the operator has named for it.
func (r *Resources) OfClient(c *Client, uris, names []string) (Targets, *Error) {
	t, fault := r.Resolve(c, uris, names)
	if fault != nil {
		return nil, fault
	}
	for _, target := range t {
		if target.Resource != OwnResource && !c.names(r.byNumber[target.Resource]) {
			return nil, &Error{Code: InvalidTarget,
				Description: "The client is not registered for the resource " +
					r.byNumber[target.Resource].URI + ".",
				Hint: "Ask the operator to register the resource for the client."}
		}
	}
	return t, nil
}

// At returns the resource with that URI.
func (r *Resources) At(uri string) (Resource, bool) {
	found := r.byKey[resourceKey(uri)]
	if found == nil {
		return Resource{}, false
	}
	return *found, true
}

// Has reports whether a resource with the URI is registered, or this service has it.
func (r *Resources) Has(uri string) bool {
	key := resourceKey(uri)
	return key == r.own || key == resourceKey(r.userInfo()) || r.byKey[key] != nil
}

func (r *Resources) userInfo() string { return r.issuer + "/oauth/userinfo" }

// Audience returns the URIs that a token for t with scopes is for. One with the scope openid is for
// userinfo as well, and for nothing else here unless t has this service.
func (r *Resources) Audience(t Targets, scopes Scopes) []string {
	uris := r.URIs(t)
	if t.AreForeign() && scopes.Contains(OpenID) {
		uris = append(uris, r.userInfo())
	}
	return uris
}

// All returns all resources, sorted by number.
func (r *Resources) All() (all []Resource) {
	for _, number := range slices.Sorted(maps.Keys(r.byNumber)) {
		all = append(all, *r.byNumber[number])
	}
	return all
}

// Find returns the resource with that number.
func (r *Resources) Find(number uint16) (Resource, bool) {
	found := r.byNumber[number]
	if found == nil {
		return Resource{}, false
	}
	return *found, true
}

// Known returns the part of t that is registered.
func (r *Resources) Known(t Targets) (known Targets) {
	for _, target := range t {
		if target.Resource == OwnResource || r.byNumber[target.Resource] != nil {
			known = append(known, target)
		}
	}
	return known
}

// URIs returns the URIs of t, which Known has returned.
func (r *Resources) URIs(t Targets) (uris []string) {
	for _, target := range t {
		if target.Resource == OwnResource {
			uris = append(uris, r.issuer)
		} else if resource := r.byNumber[target.Resource]; resource != nil {
			uris = append(uris, resource.URI)
		}
	}
	return uris
}

// ScopeNames returns the names of the scopes of resources in t, each once.
func (r *Resources) ScopeNames(t Targets) (names []string) {
	for _, target := range t {
		for _, name := range r.scopesAt(target) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (r *Resources) scopesAt(target Target) (names []string) {
	resource := r.byNumber[target.Resource]
	if resource == nil {
		return nil
	}
	for i, name := range resource.Scopes {
		if target.Scopes&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Reach is what a target means to people.
type Reach struct {
	Target Target
	URI    string   // of the resource
	Place  string   // the resource's host and path
	Name   string   // what the operator calls it; "" = nothing
	Scopes []string // names
	Texts  []string // what the operator says of scopes
	Raw    []string // names of scopes of which nothing is said
}

// ClaimsFor returns the names of the claims that JWTs for t have, sorted.
func (r *Resources) ClaimsFor(t Targets) (names []string) {
	for _, target := range t {
		if resource := r.byNumber[target.Resource]; resource != nil {
			names = append(names, resource.Claims...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Recorded returns resources with their scopes for the audit trail, or nil.
func Recorded(reaches []Reach) (all []map[string]any) {
	for _, r := range reaches {
		all = append(all, map[string]any{"resource": r.URI, "scopes": append([]string{}, r.Scopes...)})
	}
	return all
}

// Reaches returns what t means to people, without this service.
func (r *Resources) Reaches(t Targets) (all []Reach) {
	for _, target := range t {
		resource := r.byNumber[target.Resource]
		if resource == nil {
			continue
		}
		place := strings.TrimSuffix(strings.TrimPrefix(resource.URI, "https://"), "/")
		reach := Reach{Target: target, URI: resource.URI, Place: place, Name: resource.Name,
			Scopes: r.scopesAt(target)}
		for _, name := range reach.Scopes {
			if text := resource.Texts[name]; text != "" {
				reach.Texts = append(reach.Texts, text)
			} else {
				reach.Raw = append(reach.Raw, name)
			}
		}
		all = append(all, reach)
	}
	return all
}

// splitScopes parses a scope parameter that may name scopes of resources. names has those that are
// no scopes of this service. ok is false if there is a superfluous space or a malformed name, which
// are left out.
func splitScopes(s string) (own Scopes, names []string, ok bool) {
	ok = true
	for rest, more := s, s != ""; more; {
		var name string
		name, rest, more = strings.Cut(rest, " ")
		scope := scopeNamed(name)
		switch {
		case scope != 0:
			own |= scope
		case !isScopeName(name):
			ok = false
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return own, names, ok
}

// Asks reports whether a scope parameter names these scopes and no others.
func Asks(scope string, scopes Scopes, resourceScopes []string) bool {
	own, names, ok := splitScopes(scope)
	return ok && own == scopes && len(names) == len(resourceScopes)
}

// ScopeText returns scopes and names separated by spaces.
func ScopeText(scopes Scopes, names []string) string {
	own, others := scopes.String(), strings.Join(names, " ")
	if own == "" || others == "" {
		return own + others // without an allocation
	}
	return own + " " + others
}
