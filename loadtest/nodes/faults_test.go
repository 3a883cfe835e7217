package nodes_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"gatehouse/loadtest/nodes"
)

func TestSchedule(t *testing.T) {
	schedule := func(seed uint64) []nodes.Fault {
		return nodes.Schedule(rand.New(rand.NewPCG(seed, seed)), 3, time.Hour)
	}
	all := schedule(1)
	if !reflect.DeepEqual(all, schedule(1)) {
		t.Error("the same seed has other faults")
	}
	if reflect.DeepEqual(all, schedule(2)) {
		t.Error("another seed has the same faults")
	}
	kinds := map[nodes.FaultKind]int{}
	var at time.Duration
	for _, f := range all {
		at += f.After
		kinds[f.Kind]++
		if f.Node == f.Peer || f.Node < 0 || f.Node > 2 || f.Peer < 0 || f.Peer > 2 {
			t.Errorf("got a fault of the nodes %d and %d, want two of three", f.Node, f.Peer)
		}
		if f.Length <= 0 || f.Length > 8*time.Second || at > time.Hour {
			t.Errorf("got a fault of %v after %v, want at most 8s within an hour", f.Length, at)
		}
	}
	if len(kinds) != 8 {
		t.Errorf("got faults by kind %v, want eight kinds", kinds)
	}
}

func TestUnexplainedLines(t *testing.T) {
	const away = `{"level":"ERROR","msg":"the database cannot be read: /readyz fails"}`
	for _, row := range []struct {
		name, line string
		kind       nodes.FaultKind
		want       int
	}{
		{"no error", `{"level":"WARN","msg":"the lease is lost"}`, nodes.FaultKill, 0},
		{"database away", away, nodes.FaultDatabase, 0},
		{"database cut off", away, nodes.FaultCutDatabase, 0},
		{"database there", away, nodes.FaultKill, 1},
		{"panic", `{"level":"ERROR","msg":"panic in a request handler"}`, nodes.FaultDatabase, 1},
		{"crash", "panic: runtime error: index out of range", nodes.FaultDatabase, 1},
		{"start without the database", "gatehouse: GATEHOUSE_DATABASE_URL: open store: connect to database: " +
			"refused", nodes.FaultDatabase, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := nodes.Unexplained(row.kind, row.line); got != row.want {
				t.Errorf("got %d problems, want %d", got, row.want)
			}
		})
	}
}

func TestSeenInFaults(t *testing.T) {
	for _, row := range []struct {
		name string
		seen nodes.Seen
		kept bool
	}{
		{"nothing", nodes.Seen{Admitted: 100}, true},
		{"late", nodes.Seen{Late: true}, false},
		{"live token refused", nodes.Seen{Failed: 401}, false},
		{"failure", nodes.Seen{Failed: 500}, false},
		{"away", nodes.Seen{Failed: 503}, true},
		{"away in calm", nodes.Seen{Failed: 503, Calm: true}, false},
		{"101", nodes.Seen{Admitted: 101}, false},
		{"200 with a fault", nodes.Seen{Admitted: 200, DuringOne: true}, true},
		{"201 with a fault", nodes.Seen{Admitted: 201, DuringOne: true}, false},
		{"healed late", nodes.Seen{Healed: 11 * time.Second}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := row.seen.Check(); (err == nil) != row.kept {
				t.Errorf("got %v, want kept %v", err, row.kept)
			}
		})
	}
}

// TestNextVersion fails if the next version cannot be made from the source any more.
func TestNextVersion(t *testing.T) {
	if err := nodes.WriteNext(t.Context(), t.TempDir()); err != nil {
		t.Error(err)
	}
}
