package main

import (
	"net/http"
	"net/url"
)

// userCommand is gatehouse user.
type userCommand struct {
	Create        userCreate        `cmd:"" help:"Create an account."`
	List          userList          `cmd:"" help:"List the users."`
	Show          userShow          `cmd:"" help:"Show a user."`
	Update        userUpdate        `cmd:"" help:"Change a user's profile."`
	Disable       userDisable       `cmd:"" help:"Refuse a user and all tokens for that user."`
	Enable        userEnable        `cmd:"" help:"Accept a disabled user again."`
	Delete        userDelete        `cmd:"" help:"Delete a user and all data of that user."`
	ResetPassword userResetPassword `cmd:"" help:"Set a new password, and end all sessions and tokens."`
	RevokeTokens  userRevokeTokens  `cmd:"" help:"Revoke all tokens of a user."`
}

// Help is shown by gatehouse user --help.
func (*userCommand) Help() string {
	return "Example:\n\n    gatehouse user list --demo ./gatehouse-demo\n    gatehouse user show --demo ./gatehouse-demo 1"
}

func userPath(id string, more string) string {
	path := "/admin/v1/users/" + url.PathEscape(id)
	if more != "" {
		path += "/" + more
	}
	return path
}

// profileFlags are the parts of a profile that the command line can set; nil = not given.
type profileFlags struct {
	Username       *string `name:"username" placeholder:"NAME" help:"The username."`
	Gender         *string `name:"gender" placeholder:"GENDER" help:"The gender, such as female, male or other."`
	Bio            *string `name:"bio" placeholder:"TEXT" help:"A short biography."`
	PlaceOfBirth   *string `name:"place-of-birth" placeholder:"PLACE" help:"The place of birth."`
	DateOfBirth    *string `name:"date-of-birth" placeholder:"YYYY-MM-DD" help:"The date of birth."`
	Address        *string `name:"address" placeholder:"ADDRESS" help:"The postal address."`
	ProfilePicture *string `name:"profile-picture" placeholder:"URL" help:"URL of the picture."`
	Email          *string `name:"email" placeholder:"EMAIL" help:"The e-mail address; it counts as verified."`
	Phone          *string `name:"phone" placeholder:"+E.164" help:"The phone number; it counts as verified."`
}

func (f *profileFlags) body() map[string]any {
	body := map[string]any{}
	setText(body, "username", f.Username)
	setText(body, "gender", f.Gender)
	setText(body, "bio", f.Bio)
	setText(body, "place_of_birth", f.PlaceOfBirth)
	setText(body, "date_of_birth", f.DateOfBirth)
	setText(body, "address", f.Address)
	setText(body, "profile_picture", f.ProfilePicture)
	setText(body, "email", f.Email)
	setText(body, "phone_number", f.Phone)
	return body
}

type userCreate struct {
	remoteFlags
	passwordFlags
	profileFlags
	Name string `name:"name" required:"" placeholder:"NAME" help:"The full name."`
}

// Help is shown by gatehouse user create --help.
func (*userCreate) Help() string {
	return "An account has an e-mail address and a password, or a phone number, or both.\n\nExample:\n\n" +
		"    echo 'correct horse battery' | gatehouse user create --demo ./gatehouse-demo --name 'Grace Hopper' --email grace@example.com --password-stdin\n" +
		"    gatehouse user create --demo ./gatehouse-demo --name 'Alan Turing' --phone +441632960123"
}

// Run creates an account.
func (c *userCreate) Run(p *program) error {
	body := c.body()
	body["name"] = c.Name
	password, given, err := c.read(p)
	switch {
	case err != nil:
		return err
	case c.Email != nil && !given:
		return usagef("--email: needs a password (--password-stdin, --password-file or --password)")
	case c.Email == nil && given:
		return usagef("a password needs --email")
	case c.Email == nil && c.Phone == nil:
		return usagef("--email or --phone must be given")
	case given:
		body["password"] = password
	}
	return c.act(p, http.MethodPost, "/admin/v1/users", body)
}

type userList struct{ remoteFlags }

// Help is shown by gatehouse user list --help.
func (*userList) Help() string {
	return "Example:\n\n    gatehouse user list --demo ./gatehouse-demo"
}

// Run lists the users.
func (c *userList) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	return r.list("/admin/v1/users", "users", []column{
		{"ID", "id"}, {"NAME", "name"}, {"EMAIL", "email"}, {"PHONE", "phone_number"},
		{"USERNAME", "username"}, {"DISABLED", "disabled"},
	})
}

type userShow struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user show --help.
func (*userShow) Help() string {
	return "Example:\n\n    gatehouse user show --demo ./gatehouse-demo 1"
}

// Run shows a user.
func (c *userShow) Run(p *program) error {
	return c.act(p, http.MethodGet, userPath(c.ID, ""), nil)
}

type userUpdate struct {
	remoteFlags
	profileFlags
	ID   string  `arg:"" name:"id" help:"The user's id, a number."`
	Name *string `name:"name" placeholder:"NAME" help:"The full name."`
}

// Help is shown by gatehouse user update --help.
func (*userUpdate) Help() string {
	return "Values that are not given stay as they are; an empty value removes one.\n\n" +
		"Example:\n\n    gatehouse user update --demo ./gatehouse-demo 1 --username ada --date-of-birth 1990-12-10"
}

// Run changes a profile.
func (c *userUpdate) Run(p *program) error {
	body := c.body()
	setText(body, "name", c.Name)
	if len(body) == 0 {
		return usagef("nothing to change: give at least one of the flags that --help lists")
	}
	return c.act(p, http.MethodPatch, userPath(c.ID, ""), body)
}

type userDisable struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user disable --help.
func (*userDisable) Help() string {
	return "Example:\n\n    gatehouse user disable --demo ./gatehouse-demo 2"
}

// Run disables a user.
func (c *userDisable) Run(p *program) error {
	return c.act(p, http.MethodPost, userPath(c.ID, "disable"), nil)
}

type userEnable struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user enable --help.
func (*userEnable) Help() string {
	return "Example:\n\n    gatehouse user enable --demo ./gatehouse-demo 2"
}

// Run enables a user.
func (c *userEnable) Run(p *program) error {
	return c.act(p, http.MethodPost, userPath(c.ID, "enable"), nil)
}

type userDelete struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user delete --help.
func (*userDelete) Help() string {
	return "Example:\n\n    gatehouse user delete --demo ./gatehouse-demo 2"
}

// Run deletes a user.
func (c *userDelete) Run(p *program) error {
	return c.end(p, http.MethodDelete, userPath(c.ID, ""), nil, "deleted",
		map[string]any{"id": userNumber(c.ID)})
}

type userResetPassword struct {
	remoteFlags
	passwordFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user reset-password --help.
func (*userResetPassword) Help() string {
	return "Example:\n\n    echo 'correct horse battery' | gatehouse user reset-password --demo ./gatehouse-demo 1 --password-stdin"
}

// Run sets a password.
func (c *userResetPassword) Run(p *program) error {
	password, given, err := c.read(p)
	if err != nil {
		return err
	}
	if !given {
		return usagef("the new password must be given: --password-stdin, --password-file or --password")
	}
	return c.end(p, http.MethodPost, userPath(c.ID, "reset-password"),
		map[string]any{"password": password},
		"the password is set; sessions and tokens have ended",
		map[string]any{"id": userNumber(c.ID)})
}

type userRevokeTokens struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user revoke-tokens --help.
func (*userRevokeTokens) Help() string {
	return "Example:\n\n    gatehouse user revoke-tokens --demo ./gatehouse-demo 1"
}

// Run revokes a user's tokens.
func (c *userRevokeTokens) Run(p *program) error {
	return c.end(p, http.MethodPost, userPath(c.ID, "revoke-tokens"), nil, "the tokens have ended",
		map[string]any{"id": userNumber(c.ID)})
}
