package oauthapp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Profile is the basic profile of a user. nil = the user has not set the field.
type Profile struct {
	ID       int64   `json:"id"` // never changes, below 2^53
	Name     string  `json:"name"`
	Email    *string `json:"email"`
	Picture  *string `json:"profile_picture"` // URL
	Username *string `json:"username"`
	Gender   *string `json:"gender"`
}

// Details is the detailed profile of a user.
type Details struct {
	Profile
	Bio          *string `json:"bio"`
	PhoneNumber  *string `json:"phone_number"` // E.164
	PlaceOfBirth *string `json:"place_of_birth"`
	DateOfBirth  *string `json:"date_of_birth"` // YYYY-MM-DD
	Address      *string `json:"address"`
	ServiceID    string  `json:"service_id"` // UUID; never changes
}

// Quota is the rate limit of an access token at an endpoint. The zero value means unknown.
type Quota struct {
	Limit     int
	Remaining int
	Reset     time.Time // end of the window
}

// Profile returns the basic profile of the token's user.
func (a *App) Profile(ctx context.Context, accessToken string) (*Profile, Quota, error) {
	p := new(Profile)
	quota, err := a.profile(ctx, "/api/user", accessToken, p)
	if err == nil && (p.ID < 1 || p.Name == "") {
		err = errors.New("got a profile without id or name")
	}
	return p, quota, err
}

// Details returns the detailed profile of the token's user.
func (a *App) Details(ctx context.Context, accessToken string) (*Details, Quota, error) {
	d := new(Details)
	quota, err := a.profile(ctx, "/api/user/details", accessToken, d)
	if err == nil && (d.ID < 1 || d.Name == "" || d.ServiceID == "") {
		err = errors.New("got a profile without id, name or service_id")
	}
	return d, quota, err
}

func (a *App) profile(ctx context.Context, path, accessToken string, into any) (Quota, error) {
	response, err := a.Do(ctx, Request{Path: path, Header: bearer(accessToken)})
	if err != nil {
		return Quota{}, err
	}
	return quotaOf(response), response.decode(into)
}

// Quota returns the remaining quota of the basic profile after this request.
func (a *App) Quota(ctx context.Context, accessToken string) (Quota, error) {
	response, err := a.Do(ctx, Request{Method: http.MethodHead, Path: "/api/user",
		Header: bearer(accessToken)})
	if err != nil {
		return Quota{}, err
	}
	return quotaOf(response), nil
}

// bearer returns the Authorization header of an access token (RFC 6750 section 2.1), or none.
func bearer(accessToken string) map[string]string {
	if accessToken == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + accessToken}
}

func quotaOf(r *Response) Quota {
	limit, err := strconv.Atoi(r.Header.Get("X-RateLimit-Limit"))
	remaining, err2 := strconv.Atoi(r.Header.Get("X-RateLimit-Remaining"))
	reset, err3 := strconv.ParseInt(r.Header.Get("X-RateLimit-Reset"), 10, 64)
	if errors.Join(err, err2, err3) != nil {
		return Quota{}
	}
	return Quota{limit, remaining, time.Unix(reset, 0)}
}
