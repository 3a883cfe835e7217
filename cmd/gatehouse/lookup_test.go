package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/cmd/gatehouse/bulk"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/mmdbtest"
)

var interruptions = flag.Int("interruptions", 4, "interruptions of each lookup of TestLookupResume")

// lookupFiles writes a database that knows 8.8.0.0/16 and a file of rows with such addresses.
func lookupFiles(t *testing.T, rows int) (database, input string) {
	t.Helper()
	dir := t.TempDir()
	database, input = filepath.Join(dir, "city.mmdb"), filepath.Join(dir, "rows.csv")
	mmdbtest.WriteCity(t, database, map[string]geo.Location{"8.8.0.0/16": {Country: "United States",
		CountryCode: "US", City: "Honolulu"}})
	var text bytes.Buffer
	fmt.Fprintln(&text, "id,ip")
	for i := range rows {
		fmt.Fprintf(&text, "\"row\n%d\",8.%d.%d.%d\n", i, 8+i%2, i>>8&255, i&255)
	}
	if err := os.WriteFile(input, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return database, input
}

// gzipped returns a text compressed by gzip.
func gzipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

func TestLookupWithFiles(t *testing.T) {
	t.Parallel()
	database, input := lookupFiles(t, 3)
	dir := t.TempDir()
	out, semicolons, tabs := filepath.Join(dir, "out"), filepath.Join(dir, "semicolons"), filepath.Join(dir, "tabs.csv")
	pipes, cut := filepath.Join(dir, "pipes.csv"), filepath.Join(dir, "cut.gz")
	array, formulas := filepath.Join(dir, "array.json"), filepath.Join(dir, "formulas.csv")
	for path, text := range map[string]string{semicolons: "id;ip\n1;8.8.8.8\n", tabs: "id\tip\n1\t8.8.8.8\n",
		formulas: "ip,b\n8.8.8.8,=1+1\n8.8.8.8,-1.5\n", pipes: "id|ip\n1|8.8.8.8\n",
		cut: strings.TrimSuffix(gzipped(t, "8.8.8.8\n"), "\x08\x00\x00\x00"), array: "\n [{\"ip\":\"8.8.8.8\"}]"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		args           string
		code           int
		stdout, stderr string // the whole of stdout; a part of stderr
	}{
		{"8.8.8.8 --fields city", 0, `{"query":"8.8.8.8","city":"Honolulu"}` + "\n", ""},
		{"8.8.8.8 10.0.0.1 --fields city --format csv", 3,
			"query,city,error\n8.8.8.8,Honolulu,\n10.0.0.1,,invalid_query\n", ""},
		{"8.8.8.8 10.0.0.1 --fields city --format csv --failures-ok --fail-fast", 0,
			"query,city,error\n8.8.8.8,Honolulu,\n10.0.0.1,,invalid_query\n", ""},
		{"x 8.8.8.8 --fields city --format csv --fail-fast", 3, "query,city,error\nx,,invalid_query\n",
			"too many rows failed"},
		{"8.8.8.8 --fields city --format table", 0, "query    city      error\n8.8.8.8  Honolulu  -\n", ""},
		{"8.8.8.8 --format table", 0, "query    country        city      as  error\n" +
			"8.8.8.8  United States  Honolulu  -   -\n", ""},
		{"--file " + input + " --column ip --fields countryCode", 0, "id,ip,countryCode,error\n" +
			"\"row\n0\",8.8.0.0,US,\n\"row\n1\",8.9.0.1,,no_location\n\"row\n2\",8.8.0.2,US,\n", "3 rows, 0 failed, 1 unknown"},
		{"--file " + input + " --column ip --max-errors 0 -q", 0, "id,ip,country,countryCode,regionName,city,lat," +
			"lon,timezone,as,isp,mobile,proxy,hosting,error\n\"row\n0\",8.8.0.0,United States,US,,Honolulu,,,,,," +
			",,,\n\"row\n1\",8.9.0.1,,,,,,,,,,,,,no_location\n\"row\n2\",8.8.0.2,United States,US,,Honolulu,,,,,,,,,\n", ""},
		{"--file " + input + " --extract --summarize --format json", 0, `{"rows":3,"failed":0,"countries":[` +
			`{"name":"US","rows":2},{"name":"","rows":1}],"as":[{"name":"","rows":3}],"flags":{"hosting":0,"mobile":0,"proxy":0},` +
			`"errors":[]}` + "\n", ""},
		{"--file " + semicolons + " --column ip --fields countryCode", 0,
			"id;ip;countryCode;error\n1;8.8.8.8;US;\n", ""},
		{"--file " + tabs + " --column ip --fields countryCode", 0,
			"id\tip\tcountryCode\terror\n1\t8.8.8.8\tUS\t\n", ""},
		{"--file " + tabs + ` --column ip --fields countryCode --delimiter \t`, 0,
			"id\tip\tcountryCode\terror\n1\t8.8.8.8\tUS\t\n", ""},
		{"--file " + array + " --extract --keep-lines --fields city", 0,
			`{"line":" [{\"ip\":\"8.8.8.8\"}]","lookup":{"query":"8.8.8.8","city":"Honolulu"}}` + "\n", ""},
		{"--file " + array + " --extract --keep-lines --fields city --format csv", 0,
			"line,query,city,error\n\" [{\"\"ip\"\":\"\"8.8.8.8\"\"}]\",8.8.8.8,Honolulu,\n", ""},
		{"--keep-lines 8.8.8.8", 2, "", "--extract"},
		{"--file " + pipes + " --column ip --delimiter | --fields city=geo_city,country=geo|country", 0,
			"id|ip|geo_city|\"geo|country\"|error\n1|8.8.8.8|Honolulu|United States|\n", ""},
		{"--file " + pipes + " -c 2 -c id --delimiter | --fields city", 3,
			"id|ip|ip_city|ip_error|id_city|id_error\n1|8.8.8.8|Honolulu|||invalid_query\n", "1 row, 1 failed"},
		{"--file " + pipes + " -c 2 -c id --delimiter | --summarize --format json", 3, `{"rows":2,"failed":1,"countries":[` +
			`{"name":"US","rows":1}],"as":[{"name":"","rows":1}],"flags":{"hosting":0,"mobile":0,"proxy":0},` +
			`"errors":[{"name":"invalid_query","reason":"malformed","rows":1}]}` + "\n", ""},
		{"--file " + pipes + " -c 2 -c ip --delimiter |", 2, "", "given already"},
		{"8.8.8.8 --format parquet --resume state", 2, "", "convert it, as duckdb"},
		{"--file " + pipes + " --no-header -c 2 --format parquet", 2, "", "have names and types"},
		{"x 8.8.8.8 --fail-fast --format parquet --output " + out + ".parquet", 3, "", "no program can read it"},
		{"8.8.8.8 --fields country=error", 2, "", "cannot be renamed"},
		{"8.8.8.8 --fields country=a,city=a", 2, "", "two fields"},
		{input, 2, "", "use --file " + input},
		{"--file " + formulas + " --column ip --fields city --csv-safe", 0,
			"ip,b,city,error\n8.8.8.8,'=1+1,Honolulu,\n8.8.8.8,-1.5,Honolulu,\n", ""},
		{"--file " + array + " --field ip", 2, "", "jq -c"},
		{"--file " + array, 2, "", "--field must be given"},
		{"-", 0, "", "0 rows, 0 failed\n"},
		{"8.8.8.8 --output " + out, 0, "", ""},
		{"--file " + input, 2, "", "--column"},
		{"--file " + input + " --column nope", 2, "", "the columns are id, ip"},
		{"--file " + input + " --column ip --field a", 2, "", "one of --column, --field and --extract"},
		{"--file " + input + " --column ip --output " + input, 2, "", "must not be the input"},
		{"--file " + input + " --column ip --resume state", 2, "", "stdout is not a file"},
		{"--resume state -", 2, "", "--resume needs --file"},
		{"--file /dev/null --resume state --output " + out, 2, "", "regular file"},
		{"8.8.8.8 --file " + input, 2, "", "either queries or --file"},
		{"8.8.8.8 --fields nope", 2, "", "unknown field"},
		{"8.8.8.8 --server http://127.0.0.1:1", 2, "", "--mmdb asks no server"},
		{"--file " + filepath.Dir(input), 1, "", "is a folder"},
		{"--file /nonexistent", 1, "", "no such file"},
		{"--file " + cut + " --fields city", 1, `{"query":"8.8.8.8","city":"Honolulu"}` + "\n",
			"read " + cut + ": the compressed file is cut off"},
		{"8.8.8.8 --format xml", 2, "", "format"},
		{"--no-header --extract -", 2, "", "--no-header needs --column"},
	} {
		got := runOnce(t, nil, append([]string{"lookup", "--mmdb", database}, strings.Fields(row.args)...)...)
		if got.code != row.code || got.stdout != row.stdout || !strings.Contains(got.stderr, row.stderr) {
			t.Errorf("%s: got %+v\nwant %+v", row.args, got, row)
		}
	}
	if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), "Honolulu") {
		t.Errorf("got %s and error %v from --output", text, err)
	}
	if got := runOnce(t, nil, "lookup", "--mmdb", input, "8.8.8.8"); got.code != exitUsage ||
		!strings.Contains(got.stderr, input) {
		t.Errorf("got %+v for a database that is none, want code 2 and its name", got)
	}
}

func TestLookupAsksServer(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"serve", "--ip-provider=sim", "--roles=geo"}, anyPorts...)...)
	listen, _ := p.ready(t)
	for _, env := range [][]string{{"GATEHOUSE_BASE_URL=http://" + listen}, nil} {
		args := []string{"lookup", "8.8.8.8", "example.com", "10.0.0.1", "--fields", "ip,country", "--format", "csv"}
		if env == nil {
			args = append(args, "--server", "http://"+listen+"/")
		}
		want := "query,ip,country,error\n8.8.8.8,8.8.8.8,United States,\nexample.com,204.89.122.183,Thailand,\n" +
			"10.0.0.1,,,invalid_query\n"
		if got := runOnce(t, env, args...); got.code != exitSomeFailed || got.stdout != want {
			t.Errorf("got %+v, want code 3 and %s", got, want)
		}
	}
	got := runOnce(t, nil, "lookup", "8.8.8.8", "--server", "http://127.0.0.1:1", "--patience", "1s")
	if got.code != exitFailed || !strings.Contains(got.stderr, "no answer in 1s") {
		t.Errorf("got %+v without a server, want code 1", got)
	}
	got = runOnce(t, nil, "lookup", "8.8.8.8", "--server", "127.0.0.1:8080")
	if got.code != exitUsage || !strings.Contains(got.stderr, "such as https://") {
		t.Errorf("got %+v with an address that is no URL, want code 2 and an example", got)
	}
}

// TestLookupOfDamagedRecord expects a row at once, from a server and from files, though an answer
// of a server with this code is asked for again otherwise.
func TestLookupOfDamagedRecord(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "damaged.mmdb")
	mmdbtest.WriteCity(t, database, map[string]geo.Location{"8.8.8.0/24": {City: "not a city"},
		"9.9.9.0/24": {City: "Berlin"}})
	text, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	text[bytes.Index(text, []byte("not a city"))-1] = 0x38 // a pointer to behind the end
	if err := os.WriteFile(database, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, append([]string{"serve", "--ip-provider=mmdb", "--ip-mmdb", database, "--roles=geo"}, anyPorts...)...)
	listen, _ := p.ready(t)
	for _, source := range []string{"--server=http://" + listen, "--mmdb=" + database} {
		got := runOnce(t, nil, "lookup", source, "8.8.8.8", "9.9.9.9", "--fields", "city,message", "--format", "csv")
		if got.code != exitSomeFailed || got.stdout != "query,city,message,error\n8.8.8.8,,"+geo.DamagedMessage+
			",provider_unreachable\n9.9.9.9,Berlin,,\n" {
			t.Errorf("%s: got %+v, want a row about the damaged record", source, got)
		}
	}
}

// TestLookupResume interrupts lookups at random and expects the output of one that was not
// interrupted.
func TestLookupResume(t *testing.T) {
	t.Parallel()
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		database, input := lookupFiles(t, 10_000*(*interruptions))
		testResume(t, "lookup", "--mmdb", database, "--file", input, "--column", "ip")
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		_, input := lookupFiles(t, 5_000*(*interruptions))
		p := start(t, nil, append([]string{"serve", "--ip-provider=sim", "--roles=geo"}, anyPorts...)...)
		listen, _ := p.ready(t)
		testResume(t, "lookup", "--server", "http://"+listen, "--file", input, "--column", "ip")
	})
}

func testResume(t *testing.T, args ...string) {
	want := filepath.Join(t.TempDir(), "want")
	whole := runOnce(t, nil, append(args, "--output", want)...)
	if whole.code != 0 && whole.code != exitSomeFailed {
		t.Fatalf("got %+v, want code 0 or 3", whole)
	}
	expected, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		all := append(args, "--resume", filepath.Join(dir, "state"), "--output", out)
		for i := range *interruptions {
			p := start(t, nil, all...)
			time.Sleep(rand.N(500 * time.Millisecond))
			if err := p.cmd.Process.Signal([]os.Signal{syscall.SIGKILL, syscall.SIGINT}[(round+i)%2]); err != nil {
				break // it has ended
			}
			p.code(t)
		}
		if got := runOnce(t, nil, all...); got.code != whole.code {
			t.Fatalf("got %+v, want code %d", got, whole.code)
		}
		if text, err := os.ReadFile(out); err != nil || !bytes.Equal(text, expected) {
			t.Errorf("got another output than without interruptions, error %v", err)
		}
		if got := runOnce(t, nil, all...); got.code != whole.code || !strings.Contains(got.stderr, "already done") {
			t.Errorf("got %+v from a command that is done, want nothing done", got)
		}
		if got := runOnce(t, nil, append(all, "--fields", "city")...); got.code != exitFailed ||
			!strings.Contains(got.stderr, "another command: --fields") {
			t.Errorf("got %+v from another command, want code 1", got)
		}
	}
}

// TestLookupResumeWhenDone adds rows to an input that is done, and then removes the output.
func TestLookupResumeWhenDone(t *testing.T) {
	t.Parallel()
	database, _ := lookupFiles(t, 0)
	for format, want := range map[string]string{
		"csv": "ip,city,error\n8.8.8.8,Honolulu,\n8.9.0.1,,no_location\n8.8.8.9,Honolulu,\n",
		"json": "[\n{\"ip\":\"8.8.8.8\",\"lookup\":{\"city\":\"Honolulu\"}},\n{\"ip\":\"8.9.0.1\",\"lookup\":" +
			"{\"city\":null,\"error\":\"no_location\"}},\n{\"ip\":\"8.8.8.9\",\"lookup\":{\"city\":\"Honolulu\"}}\n]\n",
	} {
		dir := t.TempDir()
		input, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out")
		args := []string{"lookup", "--mmdb", database, "--file", input, "--column", "ip", "--fields", "city",
			"--format", format, "--output", out, "--resume", filepath.Join(dir, "state")}
		rows := ""
		for _, row := range []string{"ip\n", "8.8.8.8\n8.9.0.1\n", "8.8.8.9\n", ""} {
			rows += row
			if err := os.WriteFile(input, []byte(rows), 0o600); err != nil {
				t.Fatal(err)
			}
			got := runOnce(t, nil, args...)
			if isDone := strings.Contains(got.stderr, "already done"); isDone != (row == "") {
				t.Errorf("%s: got %+v after adding %q", format, got, row)
			}
		}
		if text, err := os.ReadFile(out); err != nil || string(text) != want {
			t.Errorf("%s: got error %v and\n%s\nwant\n%s", format, err, text, want)
		}
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
		if got := runOnce(t, nil, args...); got.code != exitFailed ||
			!strings.Contains(got.stderr, "the output has 0 bytes") {
			t.Errorf("%s: got %+v without the output, want code 1 and the reason", format, got)
		}
	}
}

// TestLookupResumeOfLongerRow adds to an input whose last row has no line end: first the line end,
// and then the end of a row.
func TestLookupResumeOfLongerRow(t *testing.T) {
	t.Parallel()
	database, _ := lookupFiles(t, 0)
	dir := t.TempDir()
	input, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	args := []string{"lookup", "--mmdb", database, "--file", input, "--fields", "city", "--format", "csv",
		"--output", out, "--resume", filepath.Join(dir, "state")}
	for _, step := range []struct {
		rows, want string
		code       int
	}{
		{"8.8.8.8", "query,city,error\n8.8.8.8,Honolulu,\n", exitDone},
		{"8.8.8.8\r\n8.8.8.9\n8.8.8", "query,city,error\n8.8.8.8,Honolulu,\n8.8.8.9,Honolulu,\n" +
			"8.8.8,,invalid_query\n", exitSomeFailed},
		{"8.8.8.8\r\n8.8.8.9\n8.8.8.1\n", "query,city,error\n8.8.8.8,Honolulu,\n8.8.8.9,Honolulu,\n" +
			"8.8.8.1,Honolulu,\n", exitDone},
	} {
		if err := os.WriteFile(input, []byte(step.rows), 0o600); err != nil {
			t.Fatal(err)
		}
		got := runOnce(t, nil, args...)
		text, err := os.ReadFile(out)
		if err != nil || got.code != step.code || string(text) != step.want {
			t.Errorf("%q: got %+v, error %v and\n%s\nwant\n%s", step.rows, got, err, text, step.want)
		}
	}
}

// TestLookupResumeStateIsAnotherFile names a state that would replace the input, the output, or a
// file behind a link.
func TestLookupResumeStateIsAnotherFile(t *testing.T) {
	t.Parallel()
	database, input := lookupFiles(t, 3)
	dir := t.TempDir()
	state, other := filepath.Join(dir, "state"), filepath.Join(dir, "other")
	rows, err := os.ReadFile(input)
	err = errors.Join(err, os.Rename(input, state+".new"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"lookup", "--mmdb", database, "--column", "ip", "--resume", state}
	got := runOnce(t, nil, append(args, "--file", state+".new", "--output", other)...)
	text, err := os.ReadFile(state + ".new")
	if err != nil || got.code != exitFailed || !bytes.Equal(text, rows) ||
		!strings.Contains(got.stderr, "is the input or the output") {
		t.Errorf("got %+v, error %v and input %s, want code 1 and the input as it was", got, err, text)
	}
	err = errors.Join(os.Rename(state+".new", input), os.WriteFile(other, []byte("precious"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "--file", input, "--output")
	for _, out := range []string{state, state + ".new"} {
		if got := runOnce(t, nil, append(args, out)...); got.code != exitFailed ||
			!strings.Contains(got.stderr, "is the input or the output") {
			t.Errorf("got %+v for the output %s, want code 1 and the reason", got, out)
		}
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, state+".new"); err != nil {
		t.Fatal(err)
	}
	got = runOnce(t, nil, append(args, filepath.Join(dir, "out"))...)
	text, err = os.ReadFile(other)
	if err != nil || got.code != exitDone || string(text) != "precious" {
		t.Errorf("got %+v, error %v and %q behind the link, want code 0 and it as it was", got, err, text)
	}
}

// TestLookupResumeOfOneOutput runs a command while another one writes to the same output.
func TestLookupResumeOfOneOutput(t *testing.T) {
	t.Parallel()
	database, input := lookupFiles(t, 3)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	other, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	plain := []string{"lookup", "--mmdb", database, "--file", input, "--column", "ip", "--output", out}
	args := append(slices.Clip(plain), "--resume", filepath.Join(dir, "state"))
	if _, err := other.WriteString("rows of the other"); err != nil {
		t.Fatal(err)
	}
	if got := runOnce(t, nil, plain...); got.code != exitFailed ||
		!strings.Contains(got.stderr, "another command writes to the output") {
		t.Errorf("got %+v without a state, want code 1 and the reason", got)
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "rows of the other" {
		t.Errorf("got error %v and %q, want the rows of the other command", err, text)
	}
	if err := other.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if got := runOnce(t, nil, args...); got.code != exitFailed ||
		!strings.Contains(got.stderr, "another command writes to the output") {
		t.Errorf("got %+v, want code 1 and the reason", got)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if got := runOnce(t, nil, args...); got.code != exitDone {
		t.Errorf("got %+v once the other has ended, want code 0", got)
	}
}

// TestLookupResumeRefusesChanges changes a file after a lookup of it, or before that ends.
func TestLookupResumeRefusesChanges(t *testing.T) {
	t.Parallel()
	zip := func(text string) string { return gzipped(t, text) }
	rows := strings.Repeat("8.8.8.8\n", 20_000) // its sums leave out the middle
	for name, c := range map[string]struct {
		input  string
		change func(t *testing.T, input, out, database, state string)
		stderr string // of the second command
	}{
		"nothing": {rows, func(*testing.T, string, string, string, string) {}, "already done"},
		"zeros in the output": {rows, func(t *testing.T, _, out, _, _ string) {
			overwrite(t, out, -8, "\x00\x00")
		}, "the output was changed"},
		"longer output": {rows, func(t *testing.T, _, out, _, _ string) {
			overwrite(t, out, 0, "more\n")
		}, "the output was changed"},
		"a row in the middle": {rows, func(t *testing.T, input, _, _, _ string) {
			overwrite(t, input, -80_000, "9")
		}, "without growing"},
		"a row at the end, and more": {rows, func(t *testing.T, input, _, _, _ string) {
			overwrite(t, input, -2, "9\n8.8.8.8\n")
		}, "have changed"},
		"grown gzip": {zip(rows), func(t *testing.T, input, _, _, _ string) {
			overwrite(t, input, 0, zip("8.8.8.9\n"))
		}, "file of their own"},
		"another database": {rows, func(t *testing.T, _, _, database, _ string) {
			mmdbtest.WriteCity(t, database, map[string]geo.Location{"8.8.8.0/24": {City: "Elsewhere"}})
		}, "--allow-new-data"},
		"an edited mapping": {rows, func(t *testing.T, _, _, database, _ string) {
			overwrite(t, database+".yaml", -1, ".names.de\n")
		}, "--allow-new-data"},
		"a state in use": {rows, func(t *testing.T, _, _, _, state string) {
			f, err := os.Open(state)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
		}, "another command writes to the state"},
	} {
		dir := t.TempDir()
		database, _ := lookupFiles(t, 0)
		input, out, state := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "state")
		mapping := database + ".yaml"
		if err := errors.Join(os.WriteFile(input, []byte(c.input), 0o600),
			os.WriteFile(mapping, []byte("region_name: x\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		args := []string{"lookup", "--mmdb", database, "--mmdb-map", mapping, "--file", input, "--fields", "city",
			"--format", "csv", "--output", out, "--resume", state}
		if got := runOnce(t, nil, args...); got.code != exitDone {
			t.Fatalf("%s: got %+v, want code 0", name, got)
		}
		c.change(t, input, out, database, state)
		got := runOnce(t, nil, args...)
		if !strings.Contains(got.stderr, c.stderr) || (got.code == exitDone) != (name == "nothing") {
			t.Errorf("%s: got %+v, want %q", name, got, c.stderr)
		}
		if name == "another database" {
			overwrite(t, input, 0, "8.8.8.9\n")
			got := runOnce(t, nil, append(args, "--allow-new-data")...)
			text, err := os.ReadFile(out)
			if err != nil || got.code != exitDone || !strings.HasSuffix(string(text),
				"8.8.8.8,Honolulu,\n8.8.8.9,Elsewhere,\n") {
				t.Errorf("got %+v and error %v with new data, want a new row", got, err)
			}
		}
	}
}

// overwrite writes a text at an offset from the end of a file.
func overwrite(t *testing.T, path string, fromEnd int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Seek(fromEnd, io.SeekEnd)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLookupOfSeveralFiles looks up files in their order, and goes on after rows were added.
func TestLookupOfSeveralFiles(t *testing.T) {
	t.Parallel()
	database, _ := lookupFiles(t, 0)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2.csv", "ip\n")
	write("1.csv", "ip\n8.8.8.1\n")
	write("3.csv", "ip\n8.8.8.3\n8.8.8")
	write("other.csv", "ip,b\n8.8.8.4,\n")
	for _, row := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"--file 3.csv --file 1.csv", 3, "ip,city,error\n8.8.8.3,Honolulu,\n8.8.8,,invalid_query\n" +
			"8.8.8.1,Honolulu,\n", "3 rows, 1 failed"},
		{"--file [12].csv --format json", 0, "[\n{\"ip\":\"8.8.8.1\",\"lookup\":{\"city\":\"Honolulu\"}}\n]\n", ""},
		{"--file 2.csv --file 1.csv", 0, "ip,city,error\n8.8.8.1,Honolulu,\n", ""},
		{"--file 1.csv --file other.csv", 2, "ip,city,error\n8.8.8.1,Honolulu,\n", "--format ndjson"},
		{"--file 1.csv --file [1]*", 2, "", "more than once"},
		{"--file x*", 2, "", "no file matches"},
		{"--file 1.csv --file gone", 1, "", "gone"},
	} {
		args := []string{"lookup", "--mmdb", database, "--column", "ip", "--fields", "city"}
		for _, arg := range strings.Fields(row.args) {
			if strings.Contains(arg, ".csv") || strings.ContainsAny(arg, "*") || arg == "gone" {
				arg = filepath.Join(dir, arg)
			}
			args = append(args, arg)
		}
		got := runOnce(t, nil, args...)
		if got.code != row.code || got.stdout != row.stdout || !strings.Contains(got.stderr, row.stderr) {
			t.Errorf("%s: got %+v\nwant %+v", row.args, got, row)
		}
	}
	remove := func(name string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	args := []string{"lookup", "--mmdb", database, "--column", "ip", "--fields", "city", "--output", out,
		"--resume", filepath.Join(dir, "state"), "--file", filepath.Join(dir, "[1-4].csv*")}
	for _, step := range []struct{ name, text, want string }{
		{"3.csv", "\ufeffip\n8.8.8.3\n8.8.8", "8.8.8.1,Honolulu,\n8.8.8.3,Honolulu,\n8.8.8,,invalid_query\n"},
		{"3.csv", "\ufeffip\n8.8.8.3\n8.8.8.4\n", "8.8.8.1,Honolulu,\n8.8.8.3,Honolulu,\n8.8.8.4,Honolulu,\n"},
		{"1.csv", "ip\n8.8.8.1\n8.8.8.5\n",
			"8.8.8.1,Honolulu,\n8.8.8.3,Honolulu,\n8.8.8.4,Honolulu,\n8.8.8.5,Honolulu,\n"},
		{"1.csv.gz", "ip\n8.8.8.1\n8.8.8.5\n",
			"8.8.8.1,Honolulu,\n8.8.8.3,Honolulu,\n8.8.8.4,Honolulu,\n8.8.8.5,Honolulu,\n"},
		{"3.csv.gz", "\ufeffip\n8.8.8.3\n8.8.8.4\n8.8.8.6\n", "8.8.8.1,Honolulu,\n8.8.8.3,Honolulu,\n" +
			"8.8.8.4,Honolulu,\n8.8.8.5,Honolulu,\n8.8.8.6,Honolulu,\n"},
	} {
		if plain, isPacked := strings.CutSuffix(step.name, ".gz"); isPacked {
			remove(plain)
			step.text = gzipped(t, step.text)
		}
		write(step.name, step.text)
		for _, done := range []bool{false, true} {
			got := runOnce(t, nil, args...)
			text, err := os.ReadFile(out)
			if err != nil || got.code == exitFailed || string(text) != "ip,city,error\n"+step.want ||
				strings.Contains(got.stderr, "already done") != done {
				t.Errorf("%s: got %+v, error %v and %s\nwant %s", step.text, got, err, text, step.want)
			}
		}
	}
	for _, step := range []struct {
		name, text, gone, stderr string
	}{
		{"2.csv", "ip\nx\n8.8.8.7\n", "", "6 rows, 1 failed"},
		{"2.csv.gz", "ip\nx\n8.8.8.7\n", "2.csv", "7 rows, 1 failed"},
		{"4.csv", "ip\n8.8.8.2", "", "8 rows, 1 failed"},
		{"4.csv.gz", "ip\n8.8.8.2", "", "9 rows, 1 failed"}, // as another file
		{"4.csv.zst", "ip\n8.8.8.25\n", "4.csv", "before its last row had a line end"},
		{"4.csv.zst", "ip\n8.8.9.2\n", "", "has others"},
		{"4.csv.zst", "ip\n", "", "has others"},
	} {
		if step.gone != "" {
			remove(step.gone)
		}
		if strings.Count(step.name, ".") == 2 {
			step.text = gzipped(t, step.text)
		}
		write(step.name, step.text)
		if got := runOnce(t, nil, append(args, "--fail-fast")...); !strings.Contains(got.stderr, step.stderr) {
			t.Errorf("%s: got %+v, want %s", step.name, got, step.stderr)
		}
	}
	if got := runOnce(t, nil, append(args[:len(args)-1], filepath.Join(dir, "1.csv.gz"))...); got.code != exitFailed ||
		!strings.Contains(got.stderr, "which --file does not name") {
		t.Errorf("got %+v with one of the files only, want code 1 and the reason", got)
	}
}

// TestLookupOfHostileServer expects the text of a server to be safe for a terminal, and a key that
// no header can have to be refused without its text.
func TestLookupOfHostileServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"no\u001b[31m \u009b31m\u202ered"}`)
	}))
	defer server.Close()
	args := []string{"lookup", "8.8.8.8", "--quiet", "--server", server.URL}
	want := "gatehouse: the server refuses: status 403 no [31m 31m red\n"
	if got := runOnce(t, nil, args...); got.code != exitFailed || got.stderr != want {
		t.Errorf("got %+v, want code 1 and %q", got, want)
	}
	got := runOnce(t, []string{"GATEHOUSE_API_KEY=gtlk_secret\r"}, args...)
	if got.code != exitUsage || !strings.Contains(got.stderr, "the API key") ||
		strings.Contains(got.stderr, "secret") {
		t.Errorf("got %+v for a key with a line end, want code 2 and no secret", got)
	}
}

// TestLookupOfUntrustedServer expects a wrong certificate to end a long job at once.
func TestLookupOfUntrustedServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	got := runOnce(t, nil, "lookup", "--file", write(t, "queries", "8.8.8.8\n"), "--server", server.URL)
	if got.code != exitFailed || !strings.Contains(got.stderr, "the server's certificate is not trusted") {
		t.Errorf("got %+v, want code 1 and the reason", got)
	}
}

func TestProgressFitsWidth(t *testing.T) {
	t.Parallel()
	text := "500 rows, 25/s, 20s left"
	for width, want := range map[int]string{80: text, 24: text, 23: "500 rows, 25/s", 9: "500 rows", 7: "", -3: ""} {
		if got := fitted(text, width); got != want {
			t.Errorf("got %q for width %d, want %q", got, width, want)
		}
	}
	var out strings.Builder
	_, err := terminalWriter{&out}.Write([]byte("a\x1b[31m\u009b\u202eé\n"))
	if want := "a\\u001b[31m\\u009b\\u202eé\n"; err != nil || out.String() != want {
		t.Errorf("got error %v and %q, want %q", err, &out, want)
	}
}

func TestOutageNotice(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	synctest.Test(t, func(*testing.T) {
		notice := outageNotice(&out)
		for without := range 130 {
			notice(time.Duration(without)*time.Second, errors.New("status\x1b503"))
			time.Sleep(time.Second)
		}
	})
	want := "gatehouse: no answer for 5s, trying again: status 503\n" +
		"gatehouse: no answer for 1m5s, trying again: status 503\n" +
		"gatehouse: no answer for 2m5s, trying again: status 503\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", &out, want)
	}
}

// TestLookupOnFullDisk limits the size of the output, and goes on without the limit.
func TestLookupOnFullDisk(t *testing.T) {
	t.Parallel()
	database, input := lookupFiles(t, 50_000)
	dir := t.TempDir()
	want, out := filepath.Join(dir, "want"), filepath.Join(dir, "out")
	args := []string{"lookup", "--mmdb", database, "--file", input, "--column", "ip"}
	if got := runOnce(t, nil, append(args, "--output", want)...); got.code != exitDone {
		t.Fatalf("got %+v, want code 0", got)
	}
	args = append(args, "--resume", filepath.Join(dir, "state"), "--output", out)
	limited := exec.Command("prlimit", append([]string{"--fsize=1000000", binary}, args...)...)
	text, err := limited.CombinedOutput()
	if limited.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(text), "write output") {
		t.Errorf("got %v and %s, want code 1 and the reason", err, text)
	}
	if got := runOnce(t, nil, args...); got.code != exitDone {
		t.Fatalf("got %+v, want code 0", got)
	}
	expected, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, expected) {
		t.Errorf("got another output than without a full disk, error %v", err)
	}
}

// TestLookupReaderLeaves expects a lookup to end without a word when nobody reads its output.
func TestLookupReaderLeaves(t *testing.T) {
	t.Parallel()
	database, input := lookupFiles(t, 50_000)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "lookup", "--mmdb", database, "--file", input, "--column", "ip")
	var stderr bytes.Buffer
	command.Stdout, command.Stderr = write, &stderr
	if err := errors.Join(command.Start(), write.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := read.Read(make([]byte, 100)); err != nil {
		t.Error(err)
	}
	if err := read.Close(); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err == nil || stderr.Len() > 0 {
		t.Errorf("got %v and %q, want an end without a word", err, &stderr)
	}
}

// TestLookupShowsProgress expects figures on a terminal, but not between rows.
func TestLookupShowsProgress(t *testing.T) {
	t.Parallel()
	database, _ := lookupFiles(t, 0)
	for _, rowsToo := range []bool{false, true} {
		terminal, person := openTerminal(t)
		command := exec.Command(binary, "lookup", "--mmdb", database, "--fields", "city")
		command.Stderr = terminal
		if rowsToo {
			command.Stdout = terminal
		}
		input, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(input, "8.8.8.8\n"); err != nil {
			t.Fatal(err)
		}
		shown := ""
		read := func(until string) {
			text := make([]byte, 1000)
			for !strings.Contains(shown, until) {
				n, err := person.Read(text)
				if shown += string(text[:n]); err != nil {
					t.Fatalf("got error %v and %q, want %q", err, shown, until)
				}
			}
		}
		if rowsToo {
			read("Honolulu")
			time.Sleep(500 * time.Millisecond) // progress would be shown now
		} else {
			read("1 rows, ")
		}
		if err := errors.Join(input.Close(), command.Wait()); err != nil {
			t.Fatalf("%v: %s", err, shown)
		}
		read("1 row, 0 failed")
		if strings.Contains(shown, "repeated") == rowsToo {
			t.Errorf("with rows %v: got %q", rowsToo, shown)
		}
	}
}

// TestLookupProgress expects figures of what is done, not of what was read.
func TestLookupProgress(t *testing.T) {
	t.Parallel()
	rows := strings.Repeat("8.8.8.8\n", 10_000)
	database, _ := lookupFiles(t, 0)
	files, err := mmdb.Map(database)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	plan := bulk.NewSummary().Plan()
	for name, text := range map[string]string{"text": rows, "gzip": gzipped(t, rows)} {
		path := filepath.Join(t.TempDir(), "input")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		in, err := bulk.NewInput(f)
		if err != nil {
			t.Fatal(err)
		}
		var counts bulk.Counts
		began := time.Now()
		p := progress{began: began, from: bulk.Position{Input: 20_000, Rows: 250}, input: in}
		counts.Rows.Store(500)
		counts.Misses.Store(50)
		counts.Input.Store(40_000)
		_, err = bulk.Run(t.Context(), bulk.Config{Input: in, Layout: bulk.Layout{Kind: bulk.Lines},
			Plan: plan, Source: bulk.NewFiles(files, plan), Output: io.Discard, Workers: 1, MaxRows: 9,
			MaxErrors: -1}) // reads all
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, done := p.describe(began.Add(10*time.Second), &counts)
		want := "500 rows, 25/s, 80 % repeated, 0 failed, 20s left"
		if half := int64(len(text) / 2); got != want || done < half-1 || done > half+1 {
			t.Errorf("%s: got %q and %d of %d bytes, want %q and half", name, got, done, len(text), want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
