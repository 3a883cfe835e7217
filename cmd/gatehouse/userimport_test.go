package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var importedPeople = flag.Int("people", 400, "how many users TestUserImportMany imports into each database")

// importPassword is the password of all people that these tests import.
const importPassword = "Grüße-7-otter"

// importHashes are hashes of importPassword by Python's hashlib and crypt, and of "password" by the
// reference implementation of argon2i.
var importHashes = map[string]string{
	"bcrypt-a": "$2a$04$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO",
	"bcrypt-b": "$2b$04$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO",
	"bcrypt-y": "$2y$04$abcdefghijklmnopqrstuuglMDeCa20M8ueBz8wA8VFZh/pUK91OO",
	"passlib1": "$pbkdf2$1000$c29tZXNhbHQtMDEyMzQ1Ng$5EubVAfNIVBs0yVSjYzvCf2xCls",
	"phc256":   "$pbkdf2-sha256$i=1000$c29tZXNhbHQtMDEyMzQ1Ng$aGGl2wEN7bkWQy00Lgjc9sbmtWCXMRxHpdepKWdw+kI",
	"phc512":   "$pbkdf2-sha512$i=1000,l=64$c29tZXNhbHQtMDEyMzQ1Ng$9acsxMHTSQXMZ5MCYDOojLZIjzg+WGXGbr1xfrKdvet9InKitCRVvg1DkmacSMyt+1kyrklGMwTTjrQZpuMt8A",
	"django1":  "pbkdf2_sha1$1000$sEaSaLt$tCgxAJaHqY3UAzaqoBAjRqSCCrA=",
	"django":   "pbkdf2_sha256$1000$sEaSaLt$DE8t7XpAE0vYaPRWhTwLOk8xBDLj//TW3qOgA+wrqtQ=",
	"scrypt":   "$scrypt$ln=10,r=8,p=1$c29tZXNhbHQtMDEyMzQ1Ng$YxoJOn/UV/GtdClq7/22AwCGDJhHfsDmYfYSc9GgLuw",
	"argon2i":  "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
	"argon2id": "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
}

// importLine returns a line with a verified e-mail address, and more members.
func importLine(name, more string) string {
	return fmt.Sprintf(`{"name":"%s","email":"%s@example.com","email_verified":true%s}`+"\n", name, name, more)
}

// signsIn reports whether a new browser signs in with that password.
func signsIn(t *testing.T, base, email, password string) bool {
	t.Helper()
	b := newBrowser(t, "")
	page := b.send(t, base, b.open(t, base, "/login"), "email", email, "password", password)
	return page.Status == http.StatusOK && page.Path == "/me"
}

func TestUserImport(t *testing.T) {
	t.Parallel()
	env, base := applyEnv(t)
	var text strings.Builder
	for kind, hash := range importHashes {
		text.WriteString(importLine(kind, `,"password_hash":"`+hash+`"`))
	}
	good := write(t, "good.ndjson", "\ufeff"+text.String()+"\n  \n"+importLine("bo", `,"id":4711`))
	people := strconv.Itoa(len(importHashes) + 1)
	wantRun(t, env, 0, []string{people + " would be created, 0 refused"}, "user", "import", "--file", good, "--dry-run")
	state := filepath.Join(t.TempDir(), "state")
	for _, note := range []string{"", "already done: "} {
		wantRun(t, env, 0, []string{note + strconv.Itoa(len(importHashes)+3) + " lines: " + people + " created, 0 refused"},
			"user", "import", "--file", good, "--resume", state)
	}
	wantRun(t, env, 3, []string{" 0 created, " + people + " refused", "line 14: id belongs to another account"},
		"user", "import", "--file", good)
	for kind := range importHashes {
		password := importPassword
		if strings.HasPrefix(kind, "argon2") {
			password = "password"
		}
		if signsIn(t, base, kind+"@example.com", "wrong") || !signsIn(t, base, kind+"@example.com", password) {
			t.Errorf("%s: got no sign-in with the right password alone, want one", kind)
		}
	}

	// The export of one server is what another one imports.
	exported := runOnce(t, env, "user", "export").stdout
	if n := strings.Count(exported, "\n"); n != len(importHashes)+1 || strings.Count(exported, "$argon2id$") != len(importHashes) {
		t.Errorf("got %s\nwant %s users, and own hashes since the sign-ins", exported, people)
	}
	other, otherBase := applyEnv(t)
	wantRun(t, other, 0, []string{people + " created, 0 refused"}, "user", "import", "-f", write(t, "x", exported))
	if again := runOnce(t, other, "user", "export").stdout; again != exported || !signsIn(t, otherBase, "django@example.com", importPassword) {
		t.Errorf("got %s\nwant the same export, and a sign-in", again)
	}
}

// TestUserImportOfBadFiles gives files that are wrong as a whole, and lines that are.
func TestUserImportOfBadFiles(t *testing.T) {
	t.Parallel()
	env, _ := applyEnv(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := io.WriteString(z, importLine("zip", "")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		text string
		code int
		want []string
	}{
		"gzip":    {zipped.String(), 0, []string{"1 lines: 1 created"}},
		"cut off": {zipped.String()[:zipped.Len()-12], 1, []string{"unexpected EOF"}},
		"CSV":     {"name,email\nAda,ada@example.com\n", 2, []string{"line 1 is no JSON object"}},
		"array":   {"[" + importLine("arr", "") + "]", 2, []string{"line 1 is no JSON object", "jq -c ."}},
		"pretty":  {"{\n  \"name\": \"Ada\"\n}\n", 2, []string{"line 1 is no JSON object"}},
		"UTF-16":  {"\xff\xfe{\x00", 2, []string{"UTF-16"}},
		"empty":   {"", 0, []string{"0 lines: 0 created"}},
		"lines": {importLine("one", "") + importLine("two", `,"bio":"`+strings.Repeat("x", 10<<20)+`"`) +
			importLine("three", `,"bio":"`+"\xff"+`"`) + "nothing secret\n" + importLine("four", `,"bio":"`+strings.Repeat("<", 2000)+`"`) +
			importLine("ONE", "") + importLine("five", ""), 3,
			[]string{"line 2: is longer than 59960 bytes", "line 3: must be one JSON object in UTF-8",
				"line 4: must be one JSON object in UTF-8", "line 6: email belongs to another account",
				"7 lines: 3 created, 4 refused"}},
		"many errors": {importLine("six", "") + strings.Repeat("{}\n", 700), 3,
			[]string{"500 lines: 1 created, 499 refused", "more lines were refused than"}},
	} {
		got := wantRun(t, env, row.code, row.want, "user", "import", "--max-errors", "20", "--file", write(t, "users", row.text))
		if strings.Contains(got.stdout+got.stderr, "secret") || strings.Contains(got.stderr, "example.com") {
			t.Errorf("%s: got %s%s, want nothing of the lines", name, got.stdout, got.stderr)
		}
	}
	// A dry run sees values that repeat those of lines long before.
	var many strings.Builder
	for i := range 1200 {
		many.WriteString(importLine(fmt.Sprintf("p%d", i), ""))
	}
	many.WriteString(importLine("P7", "") + importLine("late", `,"id":4711`) + importLine("later", `,"id":4711`))
	wantRun(t, env, 3, []string{"line 1201: email is that of an earlier line", "line 1203: id belongs to another account",
		"1203 lines: 1201 would be created, 2 refused"}, "user", "import", "--dry-run", "-f", write(t, "users", many.String()))

	// A state belongs to the lines that it counts.
	state := filepath.Join(t.TempDir(), "state")
	wantRun(t, env, 0, nil, "user", "import", "-f", write(t, "users", importLine("s1", "")+importLine("s2", "")), "--resume", state)
	wantRun(t, env, 2, []string{"the lines up to 2, which are imported, have changed"}, "user", "import", "-f",
		write(t, "users", importLine("s1", "")+importLine("s3", "")), "--resume", state)
	wantRun(t, env, 2, []string{"ends before line 2"}, "user", "import", "-f", write(t, "users", importLine("s1", "")), "--resume", state)
	wantRun(t, env, 2, []string{"is not a state"}, "user", "import", "-f", write(t, "users", ""), "--resume", write(t, "s", "{}"))
	wantRun(t, env, 2, []string{"nothing to --resume"}, "user", "import", "--dry-run", "--resume", state)
}

// TestUserImportMany imports many people into each database while the command is killed, and the
// server as well: nobody is lost, nobody is there two times, and each wrong line is named.
func TestUserImportMany(t *testing.T) {
	t.Parallel()
	n := *importedPeople
	file := filepath.Join(t.TempDir(), "users.ndjson")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(out)
	for i := range n {
		if i%100 == 50 {
			fmt.Fprintf(w, `{"name":"Wrong","email":"p%d@example.com"}`+"\n", i)
			continue
		}
		fmt.Fprintf(w, `{"id":%d,"name":"Person %d","email":"P%d@example.com","email_verified":true,"username":"user-%d",`+
			`"gender":"female","bio":"Number %d of many","date_of_birth":"1990-12-10","password_hash":"%s"}`+"\n",
			1000+i, i, i, i, i, importHashes["bcrypt-y"])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			s := newBare(t, databaseEnv(t, url(t)))
			state := filepath.Join(t.TempDir(), "state")
			args := []string{"user", "import", "--file", file, "--resume", state}
			began := time.Now()
			named := map[string]bool{}
			note := func(stderr string) {
				for line := range strings.Lines(stderr) {
					if number, _, ok := strings.Cut(strings.TrimPrefix(line, "line "), ": "); ok && strings.HasPrefix(line, "line ") {
						named[number] = true
					}
				}
			}
			for kill := range 3 {
				p := start(t, s.operatorEnv(), args...)
				awaitLine(t, state, p, min(n/2, n/4*(kill+1)))
				p.signal(t, syscall.SIGKILL)
				<-p.ended
				note(p.stderr.String())
			}
			s.server.signal(t, syscall.SIGKILL)
			<-s.server.ended
			s.serve(t)
			last := start(t, s.operatorEnv(), args...)
			memory := watchMemory(last, s.server)
			<-last.ended
			took := time.Since(began)
			note(last.stderr.String())
			wrong := n / 100
			want := fmt.Sprintf("%d lines: %d created, %d refused", n, n-wrong, wrong)
			if code := last.code(t); code != exitSomeFailed || !strings.Contains(last.stdout.String(), want) {
				t.Fatalf("got code %d, %s%s, want 3 and %q", code, last.stdout, last.stderr, want)
			}
			t.Logf("%d people in %v with three kills; the rest: %s; at most %s", n, took, last.stdout, memory())
			if len(named) != wrong || wrong > 0 && !named["51"] {
				t.Errorf("got %d wrong lines with a number, want %d", len(named), wrong)
			}
			checkImported(t, s.operatorEnv(), n)
			email := fmt.Sprintf("p%d@example.com", n-1)
			if !signsIn(t, s.base, email, importPassword) {
				t.Error("got no sign-in of the last one, want it")
			}
			s.server.stop(t)
		})
	}
}

// awaitLine waits until the state of an import counts a line, or the command has ended.
func awaitLine(t *testing.T, state string, p *process, line int) {
	t.Helper()
	for {
		text, err := os.ReadFile(state)
		if err == nil {
			_, rest, _ := strings.Cut(string(text), `"line":`)
			number, _, _ := strings.Cut(rest, ",")
			if at, err := strconv.Atoi(number); err == nil && at >= line {
				return
			}
		}
		select {
		case <-p.ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// watchMemory follows the resident memory of processes. The function that it returns says the highest.
func watchMemory(processes ...*process) func() string {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	highest := make([]int, len(processes))
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for i, p := range processes {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
				_, rest, _ := strings.Cut(string(text), "VmHWM:")
				number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
				if kb, err := strconv.Atoi(number); err == nil {
					highest[i] = kb >> 10
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() string {
		cancel()
		<-done
		return fmt.Sprintf("%d MiB of the command and of the server", highest)
	}
}

// checkImported reads the export: each of n people is there once, but for the wrong ones.
func checkImported(t *testing.T, env []string, n int) {
	t.Helper()
	read, write := io.Pipe()
	var stderr bytes.Buffer
	go func() {
		code := run(t.Context(), []string{"user", "export"}, env, strings.NewReader(""), write, &stderr)
		write.CloseWithError(map[bool]error{false: fmt.Errorf("code %d", code)}[code == exitDone])
	}()
	lines := bufio.NewScanner(read)
	for i := range n {
		if i%100 == 50 {
			continue
		}
		id, email := fmt.Sprintf(`{"id":%d,`, 1000+i), fmt.Sprintf(`"email":"P%d@example.com"`, i)
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), id) || !strings.Contains(lines.Text(), email) {
			t.Fatalf("export: got %s, %v, want user %d", lines.Text(), lines.Err(), 1000+i)
		}
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("got %s, %v after all, want the end\n%s", lines.Text(), lines.Err(), &stderr)
	}
}
