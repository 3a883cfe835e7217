package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/providers/sqlstore"
)

// declaring is a Store whose sets are declared.
type declaring struct {
	*testing.T
	*sqlstore.Store
	postgres bool
	revision int64
}

// eachDeclaring runs a test with an empty Store of both databases.
func eachDeclaring(t *testing.T, test func(d *declaring)) {
	for _, of := range databases {
		t.Run(of.name, func(t *testing.T) {
			test(&declaring{T: t, postgres: of.name == "PostgreSQL",
				Store: open(t, sqlstore.Config{URL: of.make(t), SweepInterval: time.Hour})})
		})
	}
}

// records note what a Declare would record.
var records = oauth.DeclareRecords{
	Client: func(ctx context.Context, old, next *oauth.Client) context.Context {
		e := audit.Event{Action: audit.ClientChanged, Subject: audit.OfClient(next.ID)}
		if old == nil {
			e.Action = audit.ClientCreated
		} else if old.Disabled != next.Disabled {
			e.Action = map[bool]audit.Action{true: audit.ClientDisabled, false: audit.ClientEnabled}[next.Disabled]
		}
		return audit.With(ctx, e)
	},
	Resource: func(ctx context.Context, old, next *oauth.Resource) context.Context {
		switch {
		case old == nil:
			return audit.With(ctx, audit.Event{Action: audit.ResourceCreated, Target: next.URI})
		case next == nil:
			return audit.With(ctx, audit.Event{Action: audit.ResourceDeleted, Target: old.URI})
		}
		return audit.With(ctx, audit.Event{Action: audit.ResourceChanged, Target: next.URI})
	},
}

// sets returns sets from texts such as "shop: a b https://x.example/", with a higher revision.
func (d *declaring) sets(texts ...string) (all []*oauth.DeclaredSet) {
	d.revision++
	for _, text := range texts {
		name, objects, _ := strings.Cut(text, ":")
		set := &oauth.DeclaredSet{Name: name, Revision: d.revision, Digest: oauth.HashOf(text)}
		for _, id := range strings.Fields(objects) {
			if strings.HasPrefix(id, "https:") {
				set.Resources = append(set.Resources, &oauth.Resource{URI: id, Scopes: []string{"x"},
					Set: name, Declared: true, Created: time.UnixMilli(1)})
				continue
			}
			set.Clients = append(set.Clients, &oauth.Client{ID: id, Name: "App " + id, Public: true,
				RedirectURIs: []string{"https://app.example/"}, Scopes: oauth.ViewUser,
				Grants: oauth.AuthorizationCodeGrant, Created: time.UnixMilli(1),
				Options: oauth.ClientOptions{Set: name, Declared: true}})
		}
		all = append(all, set)
	}
	return all
}

func (d *declaring) declare(texts ...string) error {
	d.Helper()
	_, err := d.Declare(d.Context(), d.sets(texts...), records)
	return err
}

func (d *declaring) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// state returns the clients and resources with their sets.
func (d *declaring) state() string {
	d.Helper()
	clients, err := d.Clients(d.Context(), "", 100)
	d.must(err)
	resources, err := d.Resources(d.Context())
	d.must(err)
	var all []string
	for _, c := range clients {
		state := c.Options.Set
		if c.Disabled {
			state += " disabled"
		}
		if c.Options.Released {
			state += " released"
		}
		all = append(all, c.ID+"="+state)
	}
	for _, r := range resources {
		all = append(all, fmt.Sprintf("%s=%s %d", r.URI, r.Set, r.Number))
	}
	return strings.Join(all, ", ")
}

func (d *declaring) wantState(want string) {
	d.Helper()
	if got := d.state(); got != want {
		d.Errorf("got %s, want %s", got, want)
	}
}

// wantRefused checks for a *oauth.DeclareError with a text.
func (d *declaring) wantRefused(err error, text string) {
	d.Helper()
	var refused *oauth.DeclareError
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, text) {
		d.Errorf("got %v, want a refusal with %q", err, text)
	}
}

// TestDeclareHandsOver: sets that change together may hand objects to each other. What is in no file
// is released, and the next set may have it.
func TestDeclareHandsOver(t *testing.T) {
	eachDeclaring(t, func(d *declaring) {
		const x, y = " https://x.example/", " https://y.example/"
		d.must(d.declare("a: one two"+x+y, "b: three"))
		d.wantState("one=a, three=b, two=a, https://x.example/=a 1, https://y.example/=a 2")
		d.must(d.declare("a: one three"+x, "b: two"+y))
		d.wantState("one=a, three=a, two=b, https://x.example/=a 1, https://y.example/=b 2")
		d.wantRefused(d.declare("c: two"), `the set "b" has it`)
		d.wantRefused(d.declare("c: "+y), `the set "b" has it`)
		d.must(d.declare("b:"))
		d.wantState("one=a, three=a, two=b disabled released, https://x.example/=a 1")
		d.must(d.declare("c: two" + y))
		d.wantState("one=a, three=a, two=c, https://x.example/=a 1, https://y.example/=c 2")
		d.must(d.DeleteClient(t.Context(), "three"))
		made := &oauth.Client{ID: "three", Name: "Mine", Public: true}
		d.must(d.CreateClient(t.Context(), made))
		d.wantRefused(d.declare("c: two three"+y), "the admin API has made it")

		events, err := d.Events(t.Context(), audit.Filter{ClientID: "two", Limit: 100})
		d.must(err)
		var got []audit.Action
		for _, e := range events {
			got = append(got, e.Action)
		}
		want := []audit.Action{audit.ClientCreated, audit.ClientChanged, audit.ClientDisabled, audit.ClientEnabled}
		if !slices.Equal(got, want) {
			t.Errorf("got events %v, want %v", got, want)
		}
	})
}

// TestDeclareFails: an error of the database is no refusal, and nothing is written.
func TestDeclareFails(t *testing.T) {
	eachDeclaring(t, func(d *declaring) {
		d.must(d.declare("a: one"))
		trigger := `CREATE TRIGGER broken BEFORE INSERT ON resources BEGIN SELECT RAISE(ABORT, 'broken'); END`
		drop := "DROP TRIGGER broken"
		if d.postgres {
			d.execute(`CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken'; END $$`)
			trigger = "CREATE TRIGGER broken BEFORE INSERT ON resources EXECUTE FUNCTION broken()"
			drop += " ON resources"
		}
		d.execute(trigger)
		err := d.declare("a: https://x.example/")
		var refused *oauth.DeclareError
		if err == nil || errors.As(err, &refused) {
			t.Errorf("got %v, want an error that is no refusal", err)
		}
		d.wantState("one=a")
		d.execute(drop)
		d.must(d.declare("a: https://x.example/"))
		d.wantState("one=a disabled released, https://x.example/=a 1")
	})
}

// TestDeclareConflictWritesNothing: a change that cannot be made after others were undoes them.
func TestDeclareConflictWritesNothing(t *testing.T) {
	eachDeclaring(t, func(d *declaring) {
		d.must(d.declare("a: one"))
		if d.postgres {
			d.execute(`CREATE FUNCTION ignored() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
			d.execute("CREATE TRIGGER ignored BEFORE UPDATE ON clients FOR EACH ROW EXECUTE FUNCTION ignored()")
		} else {
			d.execute("CREATE TRIGGER ignored BEFORE UPDATE ON clients BEGIN SELECT RAISE(IGNORE); END")
		}
		if err := d.declare("a: https://x.example/"); !errors.Is(err, oauth.ErrConflict) {
			t.Errorf("got %v, want %v", err, oauth.ErrConflict)
		}
		d.wantState("one=a")
	})
}

// TestDeclareAgainAfterDeadlock: PostgreSQL ends some of the transactions that wait for each other.
func TestDeclareAgainAfterDeadlock(t *testing.T) {
	eachDeclaring(t, func(d *declaring) {
		if !d.postgres {
			return
		}
		d.execute("CREATE SEQUENCE tries")
		d.execute(`CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF nextval('tries') < 3 THEN RAISE EXCEPTION USING ERRCODE = '40P01'; END IF; RETURN NEW; END $$`)
		d.execute("CREATE TRIGGER deadlock BEFORE INSERT ON resources FOR EACH ROW EXECUTE FUNCTION deadlock()")
		d.must(d.declare("a: one https://x.example/"))
		d.wantState("one=a, https://x.example/=a 1")
	})
}

func (d *declaring) execute(text string) {
	d.Helper()
	d.must(sqlstore.Execute(d.Context(), d.Store, text))
}
