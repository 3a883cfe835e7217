package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/providers/mmdb/mmdbtest"
)

// TestOwnDatabase reads a file that needs a mapping by gatehouse mmdb show and gatehouse lookup.
func TestOwnDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, mapping := filepath.Join(dir, "own.mmdb"), filepath.Join(dir, "own.yaml")
	records := map[string]mmdbtype.Map{}
	for network, code := range map[string]string{"8.8.0.0/16": "US", "9.9.9.0/24": "CH", "1.1.1.0/24": "AU",
		"2.2.2.0/24": "FR"} {
		records[network] = mmdbtype.Map{"geo": mmdbtype.Map{"cc": mmdbtype.String(code)},
			"vpn": mmdbtype.Map{"is": mmdbtype.Uint32(1)}}
	}
	mmdbtest.Write(t, own, "City", records)
	if err := os.WriteFile(mapping, []byte("country_code: geo.cc\nisVPN: vpn.is\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args           string
		code           int
		stdout, stderr []string // parts
	}{
		{"mmdb show " + own, 1, []string{"Type:   City", `{"geo":{"cc":"`},
			[]string{own, `type "City"`, `"country_code: geo.cc"`}},
		{"mmdb show " + own + " --mmdb-map " + mapping, 0,
			[]string{"Mapping:\n    country_code: geo.cc\n    vpn: vpn.is\n", "8.8.0.0/16 ",
				`country_code  "US"  from geo.cc`}, nil},
		{"mmdb show --json " + own + " --mmdb-map " + mapping, 0,
			[]string{`"country_code": "geo.cc"`, `"country_code": "US"`}, nil},
		{"mmdb show " + mapping, 1, nil, []string{mapping}},
		{"lookup 8.8.8.8 --mmdb " + own, 2, nil, []string{own, `"country_code: geo.cc"`}},
		{"lookup 8.8.8.8 --fields countryCode,isVPN,isTor,accuracyRadius --mmdb " + own + " --mmdb-map " + mapping, 0,
			[]string{`{"query":"8.8.8.8","countryCode":"US","isVPN":true,"isTor":null,"accuracyRadius":null}`}, nil},
		{"lookup 8.8.8.8 --mmdb-map " + mapping, 2, nil, []string{"--mmdb"}},
		{"lookup 8.8.8.8 --mmdb-language=x --mmdb " + own, 2, nil, []string{"pt-BR"}},
	} {
		got := runOnce(t, nil, strings.Fields(row.args)...)
		for _, part := range row.stdout {
			if !strings.Contains(got.stdout, part) {
				t.Errorf("%s: got %s, want %s", row.args, got.stdout, part)
			}
		}
		for _, part := range row.stderr {
			if !strings.Contains(got.stderr, part) {
				t.Errorf("%s: got %s, want %s", row.args, got.stderr, part)
			}
		}
		if got.code != row.code {
			t.Errorf("%s: got code %d and %s, want %d", row.args, got.code, got.stderr, row.code)
		}
		if n := strings.Count(got.stdout, `"geo":`); n > 3 {
			t.Errorf("%s: got %d records, want 3", row.args, n)
		}
	}
}
