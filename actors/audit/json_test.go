package audit_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"gatehouse/actors/audit"
)

func TestEventJSON(t *testing.T) {
	at := time.Date(2026, 5, 3, 12, 0, 0, 7e6, time.UTC)
	for _, row := range []struct {
		event audit.Event
		want  string
	}{
		{
			audit.Event{Number: 4, Time: at.In(time.FixedZone("", 7200)), Action: audit.SignIn,
				Outcome: audit.Failed, Subject: audit.OfUser(7), Details: []string{"password"},
				Data:  audit.Data{"factors": []any{"pwd"}},
				Count: 12, From: "192.0.2.0/24", Source: audit.Source{
					Actor: audit.Actor{Kind: audit.User, ID: "7"}, RequestID: "r1",
					Browser: "Firefox on Linux"}},
			`{"number":4,"time":"2026-05-03T12:00:00.007Z","action":"sign_in","outcome":"failed",` +
				`"user_id":7,"client_id":null,"target":null,"details":["password"],` +
				`"data":{"factors":["pwd"]},"count":12,` +
				`"actor":{"kind":"user","id":"7"},"request_id":"r1","caller":"192.0.2.0/24",` +
				`"browser":"Firefox on Linux"}`,
		},
		{
			audit.Event{Number: 5, Time: at, Action: audit.KeysRotated, Outcome: audit.OK,
				Target: "forms", Count: 1},
			`{"number":5,"time":"2026-05-03T12:00:00.007Z","action":"keys_rotated","outcome":"ok",` +
				`"user_id":null,"client_id":null,"target":"forms","details":[],"data":{},"count":1,` +
				`"actor":{"kind":"system","id":null},"request_id":null,"caller":null,"browser":null}`,
		},
	} {
		got, err := json.Marshal(row.event)
		if err != nil || string(got) != row.want {
			t.Errorf("got %s and error %v, want %s", got, err, row.want)
		}
		var back audit.Event
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatal(err)
		}
		row.event.Time = at
		if len(back.Details) == 0 {
			back.Details = nil
		}
		if !reflect.DeepEqual(back, row.event) {
			t.Errorf("got %+v, want %+v", back, row.event)
		}
	}
	for _, text := range []string{`{}`, `{"time":"yesterday"}`, `[]`} {
		if err := json.Unmarshal([]byte(text), new(audit.Event)); err == nil {
			t.Errorf("got no error for %s, want one", text)
		}
	}
}
