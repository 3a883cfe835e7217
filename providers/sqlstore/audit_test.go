package sqlstore_test

import (
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/providers/sqlstore"
)

// TestEventNumbersOfTwoProcesses checks that a follower misses no event of either process.
func TestEventNumbersOfTwoProcesses(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			eventsInOrder(t, []audit.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})})
		})
	}
}

func TestAuditAddresses(t *testing.T) {
	for addresses, want := range map[audit.Addresses]string{
		"": "192.0.2.0/24", audit.NoAddresses: "", audit.AddressPrefixes: "192.0.2.0/24",
		audit.FullAddresses: "192.0.2.7",
	} {
		s := open(t, sqlstore.Config{URL: databases[0].make(t), AuditAddresses: addresses})
		ctx := audit.WithSource(t.Context(), audit.Source{Caller: netip.MustParseAddr("192.0.2.7")})
		if err := s.Record(audit.With(ctx, audit.Event{Action: audit.SignIn})); err != nil {
			t.Fatal(err)
		}
		events, err := s.Events(t.Context(), audit.Filter{Limit: 2})
		if err != nil || len(events) != 1 || events[0].From != want {
			t.Errorf("%q: got %+v, error %v, want one event from %q", addresses, events, err, want)
		}
	}
	_, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: databases[0].make(t),
		AuditAddresses: "some", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err == nil {
		t.Error("unknown addresses: got no error")
	}
}

func TestAuditKeep(t *testing.T) {
	const keep, events = 400 * 24 * time.Hour, 450 // more than two steps of the sweeper
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := open(t, sqlstore.Config{URL: d.make(t), AuditKeep: keep, SweepInterval: time.Hour})
			ctx := t.Context()
			for i := range events {
				ctx = audit.With(ctx, audit.Event{Action: audit.SignIn,
					Subject: audit.OfUser(int64(i + 1))})
			}
			if err := s.Record(ctx); err != nil {
				t.Fatal(err)
			}
			for _, row := range []struct {
				at   time.Time
				left int
			}{
				{time.Now().Add(keep - time.Minute), events}, {time.Now().Add(keep), 0},
			} {
				if _, err := s.Sweep(t.Context(), row.at); err != nil {
					t.Fatal(err)
				}
				left, err := s.Events(t.Context(), audit.Filter{Limit: events + 1})
				if err != nil || len(left) != row.left {
					t.Errorf("got %d events at %v, error %v, want %d", len(left), row.at, err,
						row.left)
				}
			}
		})
	}
}

// TestEventsUseTheBestIndex checks the index that SQLite takes: that of the primary key unless
// named.
func TestEventsUseTheBestIndex(t *testing.T) {
	s := open(t, sqlstore.Config{URL: databases[0].make(t)})
	since := time.Now()
	for _, row := range []struct {
		filter audit.Filter
		want   []string
	}{
		{audit.Filter{Since: since}, nil},
		{audit.Filter{Newest: true, After: 3}, nil},
		{audit.Filter{Action: audit.SignIn, Since: since}, []string{"audit_action"}},
		{audit.Filter{UserID: 7, Action: audit.SignIn, Since: since}, []string{"audit_user"}},
		{audit.Filter{ClientID: "app", Action: audit.SignIn, Since: since, Newest: true},
			[]string{"audit_client", "audit_target", "audit_actor"}},
	} {
		steps, err := sqlstore.Plan(t.Context(), s, sqlstore.EventsStatement(row.filter))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, step := range steps {
			if _, rest, ok := strings.Cut(step, "INDEX audit_"); ok {
				name, _, _ := strings.Cut(rest, " ")
				got = append(got, "audit_"+name)
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%+v: got indexes %s, want %s", row.filter, got, row.want)
		}
	}
}

// TestTwoProcessesShareCounts checks that the limit of rows holds over all processes.
func TestTwoProcessesShareCounts(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.make(t)
			stores := []*sqlstore.Store{open(t, sqlstore.Config{URL: url}),
				open(t, sqlstore.Config{URL: url})}
			begin := time.Now().Truncate(time.Hour)
			for i := range audit.MaxRows + 10 {
				ctx := audit.With(t.Context(), audit.Event{Action: audit.SignIn,
					Subject: audit.OfUser(7)})
				if err := stores[i%2].Record(ctx); err != nil {
					t.Fatal(err)
				}
			}
			events, err := stores[0].Events(t.Context(), audit.Filter{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if !begin.Equal(time.Now().Truncate(time.Hour)) {
				return // the hour has ended, and another limit begun
			}
			if len(events) != audit.MaxRows+1 || events[audit.MaxRows].Count != 10 {
				t.Errorf("got %d rows, want %d, the last of 10 events", len(events),
					audit.MaxRows+1)
			}
		})
	}
}
