package httpedge_test

import (
	"testing"
	"time"

	"gatehouse/httpedge/edgetest"
)

// TestOperatorRotatesKeys: the token that asks was signed with the key before, and goes on working
// like all others.
func TestOperatorRotatesKeys(t *testing.T) {
	st := edgetest.NewIdentity(t)
	d := describe(t, st.Stack)
	o := newOperator(t, st)
	before, err := st.Store.AccessTokenKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	record := o.does(200, "POST", "/keys/rotate", "").object(t)
	made, err := time.Parse(time.RFC3339, record["created_at"].(string))
	again, err2 := time.Parse(time.RFC3339, record["rotate_again_at"].(string))
	if err != nil || err2 != nil || time.Since(made) > time.Minute || again.Sub(made) < time.Hour {
		t.Errorf("got %v, want a key made now, and the next one an hour later", record)
	}
	after, err := st.Store.AccessTokenKeys(t.Context())
	if err != nil || after.Previous != before.Current || after.Current == before.Current {
		t.Errorf("got %v, want a new key and the one before", err)
	}
	o.does(409, "POST", "/keys/rotate", "").refused(t, "conflict")
	o.does(400, "POST", "/keys/rotate", `{"force":true}`).refused(t, "invalid_request", "force")
	fresh := newOperator(t, st)
	if _, old := before.CheckAccessToken(fresh.token); old {
		t.Error("got a token signed with the key before, want the new one")
	}
	fresh.does(200, "GET", "/clients", "")
	d.covers("POST /admin/v1/keys/rotate 200", "POST /admin/v1/keys/rotate 409")
}
