package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/texts"
	"gatehouse/cmd/stack"
)

// secret must not be printed.
const secret = "s3cr3t-k3y"

// write writes a file in a new folder and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// printed returns the rows of gatehouse config --json by setting.
func printed(t *testing.T, env []string, args ...string) map[string]settingRow {
	t.Helper()
	got := runOnce(t, env, append([]string{"config", "--json"}, args...)...)
	if got.code != exitDone {
		t.Fatalf("got code %d, stderr %q, want 0", got.code, got.stderr)
	}
	var rows []settingRow
	if err := json.Unmarshal([]byte(got.stdout), &rows); err != nil {
		t.Fatal(err)
	}
	bySetting := map[string]settingRow{}
	for _, row := range rows {
		bySetting[row.Setting] = row
	}
	return bySetting
}

func TestPrecedenceOfSettings(t *testing.T) {
	t.Parallel()
	yaml := write(t, "a.yaml", "cache-entries: 300\n")
	toml := write(t, "a.toml", "cache-entries = 400\n")
	env := []string{"GATEHOUSE_CACHE_ENTRIES=200"}
	for _, test := range []struct {
		name          string
		env, args     []string
		value, source string
	}{
		{"default", nil, nil, "100000", "default"},
		{"YAML over default", nil, []string{"--config", yaml}, "300", "file " + yaml},
		{"TOML over default", nil, []string{"--config", toml}, "400", "file " + toml},
		{"environment over file", env, []string{"--config", yaml}, "200",
			"env GATEHOUSE_CACHE_ENTRIES"},
		{"flag over environment and file", env,
			[]string{"--config", yaml, "--cache-entries", "100"}, "100", "flag"},
		{"flag over environment", env, []string{"--cache-entries=100"}, "100", "flag"},
		{"empty variable is none", []string{"GATEHOUSE_CACHE_ENTRIES="}, []string{"--config", yaml},
			"300", "file " + yaml},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := printed(t, test.env, test.args...)["cache-entries"]
			if want := (settingRow{"cache-entries", test.value, test.source}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	const name, variable = "metrics-token", "GATEHOUSE_METRICS_TOKEN"
	secret, other := strings.Repeat("s", 20), strings.Repeat("o", 20)
	file := write(t, "token", secret+"\n")
	yaml := write(t, "a.yaml", name+": "+other+"\n")
	yamlFile := write(t, "b.yaml", name+"-file: "+file+"\n")
	credential := []string{"CREDENTIALS_DIRECTORY=" + filepath.Dir(file), variable + "_FILE=token"}
	for _, test := range []struct {
		name      string
		env, args []string
		source    string // "" = refused
		want      string
	}{
		{"flag", nil, []string{"--" + name + "-file", file}, "flag", ""},
		{"variable", []string{variable + "_FILE=" + file}, nil, "env " + variable + "_FILE", ""},
		{"settings file", nil, []string{"--config", yamlFile}, "file " + yamlFile, ""},
		{"credential", credential, nil, "env " + variable + "_FILE", ""},
		{"flag over variable", []string{variable + "=" + other}, []string{"--" + name + "-file", file},
			"flag", ""},
		{"variable over settings file", []string{variable + "_FILE=" + file}, []string{"--config", yaml},
			"env " + variable + "_FILE", ""},
		{"value in the variable over the settings file", []string{variable + "=" + secret},
			[]string{"--config", yamlFile}, "env " + variable, ""},
		{"both flags", nil, []string{"--" + name + "-file", file, "--" + name, other}, "", "not both"},
		{"both variables", []string{variable + "=" + other, variable + "_FILE=" + file}, nil, "",
			variable + "_FILE: give either"},
		{"missing", nil, []string{"--" + name + "-file", file + "x"}, "", "no such file"},
		{"folder", nil, []string{"--" + name + "-file", filepath.Dir(file)}, "", "is a directory"},
		{"empty", nil, []string{"--" + name + "-file", write(t, "empty", "\n")}, "", "not empty"},
		{"too short", nil, []string{"--" + name + "-file", write(t, "short", "short")}, "",
			"at least 16 characters"},
		{"two lines", nil, []string{"--" + name + "-file", write(t, "two", secret+"\n"+secret)}, "",
			"no spaces"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.source == "" {
				got := runOnce(t, test.env, append([]string{"config"}, test.args...)...)
				if got.code != exitUsage || !strings.Contains(got.stderr, test.want) ||
					strings.Contains(got.stderr, secret) || strings.Count(got.stderr, "\n") != 1 {
					t.Errorf("got code %d, stderr %q, want a line with %q", got.code, got.stderr,
						test.want)
				}
				return
			}
			got := printed(t, test.env, test.args...)[name]
			if want := (settingRow{name, redacted, test.source}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
	mailbox := "smtp://me:secret@mail.example"
	got := printed(t, []string{"GATEHOUSE_MESSENGER_FROM=a@example.com",
		"GATEHOUSE_DATABASE_URL_FILE=" + write(t, "url", "sqlite:other.db"),
		"GATEHOUSE_MESSENGER_FILE=" + write(t, "ways", mailbox)})
	if got["database-url"].Value != "sqlite:other.db" ||
		got["messenger"].Value != strings.Replace(mailbox, "me:secret", redacted, 1) {
		t.Errorf("got %v and %v, want those of the files", got["database-url"], got["messenger"])
	}
}

func TestListsOfSettings(t *testing.T) {
	t.Parallel()
	yaml := write(t, "a.yaml", "trusted-proxies: [10.0.0.0/8, 192.0.2.1, \"::1\"]\n")
	toml := write(t, "a.toml", "trusted-proxies = [\"10.0.0.0/8\", \"192.0.2.1\", \"::1\"]\n")
	for _, test := range []struct {
		name      string
		env, args []string
	}{
		{"YAML sequence", nil, []string{"--config", yaml}},
		{"TOML array", nil, []string{"--config", toml}},
		{"variable", []string{"GATEHOUSE_TRUSTED_PROXIES= 10.0.0.0/8, 192.0.2.1, ::1,"}, nil},
		{"flag", nil, []string{"--trusted-proxies=10.0.0.0/8,192.0.2.1/32,::1/128"}},
		{"repeated flag", nil, []string{"--trusted-proxies=10.0.0.0/8",
			"--trusted-proxies=192.0.2.1", "--trusted-proxies=::1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := printed(t, test.env, test.args...)["trusted-proxies"].Value
			if want := "10.0.0.0/8,192.0.2.1/32,::1/128"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestDefaultsThatDependOnTheProvider(t *testing.T) {
	t.Parallel()
	file := write(t, "city.mmdb", "")
	for _, test := range []struct {
		provider  string
		base, ptr string
	}{
		{"ip-api", "http://ip-api.com", "system"},
		{"ip-api-pro", "https://pro.ip-api.com", "system"},
		{"mmdb", "", "off"},
		{"sim", "", "off"},
	} {
		t.Run(test.provider, func(t *testing.T) {
			got := printed(t, []string{"IP_API_KEY=" + secret, "IP_MMDB=" + file,
				"IP_PROVIDER=" + test.provider})
			if got["ip-api-base"].Value != test.base || got["ptr"].Value != test.ptr {
				t.Errorf("got base %q and ptr %q, want %q and %q", got["ip-api-base"].Value,
					got["ptr"].Value, test.base, test.ptr)
			}
		})
	}
}

func TestDefaultsThatDependOnAgents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env                    []string
		metadata, registration string
	}{
		{nil, "off", "off"},
		{[]string{"GATEHOUSE_AGENTS=on"}, "on", "open"},
		{[]string{"GATEHOUSE_AGENTS=on", "GATEHOUSE_REGISTRATION=off"}, "on", "off"},
		{[]string{"GATEHOUSE_AGENTS=on", "GATEHOUSE_CLIENT_ID_METADATA=off"}, "off", "open"},
		{[]string{"GATEHOUSE_REGISTRATION=open"}, "off", "open"},
	} {
		got := printed(t, test.env)
		metadata, registration := got["client-id-metadata"].Value, got["registration"].Value
		if metadata != test.metadata || registration != test.registration {
			t.Errorf("%q: got %s and %s, want %s and %s", test.env, metadata, registration,
				test.metadata, test.registration)
		}
	}
}

func TestEverySettingHasAVariableAndIsPrinted(t *testing.T) {
	t.Parallel()
	rows := printed(t, nil)
	for _, s := range allSettings {
		if _, ok := rows[s.name]; !ok {
			t.Errorf("got no row for %s, want one", s.name)
		}
		if !strings.HasPrefix(s.variable, "IP_") &&
			s.variable != "GATEHOUSE_"+strings.ToUpper(strings.ReplaceAll(s.name, "-", "_")) {
			t.Errorf("got variable %s for %s, want it to follow the name", s.variable, s.name)
		}
	}
	if len(rows) != len(allSettings) {
		t.Errorf("got %d rows, want %d", len(rows), len(allSettings))
	}
}

// TestWrongSettings runs serve. It must start nothing, and print one line that names the setting,
// its value and what is allowed.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	const postgres = "--database-url=postgres://127.0.0.1:1/none"
	cert := write(t, "cert.pem", "not a certificate")
	pro := []string{"IP_PROVIDER=ip-api-pro", "IP_API_KEY=" + secret}
	file := func(text string) []string { return []string{"--config", write(t, "a.yaml", text)} }
	toml := func(text string) []string { return []string{"--config", write(t, "a.toml", text)} }
	for _, test := range []struct {
		name      string
		env, args []string
		want      []string
	}{
		{"unknown flag", nil, []string{"--lisen=" + secret}, []string{"--lisen"}},
		{"unknown short flag", nil, []string{"-x"}, []string{"-x"}},
		{"unexpected argument", nil, []string{"now"}, []string{"now"}},
		{"flag without value", nil, []string{"--listen"}, []string{"--listen", "value is missing"}},
		{"value like a flag", nil, []string{"--ip-api-key", "-" + secret},
			[]string{"--ip-api-key="}},
		{"provider", []string{"IP_PROVIDER=maxmind"}, nil,
			[]string{"IP_PROVIDER", `"maxmind"`, "ip-api, ip-api-pro, mmdb or sim"}},
		{"pro without key", []string{"IP_PROVIDER=ip-api-pro"}, nil,
			[]string{"IP_PROVIDER", "IP_API_KEY"}},
		{"pro in the clear", append(pro, "IP_API_BASE=http://api.example.com"), nil,
			[]string{"IP_API_BASE", "https"}},
		{"key with a space", []string{"IP_API_KEY=" + secret + " x"}, nil,
			[]string{"IP_API_KEY", "spaces"}},
		{"base without scheme", nil, []string{"--ip-api-base", "ip-api.com"},
			[]string{"--ip-api-base", `"ip-api.com"`, "URL"}},
		{"base with password", []string{"IP_API_BASE=http://me:" + secret + "@h"}, nil,
			[]string{"IP_API_BASE", "redacted@h"}},
		{"base with key", []string{"IP_API_BASE=http://h/?key=" + secret}, nil,
			[]string{"IP_API_BASE", "?redacted"}},
		{"broken base with password", []string{"IP_API_BASE=http://me:" + secret + "%zz@h"}, nil,
			[]string{"IP_API_BASE"}},
		{"base with port 0", []string{"IP_API_BASE=http://h:0"},
			[]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"},
			[]string{"IP_API_BASE", "port"}},
		{"mmdb without files", []string{"IP_PROVIDER=mmdb"}, nil,
			[]string{"IP_PROVIDER", "IP_MMDB"}},
		{"missing file", []string{"IP_MMDB=/no/such.mmdb"}, nil,
			[]string{"IP_MMDB", "/no/such.mmdb"}},
		{"file of no use", []string{"IP_MMDB=" + cert},
			[]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"},
			[]string{"IP_MMDB", cert}},
		{"missing mapping", []string{"IP_MMDB_MAP=/no/such.yaml"}, nil,
			[]string{"IP_MMDB_MAP", "/no/such.yaml"}},
		{"updates of nothing", []string{"IP_MMDB_UPDATE=" + cert}, nil, []string{"IP_MMDB_UPDATE", cert}},
		{"mapping of no use", []string{"IP_MMDB_MAP=" + cert}, nil,
			[]string{"IP_MMDB_MAP", cert, "country_code: geo.cc"}},
		{"language of names", []string{"IP_MMDB_LANGUAGE=German"}, nil,
			[]string{"IP_MMDB_LANGUAGE", `"German"`, "pt-BR"}},
		{"missing logo", []string{"GATEHOUSE_SERVICE_LOGO=/no/such.svg"}, nil,
			[]string{"GATEHOUSE_SERVICE_LOGO", "/no/such.svg", "that can be read"}},
		{"logo without end", nil, []string{"--service-logo=/dev/zero"},
			[]string{"--service-logo", "more than 64 KB: make the picture smaller"}},
		{"logo with a script", nil, []string{"--service-logo", write(t, "a.svg", "<svg><script/></svg>")},
			[]string{"--service-logo", "without scripts"}},
		{"logo from elsewhere", nil,
			[]string{"--service-logo", write(t, "a.svg", `<svg><image href="https://x.example/a.png"/></svg>`)},
			[]string{"--service-logo", "refers to something outside the file: embed it"}},
		{"unknown text", nil,
			[]string{"--languages", filepath.Dir(write(t, "en.toml", "[login]\nheadding = \"x\""))},
			[]string{"--languages", "en.toml", "login.headding: is no key"}},
		{"unknown home", nil, []string{"--home=blog"}, []string{"--home", "identity, geo, both or off"}},
		{"home without its service", nil, []string{"--home=geo", "--roles=identity"},
			[]string{"--home", "add geo to roles"}},
		{"home without keys", nil, []string{"--home=both", "--geo-keys-required", "--geo-keys=" + write(t, "keys", "")},
			[]string{"--home", "geo-keys-required"}},
		{"SVG in mails", nil, []string{"--service-logo-mail", write(t, "a.svg", "<svg/>")},
			[]string{"--service-logo-mail", "must be a PNG"}},
		{"pale colour", []string{"GATEHOUSE_SERVICE_COLOR=#ffcc00"}, nil,
			[]string{"GATEHOUSE_SERVICE_COLOR", "#ffcc00", "the nearest good colour is #876c00"}},
		{"long name", nil, []string{"--service-name", strings.Repeat("x", 41)},
			[]string{"--service-name", "at most 40 characters"}},
		{"support by phone", nil, []string{"--support-url=tel:110"},
			[]string{"--support-url", "mailto:"}},
		{"terms in the clear", nil, []string{"--terms-url=http://h/"}, []string{"--terms-url", "https"}},
		{"privacy in a script", nil, []string{"--privacy-url=javascript:x"},
			[]string{"--privacy-url", "https"}},
		{"ptr", []string{"GATEHOUSE_PTR=dns"}, nil,
			[]string{"GATEHOUSE_PTR", `"dns"`, "off, system or"}},
		{"ptr port", nil, []string{"--ptr=127.0.0.1:0"}, []string{"--ptr", "127.0.0.1:0"}},
		{"timeout too short", []string{"GATEHOUSE_LOOKUP_TIMEOUT=1s"}, nil,
			[]string{"GATEHOUSE_LOOKUP_TIMEOUT", `"1s"`, "1m0s"}},
		{"timeout too long", nil, []string{"--lookup-timeout=61s"},
			[]string{"--lookup-timeout", `"61s"`}},
		{"timeout without unit", nil, file("lookup-timeout: 5"),
			[]string{"lookup-timeout in ", `"5"`, "unit"}},
		{"concurrency 0", nil, []string{"--upstream-concurrency=0"},
			[]string{"--upstream-concurrency", `"0"`, "1 to 64"}},
		{"concurrency 65", nil, []string{"--upstream-concurrency=65"},
			[]string{"--upstream-concurrency", `"65"`}},
		{"share 0", nil, []string{"--upstream-share=0"},
			[]string{"--upstream-share", `"0"`, "above 0"}},
		{"share above 1", nil, []string{"--upstream-share=1.01"}, []string{"--upstream-share"}},
		{"share not a number", nil, []string{"--upstream-share=NaN"}, []string{"--upstream-share"}},
		{"cache", []string{"GATEHOUSE_CACHE_ENTRIES=many"}, nil,
			[]string{"GATEHOUSE_CACHE_ENTRIES", `"many"`, "1 to 100000000"}},
		{"limit", nil, []string{"--geo-limit=-1"}, []string{"--geo-limit", `"-1"`}},
		{"breaker failures", nil, []string{"--breaker-failures=0"},
			[]string{"--breaker-failures", `"0"`}},
		{"breaker cooldown", nil, []string{"--breaker-cooldown=0s"},
			[]string{"--breaker-cooldown", `"0s"`}},
		{"hold", nil, []string{"--forbidden-hold=x"}, []string{"--forbidden-hold", `"x"`}},
		{"roles", []string{"GATEHOUSE_ROLES=identity,geolocation"}, nil,
			[]string{"GATEHOUSE_ROLES", `"identity,geolocation"`, "identity, geo or both"}},
		{"no role", nil, []string{"--roles=,"}, []string{"--roles"}},
		{"database of no kind", []string{"GATEHOUSE_DATABASE_URL=mysql://me:" + secret + "@h/d"},
			nil, []string{"GATEHOUSE_DATABASE_URL", "sqlite:", "postgres://"}},
		{"database in words", nil, []string{"--database-url=host=h password=" + secret},
			[]string{"--database-url", "sqlite:"}},
		{"database without path", nil, []string{"--database-url=sqlite:"},
			[]string{"--database-url", `"sqlite:"`}},
		{"database with a broken password", nil,
			[]string{"--database-url=postgres://me:" + secret + "%zz@h/d"},
			[]string{"--database-url", "%XX", "redacted@h"}},
		{"database with an unknown sslmode", []string{"GATEHOUSE_DATABASE_URL=postgres://me:" +
			secret + "@h/d?sslmode=bogus"}, nil,
			[]string{"GATEHOUSE_DATABASE_URL", "redacted@h", "sslmode"}},
		{"database on port 99999", nil, []string{"--database-url=postgres://me:" + secret +
			"@h:99999/d"}, []string{"--database-url", "redacted@h:99999", "65535"}},
		{"database with an authority that is missing", nil,
			file("database-url: postgresql://h/d?sslmode=verify-full&sslrootcert=/no/" + secret),
			[]string{"database-url in ", "?redacted", "files"}},
		{"migrate", nil, []string{"--migrate=maybe"},
			[]string{"--migrate", `"maybe"`, "true or false"}},
		{"issuer without scheme", []string{"GATEHOUSE_BASE_URL=id.example.com"}, nil,
			[]string{"GATEHOUSE_BASE_URL", `"id.example.com"`, "https://"}},
		{"issuer in the clear", nil, []string{"--base-url=http://id.example.com"},
			[]string{"--base-url", "https, or http on loopback"}},
		{"issuer with a path", nil, []string{"--base-url=https://id.example.com/auth"},
			[]string{"--base-url", "no path"}},
		{"issuer with a query", nil, []string{"--base-url=https://id.example.com?" + secret},
			[]string{"--base-url", "?redacted", "no query"}},
		{"issuer with a fragment", nil, []string{"--base-url=https://id.example.com#x"},
			[]string{"--base-url", "no fragment"}},
		{"issuer with an empty fragment", nil, []string{"--base-url=https://id.example.com#"},
			[]string{"--base-url", "no fragment"}},
		{"issuer with a user", nil, []string{"--base-url=https://me:" + secret + "@id.example.com"},
			[]string{"--base-url", "redacted@id.example.com", "no user"}},
		{"issuer with half a port", nil, []string{"--base-url=https://id.example.com:"},
			[]string{"--base-url", "port"}},
		{"issuer on port 99999", []string{"GATEHOUSE_BASE_URL=https://id.example.com:99999"}, nil,
			[]string{"GATEHOUSE_BASE_URL", "id.example.com:99999", "65535"}},
		{"issuer on port 0", nil, []string{"--base-url=http://[::1]:0"},
			[]string{"--base-url", "65535"}},
		{"no issuer off loopback", nil, []string{"--listen=192.0.2.1:80"},
			[]string{"--base-url", "must be given"}},
		{"no issuer on all addresses", []string{"GATEHOUSE_LISTEN=:8080"}, nil,
			[]string{"--base-url", "must be given"}},
		{"code lifetime", nil, []string{"--code-ttl=11m"},
			[]string{"--code-ttl", `"11m"`, "10m0s"}},
		{"access token lifetime", []string{"GATEHOUSE_ACCESS_TOKEN_TTL=3600"}, nil,
			[]string{"GATEHOUSE_ACCESS_TOKEN_TTL", `"3600"`, "unit"}},
		{"half seconds", nil, []string{"--access-token-ttl=1500ms"},
			[]string{"--access-token-ttl", "whole seconds"}},
		{"refresh token lifetime", nil, []string{"--refresh-token-ttl=0s"},
			[]string{"--refresh-token-ttl", `"0s"`}},
		{"family that ends before its tokens", nil, []string{"--refresh-family-ttl=1h"},
			[]string{"--refresh-family-ttl", `"1h"`, "720h0m0s"}},
		{"grace", nil, []string{"--refresh-grace=6m"}, []string{"--refresh-grace", `"6m"`}},
		{"grace longer than the token", nil, []string{"--refresh-token-ttl=5s"},
			[]string{"--refresh-grace", "less than"}},
		{"session lifetime", []string{"GATEHOUSE_SESSION_TTL=2w"}, nil,
			[]string{"GATEHOUSE_SESSION_TTL", `"2w"`}},
		{"unknown default scope", nil, []string{"--default-scope=email"},
			[]string{"--default-scope", `"email"`, "view-user detail-user"}},
		{"default scope of operators", nil, []string{"--default-scope=server-operations"},
			[]string{"--default-scope", "view-user detail-user"}},
		{"parameter with a space", nil, []string{"--skip-chooser-parameter=a b"},
			[]string{"--skip-chooser-parameter", `"a b"`}},
		{"parameter that has a meaning", nil, []string{"--skip-chooser-parameter=state"},
			[]string{"--skip-chooser-parameter", "meaning"}},
		{"messenger of no kind", []string{"GATEHOUSE_MESSENGER=pigeon"}, nil,
			[]string{"GATEHOUSE_MESSENGER", `"pigeon"`, "must be log"}},
		{"second messenger of no kind", nil, []string{"--messenger=log,pigeon"},
			[]string{"--messenger", `"log,pigeon"`, "must be log"}},
		{"messenger of no channel", nil, []string{"--messenger=fax=log"},
			[]string{"--messenger", "sms= or email="}},
		{"webhook in the clear", nil, []string{"--messenger=http://me:" + secret +
			"@sms.example.com/"}, []string{"--messenger", "redacted@sms.example.com",
			"http on loopback"}},
		{"webhook without secret", nil, []string{"--messenger=https://h/?" + secret},
			[]string{"--messenger", "?redacted", "GATEHOUSE_MESSENGER_SECRET"}},
		{"webhook with half a secret", nil, []string{"--messenger=https://h/",
			"--messenger-secret=" + secret}, []string{"--messenger-secret", "at least 32"}},
		{"half a secret of no use", []string{"GATEHOUSE_MESSENGER_SECRET=" + secret}, nil,
			[]string{"GATEHOUSE_MESSENGER_SECRET", "at least 32"}},
		{"text messages by SMTP", nil, []string{"--messenger=sms=smtp://h"},
			[]string{"--messenger", "text messages"}},
		{"password with a comma", nil, []string{"--messenger=smtp://me:" + secret + ",@h"},
			[]string{"--messenger", "redacted@h"}},
		{"password with a slash", nil, []string{"--messenger=smtp://me:/" + secret + "@h"},
			[]string{"--messenger", "redacted@h"}},
		{"mail from nobody", []string{"GATEHOUSE_MESSENGER=smtp://me:" + secret + "@h"}, nil,
			[]string{"GATEHOUSE_MESSENGER", "redacted@h", "GATEHOUSE_MESSENGER_FROM"}},
		{"mail from no address", nil, []string{"--messenger-from=nobody"},
			[]string{"--messenger-from", `"nobody"`, "e-mail address"}},
		{"listen without port", []string{"GATEHOUSE_LISTEN=localhost"}, nil,
			[]string{"GATEHOUSE_LISTEN", `"localhost"`, "HOST:PORT"}},
		{"listen on port 65536", nil, []string{"--listen=:65536"},
			[]string{"--listen", `":65536"`}},
		{"listen on no socket", nil, []string{"--admin-listen=unix:"},
			[]string{"--admin-listen", `"unix:"`}},
		{"listen on a long socket", nil, []string{"--listen=unix:/" + strings.Repeat("x", 107)},
			[]string{"--listen", "107"}},
		{"proxy that is no address", nil, []string{"--trusted-proxies=10.0.0.300"},
			[]string{"--trusted-proxies", `"10.0.0.300"`, "CIDR"}},
		{"forwarded header", nil, []string{"--forwarded-header=x-real-ip"},
			[]string{"--forwarded-header", "x-forwarded-for or forwarded"}},
		{"certificate alone", nil, []string{"--tls-cert=" + cert},
			[]string{"--tls-cert", "tls-key"}},
		{"key alone", []string{"GATEHOUSE_TLS_KEY=" + cert}, nil,
			[]string{"GATEHOUSE_TLS_KEY", "tls-cert"}},
		{"no certificate in it", nil, []string{"--tls-cert=" + cert, "--tls-key=" + cert},
			[]string{"--tls-cert", cert}},
		{"admin in the clear", nil, []string{"--admin-listen=:8081"},
			[]string{"--admin-listen", `":8081"`, "admin-tls-cert", "admin-insecure"}},
		{"admin by name in the clear", nil, []string{"--admin-listen=admin.example.com:8081"},
			[]string{"--admin-listen", "admin-insecure"}},
		{"admin certificate alone", nil, []string{"--admin-tls-cert=" + cert},
			[]string{"--admin-tls-cert", "admin-tls-key"}},
		{"no admin certificate in it", nil,
			[]string{"--admin-tls-cert=" + cert, "--admin-tls-key=" + cert},
			[]string{"--admin-tls-cert", cert}},
		{"signers without TLS", nil, []string{"--admin-client-ca=" + cert},
			[]string{"--admin-client-ca", "admin-tls-cert"}},
		{"admin insecure", nil, []string{"--admin-insecure=yes"},
			[]string{"--admin-insecure", "true or false"}},
		{"short metrics token", nil, []string{"--metrics-token=short"},
			[]string{"--metrics-token", "16"}},
		{"long metrics token", nil, []string{"--metrics-token=" + strings.Repeat("x", 257)},
			[]string{"--metrics-token", "256"}},
		{"registration without its token", nil, []string{"--registration=token"},
			[]string{"--registration", `"token"`, "GATEHOUSE_REGISTRATION_TOKEN"}},
		{"short registration token", nil, []string{"--registration-token=short"},
			[]string{"--registration-token", "32"}},
		{"long registration token", nil,
			[]string{"--registration-token=" + strings.Repeat("x", 257)},
			[]string{"--registration-token", "256"}},
		{"scheme that systems act on", nil, []string{"--redirect-schemes=myapp,ms-word"},
			[]string{"--redirect-schemes", `"ms-word"`}},
		{"scheme with a colon", nil, []string{"--redirect-schemes=myapp://"},
			[]string{"--redirect-schemes", "lower case"}},
		{"unknown draft", []string{"GATEHOUSE_DRAFTS=id-jag,id-jug"}, nil,
			[]string{"GATEHOUSE_DRAFTS", `"id-jug"`, "must be one of: id-jag"}},
		{"unknown registration", nil, []string{"--registration=on"},
			[]string{"--registration", "off, token or open"}},
		{"cluster without a port", nil, []string{"--cluster-listen=10.0.0.7"},
			[]string{"--cluster-listen", `"10.0.0.7"`, "HOST:PORT"}},
		{"cluster on SQLite", nil, []string{"--cluster-listen=10.0.0.7:7946"},
			[]string{"--cluster-listen", "PostgreSQL", "GATEHOUSE_DATABASE_URL"}},
		{"cluster of lookups alone", []string{"GATEHOUSE_CLUSTER_LISTEN=10.0.0.7:7946"},
			[]string{"--roles=geo", postgres}, []string{"GATEHOUSE_CLUSTER_LISTEN", "identity", "roles"}},
		{"cluster on all addresses", nil, []string{"--cluster-listen=:7946", postgres},
			[]string{"--cluster-advertise", "must be given", "cluster-listen"}},
		{"cluster on all IPv4 addresses", nil, []string{"--cluster-listen=0.0.0.0:7946", postgres},
			[]string{"--cluster-advertise", "must be given"}},
		{"cluster on all IPv6 addresses", nil, []string{"--cluster-listen=[::]:7946", postgres},
			[]string{"--cluster-advertise", "must be given"}},
		{"all addresses advertised", nil, []string{"--cluster-advertise=0.0.0.0:7946"},
			[]string{"--cluster-advertise", "other nodes reach"}},
		{"port 0 advertised", nil, []string{"--cluster-advertise=10.0.0.7:0"},
			[]string{"--cluster-advertise", "HOST:PORT"}},
		{"advertised without a cluster", nil, []string{"--cluster-advertise=10.0.0.7:7946"},
			[]string{"--cluster-advertise", "cluster-listen"}},
		{"node name without a cluster", []string{"GATEHOUSE_CLUSTER_NAME=a"}, nil,
			[]string{"GATEHOUSE_CLUSTER_NAME", "cluster-listen"}},
		{"node name with a space", nil, []string{"--cluster-name=a b"},
			[]string{"--cluster-name", `"a b"`, "64 letters"}},
		{"egress label in upper case", nil, []string{"--egress-label=Office"},
			[]string{"--egress-label", `"Office"`, "lower-case"}},
		{"long egress label", nil, []string{"--egress-label=" + strings.Repeat("a", 65)},
			[]string{"--egress-label", "64"}},
		{"empty egress label", nil, []string{"--egress-label="}, []string{"--egress-label", `""`}},
		{"connections of an address", nil, []string{"--max-connections-per-address=-1"},
			[]string{"--max-connections-per-address", `"-1"`}},
		{"read timeout", nil, []string{"--read-timeout=0s"}, []string{"--read-timeout", `"0s"`}},
		{"write timeout", nil, []string{"--write-timeout=2h"}, []string{"--write-timeout", `"2h"`}},
		{"idle timeout", nil, []string{"--idle-timeout=-1s"}, []string{"--idle-timeout", `"-1s"`}},
		{"connections", nil, []string{"--max-connections=0"}, []string{"--max-connections", `"0"`}},
		{"drain delay", nil, []string{"--drain-delay=-1s"}, []string{"--drain-delay", `"-1s"`}},
		{"drain timeout", nil, []string{"--drain-timeout=0s"}, []string{"--drain-timeout", `"0s"`}},
		{"log format", []string{"GATEHOUSE_LOG_FORMAT=xml"}, nil,
			[]string{"GATEHOUSE_LOG_FORMAT", `"xml"`, "json or text"}},
		{"log level", nil, []string{"--log-level=loud"},
			[]string{"--log-level", `"loud"`, "debug, info, warn or error"}},
		{"value over two lines", nil, []string{"--log-level=a\nb"},
			[]string{"--log-level", `"a\nb"`}},
		{"settings file of no kind", nil, []string{"--config=a.json"},
			[]string{"--config", `"a.json"`, ".yaml"}},
		{"settings file that is not there", nil, []string{"--config=/no/a.yaml"},
			[]string{"--config", `"/no/a.yaml"`, "no such file"}},
		{"unknown key in YAML", nil, file("lisen: x"), []string{"--config", "lisen"}},
		{"unknown key in TOML", nil, toml("lisen = 1"), []string{"--config", "lisen"}},
		{"table in TOML", nil, toml("[listen]\nx = 1"), []string{"--config", "listen"}},
		{"list of numbers in TOML", nil, toml("ip-mmdb = [1]"), []string{"--config", "ip-mmdb"}},
		{"mapping in YAML", nil, file("listen: {a: b}"), []string{"--config", "listen"}},
		{"key twice in YAML", nil, file("listen: a\nlisten: b"),
			[]string{"--config", "listen", "once"}},
		{"list of settings in YAML", nil, file("- listen"), []string{"--config", "mapping"}},
		{"broken YAML", nil, file("ip-api-key: *" + secret), []string{"--config", "YAML"}},
		{"broken TOML", nil, toml("listen = \"a\"\nip-api-key = " + secret),
			[]string{"--config", "line 2", "TOML"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := runOnce(t, test.env, append([]string{"serve"}, test.args...)...)
			if got.code != exitUsage || got.stdout != "" {
				t.Errorf("got code %d, stdout %q, want 2 and none", got.code, got.stdout)
			}
			if strings.Count(got.stderr, "\n") != 1 || !strings.HasSuffix(got.stderr, "\n") {
				t.Errorf("got stderr %q, want one line", got.stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("got stderr %q, want it to hold %q", got.stderr, want)
				}
			}
			if strings.Contains(got.stderr, secret) {
				t.Errorf("got stderr %q, want no secret in it", got.stderr)
			}
		})
	}
}

func TestConfigShowsNoSecret(t *testing.T) {
	t.Parallel()
	file := write(t, "a.yaml", "ip-api-key: "+secret+"\nip-provider: ip-api-pro\n")
	for _, test := range []struct {
		name      string
		env, args []string
		source    string
	}{
		{"from the environment", []string{"IP_PROVIDER=ip-api-pro", "IP_API_KEY=" + secret}, nil,
			"env IP_API_KEY"},
		{"from a flag", nil, []string{"--ip-provider=ip-api-pro", "--ip-api-key=" + secret},
			"flag"},
		{"from a file", nil, []string{"--config", file}, "file " + file},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, want := printed(t, test.env, test.args...)["ip-api-key"],
				(settingRow{"ip-api-key", "redacted", test.source}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
			for _, format := range [][]string{{"config"}, {"config", "--json"}} {
				got := runOnce(t, test.env, append(format, test.args...)...)
				if got.code != exitDone || strings.Contains(got.stdout+got.stderr, secret) {
					t.Errorf("got code %d and\n%s%s\nwant 0 and no secret", got.code, got.stdout,
						got.stderr)
				}
			}
		})
	}
}

func TestDatabasePasswordIsNotShown(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://gatehouse:" + secret + "@db/gatehouse",
		"postgres://db/gatehouse?password=" + secret,
		"postgres://gatehouse:p@" + secret + "@db/x",
	} {
		got := printed(t, []string{"GATEHOUSE_DATABASE_URL=" + url})["database-url"]
		if strings.Contains(got.Value, secret) || !strings.HasPrefix(got.Value, "postgres://") ||
			!strings.Contains(got.Value, redacted) {
			t.Errorf("got %q, want a PostgreSQL URL without its password", got.Value)
		}
	}
}

func TestMessengersAreShownWithoutPasswords(t *testing.T) {
	t.Parallel()
	rows := printed(t, []string{
		"GATEHOUSE_MESSENGER=sms=https://me:" + secret + "@sms.example.com/hook?key=" + secret +
			", smtps://me:" + secret + "@mail.example.com,log",
		"GATEHOUSE_MESSENGER_SECRET=" + strings.Repeat(secret, 4),
		"GATEHOUSE_MESSENGER_FROM=Atlas <no-reply@example.com>",
	})
	for name, want := range map[string]string{
		"messenger":        "sms=https://redacted@sms.example.com/hook?redacted,smtps://redacted@mail.example.com,log",
		"messenger-secret": "redacted", "messenger-from": "Atlas <no-reply@example.com>",
	} {
		if got := rows[name].Value; got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
}

func TestConfigRefusesWhatServeRefuses(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"GATEHOUSE_DATABASE_URL": "postgres://me:" + secret + "@h/d?sslmode=bogus",
		"GATEHOUSE_BASE_URL":     "https://id.example.com:99999",
	} {
		got := runOnce(t, []string{name + "=" + value}, "config")
		if got.code != exitUsage || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 ||
			!strings.Contains(got.stderr, name) || strings.Contains(got.stderr, secret) {
			t.Errorf("got code %d, stdout %q, stderr %q, want 2 and one line with %s", got.code,
				got.stdout, got.stderr, name)
		}
	}
}

func TestPostgresURLsThatAreServed(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://db/gatehouse",
		"postgres://me@[::1]:5433/gatehouse?sslmode=verify-full",
		"postgresql://a,b:5433/d?sslmode=disable"} {
		if got := printed(t, nil, "--database-url="+url)["database-url"].Value; got == "" {
			t.Errorf("got no value for %s, want it accepted", url)
		}
	}
}

func TestIssuerLosesItsSlash(t *testing.T) {
	t.Parallel()
	got := printed(t, nil, "--base-url=https://id.example.com/", "--listen=:8080")["base-url"]
	if want := (settingRow{"base-url", "https://id.example.com", "flag"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestIssuerIsOfNoConcernToLookUps(t *testing.T) {
	t.Parallel()
	if got := printed(t, nil, "--roles=geo", "--listen=:8080")["base-url"].Value; got != "" {
		t.Errorf("got base-url %q, want none", got)
	}
}

func TestNoDefaultScope(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--default-scope="}, {"--default-scope=none"},
		{"--config", write(t, "a.yaml", "default-scope: ''")}} {
		if got := printed(t, nil, args...)["default-scope"].Value; got != "none" {
			t.Errorf("%v: got %q, want none", args, got)
		}
	}
}

func TestUnknownVariablesAreNamedOnly(t *testing.T) {
	t.Parallel()
	got := runOnce(t, []string{"GATEHOUSE_LISEN=" + secret, "GATEHOUSE_LISTEN=127.0.0.1:1",
		"GATEHOUSE_CLIENT_ID=x", "GATEHOUSE_CLIENT_SECRET=x", "GATEHOUSE_ADMIN_URL=x", "OTHER=x"},
		"config")
	if got.code != exitDone {
		t.Errorf("got code %d, want 0", got.code)
	}
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "GATEHOUSE_LISEN") ||
		strings.Contains(got.stderr, secret) {
		t.Errorf("got stderr %q, want one line that names GATEHOUSE_LISEN and not its value",
			got.stderr)
	}
}

// TestDefaultsAreThoseOfTheStack compares the defaults of the flags with those that tests and
// measuring programs run with.
func TestDefaultsAreThoseOfTheStack(t *testing.T) {
	t.Parallel()
	environment := newEnvironment(nil)
	p := &program{environment: environment, resolver: newResolver(environment)}
	parser, err := newParser(p, p.args, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	got := parsed.Selected().Target.Addr().Interface().(*serveCommand).stack(p)
	want := stack.Defaults()
	if tags := got.Languages.Tags(); !slices.Equal(tags, texts.Default().Tags()) {
		t.Errorf("got the languages %v, want %v", tags, texts.Default().Tags())
	}
	want.Languages = got.Languages
	want.Version, want.Listen, want.AdminListen = got.Version, "127.0.0.1:8080",
		"127.0.0.1:8081"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\n%+v\n%+v\nwant %+v\n%+v\n%+v",
			got, got.Lookups, got.Identity, want, want.Lookups, want.Identity)
	}
}
