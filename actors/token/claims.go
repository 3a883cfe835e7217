package token

import (
	"encoding/json"
	"strconv"
	"sync/atomic"

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
	releases = 1 << iota // how many sets of them there are
)

// releasedTo returns the groups of claims that a client gets with scopes (OpenID Connect Core
// section 5.4). Those of the detailed profile need the approval for it.
func releasedTo(scopes oauth.Scopes, approved bool) (groups int) {
	if scopes.Contains(oauth.Profile) {
		groups |= releaseProfile
	}
	if scopes.Contains(oauth.Email) {
		groups |= releaseEmail
	}
	if !approved {
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

// userClaims are a user's claims, and the responses of userinfo that were made of them. Its methods
// may be called by many goroutines.
type userClaims struct {
	all       claims
	responses [releases]atomic.Pointer[[]byte]
}

// lazyClaims makes the claims of a user at their first use: most users in memory need none.
type lazyClaims struct {
	made    atomic.Pointer[userClaims]
	updated int64 // Unix seconds
}

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
	u.lazy.made.Store(made)
	return made
}

// released returns the claims of groups.
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
	return r
}

// userInfo returns the response of userinfo about the user with that id. It must not be changed.
func (u *user) userInfo(id int64, groups int) []byte {
	c := u.claims()
	if made := c.responses[groups].Load(); made != nil {
		return *made
	}
	response, err := json.Marshal(struct {
		Subject string `json:"sub"`
		claims
	}{strconv.FormatInt(id, 10), c.released(groups)})
	if err != nil {
		panic(err) // texts and numbers can be encoded
	}
	c.responses[groups].Store(&response)
	return response
}
