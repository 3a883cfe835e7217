package audit

import (
	"encoding/json"
	"fmt"
	"time"
)

// record is an Event as the admin API and the webhook show it. Unset members are null.
type record struct {
	Number    int64       `json:"number"`
	Time      string      `json:"time"` // RFC 3339, UTC, milliseconds
	Action    Action      `json:"action"`
	Outcome   Outcome     `json:"outcome"`
	UserID    *int64      `json:"user_id"`
	ClientID  *string     `json:"client_id"`
	Target    *string     `json:"target"`
	Details   []string    `json:"details"`
	Data      Data        `json:"data"`
	Count     int         `json:"count"`
	Actor     recordActor `json:"actor"`
	RequestID *string     `json:"request_id"`
	Caller    *string     `json:"caller"`
	Browser   *string     `json:"browser"`
}

type recordActor struct {
	Kind ActorKind `json:"kind"`
	ID   *string   `json:"id"`
}

// systemKind is System in JSON.
const systemKind ActorKind = "system"

const timeForm = "2006-01-02T15:04:05.000Z"

// MarshalJSON returns e in the form that the admin API and the webhook share.
func (e Event) MarshalJSON() ([]byte, error) {
	r := record{
		Number: e.Number, Time: e.Time.UTC().Format(timeForm), Action: e.Action,
		Outcome: e.Outcome, UserID: orNull(e.Subject.UserID),
		ClientID: orNull(e.Subject.ClientID), Target: orNull(e.Target),
		Details: append([]string{}, e.Details...), Data: e.Data, Count: e.Count,
		Actor:     recordActor{e.Actor.Kind, orNull(e.Actor.ID)},
		RequestID: orNull(e.RequestID), Caller: orNull(e.From), Browser: orNull(e.Browser),
	}
	if r.Data == nil {
		r.Data = Data{}
	}
	if r.Actor.Kind == System {
		r.Actor.Kind = systemKind
	}
	return json.Marshal(r)
}

// UnmarshalJSON reads what MarshalJSON returns.
func (e *Event) UnmarshalJSON(text []byte) error {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	at, err := time.Parse(time.RFC3339, r.Time)
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	*e = Event{
		Number: r.Number, Time: at, Action: r.Action, Outcome: r.Outcome,
		Subject: Subject{orZero(r.UserID), orZero(r.ClientID)}, Target: orZero(r.Target),
		Details: r.Details, Data: r.Data, Count: r.Count, From: orZero(r.Caller),
		Source: Source{Actor: Actor{r.Actor.Kind, orZero(r.Actor.ID)},
			RequestID: orZero(r.RequestID), Browser: orZero(r.Browser)},
	}
	if len(e.Data) == 0 {
		e.Data = nil
	}
	if e.Actor.Kind == systemKind {
		e.Actor.Kind = System
	}
	return nil
}

// orNull returns a pointer to v, or nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func orZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}
