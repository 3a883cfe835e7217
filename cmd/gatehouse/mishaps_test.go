package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"gatehouse/actors/geo"
	"gatehouse/providers/mmdb/mmdbtest"
)

var mishaps = flag.Int("mishaps", 12, "mishaps of each lookup of TestLookupMishaps")

// mishap is a lookup with --resume to which things happen at random.
type mishap struct {
	*testing.T
	format                                string
	database, other, input, state, output string // files
	args                                  []string
	rows                                  int
	want                                  bytes.Buffer // all rows of the output
	log                                   []string
}

// TestLookupMishaps kills lookups, fills their disk, starts each of them several times at once, and
// changes their input and their database, all at random. A command that succeeds must have written
// each row of its input once, and a change of what was read must be refused.
func TestLookupMishaps(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "ndjson", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := &mishap{T: t, format: format, other: filepath.Join(dir, "other.mmdb"), input: filepath.Join(dir, "in.csv"),
				state: filepath.Join(dir, "state"), output: filepath.Join(dir, "out")}
			m.database, _ = lookupFiles(t, 0)
			mmdbtest.WriteCity(t, m.other, map[string]geo.Location{"8.0.0.0/8": {CountryCode: "XX"}})
			m.args = []string{"lookup", "--mmdb", m.database, "--file", m.input, "--column", "ip", "--fields",
				"countryCode", "--format", format, "--resume", m.state, "--output", m.output}
			m.grow(15_000)
			all := []struct {
				name   string
				happen func()
			}{
				{"kill", m.kill}, {"kill", m.kill}, {"full disk", m.fullDisk}, {"two at once", m.together},
				{"another row", m.changeInput}, {"another database", m.changeDatabase},
				{"growth", func() { m.grow(1 + rand.IntN(5_000)) }},
			}
			for range *mishaps {
				one := all[rand.IntN(len(all))]
				m.log = append(m.log, one.name)
				if one.happen(); t.Failed() {
					t.Fatalf("after %s", strings.Join(m.log, ", "))
				}
			}
			for range 2 {
				p := start(t, nil, m.args...)
				if code := p.code(t); code != exitDone {
					t.Fatalf("got %d, %s after %s, want code 0", code, p.stderr, strings.Join(m.log, ", "))
				}
				m.check(exitDone)
			}
		})
	}
}

// row returns the row of the input with a number, and the row of the output.
func (m *mishap) row(i int) (in, out string) {
	ip := fmt.Sprintf("8.%d.%d.%d", 8+i%2, i>>8&255, i&255)
	code, fault := "US", ""
	if i%2 == 1 {
		code, fault = "", "no_location"
	}
	in = fmt.Sprintf("%d,%s\n", i, ip)
	if m.format == "csv" {
		return in, fmt.Sprintf("%d,%s,%s,%s\n", i, ip, code, fault)
	}
	out = `"countryCode":"US"`
	if fault != "" {
		out = `"countryCode":null,"error":"no_location"`
	}
	return in, fmt.Sprintf(`{"id":"%d","ip":"%s","lookup":{%s}}`, i, ip, out)
}

// grow adds rows to the input.
func (m *mishap) grow(n int) {
	f, err := os.OpenFile(m.input, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.Fatal(err)
	}
	var text strings.Builder
	if m.rows == 0 {
		text.WriteString("id,ip\n")
	}
	for range n {
		in, out := m.row(m.rows)
		text.WriteString(in)
		if m.rows > 0 {
			m.want.WriteString(map[string]string{"json": ",\n", "ndjson": "\n"}[m.format])
		}
		m.want.WriteString(out)
		m.rows++
	}
	_, err = f.WriteString(text.String())
	if err := f.Close(); err != nil {
		m.Fatal(err)
	}
	if err != nil {
		m.Fatal(err)
	}
}

// check compares the output of a command that has ended with a code: with 0 it is whole.
func (m *mishap) check(code int) {
	m.Helper()
	if code != exitDone {
		return
	}
	want := map[string]string{"csv": "id,ip,countryCode,error\n", "json": "[\n"}[m.format] + m.want.String() +
		map[string]string{"json": "\n]\n", "ndjson": "\n"}[m.format]
	if got, err := os.ReadFile(m.output); err != nil || string(got) != want {
		m.Errorf("got success, error %v and another output of %d bytes, want %d", err, len(got), len(want))
	}
}

func (m *mishap) kill() {
	p := start(m.T, nil, m.args...)
	time.Sleep(rand.N(400 * time.Millisecond))
	_ = p.cmd.Process.Kill() // or it has ended
	m.check(p.code(m.T))
}

func (m *mishap) fullDisk() {
	limited := exec.Command("prlimit", append([]string{fmt.Sprintf("--fsize=%d", rand.IntN(m.rows*25)), binary},
		m.args...)...)
	text, err := limited.CombinedOutput()
	code := limited.ProcessState.ExitCode()
	if code != exitDone && code != exitFailed {
		m.Errorf("got %v and %s on a full disk, want code 0 or 1", err, text)
	}
	m.check(code)
}

func (m *mishap) together() {
	var all []*process
	for range 3 {
		all = append(all, start(m.T, nil, m.args...))
		time.Sleep(rand.N(50 * time.Millisecond))
	}
	if rand.IntN(2) == 0 {
		time.Sleep(rand.N(200 * time.Millisecond))
		_ = all[0].cmd.Process.Kill() // or it has ended
	}
	done := exitFailed
	for _, p := range all {
		code := p.code(m.T)
		if code == exitDone {
			done = code
		}
		if code == exitFailed && !strings.Contains(p.stderr.String(), "another command writes to") {
			m.Errorf("got %s, want another command as the reason", p.stderr)
		}
	}
	m.check(done)
}

// changeInput changes a digit of an id in the input for the time of a command.
func (m *mishap) changeInput() {
	text, err := os.ReadFile(m.input)
	info, err2 := os.Stat(m.input)
	if err != nil || err2 != nil {
		m.Fatal(err, err2)
	}
	if state, _ := os.ReadFile(m.state); !strings.Contains(string(state), fmt.Sprintf(`"size":%d,`, len(text))) {
		return // nothing was read, or the input has grown since: that hides a change in its middle
	}
	changed := bytes.Clone(text)
	at := rand.IntN(len(changed) - 100)
	changed[at+bytes.IndexByte(changed[at:], '\n')+1] = 'x'
	m.refused(m.input, changed, "belongs to another input", func() {
		if err := os.WriteFile(m.input, text, 0o600); err != nil {
			m.Fatal(err)
		}
		if err := os.Chtimes(m.input, time.Time{}, info.ModTime()); err != nil {
			m.Fatal(err)
		}
	})
}

// changeDatabase replaces the database for the time of a command.
func (m *mishap) changeDatabase() {
	if info, err := os.Stat(m.state); err != nil || info.Size() == 0 {
		return // no row was looked up
	}
	good, err := os.ReadFile(m.database)
	other, err2 := os.ReadFile(m.other)
	if err != nil || err2 != nil {
		m.Fatal(err, err2)
	}
	m.refused(m.database, other, "--allow-new-data", func() {
		if err := os.WriteFile(m.database, good, 0o600); err != nil {
			m.Fatal(err)
		}
	})
}

// refused runs a command with another text of a file, which must be refused, and restores that.
func (m *mishap) refused(file string, text []byte, reason string, restore func()) {
	m.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		m.Fatal(err)
	}
	if got := runOnce(m.T, nil, m.args...); got.code != exitFailed || !strings.Contains(got.stderr, reason) {
		m.Errorf("got %+v for a change of %s, want %q", got, file, reason)
	}
	restore()
}

// TestParquetMishaps kills lookups that write Parquet, fills their disk, and starts two at once. No
// file can be read but one that has all rows, and the next command writes such a one.
func TestParquetMishaps(t *testing.T) {
	t.Parallel()
	const rows = 150_000 // more than a row group
	database, input := lookupFiles(t, rows)
	out := filepath.Join(t.TempDir(), "out.parquet")
	args := []string{"lookup", "--mmdb", database, "--file", input, "--column", "ip", "--format", "parquet", "--output", out}
	check := func(what string, mayBeWhole, mustBeWhole bool) {
		t.Helper()
		f, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		p, err := parquet.OpenFile(f, info.Size())
		if err == nil && (!mayBeWhole || p.NumRows() != rows) || err != nil && mustBeWhole {
			t.Errorf("%s: got a file with error %v, want all of %d rows or none", what, err, rows)
		}
	}
	for range *mishaps/4 + 1 {
		p := start(t, nil, args...)
		time.Sleep(rand.N(500 * time.Millisecond))
		_ = p.cmd.Process.Kill() // or it has ended
		code := p.code(t)
		if _, err := os.Stat(out); err == nil {
			check("killed", true, code == exitDone)
		}
	}
	limited := exec.Command("prlimit", append([]string{"--fsize=300000", binary}, args...)...)
	text, err := limited.CombinedOutput()
	if limited.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(text), "no program can read it") {
		t.Errorf("got %v and %s on a full disk, want code 1", err, text)
	}
	check("full disk", false, false)
	var both []*process
	for range 2 {
		both = append(both, start(t, nil, args...))
	}
	done := 0
	for _, p := range both {
		switch code := p.code(t); {
		case code == exitDone:
			done++
		case code != exitFailed || !strings.Contains(p.stderr.String(), "another command writes to the output"):
			t.Errorf("got code %d and %s, want one command at a time", code, p.stderr)
		}
	}
	if done == 0 {
		t.Error("got no success of two commands at once, want one")
	}
	check("two at once", true, true)
}
