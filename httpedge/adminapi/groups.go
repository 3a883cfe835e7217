package adminapi

import (
	"context"
	"strconv"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// groupRecord is a group as the admin API shows it.
type groupRecord struct {
	Name     string `json:"name"`
	Members  int    `json:"members"`
	Set      string `json:"set,omitempty"`
	Declared bool   `json:"declared,omitempty"`
}

func newGroupRecord(g account.Group) groupRecord { return groupRecord(g) }

func groupPath(name string) string { return pathAdminGroups + "/" + name }

func listGroups(c *adminCall) (any, error) {
	after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	groups, err := c.people.Groups(c.context, after, limit)
	if err != nil {
		return nil, err
	}
	page := struct {
		Groups []groupRecord `json:"groups"`
		Next   string        `json:"next"` // the parameter after of the next page; "" = none
	}{Groups: make([]groupRecord, len(groups))}
	for i, g := range groups {
		page.Groups[i] = newGroupRecord(g)
	}
	if len(groups) == limit {
		page.Next = groups[limit-1].Name
	}
	return page, nil
}

func createGroup(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	var g account.Group
	o.text("name", &g.Name)
	if err := o.end(); err != nil {
		return nil, err
	}
	if g, err = c.people.CreateGroup(c.context, g); err != nil {
		return nil, err
	}
	c.created(groupPath(g.Name))
	return newGroupRecord(g), nil
}

func showGroup(c *adminCall) (any, error) {
	g, err := c.people.Group(c.context, c.pathValue("name"))
	if err != nil {
		return nil, err
	}
	return newGroupRecord(g), nil
}

func describedGroup(o *object, name string) (g account.Group, err error) {
	g.Name = name
	o.setName(&g.Set)
	return g, o.end()
}

// putGroup creates the group in the path, or makes it one of another set of files.
func putGroup(c *adminCall) (any, error) {
	return put(c, describedGroup, c.people.PutGroup, newGroupRecord, groupPath)
}

// put makes the object with the name in the path what the request describes.
func put[V any, R any](
	c *adminCall, describe func(*object, string) (V, error),
	write func(ctx context.Context, v V, dry bool) (V, bool, error), record func(V) R, path func(string) string,
) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	dry, err := c.dryRun()
	if err != nil {
		return nil, err
	}
	name := c.pathValue("name")
	described, err := describe(o, name)
	if err != nil {
		return nil, err
	}
	written, created, err := write(c.context, described, dry)
	if err != nil {
		return nil, err
	}
	if created && !dry {
		c.created(path(name))
	}
	return record(written), nil
}

func deleteGroup(c *adminCall) (any, error) {
	return nil, c.people.DeleteGroup(c.context, c.pathValue("name"))
}

// memberRecord is a user in a group as the admin API shows it.
type memberRecord struct {
	ID       int64   `json:"id"`
	Name     string  `json:"name"`
	Email    *string `json:"email"`
	Disabled bool    `json:"disabled"`
}

func listMembers(c *adminCall) (any, error) {
	text, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	var after int64
	if text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return nil, errAfter
		}
	}
	name := c.pathValue("name")
	users, err := c.people.Members(c.context, name, after, limit)
	if err != nil {
		return nil, err
	}
	page := struct {
		Users []memberRecord `json:"users"`
		Next  string         `json:"next"` // as in listUsers
	}{Users: make([]memberRecord, len(users))}
	seen := audit.Data{"users": len(users), "group": name}
	for i, u := range users {
		page.Users[i] = memberRecord{u.ID, u.Name, orNull(u.Email), u.Disabled}
	}
	if len(users) > 0 {
		seen["first"], seen["last"] = users[0].ID, users[len(users)-1].ID
	}
	c.recordRead(audit.Event{Action: audit.UsersListed, Data: seen})
	if len(users) == limit {
		page.Next = strconv.FormatInt(users[limit-1].ID, 10)
	}
	return page, nil
}

// changeMember adds the user in the path to the group in the path, or removes the user from it.
func changeMember(
	change func(ctx context.Context, group string, id int64) error,
) adminHandler {
	return func(c *adminCall) (any, error) {
		id, err := c.userID()
		if err != nil {
			return nil, err
		}
		if err := c.nothing(); err != nil {
			return nil, err
		}
		return nil, change(c.context, c.pathValue("name"), id)
	}
}

// attributeRecord is an attribute that people may have, as the admin API shows it.
type attributeRecord struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Change   string `json:"change"`
	Set      string `json:"set,omitempty"`
	Declared bool   `json:"declared,omitempty"`
}

func newAttributeRecord(a account.Attribute) attributeRecord { return attributeRecord(a) }

func listAttributes(c *adminCall) (any, error) {
	all, err := c.people.Attributes(c.context)
	if err != nil {
		return nil, err
	}
	return listed(c, "attributes", all, newAttributeRecord,
		func(r attributeRecord) string { return r.Name })
}

// listed returns the page of all records, which are sorted by name, that the request asks for.
func listed[V any, R any](
	c *adminCall, list string, all []V, record func(V) R, name func(R) string,
) (any, error) {
	after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	records, next := []R{}, ""
	for _, v := range all {
		r := record(v)
		if name(r) <= after {
			continue
		}
		if len(records) == limit {
			next = name(records[limit-1])
			break
		}
		records = append(records, r)
	}
	return map[string]any{list: records, "next": next}, nil
}

func describedAttribute(o *object, name string) (a account.Attribute, err error) {
	a.Name, a.Type, a.Change = name, "string", "operator"
	o.text("type", &a.Type)
	o.text("change", &a.Change)
	o.setName(&a.Set)
	return a, o.end()
}

func putAttribute(c *adminCall) (any, error) {
	return put(c, describedAttribute, c.people.PutAttribute, newAttributeRecord,
		func(name string) string { return pathAdminAttributes + "/" + name })
}

func deleteAttribute(c *adminCall) (any, error) {
	return nil, c.people.DeleteAttribute(c.context, c.pathValue("name"))
}

// claimRecord is a declared claim as the admin API shows it.
type claimRecord struct {
	Name     string `json:"name"`
	From     string `json:"from"`
	Scope    string `json:"scope"`
	Set      string `json:"set,omitempty"`
	Declared bool   `json:"declared,omitempty"`
}

func newClaimRecord(c oauth.Claim) claimRecord {
	return claimRecord{c.Name, c.From(), c.Scope, c.Set, c.Declared}
}

func listClaims(c *adminCall) (any, error) {
	all, err := c.tokens.Claims(c.context)
	if err != nil {
		return nil, err
	}
	return listed(c, "claims", all, newClaimRecord, func(r claimRecord) string { return r.Name })
}

func describedClaim(o *object, name string) (c oauth.Claim, err error) {
	c.Name, c.Scope = name, oauth.Profile.String()
	var from string
	o.text("scope", &c.Scope)
	if o.text("from", &from); !c.SetFrom(from) {
		o.refuse("from", "must be attributes. and the name of an attribute")
	}
	o.setName(&c.Set)
	return c, o.end()
}

func putClaim(c *adminCall) (any, error) {
	return put(c, describedClaim, c.tokens.PutClaim, newClaimRecord,
		func(name string) string { return pathAdminClaims + "/" + name })
}

func deleteClaim(c *adminCall) (any, error) {
	return nil, c.tokens.DeleteClaim(c.context, c.pathValue("name"))
}

// DescribedGroup is DescribedClient for a group.
func DescribedGroup(text []byte, name string) (account.Group, error) {
	o, err := parseObject(text)
	if err != nil {
		return account.Group{}, err
	}
	g, err := describedGroup(o, name)
	if err == nil {
		err = g.Check()
	}
	return g, err
}

// DescribedAttribute is DescribedClient for an attribute.
func DescribedAttribute(text []byte, name string) (account.Attribute, error) {
	o, err := parseObject(text)
	if err != nil {
		return account.Attribute{}, err
	}
	a, err := describedAttribute(o, name)
	if err == nil {
		err = a.Check()
	}
	return a, err
}

// DescribedClaim is DescribedClient for a claim.
func DescribedClaim(text []byte, name string) (oauth.Claim, error) {
	o, err := parseObject(text)
	if err != nil {
		return oauth.Claim{}, err
	}
	c, err := describedClaim(o, name)
	if err == nil {
		err = c.Check()
	}
	return c, err
}
