package adminapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/people"
	"gatehouse/httpedge/endpoint"
)

// Paths of imports and exports.
const (
	pathAdminImport = pathAdminUsers + "/import"
	pathAdminExport = pathAdminUsers + "/export"
)

// maxImported limits the users of one part of an import.
const maxImported = 1000

// importedLine is a user in the request.
type importedLine struct {
	Line int64           `json:"line"`
	User json.RawMessage `json:"user"`
}

// importUsers imports one part of a file.
func importUsers(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	var lines []importedLine
	p := &account.ImportPart{}
	o.text("import", &p.ID)
	o.flag("dry_run", &p.Dry)
	if !o.member("users", "must be a list of objects, each with line and user", &lines) {
		o.refuse("users", "is missing")
	}
	if len(p.ID) != 36 || uuid.Validate(p.ID) != nil {
		o.refuse("import", "must be a UUID")
	}
	for i, l := range lines {
		if l.Line < 1 || i > 0 && l.Line <= lines[i-1].Line || len(lines) > maxImported {
			o.refuse("users", "must have 1 to 1000 lines with rising numbers")
		}
	}
	if err := o.end(); err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, account.FieldError{Field: "users", Message: "must have 1 to 1000 lines with rising numbers"}
	}
	p.Line = lines[0].Line
	digest := sha256.Sum256(o.members["users"])
	p.Digest = hex.EncodeToString(digest[:])
	declared, err := c.people.Attributes(c.context)
	if err != nil {
		return nil, err
	}
	providers, err := c.people.ProviderChoices(c.context)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		u, problem := importedUser(l.User, declared, c.people.PasskeyDomain(), providers)
		if problem != nil {
			p.Refused = append(p.Refused, account.RefusedLine{Line: l.Line, FieldError: *problem})
			continue
		}
		p.Users = append(p.Users, account.ImportedUser{Line: l.Line, User: u})
	}
	err = c.people.ImportUsers(c.context, p, c.now)
	switch {
	case errors.Is(err, account.ErrConflict):
		return nil, &endpoint.Problem{Status: 409, Code: "conflict",
			Message: "This import has gone on beyond these lines, or they have changed since they were imported."}
	case err != nil:
		return nil, err
	}
	return struct {
		Created int                   `json:"created"`
		Refused []account.RefusedLine `json:"refused"`
		Lost    int                   `json:"factors_lost"`
	}{p.Created, append([]account.RefusedLine{}, p.Refused...), p.Lost}, nil
}

// memberName are the names of unknown members that are shown: others may be a person's data.
var memberName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,39}$`)

// languageTag are the tags (BCP 47) that people's languages have.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$`)

// importedPasskeys are the passkeys of a user in an import.
type importedPasskeys struct {
	Domain string            `json:"domain"`
	Handle []byte            `json:"handle"`
	Keys   []account.Passkey `json:"keys"`
}

// importedUser returns the user whom a line of an import describes, or the first problem. declared are
// the attributes that people may have, and providers those with which they sign in. Passkeys of another
// domain than that of the service are left out.
func importedUser(
	text []byte, declared []account.Attribute, domain string, providers []people.ProviderChoice,
) (*account.User, *account.FieldError) {
	o, err := parseObject(text)
	if err != nil {
		return nil, &account.FieldError{Field: "line", Message: "must be one JSON object in UTF-8"}
	}
	var u account.User
	profile(o, &u)
	var emailVerified, phoneVerified bool
	o.flag("email_verified", &emailVerified)
	o.flag("phone_number_verified", &phoneVerified)
	if o.member("id", "must be a number from 1 to 2^53-1", &u.ID) && (u.ID < 1 || u.ID > account.MaxID) {
		o.refuse("id", "must be a number from 1 to 2^53-1")
	}
	o.text("service_id", &u.ServiceID)
	o.clearable("password_hash", &u.PasswordHash)
	o.clearable("language", &u.Language)
	if u.Language != "" && !languageTag.MatchString(u.Language) {
		o.refuse("language", "must be a tag such as en or pt-BR")
	}
	o.flag("phone_sign_in", &u.PhoneSignIn)
	o.flag("disabled", &u.Disabled)
	o.groups(&u)
	o.attributes(&u, declared)
	var passkeys importedPasskeys
	if o.member("passkeys", "must be an object with domain, handle and keys", &passkeys) &&
		passkeys.Domain == domain && domain != "" {
		u.Credentials.Handle, u.Credentials.Passkeys = passkeys.Handle, passkeys.Keys
	}
	factors(o, &u)
	connections(o, &u, providers)
	const must = "must be true: the address must be known to be the person's"
	if u.Email != "" && !emailVerified {
		o.refuse("email_verified", must)
	}
	if u.Phone != "" && !phoneVerified {
		o.refuse("phone_number_verified", must)
	}
	var fields account.FieldErrors
	if !errors.As(o.end(), &fields) {
		return &u, nil
	}
	problem := fields[0]
	if !o.known[problem.Field] && !memberName.MatchString(problem.Field) {
		problem.Field = "a member"
	}
	return nil, &problem
}

// groups sets the groups of a new user to the member groups.
func (o *object) groups(u *account.User) {
	var names []string
	o.texts("groups", &names)
	for _, name := range names {
		switch {
		case !account.IsGroupName(name):
			o.refuse("groups", "must be names of groups")
		case name == account.OperatorsGroup:
			o.refuse("groups", "must not have "+name+": only gatehouse group add adds to it")
		}
	}
	if u.Groups = account.NewGroups(names); u.Groups.Count() > account.MostGroups {
		o.refuse("groups", "must be at most 1000")
	}
}

// attributes sets the attributes of a new user to the member attributes.
func (o *object) attributes(u *account.User, declared []account.Attribute) {
	var values map[string]json.RawMessage
	if !o.member("attributes", "must be an object of values by attribute", &values) {
		return
	}
	var wrong account.FieldErrors
	var err error
	if u.Attributes, err = u.Attributes.With(values, declared, false); errors.As(err, &wrong) {
		o.refuse("attributes", wrong.Error())
	}
}

// exportedUser is a user as an import takes it. Unset members are left out.
type exportedUser struct {
	ID             int64  `json:"id"`
	ServiceID      string `json:"service_id"`
	Name           string `json:"name"`
	Email          string `json:"email,omitempty"`
	EmailVerified  bool   `json:"email_verified,omitempty"`
	PhoneNumber    string `json:"phone_number,omitempty"`
	PhoneVerified  bool   `json:"phone_number_verified,omitempty"`
	Username       string `json:"username,omitempty"`
	Gender         string `json:"gender,omitempty"`
	Bio            string `json:"bio,omitempty"`
	PlaceOfBirth   string `json:"place_of_birth,omitempty"`
	DateOfBirth    string `json:"date_of_birth,omitempty"`
	Address        string `json:"address,omitempty"`
	ProfilePicture string `json:"profile_picture,omitempty"`
	Language       string `json:"language,omitempty"`
	PasswordHash   string `json:"password_hash,omitempty"`
	PhoneSignIn    bool   `json:"phone_sign_in,omitempty"`
	Disabled       bool   `json:"disabled,omitempty"`

	Groups     []string          `json:"groups,omitempty"` // without that of the operators
	Attributes json.RawMessage   `json:"attributes,omitempty"`
	Passkeys   *importedPasskeys `json:"passkeys,omitempty"`
	// Connections are accounts at other providers that sign in.
	Connections []exportedConnection `json:"connections,omitempty"`
	// Authenticator and RecoveryCodes are the second factors.
	Authenticator *exportedApp `json:"authenticator,omitempty"`
	RecoveryCodes [][]byte     `json:"recovery_codes,omitempty"`
}

// exportedApp is an authenticator app. Its secret stays sealed, under the key file of the server.
type exportedApp struct {
	Secret    []byte `json:"secret"`
	CreatedAt string `json:"created_at"`
	Step      int64  `json:"last_step"`
}

// factors applies the members of o about second factors to u.
func factors(o *object, u *account.User) {
	const must = "must be an object with secret, created_at and last_step, as an export has it"
	var app exportedApp
	if o.member("authenticator", must, &app) {
		created, err := time.Parse(time.RFC3339, app.CreatedAt)
		if err != nil || len(app.Secret) == 0 || len(app.Secret) > 1024 || app.Step < 0 {
			o.refuse("authenticator", must)
		}
		u.Credentials.Authenticator = &account.Authenticator{Secret: app.Secret, Created: created,
			Step: app.Step}
	}
	var codes [][]byte
	const list = "must be a list of at most 10 SHA-256 sums in base64"
	if o.member("recovery_codes", list, &codes) {
		wrong := slices.ContainsFunc(codes, func(c []byte) bool { return len(c) != sha256.Size })
		if wrong || len(codes) > account.NewRecoveryCodes {
			o.refuse("recovery_codes", list)
		}
		u.Credentials.RecoveryCodes = codes
	}
}

// exportedConnection is an account at another provider. An import needs issuer or provider, and
// subject.
type exportedConnection struct {
	Provider  string    `json:"provider,omitempty"` // ID of the one with that issuer
	Issuer    string    `json:"issuer"`
	Subject   string    `json:"subject"`
	Name      string    `json:"name,omitempty"`
	Groups    []string  `json:"groups,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UsedAt    time.Time `json:"used_at,omitzero"`
}

func exportedConnections(u *account.User, providers []people.ProviderChoice) (all []exportedConnection) {
	for _, c := range u.Credentials.Connections {
		one := exportedConnection{Issuer: c.Issuer, Subject: c.Subject, Name: c.Name, Groups: c.Groups,
			CreatedAt: c.Created.UTC(), UsedAt: c.Used.UTC()}
		for _, p := range providers {
			if p.Issuer == c.Issuer {
				one.Provider = p.ID
			}
		}
		all = append(all, one)
	}
	return all
}

// connections applies the member connections of o to u.
func connections(o *object, u *account.User, providers []people.ProviderChoice) {
	const must = "must be a list of objects, each with issuer or provider, and subject"
	var all []exportedConnection
	if !o.member("connections", must, &all) {
		return
	}
	for _, one := range all {
		for _, p := range providers {
			if one.Issuer == "" && p.ID == one.Provider {
				one.Issuer = p.Issuer
			}
		}
		if one.Issuer == "" && one.Provider != "" {
			o.refuse("connections", "must be of providers that exist, or name the issuer")
		}
		u.Credentials.Connections = append(u.Credentials.Connections, account.Connection{
			Issuer: one.Issuer, Subject: one.Subject, Name: cmp.Or(one.Name, one.Provider, one.Issuer),
			Groups: account.NewGroups(one.Groups).Names(), Created: one.CreatedAt, Used: one.UsedAt})
	}
}

// exportUsers returns a page of users with their password hashes.
func exportUsers(c *adminCall) (any, error) {
	users, next, err := c.userPage(audit.UsersExported)
	if err != nil {
		return nil, err
	}
	providers, err := c.people.ProviderChoices(c.context)
	if err != nil {
		return nil, err
	}
	page := struct {
		Users []exportedUser `json:"users"`
		Next  string         `json:"next"` // as in listUsers
	}{Users: make([]exportedUser, len(users)), Next: next}
	for i, u := range users {
		page.Users[i] = exportedUser{
			Passkeys: exportedPasskeys(u, c.people.PasskeyDomain()),
			ID:       u.ID, ServiceID: u.ServiceID, Name: u.Name, Email: u.Email,
			EmailVerified: u.Email != "", PhoneNumber: u.Phone, PhoneVerified: u.Phone != "",
			Username: u.Username, Gender: u.Gender, Bio: u.Bio, PlaceOfBirth: u.PlaceOfBirth,
			DateOfBirth: u.DateOfBirth, Address: u.Address, ProfilePicture: u.ProfilePicture, Language: u.Language,
			PasswordHash: u.PasswordHash, PhoneSignIn: u.PhoneSignIn, Disabled: u.Disabled,
			Groups: slices.DeleteFunc(u.Given.Names(),
				func(name string) bool { return name == account.OperatorsGroup }),
			Attributes:  json.RawMessage(u.Attributes),
			Connections: exportedConnections(u, providers),
		}
		if a := c.people.ExportFactors(u); a != nil {
			page.Users[i].Authenticator = &exportedApp{a.Secret, timestamp(a.Created), a.Step}
			page.Users[i].RecoveryCodes = u.Credentials.RecoveryCodes
		}
		if page.Users[i].Passkeys != nil && u.SecurityKeys() > 0 {
			page.Users[i].RecoveryCodes = u.Credentials.RecoveryCodes
		}
	}
	return page, nil
}

// exportedPasskeys returns the passkeys of u; nil = there are none.
func exportedPasskeys(u *account.User, domain string) *importedPasskeys {
	if domain == "" || len(u.Credentials.Passkeys) == 0 {
		return nil
	}
	return &importedPasskeys{domain, u.Credentials.Handle, u.Credentials.Passkeys}
}

// userPage returns the users of the page that the request names, and the parameter after of the next
// one. It records that they were read, in an event with that action.
func (c *adminCall) userPage(action audit.Action) (users []*account.User, next string, err error) {
	text, limit, err := c.page()
	if err != nil {
		return nil, "", err
	}
	var after int64
	if text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return nil, "", errAfter
		}
	}
	if users, err = c.people.Users(c.context, after, limit); err != nil {
		return nil, "", err
	}
	seen := audit.Data{"users": len(users)}
	if len(users) > 0 {
		seen["first"], seen["last"] = users[0].ID, users[len(users)-1].ID
	}
	c.recordRead(audit.Event{Action: action, Data: seen})
	if len(users) == limit {
		next = strconv.FormatInt(users[limit-1].ID, 10)
	}
	return users, next, nil
}
