package audit_test

import (
	"context"
	"net/netip"
	"testing"

	"gatehouse/actors/audit"
)

func TestEventsGetTheirSource(t *testing.T) {
	source := audit.Source{
		Actor: audit.Actor{Kind: audit.User}, RequestID: "r1", Caller: netip.MustParseAddr("192.0.2.1"),
	}
	request := audit.WithSource(context.Background(), source)
	user := audit.Actor{Kind: audit.User, ID: "7"}
	first := audit.With(audit.WithActor(request, user), audit.Event{Action: audit.SignIn})
	both := audit.With(first, audit.Event{Action: audit.PasswordReset, Subject: audit.OfUser(7)})
	if got := len(audit.Recorded(request)) + len(audit.Recorded(first)); got != 1 {
		t.Errorf("got %d events of the contexts before, want 1", got)
	}
	got := audit.Recorded(both)
	if len(got) != 2 || got[0].Action != audit.SignIn || got[1].Action != audit.PasswordReset {
		t.Fatalf("got %v, want both events in order", got)
	}
	for _, e := range got {
		if e.Actor != user || e.RequestID != "r1" || e.Caller != source.Caller {
			t.Errorf("got source %+v, want that of the request with the user", e.Source)
		}
	}
	if got := audit.SourceOf(request).Actor; got != source.Actor {
		t.Errorf("got actor %v of the request, want it unchanged", got)
	}
}

func TestSubjectString(t *testing.T) {
	for want, s := range map[string]audit.Subject{
		"": {}, "user:7": audit.OfUser(7), "client:app": audit.OfClient("app"),
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
