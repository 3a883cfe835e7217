package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter/mmdbtype"

	"gatehouse/httpedge/lookups"
	"gatehouse/providers/mmdb/mmdbtest"
)

// TestMMDBUpdate runs the command with a publisher that wants a secret, and with one that is gone.
func TestMMDBUpdate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	next, settings, secret := filepath.Join(dir, "next"), filepath.Join(dir, "update.yaml"), filepath.Join(dir, "key")
	mmdbtest.WriteASN(t, next, map[string]mmdbtest.AS{"8.8.8.0/24": {Number: 15169}})
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("token") != "s3cret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		http.ServeFile(w, r, next)
	}))
	text := "files: [{file: asn.mmdb, url: '" + publisher.URL + "/asn', query: token, secret-file: key}]\n"
	if err := errors.Join(os.WriteFile(settings, []byte(text), 0o600),
		os.WriteFile(secret, []byte("s3cret\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	asn := filepath.Join(dir, "asn.mmdb")
	for _, row := range []struct {
		args string
		code int
		part string
	}{
		{"mmdb update " + settings, exitDone, asn + ": updated, built on 20"},
		{"mmdb update " + settings + " --json", exitDone, `"outcome": "unchanged"`},
		{"lookup 8.8.8.8 --fields asn --mmdb " + asn, exitDone, "15169"},
		{"mmdb update " + secret, exitUsage, ""},
	} {
		got := runOnce(t, nil, strings.Fields(row.args)...)
		if got.code != row.code || !strings.Contains(got.stdout, row.part) {
			t.Errorf("%s: got %+v, want %+v", row.args, got, row)
		}
	}
	publisher.Close()
	got := runOnce(t, nil, "mmdb", "update", settings)
	if got.code != exitFailed || !strings.Contains(got.stdout, asn+": failed, ") || strings.Contains(got.stdout+got.stderr, "s3cret") {
		t.Errorf("got %+v without a publisher, want code 1 and no secret", got)
	}
}

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
	p := start(t, []string{"IP_PROVIDER=mmdb", "IP_MMDB=" + own, "IP_MMDB_MAP=" + mapping},
		append([]string{"serve", "--roles=geo"}, anyPorts...)...)
	listen, _ := p.ready(t)
	got := runOnce(t, nil, "lookup", "8.8.8.8", "--server", "http://"+listen, "--fields", "countryCode,isVPN")
	if got.stdout != `{"query":"8.8.8.8","countryCode":"US","isVPN":true}`+"\n" {
		t.Errorf("got %+v from a server with the mapping", got)
	}
}

// TestMirror has a server that offers its files, and updates another folder from it.
func TestMirror(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asn, keys, settings := filepath.Join(dir, "asn.mmdb"), filepath.Join(dir, "keys"), filepath.Join(dir, "update.yaml")
	mmdbtest.WriteASN(t, asn, map[string]mmdbtest.AS{"8.8.8.0/24": {Number: 15169}})
	mirror, line, err := lookups.NewKey("mirror")
	other, second, err2 := lookups.NewKey("other")
	if err := errors.Join(err, err2, os.WriteFile(keys, []byte(line+"\n"+second+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, append([]string{"serve", "--ip-provider=mmdb", "--ip-mmdb", asn, "--roles=geo", "--geo-keys", keys,
		"--mmdb-share", "mirror"}, anyPorts...)...)
	listen, _ := p.ready(t)
	for _, row := range []struct{ key, file, want string }{
		{mirror, "asn.mmdb", "copy.mmdb: updated"}, {mirror, "asn.mmdb", "copy.mmdb: unchanged"},
		{mirror, "keys", "404"}, {mirror, "..%2Fkeys", "404"}, {other, "asn.mmdb", "401"}, {"gtlk_x", "asn.mmdb", "401"},
	} {
		text := "files: [{file: copy/copy.mmdb, url: 'http://" + listen + "/api/mmdb/" + row.file +
			"', header: X-Api-Key, secret: " + row.key + "}]\n"
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := runOnce(t, nil, "mmdb", "update", settings); !strings.Contains(got.stdout, row.want) ||
			strings.Contains(got.stdout, row.key) {
			t.Errorf("%s with %s: got %+v, want %s", row.file, row.key, got, row.want)
		}
	}
	was, err := os.ReadFile(asn)
	is, err2 := os.ReadFile(filepath.Join(dir, "copy", "copy.mmdb"))
	if err != nil || err2 != nil || !bytes.Equal(was, is) {
		t.Errorf("got errors %v and %v and another file than the mirror's", err, err2)
	}
	got := runOnce(t, nil, "serve", "--roles=geo", "--ip-provider=mmdb", "--ip-mmdb", asn, "--geo-keys", keys,
		"--mmdb-share", "mirror", "--listen", "0.0.0.0:0")
	if got.code != exitUsage || !strings.Contains(got.stderr, "in the clear") {
		t.Errorf("got %+v without TLS, want code 2", got)
	}
}
