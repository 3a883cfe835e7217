package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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
	ResetFactors  idCommand         `cmd:"" help:"Remove the second factors of a user who has lost them."`
	RevokeTokens  idCommand         `cmd:"" help:"Revoke all tokens of a user."`
	Sessions      userSessions      `cmd:"" help:"List the sessions of a user."`
	EndSession    userEndSession    `cmd:"" help:"End a session of a user."`
	Invite        userInvite        `cmd:"" help:"Send a person a link to make an account."`
	Invitations   userInvitations   `cmd:"" help:"List the invitations that were not accepted yet."`
	Uninvite      userUninvite      `cmd:"" help:"End an invitation."`
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
		ResetFactors: command("reset-factors", "1", http.MethodPost, "reset-factors",
			"the second factors are removed, and the person gets a notice"),
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
	return "An account has an e-mail address, or a phone number, or both. Without a password, the person sets " +
		"the first one by a code to the e-mail address.\n\nExample:\n\n" +
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
	ID        string   `arg:"" name:"id" help:"The user's id, a number."`
	Name      *string  `name:"name" placeholder:"NAME" help:"The full name."`
	Attribute []string `name:"attribute" sep:"none" placeholder:"NAME=VALUE" help:"An attribute that is declared, such as department=sales. An empty value removes it; of a list, the items are separated by commas. May be repeated."`
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
	if len(body) == 0 && len(c.Attribute) == 0 {
		return usagef("nothing to change: give at least one of the flags that --help lists")
	}
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	if err := r.setAttributes(body, c.Attribute); err != nil {
		return err
	}
	response, err := r.call(http.MethodPatch, itemPath(pathUsers, c.ID), body)
	if err != nil {
		return err
	}
	return r.show(response)
}

// setAttributes sets the member attributes to the values of flags, each of the type that its
// attribute is declared with.
func (r *remote) setAttributes(body map[string]any, flags []string) error {
	if len(flags) == 0 {
		return nil
	}
	types := map[string]string{}
	err := r.pages(pathAttributes, "attributes", func(text json.RawMessage) error {
		var a struct{ Name, Type string }
		err := json.Unmarshal(text, &a)
		types[a.Name] = a.Type
		return err
	})
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, flag := range flags {
		name, value, ok := strings.Cut(flag, "=")
		typ, known := types[name]
		switch {
		case !ok:
			return usagef("--attribute %q: must be NAME=VALUE", flag)
		case !known:
			return usagef("--attribute %q: there is no attribute %s; a file for gatehouse apply declares it", flag, name)
		case value == "":
			values[name] = nil
		case typ == "strings":
			values[name] = strings.Split(value, ",")
		case typ == "string":
			values[name] = value
		case !json.Valid([]byte(value)):
			return usagef("--attribute %q: the value must be a %s", flag, typ)
		default:
			values[name] = json.RawMessage(value)
		}
	}
	body["attributes"] = values
	return nil
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

const pathInvitations = "/admin/v1/invitations"

type userInvite struct {
	remoteFlags
	Email string   `name:"email" required:"" placeholder:"EMAIL" help:"The e-mail address; the link verifies it."`
	Name  *string  `name:"name" placeholder:"NAME" help:"The full name (default: the person says it)."`
	Group []string `name:"group" sep:"none" placeholder:"GROUP" help:"Group that the person will be in. May be repeated."`
}

// Help is shown by gatehouse user invite --help.
func (*userInvite) Help() string {
	return "The link works once, for 7 days. Another invitation of the same address replaces it.\n\n" +
		"Example:\n\n    gatehouse user invite --demo ./gatehouse-demo --email hedy@example.com --name 'Hedy Lamarr'"
}

// Run invites a person.
func (c *userInvite) Run(p *program) error {
	body := map[string]any{"email": c.Email}
	setText(body, "name", c.Name)
	setWords(body, "groups", c.Group)
	return c.act(p, http.MethodPost, pathInvitations, body)
}

type userInvitations struct{ remoteFlags }

// Help is shown by gatehouse user invitations --help.
func (*userInvitations) Help() string {
	return "Example:\n\n    gatehouse user invitations --demo ./gatehouse-demo"
}

// Run lists the invitations.
func (c *userInvitations) Run(p *program) error {
	r, err := c.connect(p)
	if err != nil {
		return err
	}
	return r.list(pathInvitations, "invitations", []column{member("ID", "id"), member("EMAIL", "email"),
		member("NAME", "name"), member("GROUPS", "groups"), member("EXPIRES", "expires_at")}, "")
}

type userUninvite struct {
	remoteFlags
	ID string `arg:"" name:"id" help:"The invitation's id, as user invitations lists it."`
}

// Help is shown by gatehouse user uninvite --help.
func (*userUninvite) Help() string {
	return "The example ends all invitations.\n\nExample:\n\n" +
		"    gatehouse user invitations --demo ./gatehouse-demo | awk 'NR > 1 {print $1}' |\n" +
		"      xargs -r -n 1 gatehouse user uninvite --demo ./gatehouse-demo"
}

// Run ends an invitation.
func (c *userUninvite) Run(p *program) error {
	return c.end(p, http.MethodDelete, itemPath(pathInvitations, c.ID), nil, "the invitation has ended",
		map[string]any{"id": c.ID, "deleted": true})
}
