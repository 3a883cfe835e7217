package gatehouse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "gatehouse/"

// leaves hold the rules. They import nothing of the module.
var leaves = []string{
	"actors/oauth", "actors/account", "actors/audit", "actors/geo", "actors/fair",
	"actors/ratelimit", "actors/mailbox", "actors/partition",
}

// services are what the endpoints call. They do not import each other.
var services = []string{"actors/lookup", "actors/token", "actors/people"}

// mayImport reports whether package from may import package to, both below the module. Tests may
// import what they like.
func mayImport(from, to string) bool {
	switch {
	case slices.Contains(leaves, from):
		return false
	case to == "cmd/stack":
		return usesStack(from)
	case below(to, "cmd"):
		return below(from, "cmd") && strings.HasPrefix(to, from+"/") // a program's own
	case below(to, "httpedge/edgetest"):
		return below(from, "httpedge/edgetest") || strings.HasPrefix(from, "loadtest/")
	case below(from, "httpedge/edgetest"):
		return !below(to, "loadtest")
	case below(from, "actors"):
		return slices.Contains(leaves, to)
	case below(from, "providers"):
		return slices.Contains(leaves, to) || provider(from) == provider(to)
	case below(from, "httpedge"):
		// The server stands above all groups, which share only these.
		shared := []string{"httpedge/endpoint", "httpedge/visit", "httpedge/pages"}
		edge := slices.Contains(shared, to) || from == "httpedge" && below(to, "httpedge")
		return edge || slices.Contains(services, to) || slices.Contains(leaves, to)
	}
	return true
}

// usesStack reports whether a package may get its server from cmd/stack: the program, the tests,
// the contracts and the measuring programs.
func usesStack(path string) bool {
	return path == "cmd/gatehouse" || path == "httpedge/edgetest" || path == "contracts" ||
		strings.HasPrefix(path, "loadtest/")
}

// below reports whether path is folder or stands in it.
func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// provider returns the first two elements of a path below providers: those of one provider belong
// together.
func provider(path string) string {
	elements := strings.SplitN(path, "/", 3)
	return strings.Join(elements[:min(2, len(elements))], "/")
}

func TestImportRule(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		both := [2]bool{}
		for _, path := range p.Imports {
			to, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			found++
			if !mayImport(from, to) {
				t.Errorf("got an import of %s in %s, want none", to, from)
			}
			both[0] = both[0] || slices.Contains(services, to) || below(to, "httpedge") && !below(to, "httpedge/edgetest")
			both[1] = both[1] || below(to, "providers")
		}
		// States of the contracts ask the services directly, beside the simulator and the store.
		if both[0] && both[1] && from != "cmd/stack" && from != "contracts" {
			t.Errorf("got both sides imported in %s, want that in cmd/stack and contracts only", from)
		}
	}
	if found == 0 {
		t.Error("got no import within the module, want the rule to be tried")
	}
}

func TestMayImport(t *testing.T) {
	for _, row := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/stack", "httpedge", true}, {"cmd/stack", "actors/token", true},
		{"cmd/stack", "providers/sim", true}, {"cmd/stack", "httpedge/edgetest", false},
		{"cmd/stack", "cmd/gatehouse", false}, {"cmd/gatehouse", "cmd/stack", true},
		{"cmd/gatehouse", "providers/sim", true}, {"cmd/gatehouse", "httpedge/edgetest", false},
		{"cmd/gatehouse", "cmd/gatehouse/bulk", true}, {"cmd/loadtest", "cmd/gatehouse/bulk", false},
		{"cmd/loadtest", "cmd/stack", false}, {"httpedge/edgetest", "cmd/stack", true},
		{"contracts", "cmd/stack", true}, {"loadtest/compare", "cmd/stack", true},
		{"loadtest", "cmd/stack", false}, {"httpedge", "cmd/stack", false},
		{"actors/token", "cmd/stack", false}, {"providers/sim", "cmd/stack", false},
		{"httpedge", "actors/token", true}, {"httpedge", "actors/geo", true},
		{"httpedge", "providers/sim", false}, {"httpedge", "httpedge/signin", true},
		{"httpedge/signin", "httpedge/visit", true}, {"httpedge/lookups", "httpedge/signin", false},
		{"httpedge/signin", "httpedge", false},
		{"httpedge/lookups", "actors/lookup", true}, {"httpedge/lookups", "httpedge/edgetest", false},
		{"httpedge", "httpedge/edgetest", false}, {"httpedge/pages", "providers/sqlstore", false},
		{"httpedge/edgetest", "providers/sim", true}, {"loadtest/compare", "httpedge/edgetest", true},
		{"httpedge/edgetest", "loadtest/overload", false}, {"httpedge", "loadtest", false},
		{"loadtest", "httpedge/edgetest", false}, {"actors/lookup", "actors/geo", true},
		{"actors/token", "actors/mailbox", true}, {"actors/people", "actors/token", false},
		{"actors/token", "httpedge", false}, {"actors/lookup", "providers/ipapi", false},
		{"actors/geo", "actors/oauth", false}, {"actors/mailbox", "actors/oauth", false},
		{"actors/geo", "actors/token", false}, {"actors/geo", "providers/sim", false},
		{"providers/ipapi", "actors/geo", true}, {"providers/ipapi", "actors/token", false},
		{"providers/ipapi", "httpedge", false}, {"providers/ipapi", "providers/sim", false},
		{"providers/mmdb/mmdbtest", "providers/mmdb", true}, {"loadtest", "cmd/loadtest", false},
	} {
		if got := mayImport(row.from, row.to); got != row.want {
			t.Errorf("%s imports %s: got %v, want %v", row.from, row.to, got, row.want)
		}
	}
}

type listed struct {
	ImportPath string
	Imports    []string // without those of tests
}

// packages lists the packages of the module.
func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
