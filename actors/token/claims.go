package token

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync/atomic"
	"unique"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

// claims are what clients learn about a user (OpenID Connect Core section 5.1). Members without a
// value are left out.
type claims struct {
	Name                string   `json:"name,omitempty"`
	PreferredUsername   string   `json:"preferred_username,omitempty"`
	Picture             string   `json:"picture,omitempty"`
	Gender              string   `json:"gender,omitempty"`
	Birthdate           string   `json:"birthdate,omitempty"`
	UpdatedAt           int64    `json:"updated_at,omitempty"` // Unix seconds
	Email               string   `json:"email,omitempty"`
	EmailVerified       bool     `json:"email_verified,omitempty"`
	PhoneNumber         string   `json:"phone_number,omitempty"`
	PhoneNumberVerified bool     `json:"phone_number_verified,omitempty"`
	Address             *address `json:"address,omitempty"`
	Groups              []string `json:"groups,omitempty"`
	GroupsTruncated     bool     `json:"groups_truncated,omitempty"` // in userinfo only
}

// address is the address claim (OpenID Connect Core section 5.1.1).
type address struct {
	Formatted string `json:"formatted"`
}

// The groups of claims that are released together.
const (
	releaseProfile = 1 << iota
	releaseBirthdate
	releaseEmail
	releasePhone
	releaseAddress
	releaseGroups
	releaseOpenID   // of those that operators have declared: with any scope
	releaseDeclared // the claims that operators have declared, each with its own group
)

// releasedTo returns the groups of claims that a client gets with scopes (OpenID Connect Core
// section 5.4). Those of the detailed profile need the approval for it. A client that nobody has
// verified gets neither groups nor declared claims.
func releasedTo(scopes oauth.Scopes, c *oauth.Client) (groups int) {
	if scopes.Contains(oauth.Profile) {
		groups |= releaseProfile
	}
	if scopes.Contains(oauth.Email) {
		groups |= releaseEmail
	}
	if !c.IsUnverified() {
		groups |= releaseDeclared
		if scopes.Contains(oauth.Groups) {
			groups |= releaseGroups
		}
		if scopes.Contains(oauth.OpenID) {
			groups |= releaseOpenID
		}
	}
	if !c.DetailApproved {
		return groups
	}
	if scopes.Contains(oauth.Profile) {
		groups |= releaseBirthdate
	}
	if scopes.Contains(oauth.Phone) {
		groups |= releasePhone
	}
	if scopes.Contains(oauth.Address) {
		groups |= releaseAddress
	}
	return groups
}

// groupOf returns the group that a declared claim belongs to, by the scope that releases it.
func groupOf(c *oauth.Claim) int {
	switch c.ReleasedBy() {
	case oauth.Profile:
		return releaseProfile
	case oauth.Email:
		return releaseEmail
	case oauth.Phone:
		return releasePhone
	case oauth.Address:
		return releaseAddress
	case oauth.Groups:
		return releaseGroups
	case oauth.OpenID:
		return releaseOpenID
	}
	return 0
}

// userClaims are a user's claims, and the texts that were made of them. Its methods may be called by
// many goroutines.
type userClaims struct {
	all        claims
	groups     account.Groups
	attributes map[string]json.RawMessage
	texts      atomic.Pointer[claimsText]
}

// claimsText is the JSON of some claims: a response of userinfo, or a part of one of introspection.
type claimsText struct {
	of   claimsKey
	text []byte
	next *claimsText // another one; nil = none
	rest int         // how many there are after it
}

// claimsKey says which claims a text has.
type claimsKey struct {
	groups   int
	declared *[]oauth.Claim // as they were then
	part     bool           // of a response of introspection
}

// mostTexts limits the texts of a user: few apps need different ones.
const mostTexts = 8

// lazyClaims makes the claims of a user at their first use: most users in memory need none.
type lazyClaims struct {
	made       atomic.Pointer[userClaims]
	updated    int64                 // Unix seconds
	groups     unique.Handle[string] // names, shared by all who are in the same groups
	attributes *string               // JSON; nil = none
}

func newLazyClaims(u *account.User) *lazyClaims {
	l := &lazyClaims{updated: max(0, u.Updated.Unix()), groups: unique.Make(string(u.Groups))}
	if u.Attributes != "" {
		text := string(u.Attributes)
		l.attributes = &text
	}
	return l
}

// inGroups returns the groups of a user.
func (u *user) inGroups() account.Groups { return account.Groups(u.lazy.groups.Value()) }

// mayUse reports whether a user may use a client.
func (u *user) mayUse(c *oauth.Client) bool { return u.inGroups().MayUse(c.Options.RequireGroups) }

// claims returns the claims of a user. An e-mail address and a phone number are kept only when they
// were verified, or given by an operator, who answers for them.
func (u *user) claims() *userClaims {
	if made := u.lazy.made.Load(); made != nil {
		return made
	}
	var p struct {
		Name     string `json:"name"`
		Email    string `json:"email"`
		Picture  string `json:"profile_picture"`
		Username string `json:"username"`
		Gender   string `json:"gender"`
		Phone    string `json:"phone_number"`
		Birth    string `json:"date_of_birth"`
		Address  string `json:"address"`
	}
	if err := json.Unmarshal(u.detailed, &p); err != nil {
		panic(err) // it is a profile
	}
	made := &userClaims{all: claims{
		Name: p.Name, PreferredUsername: p.Username, Picture: p.Picture, Gender: p.Gender,
		Birthdate: p.Birth, UpdatedAt: u.lazy.updated,
		Email: p.Email, EmailVerified: p.Email != "",
		PhoneNumber: p.Phone, PhoneNumberVerified: p.Phone != "",
	}}
	if p.Address != "" {
		made.all.Address = &address{p.Address}
	}
	made.groups = u.inGroups()
	if u.lazy.attributes != nil {
		made.attributes = account.Attributes(*u.lazy.attributes).Members()
	}
	u.lazy.made.Store(made)
	return made
}

// released returns the claims of groups, without those that operators have declared.
func (c *userClaims) released(groups int) (r claims) {
	if groups&releaseProfile != 0 {
		r.Name, r.PreferredUsername, r.Picture = c.all.Name, c.all.PreferredUsername, c.all.Picture
		r.Gender, r.UpdatedAt = c.all.Gender, c.all.UpdatedAt
	}
	if groups&releaseBirthdate != 0 {
		r.Birthdate = c.all.Birthdate
	}
	if groups&releaseEmail != 0 {
		r.Email, r.EmailVerified = c.all.Email, c.all.EmailVerified
	}
	if groups&releasePhone != 0 {
		r.PhoneNumber, r.PhoneNumberVerified = c.all.PhoneNumber, c.all.PhoneNumberVerified
	}
	if groups&releaseAddress != 0 {
		r.Address = c.all.Address
	}
	if groups&releaseGroups != 0 && !c.hasTooManyGroups() {
		r.Groups = c.groups.Names()
	}
	return r
}

// hasTooManyGroups reports whether the claim groups is left out.
func (c *userClaims) hasTooManyGroups() bool {
	return c.groups.Count() > account.MostGroupsInToken
}

// appendDeclared appends the members of declared claims, a comma before each. named limits them to
// those with a name in it; nil = all of groups. A value of another type than the attribute has now is
// left out.
func (c *userClaims) appendDeclared(
	dst []byte, groups int, declared []oauth.Claim, named []string,
) []byte {
	if groups&releaseDeclared == 0 || c.attributes == nil {
		return dst
	}
	for i := range declared {
		d := &declared[i]
		value := c.attributes[d.Attribute]
		if groups&groupOf(d) == 0 || named != nil && !slices.Contains(named, d.Name) ||
			!account.IsOfType(value, d.Type) {
			continue
		}
		dst = append(dst, ',', '"')
		dst = append(dst, d.Name...) // it needs no escape
		dst = append(append(dst, '"', ':'), value...)
	}
	return dst
}

// text returns a text, which render makes if there is none.
func (c *userClaims) text(of claimsKey, render func() []byte) []byte {
	first := c.texts.Load()
	for t := first; t != nil; t = t.next {
		if t.of == of {
			return t.text
		}
	}
	made := &claimsText{of: of, text: render()}
	if first != nil && first.rest < mostTexts-1 && first.of.declared == of.declared {
		made.next, made.rest = first, first.rest+1
	}
	c.texts.Store(made) // in place of what another request has just added
	return made.text
}

// userInfo returns the response of userinfo about the user with that id. It must not be changed.
func (u *user) userInfo(id int64, groups int, declared *[]oauth.Claim) []byte {
	c := u.claims()
	return c.text(claimsKey{groups: groups, declared: declared}, func() []byte {
		released := c.released(groups)
		released.GroupsTruncated = groups&releaseGroups != 0 && c.hasTooManyGroups()
		return c.withDeclared(struct {
			Subject string `json:"sub"`
			claims
		}{strconv.FormatInt(id, 10), released}, groups, *declared, nil)
	})
}

// withDeclared returns the JSON of an object with the declared claims of groups. named is that of
// appendDeclared.
func (c *userClaims) withDeclared(
	object any, groups int, declared []oauth.Claim, named []string,
) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // texts and numbers can be encoded
	}
	return append(c.appendDeclared(text[:len(text)-1], groups, declared, named), '}')
}

// introspected returns what a response of introspection says of the user besides: groups and declared
// claims, as members with a comma before each. It must not be changed; nil = nothing.
func (u *user) introspected(groups int, declared *[]oauth.Claim) []byte {
	if groups&releaseDeclared == 0 || groups&releaseGroups == 0 && len(*declared) == 0 ||
		u.inGroups() == "" && u.lazy.attributes == nil {
		return nil
	}
	c := u.claims()
	return c.text(claimsKey{groups, declared, true}, func() []byte {
		return c.appendDeclared(c.appendGroups(nil, groups), groups, *declared, nil)
	})
}

// appendGroups appends the member groups, with a comma before it, if it is released.
func (c *userClaims) appendGroups(dst []byte, groups int) []byte {
	names := c.released(groups & releaseGroups).Groups
	if len(names) == 0 {
		return dst
	}
	text, err := json.Marshal(names)
	if err != nil {
		panic(err) // they are texts
	}
	return append(append(dst, `,"groups":`...), text...)
}
