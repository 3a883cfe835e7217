package console_test

import (
	"fmt"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/cmd/stack/stacktest"
)

// join adds a person to the operators' group, and leave takes them out again.
func join(t *testing.T, st *stacktest.IdentityStack, u *account.User) {
	t.Helper()
	stacktest.Must(t, st.People.AddMember(t.Context(), account.OperatorsGroup, u.ID))
}

func leave(t *testing.T, st *stacktest.IdentityStack, u *account.User) {
	t.Helper()
	stacktest.Must(t, st.People.RemoveMember(t.Context(), account.OperatorsGroup, u.ID))
}

// age makes the sessions that old, and the last use of a second factor, in milliseconds.
func age(t *testing.T, st *stacktest.IdentityStack, signIn, factor int) {
	t.Helper()
	st.Alter(t, fmt.Sprintf("UPDATE sessions SET signed_in = created - %d, factored = created - %d",
		signIn, factor))
}
