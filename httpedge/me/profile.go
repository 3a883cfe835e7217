package me

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

var textUsernameTaken = texts.Of("me.username_taken")

// profileField is a field of the profile: in a user and on the page.
type profileField struct {
	name string // documented name
	user func(*account.User) *string
	page func(*pages.Profile) *string
}

var profileFields = []profileField{
	{"name", func(u *account.User) *string { return &u.Name },
		func(p *pages.Profile) *string { return &p.Name }},
	{"username", func(u *account.User) *string { return &u.Username },
		func(p *pages.Profile) *string { return &p.Username }},
	{"gender", func(u *account.User) *string { return &u.Gender },
		func(p *pages.Profile) *string { return &p.Gender }},
	{"bio", func(u *account.User) *string { return &u.Bio },
		func(p *pages.Profile) *string { return &p.Bio }},
	{"place_of_birth", func(u *account.User) *string { return &u.PlaceOfBirth },
		func(p *pages.Profile) *string { return &p.PlaceOfBirth }},
	{"date_of_birth", func(u *account.User) *string { return &u.DateOfBirth },
		func(p *pages.Profile) *string { return &p.DateOfBirth }},
	{"address", func(u *account.User) *string { return &u.Address },
		func(p *pages.Profile) *string { return &p.Address }},
	{"profile_picture", func(u *account.User) *string { return &u.ProfilePicture },
		func(p *pages.Profile) *string { return &p.ProfilePicture }},
}

// profileOf returns the profile of u for display.
func profileOf(u *account.User) pages.Profile {
	var p pages.Profile
	for _, f := range profileFields {
		*f.page(&p) = *f.user(u)
	}
	return p
}

// entered returns the profile with what was entered, if it is shown again.
func (p *person) entered() pages.Profile {
	fields := profileOf(p.User)
	for _, f := range profileFields {
		for _, given := range p.Form {
			if given.Name == f.name {
				*f.page(&fields) = strings.ToValidUTF8(given.Value, "\uFFFD")
			}
		}
	}
	return fields
}

// saveProfile changes the fields in the form. An empty field is removed, a missing one stays.
func (s *service) saveProfile(p *person) {
	sent, once := map[string]string{}, true
	for _, f := range profileFields {
		for _, given := range p.Form {
			if given.Name != f.name {
				continue
			}
			_, repeated := sent[f.name]
			once = once && !repeated
			sent[f.name] = given.Value
		}
	}
	if !once {
		s.RefusePage(p.Visit, texts.Of("message.repeated_field"), texts.Of("message.send_again"))
		return
	}
	declared, err := s.people.Attributes(p.Ctx)
	if err != nil {
		s.WriteFailure(p.HTTP, "read attributes", err)
		return
	}
	changes := sentAttributes(p, declared)
	_, err = s.people.UpdateUser(p.Ctx, p.User.ID, func(u *account.User) (err error) {
		for _, f := range profileFields {
			if text, ok := sent[f.name]; ok {
				*f.user(u) = text
			}
		}
		u.Attributes, err = u.Attributes.With(changes, declared, true)
		return err
	}, p.Now)
	s.respondToProfile(p, err)
}

// attributeField begins the names of fields with attributes.
const attributeField = "attributes."

// sentAttributes returns the attributes in the form. What a person may not change is among them.
func sentAttributes(p *person, declared []account.Attribute) map[string]json.RawMessage {
	changes := map[string]json.RawMessage{}
	for _, given := range p.Form {
		name, ok := strings.CutPrefix(given.Name, attributeField)
		if !ok {
			continue
		}
		var a account.Attribute // a text, if it is not declared
		for _, d := range declared {
			if d.Name == name {
				a = d
			}
		}
		changes[name] = a.FromText(strings.ToValidUTF8(given.Value, "\uFFFD"))
	}
	return changes
}

// ownAttributes returns the fields of the attributes that people may change.
func (s *service) ownAttributes(p *person) ([]pages.AttributeField, error) {
	declared, err := s.people.Attributes(p.Ctx)
	if err != nil {
		return nil, err
	}
	var fields []pages.AttributeField
	values := p.User.Attributes.Members()
	for _, a := range declared {
		if a.Change == account.ChangedByPerson {
			fields = append(fields, pages.AttributeField{Label: strings.ReplaceAll(a.Name, "_", " "),
				Field: attributeField + a.Name, Value: a.Text(values[a.Name])})
		}
	}
	return fields, nil
}

// respondToProfile responds after an attempt to save a profile.
func (s *service) respondToProfile(p *person, err error) {
	status, problems := visit.Again(p.Visit, err, "", "wrong.attempts")
	switch {
	case status != 0:
		s.showProfile(p, status, p.entered(), problems...)
	case errors.Is(err, account.ErrTaken): // only the username can be taken here
		s.showProfile(p, fasthttp.StatusUnprocessableEntity, p.entered(),
			pages.Problem{Field: "username", Text: textUsernameTaken})
	case errors.Is(err, account.ErrNotFound):
		visit.Redirect(p.HTTP, pages.PathLogin)
	case err != nil:
		s.WriteFailure(p.HTTP, "save a profile", err)
	default:
		visit.Redirect(p.HTTP, p.WithNotice(pages.PathMeProfile, noticeSaved))
	}
}
