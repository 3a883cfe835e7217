package console_test

import (
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab"
)

const (
	ada  = "ada@example.com"
	kofi = "kofi@example.com"
)

func TestMain(m *testing.M) { os.Exit(stacktest.Run(m, nil)) }

// on serves the console.
func on(c *stack.Config) { c.Identity.Console = true }

// operator is a person at the console.
type operator struct {
	*stacktest.Browser
	st   *stacktest.IdentityStack
	user *account.User
}

// newOperator returns an operator who has just signed in with two factors.
func newOperator(t *testing.T, st *stacktest.IdentityStack) *operator {
	t.Helper()
	u := st.NewUser(t, "Ada Lovelace", ada)
	join(t, st, u)
	b, _ := st.SignedIn(t, ada)
	st.Alter(t, "UPDATE sessions SET amr = 'pwd otp mfa' WHERE user_id = "+id(u))
	return &operator{b, st, u}
}

func id(u *account.User) string { return strconv.FormatInt(u.ID, 10) }

// post sends a form to a path of the console, with a form token of a page there: name, value, name,
// value….
func (o *operator) post(path string, fields ...string) stacktest.Page {
	o.T.Helper()
	return o.Once(http.MethodPost, path, o.form(path, fields...))
}

// form returns the fields of a form to a path, with a form token.
func (o *operator) form(path string, fields ...string) url.Values {
	o.T.Helper()
	p := o.Get(path)
	for _, f := range (&lab.Page{Body: p.Body}).Forms() {
		if token := f.Fields.Get("form_token"); token != "" {
			return lab.Form{Fields: url.Values{"form_token": {token}}}.With(fields...)
		}
	}
	o.T.Fatalf("got %d %s at %s, want a form with a token", p.Status, p.Body, path)
	return nil
}

// done sends a form and follows the redirect to a page that says something.
func (o *operator) done(path, says string, fields ...string) stacktest.Page {
	o.T.Helper()
	p := o.post(path, fields...)
	if p.Status != http.StatusSeeOther {
		o.T.Fatalf("%v: got %d %s, want 303", fields, p.Status, p.Body)
	}
	p = o.Get(p.Location)
	if p.Status != http.StatusOK || !strings.Contains(p.Body, says) {
		o.T.Errorf("%v: got %d %s, want %q", fields, p.Status, p.Body, says)
	}
	return p
}

// newest returns the newest event of an action.
func newest(t *testing.T, st *stacktest.IdentityStack, action audit.Action) audit.Event {
	t.Helper()
	events, err := st.Store.Events(t.Context(), audit.Filter{Action: action, Newest: true, Limit: 1})
	stacktest.Must(t, err)
	if len(events) == 0 {
		t.Fatalf("got no event %s", action)
	}
	return events[0]
}
