package console

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// searchLifetime is how long the address of a search can be opened again.
const searchLifetime = 12 * time.Hour

// What the forms of this screen do, beside those of apps.
const (
	doEndSession  = "end-session"
	doEndSessions = "end-sessions"
	doAddGroup    = "add-group"
	doRemoveGroup = "remove-group"
	doReset       = "reset-factors"
	doInvite      = "invite"
)

// persons shows the screen of people, or does what a form of it says.
func (s *service) persons(o *operator) {
	id := o.param(paramID)
	switch {
	case o.HTTP.IsPost() && o.Field(fieldDo) == doSearch:
		s.searchPeople(o)
	case !o.HTTP.IsPost() && id == "":
		s.listPeople(o)
	case !o.HTTP.IsPost():
		s.showPerson(o, id)
	case o.Field(fieldDo) == doInvite:
		s.invite(o)
	default:
		s.changePerson(o, id)
	}
}

// pathOfPerson returns the path of a person on this screen.
func pathOfPerson(id int64) string {
	return pages.PathConsolePeople + "?" + paramID + "=" + strconv.FormatInt(id, 10)
}

// searchBinding binds a search to the browser and the session.
func (o *operator) searchBinding() visit.Binding { return o.Bind("console search " + o.Token) }

// searchPeople leads to the result of a search. Its address has what was searched encrypted, since
// addresses are kept in logs and histories.
func (s *service) searchPeople(o *operator) {
	text := strings.TrimSpace(o.Shown(paramQuery))
	if text == "" {
		visit.Redirect(o.HTTP, pages.PathConsolePeople)
		return
	}
	visit.Redirect(o.HTTP, pages.PathConsolePeople+"?"+paramQuery+"="+
		o.searchBinding().Hide([]byte(text), o.Now))
}

// listPeople shows the search, and what it has found.
func (s *service) listPeople(o *operator) {
	p := pages.ConsolePeople{Console: s.screen(o, "people")}
	if s.people.Invites() {
		p.Invite = inviteForm(&p.Console, o.left.Fields)
	}
	text, _ := o.searchBinding().Reveal(string(o.HTTP.QueryArgs().Peek(paramQuery)), searchLifetime,
		o.Now)
	p.Query = string(text)
	found, isAll, err := s.people.FindUsers(o.Ctx, p.Query, listed+1)
	if err != nil {
		s.WriteFailure(o.HTTP, "find users", err)
		return
	}
	p.Cut, p.More = !isAll, len(found) > listed
	found = found[:min(listed, len(found))]
	for _, u := range found {
		row := pages.ConsoleRow{Path: pathOfPerson(u.ID), Name: u.Name, Tags: tagsOfPerson(u)}
		for _, address := range []string{u.Email, u.Phone, strconv.FormatInt(u.ID, 10)} {
			if address != "" {
				row.Addresses = append(row.Addresses, address)
			}
		}
		p.People = append(p.People, row)
	}
	if p.Query != "" {
		seen := audit.Data{"users": len(found)}
		if len(found) > 0 {
			ids := make([]int64, len(found))
			for i, u := range found {
				ids[i] = u.ID
			}
			seen["first"], seen["last"] = slices.Min(ids), slices.Max(ids)
		}
		s.recordRead(o, audit.Event{Action: audit.UsersListed, Data: seen})
	}
	s.WritePage(o.HTTP, fasthttp.StatusOK, p)
}

// tagsOfPerson says what is special about a person.
func tagsOfPerson(u *account.User) (tags []texts.Text) {
	if u.Disabled {
		tags = append(tags, texts.Of("console.tag_disabled"))
	}
	if isOperator(u) {
		tags = append(tags, texts.Of("console.tag_operator"))
	}
	return tags
}

// person returns the person with an id. Without one it responds, and returns false.
func (s *service) person(o *operator, text string) (*account.User, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		err = account.ErrNotFound
	}
	var u *account.User
	if err == nil {
		u, err = s.people.User(o.Ctx, id)
	}
	switch {
	case errors.Is(err, account.ErrNotFound):
		s.missing(o, "console.unknown_person", pages.PathConsolePeople)
		return nil, false
	case err != nil:
		s.WriteFailure(o.HTTP, "read a user", err)
		return nil, false
	}
	return u, true
}

// showPerson shows one person.
func (s *service) showPerson(o *operator, text string) {
	u, ok := s.person(o, text)
	if !ok {
		return
	}
	sessions, err := s.people.Sessions(o.Ctx, u.ID, o.Now)
	if err != nil {
		s.WriteFailure(o.HTTP, "read sessions", err)
		return
	}
	s.recordRead(o, audit.Event{Action: audit.UserRead, Subject: audit.OfUser(u.ID),
		Details: []string{"sessions"}})
	p := pages.ConsolePeople{Console: s.screen(o, "people")}
	person := &pages.ConsolePerson{Path: pathOfPerson(u.ID), Name: u.Name, ID: u.ID,
		Operator: isOperator(u), Facts: factsOfPerson(u), Group: o.left.Fields[fieldGroup]}
	if !person.Operator {
		person.Actions = actionsOfPerson(u)
	}
	for _, session := range sessions {
		person.Sessions = append(person.Sessions, pages.Session{ID: session.ID(),
			Device: texts.Device(session.Device), Since: texts.Day(session.Created),
			Seen: texts.Ago(session.Seen, o.Now)})
	}
	if !s.addGroups(o, u, person) {
		return
	}
	p.Person = person
	s.WritePage(o.HTTP, fasthttp.StatusOK, p)
}

// factsOfPerson says what is known of a person.
func factsOfPerson(u *account.User) (all []pages.Fact) {
	for _, f := range []struct{ key, value string }{
		{"field.email", u.Email}, {"phone.label", u.Phone}, {"me.username", u.Username},
		{"console.user_id", strconv.FormatInt(u.ID, 10)}, {"console.service_id", u.ServiceID},
	} {
		if f.value != "" {
			all = append(all, pages.Fact{Label: texts.Of(f.key), Values: []string{f.value}})
		}
	}
	var ways []texts.Text
	if u.PasswordHash != "" {
		ways = append(ways, texts.Of("console.has_password"))
	}
	keys := u.SecurityKeys()
	if n := len(u.Credentials.Passkeys) - keys; n > 0 {
		ways = append(ways, texts.Of("console.has_passkeys", "n", n))
	}
	if keys > 0 {
		ways = append(ways, texts.Of("console.has_security_keys", "n", keys))
	}
	if u.Credentials.Authenticator != nil {
		ways = append(ways, texts.Of("console.has_authenticator"))
	}
	for _, c := range u.Credentials.Connections {
		ways = append(ways, texts.Literal(strings.TrimPrefix(c.Issuer, "https://")))
	}
	if ways != nil {
		all = append(all, pages.Fact{Label: texts.Of("console.ways"), Text: texts.List(ways)})
	}
	return append(all, pages.Fact{Label: texts.Of("console.created"), Text: texts.Day(u.Created)})
}

// actionsOfPerson returns what can be done with a person.
func actionsOfPerson(u *account.User) []pages.Action {
	do, state := doDisable, "console.person_not_disabled"
	if u.Disabled {
		do, state = doEnable, "console.person_is_disabled"
	}
	all := []pages.Action{{Do: do, Text: texts.Of(state), Label: texts.Of("console.do_" + do),
		Danger: !u.Disabled}}
	if u.HasSecondFactor() || len(u.Credentials.RecoveryCodes) > 0 {
		all = append(all, pages.Action{Do: doReset, Text: texts.Of("console.factors_lead"),
			Label: texts.Of("console.do_reset"), Danger: true})
	}
	return all
}

// changePerson does what a form says with a person. It changes no member of the operators' group.
func (s *service) changePerson(o *operator, text string) {
	u, ok := s.person(o, text)
	if !ok {
		return
	}
	back := pathOfPerson(u.ID)
	if isOperator(u) {
		s.forbid(o, texts.Of("console.operator"), back)
		return
	}
	left, err := flash{Notice: "console.person_changed"}, error(nil)
	switch o.Field(fieldDo) {
	case doDisable:
		err = s.people.DisableUser(o.Ctx, u.ID, o.Now)
	case doEnable:
		err = s.people.EnableUser(o.Ctx, u.ID, o.Now)
	case doReset:
		left.Notice = "console.factors_reset"
		err = s.people.ResetFactors(o.Ctx, u.ID, o.Now)
	case doEndSession:
		left.Notice = "sessions.ended"
		err = s.people.EndSession(o.Ctx, u.ID, o.Field("session"), o.Now)
		if errors.Is(err, account.ErrNotFound) {
			left, err = flash{Wrong: []wrong{{Key: "sessions.gone"}}}, nil
		}
	case doEndSessions:
		left.Notice = "console.sessions_ended"
		err = s.people.EndSessions(o.Ctx, u.ID)
	case doAddGroup, doRemoveGroup:
		left, err = s.changeGroup(o, u)
	default:
		s.RefusePage(o.Visit, texts.Of("message.form_unread"), texts.Of("message.send_again"))
		return
	}
	switch {
	case errors.Is(err, errForbidden):
		s.forbid(o, texts.Of("console.operators_group"), back)
	case errors.Is(err, account.ErrNotFound):
		s.missing(o, "console.unknown_person", pages.PathConsolePeople)
	case err != nil:
		s.WriteFailure(o.HTTP, "change a user", err)
	default:
		s.leave(o, back, left)
	}
}

// invite sends a person a link to make an account.
func (s *service) invite(o *operator) {
	fields := map[string]string{}
	for _, name := range []string{"email", "name", "groups"} {
		fields[name] = strings.TrimSpace(o.Shown(name))
	}
	_, err := s.people.Invite(o.Ctx, fields["email"], fields["name"], strings.Fields(fields["groups"]),
		o.Now)
	left := flash{Fields: fields}
	var one account.FieldError
	var several account.FieldErrors
	switch {
	case err == nil:
		left = flash{Notice: "console.invited"}
	case errors.Is(err, account.ErrTaken):
		left.Wrong = []wrong{{Field: "email", Key: "console.taken"}}
	case errors.Is(err, account.ErrNoGroup):
		left.Wrong = []wrong{{Field: "groups", Key: "console.unknown_group"}}
	case errors.As(err, &one):
		left.Wrong = []wrong{wrongField(one)}
	case errors.As(err, &several):
		for _, f := range several {
			left.Wrong = append(left.Wrong, wrongField(f))
		}
	default:
		s.WriteFailure(o.HTTP, "invite", err)
		return
	}
	s.leave(o, pages.PathConsolePeople, left)
}

// inviteForm returns the form that invites somebody, with what was entered.
func inviteForm(c *pages.Console, entered map[string]string) *pages.AppForm {
	line := func(name, label string, hint texts.Text) pages.AppField {
		return c.Problems.Line(name, texts.Of(label), hint, entered[name])
	}
	return &pages.AppForm{Action: pages.PathConsolePeople, FormToken: c.FormToken, Do: doInvite,
		Button: texts.Of("console.do_invite"), Texts: []pages.AppField{
			line("email", "field.email", nil), line("name", "console.invite_name", nil),
			line("groups", "console.groups", texts.Of("console.hint_groups")),
		}}
}

// wrongField returns what is wrong with a field. What pages have no text for is said in English.
func wrongField(f account.FieldError) wrong {
	if f.Rule == "" {
		return wrong{Field: f.Field, Text: f.Error() + "."}
	}
	key, _ := visit.FieldText(f)[0].(string)
	return wrong{Field: f.Field, Key: key, N: f.Limit}
}

// fieldGroup is the field with the name of a group.
const fieldGroup = "group"

// addGroups adds the groups of a person, and those that there are. It returns false if it responded.
func (s *service) addGroups(o *operator, u *account.User, p *pages.ConsolePerson) bool {
	for _, name := range u.Groups.Names() {
		g := pages.ConsoleGroup{Name: name}
		if !u.Given.Has(name) {
			for issuer, groups := range u.Mapped {
				if groups.Has(name) {
					g.Issuer = max(g.Issuer, issuer)
				}
			}
		}
		p.Groups = append(p.Groups, g)
	}
	all, err := s.people.Groups(o.Ctx, "", account.MostGroups)
	if err != nil {
		s.WriteFailure(o.HTTP, "read groups", err)
		return false
	}
	for _, g := range all {
		if g.Name != account.OperatorsGroup && !u.Groups.Has(g.Name) {
			p.AllGroups = append(p.AllGroups, g.Name)
		}
	}
	return true
}

// changeGroup adds a person to the group of the form, or takes them out. It leaves the operators'
// group alone.
func (s *service) changeGroup(o *operator, u *account.User) (left flash, err error) {
	group, change := strings.TrimSpace(o.Shown(fieldGroup)), s.people.AddMember
	if o.Field(fieldDo) == doRemoveGroup {
		change = s.people.RemoveMember
	}
	if group == account.OperatorsGroup {
		return left, errForbidden
	}
	err = change(o.Ctx, group, u.ID)
	switch {
	case errors.Is(err, account.ErrNoGroup):
		left.Wrong = []wrong{{Field: fieldGroup, Key: "console.unknown_group"}}
	case errors.Is(err, account.ErrTooManyGroups):
		left.Wrong = []wrong{{Field: fieldGroup, Key: "console.many_groups"}}
	default:
		return flash{Notice: "console.person_changed"}, err
	}
	left.Fields = map[string]string{fieldGroup: group}
	return left, nil
}
