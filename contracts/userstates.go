package contracts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var userValues = []Value{
	{"user_id", "The user's id, an integer."},
	{"service_id", "The user's service_id, a UUID."},
}

// profile holds the values of a complete profile.
var profile = map[string]string{
	"name": "Ada Lovelace", "email": "ada@example.com", "username": "ada", "gender": "female",
	"profile_picture": "https://example.com/ada.png", "bio": "Wrote the first program.",
	"phone_number":   "+12025550123",
	"place_of_birth": "London", "date_of_birth": "1990-12-10",
	"address": "12 St James's Square, London",
}

// profileFields are its keys, in the order of the interface document.
var profileFields = strings.Fields("name email username gender profile_picture bio phone_number place_of_birth date_of_birth address")

func userStates() []State {
	return []State{
		{"a user",
			"A user with only these fields set. Later states use the last user that was set up.",
			userParameters("name", "email"), userValues, parseUser},
		{"a user with every profile field set", "A user whose detailed profile contains no null.",
			userParameters(profileFields...), userValues, parseUser},
		{"a user with no optional profile field",
			"A user with only a name: every other field is null.",
			userParameters("name"), userValues, parseUser},
		{"a user registered by phone",
			"A user with a name and a phone number, and no email address.",
			userParameters("name", "phone_number"), userValues, parseUser},
		{"the user is in groups", "An operator has put the user into groups, or a provider has.", []Parameter{
			{"groups", String, "engineering", nil, "Their names, separated by spaces. Of one that ends in *, there are 201."},
			{"issuer", String, nil, nil, "That of the provider: the user has an account there, which gives the groups and has been used, unless there are none. Default: an operator gives them."},
		}, userValues, parseGroups},
		{"the user is disabled",
			"An operator has disabled the user, after the earlier states were set up.",
			nil, userValues, always(disableUser)},
	}
}

// userParameters returns a parameter for each field. The fields in set have a default.
func userParameters(set ...string) []Parameter {
	var all []Parameter
	for _, field := range profileFields {
		p := Parameter{field, String, nil, nil, "Profile field; null when left out."}
		for _, name := range set {
			if name == field {
				p.Default, p.Description = profile[field], "Profile field."
			}
		}
		all = append(all, p)
	}
	return append(all, Parameter{"disabled", Boolean, false, nil,
		"Whether an operator has disabled the user."})
}

func newUser(a arguments, now time.Time) *account.User {
	return &account.User{
		Name: a.text("name"), Email: a.text("email"), Username: a.text("username"),
		Gender:         a.text("gender"),
		ProfilePicture: a.text("profile_picture"), Bio: a.text("bio"),
		Phone:        a.text("phone_number"),
		PlaceOfBirth: a.text("place_of_birth"), DateOfBirth: a.text("date_of_birth"),
		Address:  a.text("address"),
		Disabled: a.flag("disabled"), Created: now, Updated: now,
	}
}

func parseUser(a arguments) (setUp, error) {
	now := time.Now()
	u := newUser(a, now)
	if err := u.Check(now); err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *fixture) error {
		if err := f.store.CreateUser(ctx, u); err != nil {
			if errors.Is(err, account.ErrTaken) {
				return stateErrorf("another user of this interaction has the same email, phone_number or username")
			}
			return err
		}
		f.user = u
		f.nameUser()
		return nil
	}, nil
}

// nameUser sets the values of the current user.
func (f *fixture) nameUser() {
	f.values["user_id"], f.values["service_id"] = f.user.ID, f.user.ServiceID
}

// parseGroups puts the user into groups. A name that ends in * stands for more than a token has.
func parseGroups(a arguments) (setUp, error) {
	var names []string
	for _, name := range strings.Fields(a.text("groups")) {
		prefix, many := strings.CutSuffix(name, "*")
		if !account.IsGroupName(prefix) {
			return nil, stateErrorf("groups must be names of groups")
		}
		names = append(names, prefix)
		for i := range account.MostGroupsInToken {
			if many {
				names = append(names, prefix+strconv.Itoa(i))
			}
		}
	}
	issuer := a.text("issuer")
	if err := oauth.CheckProviderURL(issuer); issuer != "" && err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	return func(ctx context.Context, f *fixture) error {
		if err := f.needUser(ctx); err != nil {
			return err
		}
		var writes errgroup.Group // at once, so that a commit has many
		for _, name := range names {
			writes.Go(func() error {
				_, err := f.People.CreateGroup(ctx, account.Group{Name: name})
				switch {
				case err != nil && !errors.Is(err, account.ErrGroupTaken):
					return err
				case issuer != "":
					return nil
				}
				return f.People.AddMember(ctx, name, f.user.ID)
			})
		}
		if err := writes.Wait(); err != nil || issuer == "" {
			return err
		}
		return f.connect(ctx, issuer, names)
	}, nil
}

// connect gives the user an account at a provider, which gives the groups. One without groups has
// not been used.
func (f *fixture) connect(ctx context.Context, issuer string, groups []string) (err error) {
	if f.user, err = f.store.User(ctx, f.user.ID); err != nil {
		return err
	}
	c := account.Connection{Issuer: issuer, Subject: "4711", Name: f.user.Email,
		Groups: account.NewGroups(groups).Names(), Created: time.Now()}
	if len(groups) > 0 {
		c.Used = c.Created
	}
	f.user.Credentials.Connections = append(f.user.Credentials.Connections, c)
	return f.store.UpdateUser(ctx, f.user)
}

func disableUser(ctx context.Context, f *fixture) error {
	if err := f.needUser(ctx); err != nil {
		return err
	}
	return f.People.DisableUser(ctx, f.user.ID, time.Now())
}

// needUser creates a user unless there is one.
func (f *fixture) needUser(ctx context.Context) error {
	if f.user != nil {
		return nil
	}
	return f.setUpDefault(ctx, "a user with every profile field set")
}
