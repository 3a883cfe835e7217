package account

import (
	"bytes"
	"encoding/json"
)

// basicProfile is the basic tier (interface document, section 2.2). It always has every field; an
// unset one is null.
type basicProfile struct {
	ID             int64   `json:"id"`
	Name           string  `json:"name"`
	Email          *string `json:"email"`
	ProfilePicture *string `json:"profile_picture"`
	Username       *string `json:"username"`
	Gender         *string `json:"gender"`
}

// detailedProfile is the detailed tier (interface document, section 2.3).
type detailedProfile struct {
	basicProfile
	Bio          *string `json:"bio"`
	PhoneNumber  *string `json:"phone_number"`
	PlaceOfBirth *string `json:"place_of_birth"`
	DateOfBirth  *string `json:"date_of_birth"`
	Address      *string `json:"address"`
	ServiceID    *string `json:"service_id"`
}

// AppendBasic appends the JSON of the basic profile to dst.
func (u *User) AppendBasic(dst []byte) []byte { return appendJSON(dst, u.basic()) }

// AppendDetailed appends the JSON of the detailed profile to dst.
func (u *User) AppendDetailed(dst []byte) []byte {
	return appendJSON(dst, detailedProfile{
		basicProfile: u.basic(),
		Bio:          orNull(u.Bio),
		PhoneNumber:  orNull(u.Phone),
		PlaceOfBirth: orNull(u.PlaceOfBirth),
		DateOfBirth:  orNull(u.DateOfBirth),
		Address:      orNull(u.Address),
		ServiceID:    orNull(u.ServiceID),
	})
}

func (u *User) basic() basicProfile {
	return basicProfile{
		ID:             u.ID,
		Name:           u.Name,
		Email:          orNull(u.Email),
		ProfilePicture: orNull(u.ProfilePicture),
		Username:       orNull(u.Username),
		Gender:         orNull(u.Gender),
	}
}

// orNull returns nil for "", which JSON writes as null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// appendJSON appends the JSON of a profile. Encoding cannot fail: all members are numbers or
// strings.
func appendJSON(dst []byte, profile any) []byte {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(profile); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
