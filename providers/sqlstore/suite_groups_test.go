package sqlstore_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

var groupTests = map[string]func(*testing.T, *fixture){
	"GroupRoundTrip":        groupRoundTrip,
	"GroupsOfAPerson":       groupsOfAPerson,
	"LeavingEndsAccess":     leavingEndsAccess,
	"DeleteALargeGroup":     deleteALargeGroup,
	"ClaimsAndAttributes":   claimsAndAttributes,
	"InvitationRoundTrip":   invitationRoundTrip,
	"MappedGroups":          mappedGroups,
	"MappingsEnd":           mappingsEnd,
	"ImportIntoGroups":      importIntoGroups,
	"DeclaredGroupsOfASet":  declaredGroups,
	"AttributesOfAPerson":   attributesOfAPerson,
	"ClaimsOfResourcesStay": claimsOfResources,
}

func (f *fixture) group(name string) {
	f.Helper()
	f.must(f.CreateGroup(f.ctx, account.Group{Name: name}))
}

func (f *fixture) joinGroup(name string, userID int64) {
	f.Helper()
	if changed, err := f.AddMember(f.ctx, name, userID); err != nil || !changed {
		f.Fatalf("add %d to %s: got %t and error %v", userID, name, changed, err)
	}
}

func (f *fixture) groupsOf(userID int64) account.Groups {
	f.Helper()
	u, err := f.User(f.ctx, userID)
	f.must(err)
	return u.Groups
}

func groupRoundTrip(t *testing.T, f *fixture) {
	f.group("sales")
	f.group("b.c_d-1")
	f.wantError("again", f.CreateGroup(f.ctx, account.Group{Name: "sales"}), account.ErrGroupTaken)
	f.joinGroup("sales", f.user.ID)
	if changed, err := f.AddMember(f.ctx, "sales", f.user.ID); err != nil || changed {
		t.Errorf("add again: got %t and error %v, want no change", changed, err)
	}
	_, err := f.AddMember(f.ctx, "none", f.user.ID)
	f.wantError("an unknown group", err, account.ErrNoGroup)
	_, err = f.AddMember(f.ctx, "sales", 4711)
	f.wantError("an unknown user", err, account.ErrNotFound)
	got, err := f.Groups(f.ctx, "", 10)
	want := []account.Group{{Name: "b.c_d-1"}, {Name: account.OperatorsGroup}, {Name: "sales", Members: 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v and error %v, want %+v", got, err, want)
	}
	members, err := f.Members(f.ctx, "sales", 0, 10)
	if err != nil || len(members) != 1 || members[0].ID != f.user.ID || members[0].Groups != "sales" {
		t.Errorf("got %+v and error %v, want the user", members, err)
	}
	f.must(f.DeleteUser(f.ctx, f.user.ID, [32]byte{}))
	if g, err := f.Group(f.ctx, "sales"); err != nil || g.Members != 0 {
		t.Errorf("after the user is gone: got %+v and error %v, want no members", g, err)
	}
}

func groupsOfAPerson(t *testing.T, f *fixture) {
	db := direct(t, f.url)
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) `
	for _, text := range []string{
		`INSERT INTO user_groups (id, name) ` + numbers + `SELECT i, 'g' || i FROM n`,
		`INSERT INTO group_members (user_id, group_id) ` + numbers + `SELECT id, i FROM users, n`,
	} {
		_, err := db.ExecContext(f.ctx, text)
		f.must(err)
	}
	f.group("a")
	f.group("last")
	f.joinGroup("last", f.user.ID)
	_, err := f.AddMember(f.ctx, "a", f.user.ID)
	f.wantError("one too many", err, account.ErrTooManyGroups)
	names := f.groupsOf(f.user.ID).Names()
	if len(names) != account.MostGroups || !slices.IsSorted(names) {
		t.Errorf("got %d groups, want %d that are sorted", len(names), account.MostGroups)
	}
}

// restricted creates a client for some groups, with a family of the user.
func (f *fixture) restricted(groups ...string) (*oauth.Client, oauth.Family) {
	f.Helper()
	c := &oauth.Client{ID: uuid.NewString(), Name: "App", Created: f.now,
		Options: oauth.ClientOptions{RequireGroups: groups}}
	f.must(f.CreateClient(f.ctx, c))
	before := f.client
	f.client = c
	op := f.family()
	f.client = before
	return c, op.Family
}

func (f *fixture) isRevoked(family oauth.Family) bool {
	f.Helper()
	_, ends, err := f.Ends(f.ctx, f.now)
	f.must(err)
	return slices.ContainsFunc(ends, func(e oauth.End) bool { return e.FamilyID == family.ID })
}

func leavingEndsAccess(t *testing.T, f *fixture) {
	for _, name := range []string{"a", "b", "c"} {
		f.group(name)
		f.joinGroup(name, f.user.ID)
	}
	_, either := f.restricted("a", "b")
	_, only := f.restricted("c")
	free := f.family().Family
	check := func(step string, want ...bool) {
		t.Helper()
		if got := []bool{f.isRevoked(either), f.isRevoked(only), f.isRevoked(free)}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", step, got, want)
		}
	}
	leave := func(name string) {
		t.Helper()
		if changed, err := f.RemoveMember(f.ctx, name, f.user.ID); err != nil || !changed {
			t.Errorf("leave %s: got %t and error %v", name, changed, err)
		}
	}
	leave("a")
	check("out of one of two", false, false, false)
	leave("b")
	check("out of both", true, false, false)
	if _, deleted, err := f.DeleteGroup(f.ctx, "c"); err != nil || !deleted {
		t.Errorf("got %t and error %v, want the group deleted", deleted, err)
	}
	check("the group is gone", true, true, false)
	if changed, err := f.RemoveMember(f.ctx, "a", f.user.ID); err != nil || changed {
		t.Errorf("leave again: got %t and error %v, want no change", changed, err)
	}
}

// crowd creates GroupMembersPart + 1 users, who are members of a group by a source.
func (f *fixture) crowd(group, source string) {
	f.Helper()
	db := direct(f, f.url)
	_, err := db.ExecContext(f.ctx, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
INSERT INTO users (id, service_id, name, email, phone, username, gender, bio, place_of_birth, date_of_birth, address,
profile_picture, password_hash, disabled, created, updated, version)
SELECT 1000000 + i, 'crowd' || i, 'A', '', '', '', '', '', '', '', '', '', '', FALSE, 0, 0, 0 FROM n`,
		account.GroupMembersPart+1)
	f.must(err)
	_, err = db.ExecContext(f.ctx, `INSERT INTO group_members (user_id, group_id, source)
SELECT users.id, user_groups.id, CAST($1 AS TEXT) FROM users, user_groups
WHERE users.id > 1000000 AND user_groups.name = $2`, source, group)
	f.must(err)
}

func deleteALargeGroup(t *testing.T, f *fixture) {
	f.group("large")
	f.crowd("large", "")
	changed, deleted, err := f.DeleteGroup(f.ctx, "large")
	if err != nil || deleted || len(changed) != account.GroupMembersPart {
		t.Errorf("first: got %d, %t and error %v, want a part", len(changed), deleted, err)
	}
	changed, deleted, err = f.DeleteGroup(f.ctx, "large")
	if err != nil || !deleted || len(changed) != 1 {
		t.Errorf("second: got %d, %t and error %v, want the rest", len(changed), deleted, err)
	}
	_, err = f.Group(f.ctx, "large")
	f.wantError("deleted", err, account.ErrNoGroup)
}

func claimsAndAttributes(t *testing.T, f *fixture) {
	c := oauth.Claim{Name: "dept", Attribute: "department", Scope: "profile", Set: "s"}
	f.wantError("no attribute", f.PutClaim(f.ctx, c), oauth.ErrNotFound)
	a := account.Attribute{Name: "department", Type: "string", Change: "operator"}
	f.must(f.PutAttribute(f.ctx, a))
	f.must(f.PutClaim(f.ctx, c))
	last, _, err := f.Changes(f.ctx, 0, 100)
	f.must(err)
	a.Type, a.Change = "number", "person"
	f.must(f.PutAttribute(f.ctx, a))
	_, changes, err := f.Changes(f.ctx, last, 100)
	if err != nil || len(changes) != 1 || !changes[0].Claims || changes[0].ClientID != "" {
		t.Errorf("got %+v and error %v, want that claims have changed", changes, err)
	}
	c.Type = "number"
	if all, err := f.Claims(f.ctx); err != nil || !slices.Equal(all, []oauth.Claim{c}) {
		t.Errorf("got %+v and error %v, want %+v", all, err, c)
	}
	if all, err := f.Attributes(f.ctx); err != nil || !slices.Equal(all, []account.Attribute{a}) {
		t.Errorf("got %+v and error %v, want %+v", all, err, a)
	}
	f.wantError("in use", f.DeleteAttribute(f.ctx, a.Name), account.ErrConflict)
	f.must(f.DeleteClaim(f.ctx, c.Name))
	f.wantError("claim again", f.DeleteClaim(f.ctx, c.Name), oauth.ErrNotFound)
	f.must(f.DeleteAttribute(f.ctx, a.Name))
	f.wantError("attribute again", f.DeleteAttribute(f.ctx, a.Name), account.ErrNotFound)
}

func attributesOfAPerson(t *testing.T, f *fixture) {
	f.user.Attributes = `{"department":"sales"}`
	f.must(f.UpdateUser(f.ctx, f.user))
	u := &account.User{Name: "Grace", Attributes: `{"floor":3}`, Created: f.now, Updated: f.now}
	f.must(f.CreateUser(f.ctx, u))
	for _, want := range []*account.User{f.user, u} {
		if got, err := f.User(f.ctx, want.ID); err != nil || got.Attributes != want.Attributes {
			t.Errorf("got %+v and error %v, want %s", got, err, want.Attributes)
		}
	}
}

func invitationRoundTrip(t *testing.T, f *fixture) {
	f.group("sales")
	f.group("gone")
	i := account.Invitation{ID: "i1", Hash: newHash(), Email: "Ada@example.com", Name: "Ada",
		Groups: "gone sales", Made: f.now, Ends: f.now.Add(account.InvitationLifetime)}
	notice := func() account.Notice {
		return account.Notice{Channel: account.Email, To: i.Email, Kind: account.InvitationSent, Made: f.now,
			At: f.now, Count: 1, Seed: "seed" + i.ID, Link: i.Hash}
	}
	f.must(f.CreateInvitation(f.ctx, i, notice()))
	i.ID, i.Hash = "i2", newHash()
	f.must(f.CreateInvitation(f.ctx, i, notice()))
	due, _, err := f.DueNotices(f.ctx, f.now, 10)
	if err != nil || len(due) != 1 || due[0].Seed != "seedi2" {
		t.Errorf("got %+v and error %v, want the second message only", due, err)
	}
	got, err := f.InvitationTo(f.ctx, "ada@EXAMPLE.com")
	if err != nil || *got != i {
		t.Errorf("got %+v and error %v, want %+v", got, err, i)
	}
	if _, deleted, err := f.DeleteGroup(f.ctx, "gone"); err != nil || !deleted {
		t.Fatal(deleted, err)
	}
	u := &account.User{Name: "Ada", Email: i.Email, Groups: i.Groups, Created: f.now, Updated: f.now}
	f.must(f.AcceptInvitation(f.ctx, i.Hash, u))
	if groups := f.groupsOf(u.ID); groups != "sales" {
		t.Errorf("got %q, want sales", groups)
	}
	again := &account.User{Name: "Eve", Email: "eve@example.com"}
	f.wantError("accept again", f.AcceptInvitation(f.ctx, i.Hash, again), account.ErrNotFound)
	i.Hash, i.Groups = newHash(), ""
	f.wantError("an account", f.CreateInvitation(f.ctx, i, notice()), account.ErrTaken)
	i.Email, i.Groups = "bob@example.com", "none"
	f.wantError("no group", f.CreateInvitation(f.ctx, i, notice()), account.ErrNoGroup)
	i.Groups = ""
	f.must(f.CreateInvitation(f.ctx, i, notice()))
	f.must(f.DeleteInvitation(f.ctx, i.ID))
	f.wantError("delete again", f.DeleteInvitation(f.ctx, i.ID), account.ErrNotFound)
	if due, _, err := f.DueNotices(f.ctx, f.now, 10); err != nil || slices.ContainsFunc(due,
		func(n account.Notice) bool { return n.To == i.Email }) {
		t.Errorf("got %+v and error %v, want no message of what has ended", due, err)
	}
	f.must(f.CreateInvitation(f.ctx, i, notice()))
	if _, err := f.Sweep(f.ctx, i.Ends); err != nil {
		t.Fatal(err)
	}
	_, err = f.Invitation(f.ctx, i.Hash)
	f.wantError("swept", err, account.ErrNotFound)
}

func importIntoGroups(t *testing.T, f *fixture) {
	f.group("sales")
	p := &account.ImportPart{ID: uuid.NewString(), Line: 1, Users: []account.ImportedUser{
		{Line: 1, User: &account.User{Name: "A", Phone: "+12025550101", Groups: "sales",
			Attributes: `{"a":1}`}},
		{Line: 2, User: &account.User{Name: "B", Phone: "+12025550102", Groups: "none"}},
	}}
	f.must(f.ImportUsers(f.ctx, p))
	if p.Created != 1 || len(p.Refused) != 1 || p.Refused[0].Field != "groups" {
		t.Errorf("got %+v, want one created and one refused", p)
	}
	u, err := f.UserByPhone(f.ctx, "+12025550101")
	if err != nil || u.Groups != "sales" || u.Attributes != `{"a":1}` {
		t.Errorf("got %+v and error %v, want the groups", u, err)
	}
}

func declaredGroups(t *testing.T, f *fixture) {
	f.must(f.PutAttribute(f.ctx, account.Attribute{Name: "made", Type: "string", Change: "operator"}))
	set := &oauth.DeclaredSet{Name: "s", Revision: 1, Groups: []string{"g"},
		Attributes: []oauth.Attribute{{Name: "a", Type: "string", Change: "person"}},
		Claims:     []oauth.Claim{{Name: "c", Attribute: "a", Scope: "profile", Declared: true}}}
	declare := func() error {
		set.Digest = newHash()
		_, err := f.Declare(f.ctx, []*oauth.DeclaredSet{set}, oauth.DeclareRecords{})
		return err
	}
	f.must(declare())
	f.joinGroup("g", f.user.ID)
	if _, _, err := f.DeleteGroup(f.ctx, "g"); err == nil {
		t.Error("delete a declared group: got no error")
	}
	set.Revision++
	f.must(declare())
	if claims, err := f.Claims(f.ctx); err != nil || len(claims) != 1 || claims[0].Type != "string" {
		t.Errorf("got %+v and error %v, want the claim", claims, err)
	}
	groups := set.Groups
	set.Revision++
	set.Groups, set.Attributes, set.Claims = nil, nil, nil
	f.must(declare())
	g, err := f.Group(f.ctx, "g")
	if err != nil || g.Declared || g.Set != "" || g.Members != 1 {
		t.Errorf("gone: got %+v and error %v, want a group of nobody with its member", g, err)
	}
	if claims, err := f.Claims(f.ctx); err != nil || len(claims) != 0 {
		t.Errorf("gone: got %+v and error %v, want no claim", claims, err)
	}
	set.Revision++
	set.Groups = groups
	f.must(declare()) // what was released may come back
	set.Revision++
	set.Attributes = []oauth.Attribute{{Name: "made", Type: "string", Change: "person"}}
	if err := declare(); err == nil {
		t.Error("an attribute that the API has made: got no error")
	}
	set.Attributes, set.Claims = nil, []oauth.Claim{{Name: "c", Attribute: "none", Scope: "profile"}}
	if err := declare(); err == nil {
		t.Error("a claim without an attribute: got no error")
	}
}

func claimsOfResources(t *testing.T, f *fixture) {
	r := oauth.Resource{URI: "https://a.example/", Claims: []string{"groups", "dept"}, Created: f.now}
	f.must(f.CreateResource(f.ctx, &r))
	next := r
	next.Claims = []string{"groups"}
	f.must(f.ReplaceResource(f.ctx, &r, &next))
	if all, err := f.Resources(f.ctx); err != nil || len(all) != 1 || !slices.Equal(all[0].Claims, next.Claims) {
		t.Errorf("got %+v and error %v, want the claims", all, err)
	}
}

// connected creates a user with a connection to a provider that gives groups.
func (f *fixture) connected(issuer, subject string, groups ...string) *account.User {
	f.Helper()
	u := &account.User{Name: "Rosa", Created: f.now, Updated: f.now, Credentials: account.Credentials{
		Connections: []account.Connection{{Issuer: issuer, Subject: subject, Groups: groups, Created: f.now}}}}
	f.must(f.CreateUser(f.ctx, u))
	return u
}

func (f *fixture) wantGroups(step string, userID int64, given account.Groups, mapped map[string]account.Groups) {
	f.Helper()
	u, err := f.User(f.ctx, userID)
	f.must(err)
	var all []string
	all = append(all, given.Names()...)
	for _, groups := range mapped {
		all = append(all, groups.Names()...)
	}
	if u.Groups != account.NewGroups(all) || u.Given != given || !maps.Equal(u.Mapped, mapped) {
		f.Errorf("%s: got %q, of them %q given and %v mapped, want %q and %v", step, u.Groups, u.Given,
			u.Mapped, given, mapped)
	}
}

func mappedGroups(t *testing.T, f *fixture) {
	for _, name := range []string{"a", "b", "c"} {
		f.group(name)
	}
	const acme, other = "https://acme.example", "https://other.example/x"
	u := f.connected(acme, "1", "a", "b", "none", account.OperatorsGroup)
	f.wantGroups("created", u.ID, "", map[string]account.Groups{acme: "a b"})
	f.joinGroup("b", u.ID)
	f.user = u
	_, ofA := f.restricted("a")
	_, ofB := f.restricted("b")
	_, ofEither := f.restricted("a", "c")
	check := func(step string, want ...bool) {
		t.Helper()
		if got := []bool{f.isRevoked(ofA), f.isRevoked(ofB), f.isRevoked(ofEither)}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v revoked, want %v", step, got, want)
		}
	}
	use := func(change func(c []account.Connection) []account.Connection) {
		t.Helper()
		next, err := f.User(f.ctx, u.ID)
		f.must(err)
		next.Credentials.Connections = change(next.Credentials.Connections)
		f.must(f.UseCredential(f.ctx, next))
	}
	last, _, err := f.Changes(f.ctx, 0, 100)
	f.must(err)
	use(func(c []account.Connection) []account.Connection {
		c[0].Used, c[0].Groups = f.now, []string{"c"}
		return c
	})
	f.wantGroups("a sign-in", u.ID, "b", map[string]account.Groups{acme: "c"})
	check("a sign-in", true, false, false)
	_, changes, err := f.Changes(f.ctx, last, 100)
	if err != nil || !slices.ContainsFunc(changes, func(c oauth.Change) bool { return c.UserID == u.ID }) {
		t.Errorf("got %+v and error %v, want that the user has changed", changes, err)
	}
	events, err := f.Events(f.ctx, audit.Filter{UserID: u.ID, Limit: 10})
	if err != nil || len(events) != 2 || events[1].Action != audit.MemberRemoved || events[1].Target != "a" ||
		events[0].Action != audit.MemberAdded || events[0].Target != "c" ||
		!slices.Equal(events[0].Details, []string{"provider"}) {
		t.Errorf("got %+v and error %v, want who has come and gone, but for b", events, err)
	}

	if changed, err := f.RemoveMember(f.ctx, "c", u.ID); err != nil || !changed {
		t.Fatal(changed, err)
	}
	f.wantGroups("an operator", u.ID, "b", nil)
	check("an operator", true, false, true)
	use(func(c []account.Connection) []account.Connection { // another one is added
		return append(c, account.Connection{Issuer: other, Subject: "1", Groups: []string{"a", "b"}})
	})
	f.wantGroups("another one", u.ID, "b", map[string]account.Groups{other: "a b"})
	use(func(c []account.Connection) []account.Connection {
		c[0].Used = f.now.Add(time.Second)
		return c
	})
	f.wantGroups("the first one again", u.ID, "b", map[string]account.Groups{acme: "c", other: "a b"})
	next, err := f.User(f.ctx, u.ID)
	f.must(err)
	next.Credentials.Connections = next.Credentials.Connections[:1]
	f.must(f.UpdateUser(f.ctx, next))
	f.wantGroups("removed", u.ID, "b", map[string]account.Groups{acme: "c"})
	if members, err := f.Members(f.ctx, "a", 0, 10); err != nil || len(members) != 0 {
		t.Errorf("got %+v and error %v, want no members of a", members, err)
	}
}

func mappingsEnd(t *testing.T, f *fixture) {
	f.group("a")
	f.group("b")
	p := &oauth.Provider{ID: "acme", Kind: oauth.OpenIDProvider, Issuer: "https://acme.example",
		ClientID: "gate", Groups: map[string]string{"A": "a", "B": "b"}, Created: f.now}
	f.must(f.SaveProvider(f.ctx, p))
	f.crowd("a", p.Issuer+" x")
	u := f.connected(p.Issuer, "last", "a", "b")
	f.joinGroup("a", u.ID)
	f.user = u
	_, family := f.restricted("b")
	end := func(step string, want bool, members int) {
		t.Helper()
		ended, err := f.EndMapped(f.ctx)
		g, err2 := f.Group(f.ctx, "a")
		if err != nil || err2 != nil || ended != want || g.Members != members {
			t.Errorf("%s: got %t, %+v and errors %v, %v, want %t and %d members", step, ended, g, err, err2,
				want, members)
		}
	}
	end("nothing has changed", false, account.GroupMembersPart+2)
	p.Groups = map[string]string{"A": "b"}
	f.must(f.SaveProvider(f.ctx, p))
	end("a is not mapped", true, 1)
	f.wantGroups("a is not mapped", u.ID, "a", map[string]account.Groups{p.Issuer: "b"})
	if f.isRevoked(family) {
		t.Error("got the family of b revoked")
	}
	p.Disabled = true
	f.must(f.SaveProvider(f.ctx, p))
	end("disabled", true, 1)
	f.wantGroups("disabled", u.ID, "a", nil)
	if !f.isRevoked(family) {
		t.Error("got the family of b not revoked")
	}
}
