package adminapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// importBody returns the request of one part with its lines from a number on.
func importBody(id string, first int, users ...string) string {
	var lines []string
	for i, u := range users {
		lines = append(lines, fmt.Sprintf(`{"line":%d,"user":%s}`, first+i, u))
	}
	return fmt.Sprintf(`{"import":"%s","users":[%s]}`, id, strings.Join(lines, ","))
}

const importID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

// adaHash is a hash of stacktest.Password by another program.
const adaHash = "$pbkdf2-sha256$i=1000$c29tZXNhbHQtMDEyMzQ1Ng$A3p9gRCoihsSNQCHxhmPamWw/Bx0VU0R2NvXAZ3WW4k"

// TestImportedUserSignsIn imports users, reads their export, and signs one in.
func TestImportedUserSignsIn(t *testing.T) {
	st := stacktest.NewIdentity(t)
	d := st.Describe(t)
	o := st.NewOperator(t)
	ada := `{"id":4711,"service_id":"6ba7b811-9dad-11d1-80b4-00c04fd430c8","name":"Ada","email":"ada@example.com","email_verified":true,` +
		`"phone_number":"+14155550123","phone_number_verified":true,"username":"ada","gender":"female","bio":"x","place_of_birth":"London",` +
		`"date_of_birth":"1990-12-10","address":"Square 1","profile_picture":"https://x.example/a.png","phone_sign_in":true,"language":"pt-BR",` +
		`"password_hash":"` + adaHash + `"}`
	body := importBody(importID, 7, ada, `{"name":"Bo","email":null,"phone_number":"+14155550124","phone_number_verified":true,"disabled":true}`)
	dry := strings.Replace(body, `{"import"`, `{"dry_run":true,"import"`, 1)
	for _, b := range []string{dry, body, body} {
		if got, want := string(o.Do(200, "POST", "/users/import", b).Body), `{"created":2,"refused":[],"factors_lost":0}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, first := range []int{6, 7} {
		o.Do(409, "POST", "/users/import", importBody(importID, first, ada)).Refused(t, "conflict")
	}
	var page struct {
		Users []json.RawMessage
		Next  string
	}
	text := o.Do(200, "GET", "/users/export?limit=1", "").Body
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Users) != 1 || page.Next != "4711" {
		t.Fatalf("got %s, %v, want one user and the next page", text, err)
	}
	if got, want := canonical(t, string(page.Users[0])), canonical(t, ada); got != want {
		t.Errorf("got %s, want what was imported: %s", got, want)
	}
	if got := string(o.Do(200, "GET", "/users/export?after=4711", "").Body); !strings.Contains(got,
		`"name":"Bo","phone_number":"+14155550124","phone_number_verified":true,"disabled":true}],"next":""}`) {
		t.Errorf("got %s, want Bo, and no further page", got)
	}
	o.Do(400, "GET", "/users/export?after=x", "").Refused(t, "invalid_request", "after")
	b := st.NewBrowser(t)
	p := b.Send(b.Get("/login"), "email", "ADA@example.com", "password", stacktest.Password)
	p.Shows(t, 200, "/me")
	if got := string(o.Do(200, "GET", "/users/export?limit=1", "").Body); !strings.Contains(got, `"$argon2id$`) {
		t.Errorf("got %s, want an own hash after the first sign-in", got)
	}
	for action, data := range map[string]string{
		"users_imported": `"data":{"created":2,"first":4711,"import":"` + importID + `","last":4712,"line":7,"refused":0}`,
		"users_exported": `"data":{"first":4711,"last":4711,"users":1}`, "account_created": `"events":[]`,
	} {
		if got := string(o.Do(200, "GET", "/audit?action="+action, "").Body); !strings.Contains(got, data) {
			t.Errorf("got %s, want %s", got, data)
		}
	}
	d.Covers("POST /admin/v1/users/import 200", "GET /admin/v1/users/export 200")
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	var members map[string]any
	stacktest.Must(t, json.Unmarshal([]byte(text), &members))
	again, err := json.Marshal(members)
	stacktest.Must(t, err)
	return string(again)
}

// TestImportRefusesLines has lines that are wrong: each is named by its number, and nothing of it is
// in the response.
func TestImportRefusesLines(t *testing.T) {
	st := stacktest.NewIdentity(t)
	o := st.NewOperator(t)
	const verified = `"name":"A","email":"secret@example.com","email_verified":true`
	lines, want := []string{}, []string{}
	for _, row := range [][2]string{
		{`{"name":"A","email":"secret@example.com"}`, "email_verified must be true"},
		{`{"name":"A","phone_number":"+14155550199"}`, "phone_number_verified must be true"},
		{`{` + verified + `,"groups":["staff"]}`, "groups must exist: there is no group staff"},
		{`{` + verified + `,"password":"hunter2secret"}`, "password is unknown"},
		{`{` + verified + `,"secret@example.com":1}`, "a member is unknown"},
		{`{` + verified + `,"name":"secret"}`, "name is repeated"},
		{`{` + verified + `,"language":"<secret>"}`, "language must be"},
		{`{` + verified + `,"id":-1}`, "id must be a number"},
		{`{` + verified + `,"id":9007199254740992}`, "id must be a number"},
		{`{` + verified + `,"id":99999999999999999999}`, "id must be a number"},
		{`{` + verified + `,"id":"7"}`, "id must be a number"},
		{`{` + verified + `,"email_verified":"secret"}`, "email_verified "},
		{`{` + verified + `,"password_hash":"gtcs_hunter2secret"}`, "password_hash must be a hash"},
		{`{` + verified + `,"password_hash":"$2y$31$` + strings.Repeat("a", 53) + `"}`, "password_hash costs"},
		{`{"name":"A","email":"SECRET@example.com.","email_verified":true}`, "email is not"},
		{`[]`, "line must be one JSON object"}, {`"secret"`, "line must be one JSON object"},
		{`{` + verified + `}`, ""}, {`{"name":"A","email":"Secret@EXAMPLE.com","email_verified":true}`, "email belongs"},
	} {
		lines = append(lines, row[0])
		if row[1] != "" {
			want = append(want, fmt.Sprintf("%d: %s", len(lines), row[1]))
		}
	}
	got := string(o.Do(200, "POST", "/users/import", importBody(importID, 1, lines...)).Body)
	var response struct {
		Created int
		Refused []struct {
			Line           int
			Field, Message string
		}
	}
	if err := json.Unmarshal([]byte(got), &response); err != nil || response.Created != 1 {
		t.Fatalf("got %s, %v, want one user", got, err)
	}
	for _, w := range want {
		found := false
		for _, r := range response.Refused {
			found = found || strings.HasPrefix(fmt.Sprintf("%d: %s %s", r.Line, r.Field, r.Message), w)
		}
		if !found {
			t.Errorf("got %s, want %q", got, w)
		}
	}
	if len(response.Refused) != len(want) || strings.Contains(strings.ToLower(got), "secret") {
		t.Errorf("got %s, want %d lines, and nothing of their content", got, len(want))
	}
	for body, field := range map[string]string{
		`{"users":[{"line":1,"user":{}}]}`:                                           "import",
		`{"import":"` + importID + `"}`:                                              "users",
		`{"import":"` + importID + `","users":[]}`:                                   "users",
		`{"import":"` + importID + `","users":[{"line":0,"user":{}}]}`:               "users",
		`{"import":"` + importID + `","users":[{"line":2,"user":{}},{"line":2}]}`:    "users",
		`{"import":"` + importID + `","users":[{"line":1,"user":{}}],"notify":true}`: "notify",
	} {
		o.Do(400, "POST", "/users/import", body).Refused(t, "invalid_request", field)
	}
}
