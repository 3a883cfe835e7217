package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/cmd/stack/stacktest"
)

// find searches for a person, and returns the page.
func (o *operator) find(text string) stacktest.Page {
	o.T.Helper()
	p := o.Once(http.MethodPost, "/console/people", stacktest.Values("do", "search", "q", text))
	if p.Status != http.StatusSeeOther || !strings.HasPrefix(p.Location, "/console/people?q=") ||
		len(text) > 3 && strings.Contains(p.Location, text) {
		o.T.Fatalf("%q: got %d to %q: %s, want 303 to an address without it", text, p.Status, p.Location,
			p.Body)
	}
	return o.Get(p.Location)
}

// TestPeopleAreFound finds a person by each of what is known of them. The trail says that people were
// searched, and neither it nor the log says for what.
func TestPeopleAreFound(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	u := st.NewUser(t, "Kofi <Mensah>", kofi)
	st.Alter(t, "UPDATE users SET phone = '+4915112345678', phone_key = '+4915112345678' WHERE id = "+id(u))
	link := `<a href="/console/people?id=` + id(u) + `"><bdi>Kofi &lt;Mensah&gt;</bdi></a>`
	for _, text := range []string{"kofi", "MENSAH", "<mens", kofi, "KOFI@EXAMPLE.COM", "example.com", id(u),
		"+4915112345678", "+49 151 12345678", "0049 151 12345678"} {
		o.find(text).Says(t, link)
		e := newest(t, st, audit.UsersListed)
		if e.Actor != (audit.Actor{Kind: audit.User, ID: id(o.user)}) || e.Data["users"] == nil ||
			e.Data["last"] != float64(u.ID) {
			t.Errorf("%q: got %+v, want the person who searched, and whom they saw", text, e)
		}
	}
	o.find("nobody of that name").Says(t, "Nobody was found.")
	if log := st.Log.String(); strings.Contains(log, "nobody of that name") || strings.Contains(log, "mensah") {
		t.Error("got what was searched in the log")
	}
	p := o.Once(http.MethodPost, "/console/people", stacktest.Values("do", "search", "q", "kofi"))
	other := newOther(t, st)
	if got := other.Get(p.Location); strings.Contains(got.Body, "Mensah") {
		t.Error("got the result of another operator's search")
	}
	if p := o.Get("/console/people?q=kofi"); strings.Contains(p.Body, "Mensah") {
		t.Error("got a result for a search that is readable in the address")
	}
}

// newOther returns a second operator.
func newOther(t *testing.T, st *stacktest.IdentityStack) *operator {
	t.Helper()
	u := st.NewUser(t, "Grace", "grace@example.com")
	join(t, st, u)
	b, _ := st.SignedIn(t, u.Email)
	st.Alter(t, "UPDATE sessions SET amr = 'pwd otp mfa' WHERE user_id = "+id(u))
	return &operator{b, st, u}
}

// TestPersonIsChanged does all that can be done with a person. Each is in the trail with the operator.
func TestPersonIsChanged(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	d := st.Describe(t)
	o := newOperator(t, st)
	u := st.NewUser(t, "Kofi", kofi)
	path := "/console/people?id=" + id(u)
	by := func(what string, action audit.Action) {
		t.Helper()
		e := newest(t, st, action)
		if e.Actor != (audit.Actor{Kind: audit.User, ID: id(o.user)}) || e.Subject != audit.OfUser(u.ID) {
			t.Errorf("%s: got %+v, want the operator and the person", what, e)
		}
	}
	signedIn := func(b *stacktest.Browser, want bool) {
		t.Helper()
		if p := b.Once(http.MethodGet, "/me", nil); (p.Status == http.StatusOK) != want {
			t.Errorf("got %d to %q, want signed in: %t", p.Status, p.Location, want)
		}
	}
	o.Get(path).Says(t, "Kofi", kofi, "Signed in nowhere.", `href="/console/activity?user=`+id(u)+`"`)
	by("look", audit.UserRead)
	one, _ := st.SignedIn(t, kofi)
	two, _ := st.SignedIn(t, kofi)
	sessions, err := st.Store.Sessions(t.Context(), u.ID)
	if err != nil || len(sessions) != 2 {
		t.Fatalf("got %d sessions, %v, want 2", len(sessions), err)
	}
	o.done(path, "", "do", "end-session", "session", sessions[0].ID())
	by("end a session", audit.SignOut)
	left, err := st.Store.Sessions(t.Context(), u.ID)
	if err != nil || len(left) != 1 || left[0].ID() != sessions[1].ID() {
		t.Errorf("got %d sessions, %v, want the other one", len(left), err)
	}
	o.done(path, `class="summary"`, "do", "end-session", "session", sessions[0].ID())
	o.done(path, "All sessions are ended.", "do", "end-sessions")
	by("end all sessions", audit.SignOut)
	signedIn(one, false)
	signedIn(two, false)
	again, _ := st.SignedIn(t, kofi)
	o.done(path, "The account is disabled.", "do", "disable")
	by("disable", audit.AccountDisabled)
	signedIn(again, false)
	o.done(path, "The account is enabled.", "do", "enable")
	by("enable", audit.AccountEnabled)
	if _, err := st.People.CreateGroup(t.Context(), account.Group{Name: "engineering"}); err != nil {
		t.Fatal(err)
	}
	o.Get(path).Says(t, `<option value="engineering">`)
	o.done(path, "<bdi>engineering</bdi>", "do", "add-group", "group", " engineering ")
	by("add to a group", audit.MemberAdded)
	o.done(path, "In no group.", "do", "remove-group", "group", "engineering")
	by("take out of a group", audit.MemberRemoved)
	o.done(path, `id="group-wrong"`, "do", "add-group", "group", "no such group")
	for _, wrong := range []string{"0", "-1", "x", "999", "01"} {
		if p := o.Get("/console/people?id=" + wrong); wrong != "01" && p.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", wrong, p.Status)
		}
	}
	if p := o.post(path, "do", "explode"); p.Status != http.StatusBadRequest {
		t.Errorf("got %d for an unknown action, want 400", p.Status)
	}
	st.Alter(t, `UPDATE users SET credentials = '{"authenticator":{"secret":"AA==","created":"2026-01-01T00:00:00Z","step":1}}' WHERE id = `+id(u))
	o.Get(path).Says(t, `value="reset-factors"`)
	o.done(path, "The second factor and the recovery codes are removed.", "do", "reset-factors")
	by("reset factors", audit.FactorsChanged)
	if kept, err := st.Store.User(t.Context(), u.ID); err != nil || kept.HasSecondFactor() {
		t.Errorf("got %+v, %v, want no second factor", kept, err)
	}
	history := "An operator disabled the account"
	b, _ := st.SignedIn(t, kofi)
	page := b.Get("/me/history")
	older := regexp.MustCompile(`/me/history\?before=\d+`)
	for next := older.FindString(page.Body); next != ""; {
		part := b.Get(next).Body
		page.Body, next = page.Body+part, older.FindString(part)
	}
	page.Says(t, history, "An operator ended all sessions")
	if strings.Contains(page.Body, "Ada") {
		t.Error("got the operator's name in the history of the person")
	}
	d.Covers("GET /console/people 200", "POST /console/people 303", "GET /console/people 404")
}

// TestOperatorsAreNotChanged tries to change members of the operators' group, and to make one.
func TestOperatorsAreNotChanged(t *testing.T) {
	st := stacktest.NewIdentity(t, on)
	o := newOperator(t, st)
	other := newOther(t, st)
	victim := st.NewUser(t, "Kofi", kofi)
	group := account.OperatorsGroup
	for _, u := range []*account.User{other.user, o.user} {
		path := "/console/people?id=" + id(u)
		page := o.Get(path)
		page.Says(t, "Only commands change operators.")
		if strings.Contains(page.Body, `name="do"`) {
			t.Errorf("got %s, want nothing to be done", page.Body)
		}
		for _, do := range []string{"disable", "enable", "end-sessions", "end-session", "add-group", "remove-group",
			"reset-factors"} {
			form := o.form("/console/people?id="+id(victim), "do", do, "group", group)
			if p := o.Once(http.MethodPost, path, form); p.Status != http.StatusForbidden {
				t.Errorf("got %d %s for %s of an operator, want 403", p.Status, p.Body, do)
			}
		}
	}
	for _, name := range []string{group, " " + group + " "} {
		p := o.post("/console/people?id="+id(victim), "do", "add-group", "group", name)
		if p.Status != http.StatusForbidden {
			t.Errorf("%q: got %d %s, want 403", name, p.Status, p.Body)
		}
	}
	kept, err := st.Store.User(t.Context(), victim.ID)
	if err != nil || kept.Groups.HasAny([]string{group}) {
		t.Errorf("got %+v, %v, want no operator", kept, err)
	}
	if p := other.Once(http.MethodGet, "/console/apps", nil); p.Status != http.StatusOK {
		t.Errorf("got %d for the other operator, want the console", p.Status)
	}
}

// TestPersonIsInvited sends invitations. What is wrong is shown with the form.
func TestPersonIsInvited(t *testing.T) {
	st := stacktest.NewReachable(t, on)
	o := newOperator(t, st.IdentityStack)
	if _, err := st.People.CreateGroup(t.Context(), account.Group{Name: "sales"}); err != nil {
		t.Fatal(err)
	}
	const path = "/console/people"
	o.done(path, "The invitation is sent.", "do", "invite", "email", "rosa@example.com", "name", "Rosa", "groups", "sales")
	e := newest(t, st.IdentityStack, audit.InvitationSent)
	if e.Actor != (audit.Actor{Kind: audit.User, ID: id(o.user)}) {
		t.Errorf("got %+v, want the operator", e)
	}
	sent, err := st.People.Invitations(t.Context(), "", 10)
	if err != nil || len(sent) != 1 || sent[0].Email != "rosa@example.com" || sent[0].Groups != "sales" {
		t.Errorf("got %+v, %v, want the invitation", sent, err)
	}
	for field, entered := range map[string][]string{
		"email":  {"email", ada},
		"groups": {"email", "bo@example.com", "groups", "gatehouse-operators"},
	} {
		o.done(path, `id="`+field+`-wrong"`, append([]string{"do", "invite"}, entered...)...)
	}
	o.done(path, `id="email-wrong"`, "do", "invite", "email", "nobody")
	if sent, err := st.People.Invitations(t.Context(), "", 10); err != nil || len(sent) != 1 {
		t.Errorf("got %d invitations, %v, want no other", len(sent), err)
	}
}
