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

// leaves hold the rules; they know nobody.
var leaves = []string{"actors/oauth", "actors/account", "actors/geo", "actors/ratelimit"}

// mayImport says whether package from may import package to, both below the module. Tests may import what they like.
func mayImport(from, to string) bool {
	switch {
	case below(from, "cmd"), below(from, "httpedge/edgetest"):
		return !below(to, "cmd") && (!below(to, "httpedge/edgetest") || below(from, "httpedge/edgetest"))
	case slices.ContainsFunc(leaves, func(leaf string) bool { return below(from, leaf) }):
		return false
	case below(from, "actors"):
		return slices.Contains(leaves, to) || to == "actors/mailbox"
	case below(from, "providers"):
		return slices.Contains(leaves, to) || provider(from) == provider(to)
	case below(from, "httpedge"):
		return to == "actors" || to == "actors/lookup" || slices.Contains(leaves, to) || below(to, "httpedge") && !below(to, "httpedge/edgetest")
	}
	return !below(to, "cmd") && !below(to, "httpedge/edgetest")
}

// below reports whether path is folder or stands in it.
func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// provider returns the first two elements of a path below providers: those of one provider belong together.
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
			both[0] = both[0] || to == "actors" || to == "actors/lookup" || below(to, "httpedge")
			both[1] = both[1] || below(to, "providers")
		}
		if both[0] && both[1] && !below(from, "cmd") && !below(from, "httpedge/edgetest") && from != "contracts" {
			t.Errorf("got both sides imported in %s, want that in cmd, edgetest and contracts only", from)
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
		{"cmd/gatehouse", "httpedge", true}, {"cmd/gatehouse", "providers/sim", true}, {"cmd/gatehouse", "httpedge/edgetest", false},
		{"httpedge", "actors", true}, {"httpedge", "actors/geo", true}, {"httpedge", "providers/sim", false},
		{"httpedge", "httpedge/edgetest", false}, {"httpedge/pages", "providers/sqlstore", false},
		{"httpedge/edgetest", "providers/sim", true}, {"httpedge/edgetest/compare", "httpedge/edgetest", true},
		{"actors", "actors/geo", true}, {"actors", "httpedge", false}, {"actors", "providers/ipapi", false},
		{"actors/geo", "actors/oauth", false}, {"actors/geo", "actors", false}, {"actors/geo", "providers/sim", false},
		{"providers/ipapi", "actors/geo", true}, {"providers/ipapi", "actors", false}, {"providers/ipapi", "httpedge", false},
		{"providers/ipapi", "providers/sim", false}, {"providers/mmdb/mmdbtest", "providers/mmdb", true},
		{"loadtest", "cmd/loadtest", false},
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
