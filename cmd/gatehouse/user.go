package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

const pathUsers = "/admin/v1/users"

// userCommand is gatehouse user.
type userCommand struct {
	Create        userCreate        `cmd:"" help:"Create an account."`
	List          userList          `cmd:"" help:"List the users."`
	Show          idCommand         `cmd:"" help:"Show a user."`
	Update        userUpdate        `cmd:"" help:"Change a user's profile."`
	Disable       idCommand         `cmd:"" help:"Refuse a user and all tokens for that user."`
	Enable        idCommand         `cmd:"" help:"Accept a disabled user again."`
	Delete        idCommand         `cmd:"" help:"Delete a user and all data of that user."`
	ResetPassword userResetPassword `cmd:"" help:"Set a new password, and end all sessions and tokens."`
	RevokeTokens  idCommand         `cmd:"" help:"Revoke all tokens of a user."`
	Sessions      userSessions      `cmd:"" help:"List the sessions of a user."`
	EndSession    userEndSession    `cmd:"" help:"End a session of a user."`
	Passkeys      userPasskeys      `cmd:"" help:"List the passkeys of a user."`
	Import        userImport        `cmd:"" help:"Create the users that a file describes."`
	Export        userExport        `cmd:"" help:"Print all users as such a file."`
}

func newUserCommand() userCommand {
	command := func(name, id, method, step, done string) idCommand {
		return idCommand{help: "Example:\n\n    gatehouse user " + name + " --demo ./gatehouse-demo " + id,
			method: method, collection: pathUsers, step: step, done: done, about: aboutUser}
	}
	return userCommand{
		Show:    command("show", "1", http.MethodGet, "", ""),
		Disable: command("disable", "2", http.MethodPost, "disable", ""),
		Enable:  command("enable", "2", http.MethodPost, "enable", ""),
		Delete:  command("delete", "2", http.MethodDelete, "", "deleted"),
		RevokeTokens: command("revoke-tokens", "1", http.MethodPost, "revoke-tokens",
			"the tokens have ended"),
	}
}

func aboutUser(id string) any { return map[string]any{"id": json.Number(id)} }

// Help is shown by gatehouse user --help.
func (*userCommand) Help() string {
	return "Example:\n\n    gatehouse user list --demo ./gatehouse-demo\n    gatehouse user show --demo ./gatehouse-demo 1"
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
	return c.act(p, http.MethodPost, pathUsers, body)
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
	return r.list(pathUsers, "users", []column{
		member("ID", "id"), member("NAME", "name"), member("EMAIL", "email"), member("PHONE", "phone_number"),
		member("USERNAME", "username"), member("DISABLED", "disabled"),
	}, "")
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
	return c.act(p, http.MethodPatch, itemPath(pathUsers, c.ID), body)
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
	return c.end(p, http.MethodPost, itemPath(pathUsers, c.ID, "reset-password"),
		map[string]any{"password": password},
		"the password is set; sessions and tokens have ended",
		aboutUser(c.ID))
}

type userSessions struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user sessions --help.
func (*userSessions) Help() string {
	return "The last used session is the first.\n\nExample:\n\n    gatehouse user sessions --demo ./gatehouse-demo 1"
}

// Run lists the sessions.
func (c *userSessions) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	response, err := r.call(http.MethodGet, itemPath(pathUsers, c.ID, "sessions"), nil)
	if err != nil {
		return err
	}
	var page struct{ Sessions []json.RawMessage }
	if err := json.Unmarshal(response, &page); err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	return r.printList(page.Sessions, []column{
		member("ID", "id"), member("BROWSER", "browser"), member("FACTORS", "factors"),
		member("SIGNED IN", "signed_in_at"), member("LAST SEEN", "last_seen_at"),
	})
}

type userPasskeys struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The user's id, a number."`
}

// Help is shown by gatehouse user passkeys --help.
func (*userPasskeys) Help() string {
	return "The oldest passkey is the first. One that does not sign in only is a second factor.\n\nExample:\n\n    gatehouse user passkeys --demo ./gatehouse-demo 1"
}

// Run lists the passkeys.
func (c *userPasskeys) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	response, err := r.call(http.MethodGet, itemPath(pathUsers, c.ID, "passkeys"), nil)
	if err != nil {
		return err
	}
	var page struct{ Passkeys []json.RawMessage }
	if err := json.Unmarshal(response, &page); err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	return r.printList(page.Passkeys, []column{
		member("NAME", "name"), member("SIGNS IN", "signs_in"), member("SYNCED", "synced"),
		member("CREATED", "created_at"), member("LAST USED", "last_used_at"),
	})
}

type userEndSession struct {
	remoteFlags
	ID      string `arg:"" name:"id" help:"The user's id, a number."`
	Session string `arg:"" name:"session" help:"The session's id, as user sessions lists it."`
}

// Help is shown by gatehouse user end-session --help.
func (*userEndSession) Help() string {
	return "Tokens that belong to the session end with it. The example lists the sessions of a user and ends all.\n\n" +
		"Example:\n\n" +
		"    gatehouse user sessions --demo ./gatehouse-demo 1\n" +
		"    gatehouse user sessions --demo ./gatehouse-demo 1 | awk 'NR > 1 {print $1}' |\n" +
		"      xargs -r -n 1 gatehouse user end-session --demo ./gatehouse-demo 1"
}

// Run ends the session.
func (c *userEndSession) Run(p *program) error {
	return c.end(p, http.MethodDelete, itemPath(pathUsers, c.ID, "sessions", c.Session), nil,
		"the session has ended", map[string]any{"id": json.Number(c.ID), "session": c.Session})
}
