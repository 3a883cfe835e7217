package me_test

import (
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// TestOwnAttributes: a person changes the attributes that operators leave to people, and no others.
func TestOwnAttributes(t *testing.T) {
	st := stacktest.NewReachable(t)
	o := st.NewOperator(t)
	u := st.NewUser(t, "Ada", "ada@example.com")
	o.Do(201, "PUT", "/attributes/role", `{}`)
	o.Do(201, "PUT", "/attributes/floor", `{"type":"number","change":"person"}`)
	o.Do(201, "PUT", "/attributes/skills", `{"type":"strings","change":"person"}`)
	b, _ := st.SignedIn(t, "ada@example.com")
	p := b.Get("/me/profile")
	if strings.Contains(p.Body, "attributes.role") || !strings.Contains(p.Body, "attributes.floor") {
		t.Error("got other fields than floor and skills")
	}
	attributes := func(want string) {
		t.Helper()
		if u, err := st.Store.User(t.Context(), u.ID); err != nil || string(u.Attributes) != want {
			t.Errorf("got %s and error %v, want %s", u.Attributes, err, want)
		}
	}
	b.Send(p, "attributes.floor", "3", "attributes.skills", "go, chess")
	attributes(`{"floor":3,"skills":["go","chess"]}`)
	p = b.Get("/me/profile")
	for field, value := range map[string]string{"attributes.role": "admin", "attributes.none": "x",
		"attributes.floor": "high", "attributes.groups": "gatehouse-operators"} {
		if got := b.Send(p, field, value); got.Status != 422 {
			t.Errorf("%s=%s: got %d, want 422", field, value, got.Status)
		}
	}
	attributes(`{"floor":3,"skills":["go","chess"]}`)
	b.Send(p, "attributes.floor", " ", "attributes.skills", " ")
	attributes("")
}
