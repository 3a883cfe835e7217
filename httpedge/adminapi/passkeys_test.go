package adminapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/people/passkeytest"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// passkeyUser creates Ada, who has a passkey and a security key.
func passkeyUser(t *testing.T, st *stacktest.IdentityStack) *account.User {
	t.Helper()
	u := st.NewUser(t, "Ada", "ada@example.com")
	key := passkeytest.New(t, st.URL)
	u.Credentials = account.Credentials{Handle: make([]byte, 32), Passkeys: []account.Passkey{
		{ID: key.ID, PublicKey: key.Public(t), Name: "Phone", SignsIn: true, BackedUp: true,
			Created: time.UnixMilli(1e12), Used: time.UnixMilli(2e12)},
		{ID: []byte("other"), PublicKey: key.Public(t), Name: "Key", Created: time.UnixMilli(1e12)},
	}}
	stacktest.Must(t, st.Store.UpdateUser(t.Context(), u))
	return u
}

func TestListPasskeys(t *testing.T) {
	st := stacktest.NewIdentity(t, stacktest.Localhost)
	o := st.NewOperator(t)
	u := passkeyUser(t, st)
	path := "/users/" + stacktest.ChooserValue(u.ID) + "/passkeys"
	want := `{"passkeys":[{"name":"Phone","signs_in":true,"synced":true,"created_at":"2001-09-09T01:46:40Z","last_used_at":"2033-05-18T03:33:20Z"},` +
		`{"name":"Key","signs_in":false,"synced":false,"created_at":"2001-09-09T01:46:40Z","last_used_at":null}]}`
	if got := string(o.Do(200, "GET", path, "").Body); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o.Do(404, "GET", "/users/99/passkeys", "").Refused(t, "not_found")
}

// TestPasskeysAreExportedToTheirDomain imports an export at services of the same and of another domain.
func TestPasskeysAreExportedToTheirDomain(t *testing.T) {
	st := stacktest.NewIdentity(t, stacktest.Localhost)
	want := passkeyUser(t, st)
	var page struct{ Users []json.RawMessage }
	text := st.NewOperator(t).Do(200, "GET", "/users/export", "").Body
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Users) != 1 {
		t.Fatalf("got %s, %v, want one user", text, err)
	}
	body := importBody(importID, 1, string(page.Users[0]))
	for name, row := range map[string]struct {
		option stacktest.Option
		keys   int
	}{
		"same": {stacktest.Localhost, 2}, "none": {func(*stack.Config) {}, 0},
		"another": {func(c *stack.Config) { c.Issuer = "https://id.example.com" }, 0},
	} {
		other := stacktest.NewIdentity(t, row.option)
		o := other.NewOperator(t)
		if got := string(o.Do(200, "POST", "/users/import", body).Body); got != `{"created":1,"refused":[],"factors_lost":0}` {
			t.Errorf("%s: got %s, want one created", name, got)
		}
		u, err := other.Store.User(t.Context(), want.ID)
		if err != nil || len(u.Credentials.Passkeys) != row.keys {
			t.Fatalf("%s: got %+v, %v, want %d passkeys", name, u, err, row.keys)
		}
		if row.keys > 0 && (string(u.Credentials.Handle) != string(want.Credentials.Handle) ||
			string(u.Credentials.Passkeys[0].PublicKey) != string(want.Credentials.Passkeys[0].PublicKey)) {
			t.Errorf("%s: got %+v, want what was exported", name, u.Credentials)
		}
		if row.keys == 0 {
			continue
		}
		again := strings.NewReplacer("ada@example.com", "b@example.com", `"id":1,`, "",
			want.ServiceID, "6ba7b811-9dad-11d1-80b4-00c04fd430c8").Replace(body)
		again = strings.Replace(again, importID, "6ba7b812-9dad-11d1-80b4-00c04fd430c8", 1)
		if got := string(o.Do(200, "POST", "/users/import", again).Body); !strings.Contains(got,
			`"field":"passkeys","message":"belongs to another account"`) {
			t.Errorf("got %s, want the passkeys refused", got)
		}
		short := strings.Replace(strings.Replace(again, `"handle":"AAAA`, `"handle":"`, 1), "6ba7b812", "6ba7b813", 1)
		if got := string(o.Do(200, "POST", "/users/import", short).Body); !strings.Contains(got,
			`"field":"passkeys","message":"must be as an export wrote them"`) {
			t.Errorf("got %s, want a short handle refused", got)
		}
	}
}
