package adminapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// userRecord is a user as the admin API shows it. Unset members are null.
type userRecord struct {
	ID             int64           `json:"id"`
	ServiceID      string          `json:"service_id"`
	Name           string          `json:"name"`
	Email          *string         `json:"email"`
	PhoneNumber    *string         `json:"phone_number"`
	Username       *string         `json:"username"`
	Gender         *string         `json:"gender"`
	Bio            *string         `json:"bio"`
	PlaceOfBirth   *string         `json:"place_of_birth"`
	DateOfBirth    *string         `json:"date_of_birth"`
	Address        *string         `json:"address"`
	ProfilePicture *string         `json:"profile_picture"`
	HasPassword    bool            `json:"has_password"`
	PhoneSignIn    bool            `json:"phone_sign_in"`
	SecondFactor   bool            `json:"second_factor"`
	RecoveryCodes  int             `json:"recovery_codes"`
	Disabled       bool            `json:"disabled"`
	CreatedAt      string          `json:"created_at"`
	UpdatedAt      string          `json:"updated_at"`
	Groups         []string        `json:"groups"`
	ProviderGroups []mappedRecord  `json:"provider_groups"` // those of Groups that providers give
	Attributes     json.RawMessage `json:"attributes"`
}

// mappedRecord has the groups of a user that groups at a provider stand for.
type mappedRecord struct {
	Issuer string   `json:"issuer"`
	Groups []string `json:"groups"`
}

func newMappedRecords(u *account.User) []mappedRecord {
	all := []mappedRecord{}
	for _, issuer := range slices.Sorted(maps.Keys(u.Mapped)) {
		all = append(all, mappedRecord{issuer, u.Mapped[issuer].Names()})
	}
	return all
}

func newUserRecord(u *account.User) userRecord {
	return userRecord{
		ID: u.ID, ServiceID: u.ServiceID, Name: u.Name, Email: orNull(u.Email),
		PhoneNumber: orNull(u.Phone), Username: orNull(u.Username),
		Gender: orNull(u.Gender), Bio: orNull(u.Bio), PlaceOfBirth: orNull(u.PlaceOfBirth),
		DateOfBirth: orNull(u.DateOfBirth),
		Address:     orNull(u.Address), ProfilePicture: orNull(u.ProfilePicture),
		HasPassword: u.PasswordHash != "", PhoneSignIn: u.PhoneSignIn, Disabled: u.Disabled,
		SecondFactor:  u.HasSecondFactor(),
		RecoveryCodes: len(u.Credentials.RecoveryCodes),
		CreatedAt:     timestamp(u.Created), UpdatedAt: timestamp(u.Updated),
		Groups: orEmpty(u.Groups.Names()), ProviderGroups: newMappedRecords(u),
		Attributes: json.RawMessage(cmp.Or(u.Attributes, "{}")),
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// profile applies the members of o to u; null and "" remove a value.
func profile(o *object, u *account.User) {
	o.text("name", &u.Name)
	o.clearable("email", &u.Email)
	o.clearable("phone_number", &u.Phone)
	o.clearable("username", &u.Username)
	o.clearable("gender", &u.Gender)
	o.clearable("bio", &u.Bio)
	o.clearable("place_of_birth", &u.PlaceOfBirth)
	o.clearable("date_of_birth", &u.DateOfBirth)
	o.clearable("address", &u.Address)
	o.clearable("profile_picture", &u.ProfilePicture)
}

// attributes returns a function that applies the member attributes of o to a user. Its error is
// account.FieldErrors.
func (c *adminCall) attributes(o *object) (set func(*account.User) error, err error) {
	var changes map[string]json.RawMessage
	if !o.member("attributes", "must be an object of values by attribute", &changes) {
		return func(*account.User) error { return nil }, nil
	}
	declared, err := c.people.Attributes(c.context)
	return func(u *account.User) (err error) {
		u.Attributes, err = u.Attributes.With(changes, declared, false)
		return err
	}, err
}

func listUsers(c *adminCall) (any, error) {
	users, next, err := c.userPage(audit.UsersListed)
	if err != nil {
		return nil, err
	}
	page := struct {
		Users []userRecord `json:"users"`
		Next  string       `json:"next"` // the parameter after of the next page; "" = none
	}{Users: make([]userRecord, len(users)), Next: next}
	for i, u := range users {
		page.Users[i] = newUserRecord(u)
	}
	return page, nil
}

func createUser(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	var u account.User
	var password string
	profile(o, &u)
	o.text("password", &password)
	set, err := c.attributes(o)
	if err != nil {
		return nil, err
	}
	if err := o.end(); err != nil {
		return nil, err
	}
	if err := set(&u); err != nil {
		return nil, err
	}
	created, err := c.people.CreateUser(c.context, u, password, c.now)
	if err != nil {
		return nil, err
	}
	c.created(pathAdminUsers + "/" + strconv.FormatInt(created.ID, 10))
	return newUserRecord(created), nil
}

func readUser(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	u, err := c.people.User(c.context, id)
	if err != nil {
		return nil, err
	}
	c.recordRead(audit.Event{Action: audit.UserRead, Subject: audit.OfUser(id)})
	return newUserRecord(u), nil
}

func updateUser(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	set, err := c.attributes(o)
	if err != nil {
		return nil, err
	}
	u, err := c.people.UpdateUser(c.context, id, func(u *account.User) error {
		profile(o, u)
		if err := o.end(); err != nil {
			return err
		}
		return set(u)
	}, c.now)
	if err != nil {
		return nil, err
	}
	c.recordUnchanged(u)
	return newUserRecord(u), nil
}

// recordUnchanged records that a response shows a user whom the request has not changed.
func (c *adminCall) recordUnchanged(u *account.User) {
	if u.Updated.UnixMilli() != c.now.UnixMilli() {
		c.recordRead(audit.Event{Action: audit.UserRead, Subject: audit.OfUser(u.ID)})
	}
}

func deleteUser(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	return nil, c.people.DeleteUser(c.context, id, c.now)
}

func setUserDisabled(disabled bool) adminHandler {
	return func(c *adminCall) (any, error) {
		id, err := c.userID()
		if err != nil {
			return nil, err
		}
		if err := c.nothing(); err != nil {
			return nil, err
		}
		set := c.people.EnableUser
		if disabled {
			set = c.people.DisableUser
		}
		if err := set(c.context, id, c.now); err != nil {
			return nil, err
		}
		u, err := c.people.User(c.context, id)
		if err != nil {
			return nil, err
		}
		c.recordUnchanged(u)
		return newUserRecord(u), nil
	}
}

func resetPassword(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	var password string
	if given := o.text("password", &password); !given {
		o.refuse("password", "is missing")
	}
	if err := o.end(); err != nil {
		return nil, err
	}
	return nil, c.people.ResetPassword(c.context, id, password, c.now)
}

// resetFactors removes the second factors of a user who has lost them.
func resetFactors(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	if err := c.nothing(); err != nil {
		return nil, err
	}
	return nil, c.people.ResetFactors(c.context, id, c.now)
}

func revokeUserTokens(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	if err := c.nothing(); err != nil {
		return nil, err
	}
	if _, err := c.people.User(c.context, id); err != nil {
		return nil, err
	}
	return nil, c.tokens.RevokeAll(c.context, &oauth.Revoke{UserID: id})
}

// sessionRecord is a session as the admin API shows it.
type sessionRecord struct {
	ID         string   `json:"id"`
	Browser    *string  `json:"browser"`
	Factors    []string `json:"factors"`
	CreatedAt  string   `json:"created_at"`
	SignedInAt string   `json:"signed_in_at"`
	LastSeenAt string   `json:"last_seen_at"`
	ExpiresAt  string   `json:"expires_at"`
}

func listSessions(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	if _, err := c.people.User(c.context, id); err != nil {
		return nil, err
	}
	sessions, err := c.people.Sessions(c.context, id, c.now)
	if err != nil {
		return nil, err
	}
	c.recordRead(audit.Event{Action: audit.UserRead, Subject: audit.OfUser(id),
		Details: []string{"sessions"}})
	all := make([]sessionRecord, len(sessions))
	for i, s := range sessions {
		all[i] = sessionRecord{ID: s.ID(), Browser: orNull(s.Device), Factors: orEmpty(s.AMR),
			CreatedAt: timestamp(s.Created), SignedInAt: timestamp(s.SignedIn),
			LastSeenAt: timestamp(s.Seen), ExpiresAt: timestamp(s.Expires)}
	}
	return map[string]any{"sessions": all}, nil
}

// passkeyRecord is a passkey as the admin API shows it: nobody can use it by that.
type passkeyRecord struct {
	Name       string  `json:"name"`
	SignsIn    bool    `json:"signs_in"`
	Synced     bool    `json:"synced"`
	CreatedAt  string  `json:"created_at"`
	LastUsedAt *string `json:"last_used_at"`
}

func listPasskeys(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	u, err := c.people.User(c.context, id)
	if err != nil {
		return nil, err
	}
	c.recordRead(audit.Event{Action: audit.UserRead, Subject: audit.OfUser(id),
		Details: []string{"passkeys"}})
	all := make([]passkeyRecord, len(u.Credentials.Passkeys))
	for i, key := range u.Credentials.Passkeys {
		all[i] = passkeyRecord{Name: key.Name, SignsIn: key.SignsIn, Synced: key.BackedUp,
			CreatedAt: timestamp(key.Created)}
		if !key.Used.IsZero() {
			all[i].LastUsedAt = orNull(timestamp(key.Used))
		}
	}
	return map[string]any{"passkeys": all}, nil
}

func endSession(c *adminCall) (any, error) {
	id, err := c.userID()
	if err != nil {
		return nil, err
	}
	return nil, c.people.EndSession(c.context, id, c.pathValue("session"), c.now)
}
