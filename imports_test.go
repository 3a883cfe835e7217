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

// floors has the height of each folder at the top. A package imports lower floors and its own
// folder. What has no floor has tests, which may import anything (docs, deploy, the root), and a
// program that imports nothing of ours (deploy/make).
var floors = map[string]int{
	"contracts": 5, "cmd": 4, "loadtest": 3, "httpedge": 2, "providers": 2, "actors": 1,
}

// The folders of actors. Leaves hold the rules; services are what the endpoints call.
var (
	leaves = []string{
		"actors/oauth", "actors/account", "actors/audit", "actors/brand", "actors/geo", "actors/fair",
		"actors/lookalike", "actors/ratelimit", "actors/partition", "actors/texts", "actors/trace", "actors/wire",
	}
	services = []string{"actors/lookup", "actors/token", "actors/people"}
)

// own stands for the first two elements of the importing package's path, and all below them.
const own = "own"

// finer says what packages may import of a folder where the floors allow more. The first row counts
// whose from is the package or a folder that it stands in.
var finer = []struct {
	from, of string
	only     []string
}{
	{"actors/lookup", "actors", append([]string{"actors/mailbox"}, leaves...)},
	{"actors/token", "actors", append([]string{"actors/mailbox"}, leaves...)},
	{"actors/people", "actors", append([]string{"actors/mailbox"}, leaves...)},
	{"actors/mailbox", "actors", leaves},
	{"actors", "actors", []string{"actors/wire"}},
	{"providers", "actors", leaves},
	{"providers", "providers", []string{own}},
	{"httpedge/", "httpedge", []string{"httpedge/endpoint", "httpedge/visit", "httpedge/pages"}},
	{"loadtest", "httpedge", nil},
	{"loadtest", "providers", []string{"providers/sqlstore", "providers/sim"}},
	{"cmd", "cmd", []string{own, "cmd/stack"}},
}

// internalTests are imports of internal test files that cannot move.
var internalTests = []string{
	"loadtest/scale -> cmd/stack",
	"loadtest/scale -> cmd/stack/stacktest",
	"providers/messenger/trail -> providers/sqlstore",
	"providers/messenger/trail -> providers/sqlstore/sqlitetest",
}

// mayImport reports whether package from may import package to, both below the module. Tests may
// import more.
func mayImport(from, to string) bool {
	here, there := folder(from), folder(to)
	if here != there && floors[here] <= floors[there] {
		return false
	}
	for _, row := range finer {
		if row.of == there && (below(from, row.from) || strings.HasSuffix(row.from, "/") &&
			strings.HasPrefix(from, row.from)) {
			return slices.ContainsFunc(row.only, func(only string) bool {
				if only == own {
					only = provider(from)
				}
				return below(to, only)
			})
		}
	}
	return true
}

// folder returns the first element of a path.
func folder(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

// below reports whether path is folder or stands in it.
func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// provider returns the first two elements of a path: packages below one provider, and those of one
// program, belong together.
func provider(path string) string {
	elements := strings.SplitN(path, "/", 3)
	return strings.Join(elements[:min(2, len(elements))], "/")
}

func TestImportRule(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if floors[folder(from)] == 0 {
			continue
		}
		edge, providers := false, false
		check := func(paths, allowed []string, rule func(to string) bool) {
			for _, path := range paths {
				to, ours := strings.CutPrefix(path, module)
				arrow := from + " -> " + to
				if !ours || rule(to) {
					continue
				}
				if used[arrow] = true; !slices.Contains(allowed, arrow) {
					t.Errorf("got %s, want no such import", arrow)
				}
			}
		}
		check(p.Imports, nil, func(to string) bool {
			edge = edge || slices.Contains(services, to) || below(to, "httpedge")
			providers = providers || below(to, "providers")
			return mayImport(from, to)
		})
		check(p.TestImports, internalTests, func(to string) bool { return mayImport(from, to) })
		check(p.XTestImports, nil, func(to string) bool {
			return below(from, "contracts") || !below(to, "contracts")
		})
		// States of the contracts ask the services directly, beside the simulator and the store.
		if edge && providers && from != "cmd/stack" && from != "contracts" {
			t.Errorf("got both sides imported in %s, want that in cmd/stack and contracts only", from)
		}
	}
	for _, arrow := range internalTests {
		if !used[arrow] {
			t.Errorf("got no import %s, want no exception for it", arrow)
		}
	}
}

func TestMayImport(t *testing.T) {
	for _, row := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/stack", "httpedge", true}, {"cmd/stack", "actors/token", true},
		{"cmd/stack", "providers/sim", true}, {"cmd/stack", "cmd/gatehouse", false},
		{"cmd/gatehouse", "cmd/stack", true}, {"cmd/gatehouse", "providers/sim", true},
		{"cmd/gatehouse", "cmd/gatehouse/bulk", true},
		{"cmd/loadtest", "cmd/gatehouse/bulk", false}, {"cmd/loadtest", "loadtest", true},
		{"cmd/stack/stacktest", "cmd/stack", true}, {"cmd/stack/stacktest", "loadtest/lab", true},
		{"cmd/gatehouse", "contracts", false}, {"contracts", "cmd/stack", true},
		{"contracts/pactcheck", "contracts/verify", true}, {"contracts", "loadtest", true},
		{"loadtest/compare", "cmd/stack", false}, {"loadtest", "httpedge", false},
		{"loadtest/scale", "providers/sqlstore/pgtest", true},
		{"loadtest/compare", "providers/sim", true}, {"loadtest", "providers/ipapi", false},
		{"loadtest/nodes/run", "loadtest/nodes", true}, {"httpedge", "cmd/stack", false},
		{"httpedge", "loadtest", false}, {"httpedge", "actors/token", true},
		{"httpedge", "actors/geo", true}, {"httpedge", "providers/sim", false},
		{"httpedge", "httpedge/signin", true}, {"httpedge/signin", "httpedge/visit", true},
		{"httpedge/lookups", "httpedge/signin", false}, {"httpedge/signin", "httpedge", false},
		{"httpedge/lookups", "actors/lookup", true},
		{"httpedge/pages", "providers/sqlstore", false}, {"actors/token", "cmd/stack", false},
		{"actors/lookup", "actors/geo", true}, {"actors/token", "actors/mailbox", true},
		{"actors/people", "actors/token", false}, {"actors/token", "httpedge", false},
		{"actors/lookup", "providers/ipapi", false}, {"actors/geo", "actors/oauth", false},
		{"actors/mailbox", "actors/oauth", true}, {"actors/mailbox", "actors/token", false},
		{"actors/geo", "actors/token", false}, {"actors/geo", "providers/sim", false},
		{"providers/ipapi", "actors/geo", true}, {"providers/ipapi", "actors/token", false},
		{"providers/ipapi", "httpedge", false}, {"providers/ipapi", "providers/sim", false},
		{"providers/mmdb/mmdbtest", "providers/mmdb", true}, {"providers/sim", "cmd/stack", false},
	} {
		if got := mayImport(row.from, row.to); got != row.want {
			t.Errorf("%s imports %s: got %v, want %v", row.from, row.to, got, row.want)
		}
	}
}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// packages lists the packages of the module, once for each set of build tags that files ask for.
func packages(t *testing.T) []listed {
	t.Helper()
	var all []listed
	for _, tags := range []string{"", "pact", "programs", "deploy", "race"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-tags", tags,
			"-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
		if err != nil {
			t.Fatal(err)
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var p listed
			err := decoder.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}
