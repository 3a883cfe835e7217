package account

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// Limits of groups.
const (
	MostGroups        = 1000 // of a person
	MostGroupsInToken = 200  // of a person with the claim groups
	// GroupMembersPart is how many members DeleteGroup removes at a time.
	GroupMembersPart = 1000
)

// OperatorsGroup has the people who may use the console. It always exists. Only an operator's command
// adds to it: no file, import, invitation or provider does.
const OperatorsGroup = "gatehouse-operators"

// Errors of groups.
var (
	// ErrTooManyGroups: the person is in MostGroups groups.
	ErrTooManyGroups = errors.New("the person is in too many groups")
	// ErrNoGroup: there is no group with that name.
	ErrNoGroup = errors.New("no such group")
	// ErrGroupTaken: there is a group with that name.
	ErrGroupTaken = errors.New("there is such a group")
)

var groupName = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

// MustBeGroupName says what the name of a group must be.
const MustBeGroupName = "must have 1 to 64 characters of a to z, 0 to 9, dot, underscore and hyphen"

// IsGroupName reports whether a group may have the name.
func IsGroupName(name string) bool { return groupName.MatchString(name) }

// Groups are the names of a person's groups, sorted and separated by spaces; "" = none. People in the
// same groups can share one value.
type Groups string

// NewGroups returns the groups with these names, in any order.
func NewGroups(names []string) Groups {
	names = slices.Clone(names)
	slices.Sort(names)
	return Groups(strings.Join(slices.Compact(names), " "))
}

// Names returns the names, sorted; nil for none.
func (g Groups) Names() []string { return strings.Fields(string(g)) }

// Count returns how many groups they are.
func (g Groups) Count() int {
	if g == "" {
		return 0
	}
	return strings.Count(string(g), " ") + 1
}

// HasAny reports whether one of the names is among the groups. It does not allocate.
func (g Groups) HasAny(names []string) bool {
	for name := range strings.SplitSeq(string(g), " ") {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// Has reports whether a name is among the groups. It does not allocate.
func (g Groups) Has(name string) bool {
	for one := range strings.SplitSeq(string(g), " ") {
		if one == name {
			return name != ""
		}
	}
	return false
}

// MayUse reports whether who is in the groups may use a client for which one must be in one of
// required; all may if there are none.
func (g Groups) MayUse(required []string) bool { return len(required) == 0 || g.HasAny(required) }

// Group is a group of people.
type Group struct {
	Name     string
	Members  int    // set by the Store
	Set      string // of files that it belongs to; "" = none
	Declared bool   // the server's own files declare it
}

// Check returns a FieldError, or nil if operators may create g.
func (g *Group) Check() error {
	switch {
	case !IsGroupName(g.Name):
		return FieldError{Field: "name", Message: MustBeGroupName}
	case g.Name == OperatorsGroup:
		return FieldError{Field: "name", Message: "is reserved: this group always exists"}
	}
	return nil
}

// GroupStore keeps groups, who is in them, and the attributes that people may have. Errors about a
// group that does not exist are ErrNoGroup, about a user ErrNotFound.
type GroupStore interface {
	// Groups returns up to limit groups with a name above after, by name.
	Groups(ctx context.Context, after string, limit int) ([]Group, error)
	Group(ctx context.Context, name string) (Group, error)
	// Members returns up to limit users in a group whose ID is above after, by ID.
	Members(ctx context.Context, group string, after int64, limit int) ([]*User, error)
	// CreateGroup inserts g, or returns ErrGroupTaken.
	CreateGroup(ctx context.Context, g Group) error
	// ChangeGroup replaces the Set of the group with g's name.
	ChangeGroup(ctx context.Context, g Group) error
	// DeleteGroup removes up to GroupMembersPart members as RemoveMember does. When the group has no
	// more, it deletes the group. changed are the users who have left.
	DeleteGroup(ctx context.Context, name string) (changed []int64, deleted bool, err error)
	// AddMember adds a user to a group. changed is false for who is in it already. The error is
	// ErrTooManyGroups for who is in MostGroups others.
	AddMember(ctx context.Context, group string, userID int64) (changed bool, err error)
	// RemoveMember takes a user out of a group, whatever source put the user there. It deletes the
	// codes and revokes the families at clients that the user must be in the group for, and adds a
	// Logout for none. changed is false for who is not in it.
	RemoveMember(ctx context.Context, group string, userID int64) (changed bool, err error)

	// Attributes returns all attributes, by name.
	Attributes(ctx context.Context) ([]Attribute, error)
	// PutAttribute inserts a, or replaces the one with its name.
	PutAttribute(ctx context.Context, a Attribute) error
	// DeleteAttribute deletes the one with the name. Values that people have stay, and are used by
	// nothing. It returns ErrNotFound, or ErrConflict if a claim is made of it.
	DeleteAttribute(ctx context.Context, name string) error
}
