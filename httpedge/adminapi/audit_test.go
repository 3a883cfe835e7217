package adminapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// eventPage is a response of /admin/v1/audit.
type eventPage struct {
	Events []audit.Event
	Next   string
}

func events(o *stacktest.Operator, query string) (page eventPage) {
	o.T.Helper()
	a := o.Do(200, "GET", "/audit?"+query, "")
	stacktest.Must(o.T, json.Unmarshal([]byte(a.Body), &page))
	return page
}

// numbers returns the numbers of all pages. key is the parameter that gets next.
func numbers(o *stacktest.Operator, query, key string) (all []int64) {
	o.T.Helper()
	for next := ""; len(all) < 1000; {
		page := events(o, query+"&"+key+"="+next)
		for _, e := range page.Events {
			if e.Action != audit.TrailRead { // the reads of this test are on record as well
				all = append(all, e.Number)
			}
		}
		if next = page.Next; next == "" {
			return all
		}
	}
	o.T.Fatal("got no end of the pages")
	return nil
}

func TestOperatorReadsAuditTrail(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o := st.NewOperator(t)
	c := st.NewClient(t, nil)
	ada, bo := st.NewUser(t, "Ada", "ada@example.com"), st.NewUser(t, "Bo", "bo@example.com")
	before := time.Now().Add(-time.Second)
	for i := range 5 {
		o.Do(200, "PATCH", fmt.Sprintf("/users/%d", ada.ID), fmt.Sprintf(`{"bio":"%d"}`, i))
	}
	o.Do(200, "PATCH", fmt.Sprintf("/users/%d", bo.ID), `{"name":"Bob","bio":"x"}`)
	o.Do(200, "POST", "/clients/"+c.ID+"/approve", "")

	all := numbers(o, "limit=200", "after")
	if len(all) != 7 || !slices.IsSorted(all) {
		t.Fatalf("got events %v, want 7 in their order", all)
	}
	newest := slices.Clone(all)
	slices.Reverse(newest)
	now := url.QueryEscape(time.Now().Add(time.Minute).Format(time.RFC3339))
	for query, want := range map[string][]int64{
		"limit=2":      all,
		"limit=7":      all,
		"order=oldest": all,
		"user=":        all,
		"unknown=1":    all,
		"before=" + strconv.FormatInt(all[2], 10):                   all[:2],
		fmt.Sprintf("user=%d&limit=2", ada.ID):                      all[:5],
		fmt.Sprintf("user=%d&action=client_approved", bo.ID):        nil,
		"action=account_changed&limit=3":                            all[:6],
		"client=" + c.ID:                                            all[6:],
		"client=" + o.ID + "&limit=3":                               all,
		"since=" + url.QueryEscape(before.Format(time.RFC3339Nano)): all,
		"since=" + now: nil,
	} {
		if got := numbers(o, query, "after"); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	if got := numbers(o, "order=newest&limit=2", "before"); !slices.Equal(got, newest) {
		t.Errorf("got %v, want %v", got, newest)
	}
	between := fmt.Sprintf("after=%d&before=%d&order=newest", all[1], all[4])
	if got := events(o, between).Events; len(got) != 2 || got[0].Number != all[3] {
		t.Errorf("got %v, want events %d and %d", got, all[3], all[2])
	}
	got := events(o, fmt.Sprintf("user=%d", bo.ID)).Events[0]
	if got.Action != audit.AccountChanged || got.Outcome != audit.OK || got.Count != 1 ||
		got.Subject != audit.OfUser(bo.ID) || !slices.Equal(got.Details, []string{"name", "bio"}) ||
		got.Actor != (audit.Actor{Kind: audit.Operator, ID: o.ID}) || got.RequestID == "" ||
		got.From != "127.0.0.0/24" || time.Since(got.Time).Abs() > time.Hour {
		t.Errorf("got %+v, want the change of Bo by the operator", got)
	}
	o.Do(200, "HEAD", "/audit", "")
	d.Covers("GET /admin/v1/audit 200", "HEAD /admin/v1/audit 200")
}

func TestAuditQueriesAreChecked(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o := st.NewOperator(t)
	for _, row := range []struct{ query, field string }{
		{"after=x", "after"}, {"after=-1", "after"}, {"after=9223372036854775808", "after"},
		{"before=0", "before"}, {"since=24h", "since"}, {"since=2026-05-03", "since"},
		{"user=0", "user"}, {"user=ada", "user"}, {"client=x", "client"}, {"client=%00", "client"},
		{"action=login", "action"}, {"order=up", "order"}, {"limit=0", "limit"},
		{"limit=201", "limit"}, {"user=1&user=2", "user"}, {"user=&user=2", "user"},
	} {
		o.Do(400, "GET", "/audit?"+row.query, "").Refused(t, "invalid_request", row.field)
	}
	o.Do(400, "GET", "/audit?user=%zz", "").Refused(t, "invalid_request")
	if got := o.Do(400, "GET", "/audit?action=login", "").Body; !strings.Contains(got,
		"sign_in, sign_out, ") {
		t.Errorf("got %s, want the vocabulary", got)
	}
	for _, action := range audit.Actions {
		o.Do(200, "GET", "/audit?action="+string(action), "")
	}
	if a := st.Send(t, "GET", st.AdminURL+"/admin/v1/audit", ""); a.Status != 401 {
		t.Errorf("got %d without a token, want 401", a.Status)
	}
	d.Covers("GET /admin/v1/audit 400", "GET /admin/v1/audit 401")
}

// TestOpenAPIHasAllActions compares the vocabulary with that of the document.
func TestOpenAPIHasAllActions(t *testing.T) {
	d := stacktest.New(t).Describe(t)
	var got []audit.Action
	for _, name := range d.Doc.Components.Schemas["AuditAction"].Value.Enum {
		got = append(got, audit.Action(name.(string)))
	}
	if !slices.Equal(got, audit.Actions) {
		t.Errorf("got %v in the document, want %v", got, audit.Actions)
	}
}

// TestOperatorHidesNothing does more of an action than share a row, reads people and the trail, and
// is refused: all of it is on record, with the values before and after, and who follows the trail
// comes to an end.
func TestOperatorHidesNothing(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o, c := st.NewOperator(t), st.NewClient(t, nil)
	ada := st.NewUser(t, "Ada", "ada@example.com")
	user := fmt.Sprintf("/users/%d", ada.ID)
	const actions = audit.MaxRows + 5
	for i := range actions {
		o.Do(200, "PATCH", user, fmt.Sprintf(`{"bio":"b%d"}`, i))
	}
	changes := numbers(o, fmt.Sprintf("user=%d&action=account_changed&limit=200", ada.ID), "after")
	if len(changes) != actions {
		t.Errorf("got %d rows of %d actions, want one for each", len(changes), actions)
	}
	last := events(o, fmt.Sprintf("after=%d&limit=1", changes[actions-1]-1)).Events[0]
	wantData := fmt.Sprintf("map[after:map[bio:b%d] before:map[bio:b%d]]", actions-1, actions-2)
	if got := fmt.Sprint(last.Data); got != wantData {
		t.Errorf("got data %s, want %s", got, wantData)
	}
	o.Do(200, "PATCH", "/clients/"+c.ID, `{"name":"Other","redirect_uris":["https://other.example/"]}`)
	got := events(o, "action=client_changed").Events
	if len(got) != 1 || fmt.Sprint(got[0].Data["before"]) !=
		fmt.Sprintf("map[name:%s redirect_uris:[%s]]", c.Name, stacktest.RedirectURI) ||
		fmt.Sprint(got[0].Data["after"]) != "map[name:Other redirect_uris:[https://other.example/]]" {
		t.Errorf("got %+v, want the values of the client", got)
	}

	made := o.Do(201, "POST", "/clients", `{"name":"Ghost","operator":true}`).Object(t)
	o.Do(204, "DELETE", "/clients/"+made["client_id"].(string), "")
	for action, when := range map[string]string{"client_created": "after", "client_deleted": "before"} {
		got := events(o, "action="+action).Events
		values, _ := got[len(got)-1].Data[when].(map[string]any)
		if values["name"] != "Ghost" || values["operator"] != true {
			t.Errorf("got %+v, want the values of a client that is gone", got)
		}
	}
	o.Do(200, "GET", user, "")
	before := o.Do(200, "GET", user, "").Object(t)["updated_at"]
	if got := o.Do(200, "PATCH", user, "{}").Object(t)["updated_at"]; got != before {
		t.Errorf("got an account updated at %v by a change of nothing, want %v", got, before)
	}
	o.Do(200, "GET", "/users?limit=1", "")
	o.Do(200, "GET", "/users/export?limit=1", "")
	o.Do(200, "GET", user+"/sessions", "")
	st.Send(t, "GET", st.AdminURL+"/admin/v1"+user, "")
	token, _ := st.NewToken(t, c, ada.ID, oauth.ViewUser)
	st.Send(t, "DELETE", st.AdminURL+"/admin/v1"+user, "", "Authorization", "Bearer "+token)
	for action, want := range map[audit.Action]string{
		audit.UserRead: strings.Repeat(fmt.Sprintf("operator user:%d  [] map[], ", ada.ID), 3) +
			fmt.Sprintf("operator user:%d  [sessions] map[]", ada.ID),
		audit.UsersListed:   fmt.Sprintf("operator   [] map[first:%d last:%d users:1]", ada.ID, ada.ID),
		audit.UsersExported: fmt.Sprintf("operator   [] map[first:%d last:%d users:1]", ada.ID, ada.ID),
		audit.AdminRefused:  "client  /admin/v1/users/{id} [no_token] map[], client:" + c.ID + "  /admin/v1/users/{id} [insufficient_scope] map[]",
	} {
		var said []string
		for _, e := range events(o, "action="+string(action)).Events {
			by := string(e.Actor.Kind)
			if e.Actor.Kind != audit.Operator && e.Actor.ID != "" {
				by += ":" + e.Actor.ID
			}
			said = append(said, fmt.Sprint(by, " ", e.Subject, " ", e.Target, " ", e.Details, " ", e.Data))
		}
		if got := strings.Join(said, ", "); got != want {
			t.Errorf("%s: got %q, want %q", action, got, want)
		}
	}
	reads := events(o, "action=trail_read&order=newest").Events
	if len(reads) < 5 || reads[0].Actor.ID != o.ID || reads[0].Data["action"] != "admin_refused" &&
		reads[0].Data["action"] != "users_listed" && reads[0].Data["action"] != "users_exported" &&
		reads[0].Data["action"] != "user_read" {
		t.Errorf("got %+v, want the reads before", reads)
	}
	at := reads[0].Number
	for range 3 {
		page := events(o, fmt.Sprintf("after=%d", at))
		for _, e := range page.Events {
			at = e.Number
		}
	}
	if page := events(o, fmt.Sprintf("after=%d", at)); len(page.Events) != 0 {
		t.Errorf("got %+v for who follows the trail, want an end", page.Events)
	}
	d.Covers("GET /admin/v1/users/{id}/sessions 200")
}

// TestOperatorEndsSession lists the sessions of a person, and ends one.
func TestOperatorEndsSession(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o := st.NewOperator(t)
	ada := st.NewUser(t, "Ada", "ada@example.com")
	here, _ := st.SignedIn(t, "ada@example.com")
	away, _ := st.SignedIn(t, "ada@example.com")
	path := fmt.Sprintf("/users/%d/sessions", ada.ID)
	list := func() (sessions []map[string]any) {
		var page struct{ Sessions []map[string]any }
		stacktest.Must(t, json.Unmarshal([]byte(o.Do(200, "GET", path, "").Body), &page))
		return page.Sessions
	}
	all := list()
	if len(all) != 2 || fmt.Sprint(all[0]["factors"]) != "[pwd]" || all[0]["browser"] == nil {
		t.Fatalf("got %v, want two sessions", all)
	}
	ended := all[1]["id"].(string)
	o.Do(204, "DELETE", path+"/"+ended, "")
	o.Do(404, "DELETE", path+"/"+ended, "")
	o.Do(404, "GET", "/users/4711/sessions", "")
	if left := list(); len(left) != 1 || left[0]["id"] == ended {
		t.Errorf("got %v, want the other session", left)
	}
	open := 0
	for _, b := range []*stacktest.Browser{here, away} {
		if strings.HasPrefix(b.Get("/me").Path, "/me") {
			open++
		}
	}
	if open != 1 {
		t.Errorf("got %d browsers signed in, want one", open)
	}
	got := events(o, "action=sign_out").Events
	if len(got) != 1 || got[0].Actor.ID != o.ID || got[0].Data["session"] != ended {
		t.Errorf("got %+v, want the end by the operator", got)
	}
	d.Covers("GET /admin/v1/users/{id}/sessions 200", "DELETE /admin/v1/users/{id}/sessions/{session} 204",
		"DELETE /admin/v1/users/{id}/sessions/{session} 404")
}
