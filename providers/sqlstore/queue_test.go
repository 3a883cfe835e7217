package sqlstore_test

import (
	"errors"
	"slices"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// askedBy returns an operation that a client asks for.
func askedBy(client string) *oauth.SaveCode {
	op := save()
	op.Code.ClientID = client
	return op
}

// TestQueueServesAskersInTurn has one client queue many writes before others queue one each.
func TestQueueServesAskersInTurn(t *testing.T) {
	const flood = 300
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := open(t, sqlstore.Config{URL: d.make(t), BatchSize: 8})
			release := hold(s)
			type end struct {
				client string
				number int
			}
			var order []end // written by the writer's goroutine
			ended := make(chan error, flood+2)
			ask := func(client string, number int) {
				op := askedBy(client)
				op.OnDone(func(err error) {
					order = append(order, end{client, number})
					ended <- err
				})
				s.Submit(op)
			}
			for i := range flood {
				ask("many", i)
			}
			ask("one", 0)
			ask("another", 0)
			release()
			for range flood + 2 {
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
			}
			for _, client := range []string{"one", "another"} {
				if place := slices.Index(order, end{client, 0}); place > 2 {
					t.Errorf("%s was served after %d others, want 2 at most", client, place)
				}
			}
			order = slices.DeleteFunc(order, func(e end) bool { return e.client != "many" })
			for i, e := range order {
				if e.number != i {
					t.Fatalf("got operation %d of one client at place %d, want its order", e.number, i)
				}
			}
		})
	}
}

// TestFloodTakesNoRoomOfOthers fills the queue from four clients. A line holds a quarter of the
// queue, and a full queue makes room for others.
func TestFloodTakesNoRoomOfOthers(t *testing.T) {
	url, _ := sqlite(t)
	s := open(t, sqlstore.Config{URL: url, QueueLength: 16})
	release := hold(s)
	ends := map[string][]chan error{}
	ask := func(client string) chan error {
		end := make(chan error, 1)
		op := askedBy(client)
		op.OnDone(func(err error) { end <- err })
		s.Submit(op)
		ends[client] = append(ends[client], end)
		return end
	}
	flooding := []string{"a", "b", "c", "d"}
	for _, client := range flooding {
		for range 4 {
			ask(client)
		}
		refused := askedBy(client)
		if err := submit(t, s, refused); !errors.Is(err, oauth.ErrBusy) {
			t.Errorf("fifth of %s: got %v, want %v", client, err, oauth.ErrBusy)
		}
		if refused.Cancel() {
			t.Error("cancel of a refused operation: got accepted, want refused")
		}
	}
	ask("quiet")
	created := make(chan error, 1)
	go func() { created <- s.CreateUser(t.Context(), &account.User{Name: "Ada"}) }()
	evicted := 0
	for evicted < 2 { // one for the quiet client, one for the user
		for _, client := range flooding {
			last := len(ends[client]) - 1
			select {
			case err := <-ends[client][last]:
				if !errors.Is(err, oauth.ErrBusy) {
					t.Fatalf("newest of %s: got %v, want %v", client, err, oauth.ErrBusy)
				}
				ends[client] = ends[client][:last]
				evicted++
			default:
			}
		}
	}
	release()
	if err := <-created; err != nil {
		t.Errorf("create user: got %v, want none", err)
	}
	for client, all := range ends {
		for i, end := range all {
			if err := <-end; err != nil {
				t.Errorf("operation %d of %s: got %v, want none", i, client, err)
			}
		}
	}
}
