// Package audit holds the rules of the audit trail: what is recorded, of whom, and where a request
// came from. The trail has one row for each event, written in the transaction of the change itself.
// No event holds a secret. Only what operators change is recorded with its values.
package audit

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Event is a row of the trail: who did what.
type Event struct {
	Number  int64     // its place in the trail, from 1; set by the Store
	Time    time.Time // set by the Store
	Action  Action
	Outcome Outcome // "" = OK
	// Subject is the user or client that the event is about. The zero Subject is the service. The
	// Store sets that of AccountCreated: the user whom the same write creates.
	Subject Subject
	// Target is what the action met, if it is not Subject: the other one of a user and a client, a
	// token family, or the purpose of keys. "" = Subject.
	Target string
	// Details are fixed words: the names of changed members, the means of a sign-in, the budget that
	// was reached. Never a value that a person or client has sent.
	Details []string
	// Data is what the action says besides, as JSON: for an operator's change the values before and
	// after, without secrets. nil = nothing.
	Data  Data
	Count int // events that the row stands for; 0 = 1
	// From is what the Store keeps of Caller: an address, a prefix, or "". It is set by the Store,
	// which returns no Caller.
	From string
	Source
}

// Source says where the events of a request come from.
type Source struct {
	Actor     Actor
	RequestID string
	Caller    netip.Addr
	Browser   string // browser and system in a few words; "" = unknown
	Trace     string // trace context (package trace), for messages and logouts; no event keeps it
	Language  string // of the page (BCP 47), for messages; no event keeps it. "" = unknown
	// AsOperator is set for a person who acts with the rights of an operator, at the console. No event
	// keeps it: the actor is the person, and the subject somebody else or an app.
	AsOperator bool
	Place      string // rough place of Caller, for messages; no event keeps it. "" = unknown
}

// Data are values of an event by their names. All of them can be encoded as JSON.
type Data map[string]any

// Before and After are the members of Data with the values that a change replaced, and the new
// ones.
const (
	Before = "before"
	After  = "after"
)

// ByOperator reports whether the request is an operator's: a program's or, at the console, a person's.
func (s Source) ByOperator() bool { return s.Actor.Kind == Operator || s.AsOperator }

// Actor is who acts. The zero Actor is the service itself.
type Actor struct {
	Kind ActorKind
	ID   string // a user's or client's id; "" = nobody who is known, such as before a sign-in
}

// ActorKind is a kind of actors.
type ActorKind string

// The kinds of actors.
const (
	System   ActorKind = ""         // the service itself, or a command on its database
	User     ActorKind = "user"     // a person in a browser
	Client   ActorKind = "client"   // an OAuth client
	Operator ActorKind = "operator" // an OAuth client with operator rights
)

// Subject is a user or a client. At most one of the two is set.
type Subject struct {
	UserID   int64
	ClientID string
}

// OfUser returns the subject of a user.
func OfUser(id int64) Subject { return Subject{UserID: id} }

// OfClient returns the subject of a client.
func OfClient(id string) Subject { return Subject{ClientID: id} }

// String returns "user:ID", "client:ID", or "" for the service.
func (s Subject) String() string {
	switch {
	case s.UserID != 0:
		return "user:" + strconv.FormatInt(s.UserID, 10)
	case s.ClientID != "":
		return "client:" + s.ClientID
	}
	return ""
}

// Outcome is how an action ended.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"  // a wrong password or code
	Refused Outcome = "refused" // by a limit or a rule
)

// sourceKey and eventsKey are the keys of a context's values.
type sourceKey struct{}
type eventsKey struct{}

// WithSource returns a context for a request from that source.
func WithSource(ctx context.Context, s Source) context.Context {
	return context.WithValue(ctx, sourceKey{}, s)
}

// WithActor returns a context whose source has another actor, such as a user after the sign-in.
func WithActor(ctx context.Context, a Actor) context.Context {
	s := SourceOf(ctx)
	s.Actor = a
	return WithSource(ctx, s)
}

// SourceOf returns the source of a request; the zero Source is the service itself.
func SourceOf(ctx context.Context) Source {
	s, _ := ctx.Value(sourceKey{}).(Source)
	return s
}

// With returns a context that makes a write record events as well: in its own transaction, and only
// if the write has an effect. They get the source of ctx. Use the context for one write.
func With(ctx context.Context, events ...Event) context.Context {
	source := SourceOf(ctx)
	all := slices.Concat(Recorded(ctx), events)
	for i := range all {
		all[i].Source = source
	}
	return context.WithValue(ctx, eventsKey{}, all)
}

// Recorded returns the events that With has added. They must not be changed.
func Recorded(ctx context.Context) []Event {
	events, _ := ctx.Value(eventsKey{}).([]Event)
	return events
}
