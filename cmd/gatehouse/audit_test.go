package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"gatehouse/actors/audit"
	"gatehouse/providers/sqlstore/sqlitetest"
)

// events returns the lines of gatehouse audit --json.
func events(t *testing.T, env []string, args ...string) (all []audit.Event) {
	t.Helper()
	got := runOnce(t, env, append([]string{"audit", "--json"}, args...)...)
	if got.code != exitDone || got.stderr != "" {
		t.Fatalf("got code %d, stderr %q, want 0 and none", got.code, got.stderr)
	}
	for line := range strings.Lines(got.stdout) {
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("got line %q, want an event: %v", line, err)
		}
		if e.Action != audit.TrailRead { // the reads of this test are on record as well
			all = append(all, e)
		}
	}
	return all
}

// operatorEnv returns the environment of commands that call the server.
func (s *fixture) operatorEnv() []string {
	return []string{"GATEHOUSE_CLIENT_ID=" + s.operator.ClientID, "TZ=UTC",
		"GATEHOUSE_CLIENT_SECRET=" + s.operator.ClientSecret,
		"GATEHOUSE_BASE_URL=" + s.base, "GATEHOUSE_ADMIN_URL=" + s.admin}
}

// change makes an event: a client gets another name.
func (s *fixture) change(t *testing.T, name string) {
	t.Helper()
	status, body, err := s.manage(http.MethodPatch, "/clients/"+s.client.ClientID,
		map[string]any{"name": name})
	if err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s and error %v, want a change", status, body, err)
	}
}

func TestAuditCommand(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqlitetest.URL(t))
	env := s.operatorEnv()
	for i := range 3 {
		s.change(t, fmt.Sprint("Shop ", i))
	}
	all := events(t, env)
	if !slices.IsSortedFunc(all, func(a, b audit.Event) int { return int(a.Number - b.Number) }) ||
		all[len(all)-1].Action != audit.ClientChanged {
		t.Errorf("got %+v, want all events in their order", all)
	}
	if got := events(t, env, "--action=client_changed", "--client="+s.client.ClientID,
		"--since=1h"); len(got) != 3 || got[0].Subject != audit.OfClient(s.client.ClientID) {
		t.Errorf("got %+v, want 3 changes of the client", got)
	}
	if got := events(t, env, "--user=1"); len(got) == 0 || len(got) == len(all) {
		t.Errorf("got %d events of the user, want some of %d", len(got), len(all))
	}
	for _, since := range []string{"2099-01-01", "2099-01-01 12:00", "2099-01-01 12:00:00",
		"2099-01-01T12:00:00Z", "0s"} {
		if got := events(t, env, "--since="+since); len(got) != 0 {
			t.Errorf("got %d events since %s, want none", len(got), since)
		}
	}

	got := runOnce(t, env, "audit")
	lines := slices.DeleteFunc(strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n"),
		func(line string) bool { return strings.Contains(line, string(audit.TrailRead)) })
	if got.code != exitDone || len(lines) != len(all)+1 || !strings.HasPrefix(lines[0], "TIME ") {
		t.Fatalf("got code %d and\n%s, want a heading and %d rows", got.code, got.stdout, len(all))
	}
	for i, line := range lines[1:] {
		at := strings.Index(lines[0], "OUTCOME")
		if len(line) < at || !strings.HasPrefix(line[at:], string(all[i].Outcome)) {
			t.Errorf("got row %q, want its outcome below the heading", line)
		}
		if at := all[i].Time.Local().Format(time.DateTime); !strings.HasPrefix(line, at) {
			t.Errorf("got row %q, want local time %s", line, at)
		}
	}

	for _, row := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--action=login"}, exitUsage, "sign_in, sign_out, "},
		{[]string{"--since=yesterday"}, exitUsage, "2026-05-03"},
		{[]string{"--since=-1h"}, exitUsage, "24h"},
		{[]string{"--user=ada"}, exitFailed, "user: must be the id of a user"},
		{[]string{"--client=no id", "--follow"}, exitFailed, "client: must be the id of a client"},
	} {
		got := runOnce(t, env, append([]string{"audit"}, row.args...)...)
		if got.code != row.code || got.stdout != "" && row.code == exitUsage ||
			!strings.Contains(got.stderr, row.says) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: got code %d, stdout %q, stderr %q, want %d and a line with %q", row.args,
				got.code, got.stdout, got.stderr, row.code, row.says)
		}
	}
}

func TestAuditReadsAllPages(t *testing.T) {
	t.Parallel()
	const event = `{"number":%d,"time":"2026-05-03T12:00:00.000Z","action":"sign_in","outcome":"ok",` +
		`"user_id":%d,"client_id":null,"target":"\u001b[2J","details":[],"count":1,` +
		`"actor":{"kind":"system","id":null},"request_id":null,"caller":null}`
	env := fakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		first := r.FormValue("after") == "0"
		if r.FormValue("limit") != "200" || r.FormValue("since") != "" != first {
			t.Errorf("got query %s, want since for the first page only", r.URL.RawQuery)
		}
		switch {
		case first:
			fmt.Fprintf(w, `{"events":[`+event+`,`+event+`],"next":"5"}`, 4, 1, 5, 2)
		case r.FormValue("after") == "5":
			fmt.Fprintf(w, `{"events":[`+event+`],"next":""}`, 9, 12345)
		default:
			t.Errorf("got query %s, want after 0 or 5", r.URL.RawQuery)
		}
	})
	got := runOnce(t, env, "audit", "--since=24h")
	if got.code != exitDone || strings.Count(got.stdout, "\n") != 4 ||
		!strings.Contains(got.stdout, "user:12345") || strings.Contains(got.stdout, "\x1b") {
		t.Errorf("got code %d and\n%q, want a heading, 3 rows and no control characters", got.code,
			got.stdout)
	}
	for _, wrong := range []string{`{}`, `{"events":[{}],"next":""}`, `{"events":7,"next":""}`} {
		env := fakeServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, wrong) })
		if got := runOnce(t, env, "audit"); got.code != exitFailed ||
			strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: got code %d, stderr %q, want 1 and one line", wrong, got.code, got.stderr)
		}
	}
}

// TestAuditFollowBeginsAtTheEnd follows a trail with 5 events until it is asked to stop, in the
// middle of a request.
func TestAuditFollowBeginsAtTheEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, row := range []struct {
		args  []string
		after []string // of the requests in their order
	}{
		{nil, []string{"", "5", "5"}},
		{[]string{"--since=1h"}, []string{"", "0", "5"}},
	} {
		ctx, stop := context.WithCancel(t.Context())
		var after []string
		env := fakeServer(t, func(w http.ResponseWriter, r *http.Request) {
			after = append(after, r.FormValue("after"))
			switch {
			case r.FormValue("order") == "newest":
				fmt.Fprint(w, `{"events":[{"number":5,"time":"2026-05-03T12:00:00Z"}],"next":"5"}`)
			case len(after) < len(row.after):
				fmt.Fprint(w, `{"events":[],"next":""}`)
			default:
				stop()
				<-r.Context().Done()
			}
		})
		var stdout, stderr bytes.Buffer
		code := run(ctx, append([]string{"audit", "--follow"}, row.args...), env,
			strings.NewReader(""), &stdout, &stderr)
		if code != exitDone || stderr.Len() != 0 || !slices.Equal(after, row.after) {
			t.Errorf("%v: got code %d, stderr %q and requests after %q, want 0 and after %q",
				row.args, code, &stderr, after, row.after)
		}
	}
}

// TestAuditFollowRenewsItsToken has an access token that expires, and then an operator who is
// refused for good.
func TestAuditFollowRenewsItsToken(t *testing.T) {
	t.Parallel() // it mostly waits
	tokens, polls := 0, 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, _ *http.Request) {
		if tokens++; tokens > 2 {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","message":"The secret is revoked."}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"t%d","token_type":"Bearer","expires_in":300}`, tokens)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		polls++
		valid := map[bool]string{true: "Bearer t1", false: "Bearer t2"}[polls <= 2]
		if r.Header.Get("Authorization") != valid || polls > 5 {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_token","message":"The token has expired."}`)
			return
		}
		fmt.Fprint(w, `{"events":[],"next":""}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	got := runOnce(t, []string{"GATEHOUSE_BASE_URL=" + server.URL, "GATEHOUSE_ADMIN_URL=" + server.URL,
		"GATEHOUSE_CLIENT_ID=x", "GATEHOUSE_CLIENT_SECRET=" + secret}, "audit", "--follow")
	if got.code != exitFailed || tokens != 3 || polls != 6 ||
		!strings.Contains(got.stderr, "The secret is revoked.") ||
		strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("got code %d, stderr %q, %d tokens and %d polls, want 1 after 3 and 6", got.code,
			got.stderr, tokens, polls)
	}
}

// TestAuditFollow runs the command in a terminal. It goes on when the server starts again, and ends
// when somebody types ^C.
func TestAuditFollow(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newFixture(t, sqlitetest.URL(t))
	command := exec.Command(binary, "audit", "--follow", "--json", "--action=client_changed")
	stderr := newLines()
	command.Env = append(slices.Clone(environ), s.operatorEnv()...)
	command.Stderr = stderr
	terminal, err := pty.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		if err := command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-ended
		if err := terminal.Close(); err != nil {
			t.Error(err)
		}
	})
	stdout := newLines()
	go func() {
		defer close(ended)
		_, err := io.Copy(stdout, terminal) // a terminal without a program is an error of its own
		if err != nil && !errors.Is(err, syscall.EIO) {
			fmt.Fprintln(stderr, err)
		}
		if err := command.Wait(); err != nil {
			fmt.Fprintln(stderr, err)
		}
	}()
	// The command reads the end of the trail first: changes go on until one is printed.
	for i := 0; !strings.Contains(stdout.String(), "\n"); i++ {
		s.change(t, fmt.Sprint("Shop ", i))
		time.Sleep(200 * time.Millisecond)
		if i > 1000 {
			t.Fatalf("got no event, but %s", stderr)
		}
	}

	s.server.stop(t)
	stderr.await(t, "trying again")
	s.server = start(t, s.env, "serve", "--roles=identity", "--listen="+s.base[len("http://"):],
		"--admin-listen="+s.admin[len("http://"):])
	s.server.ready(t)
	s.change(t, "Restarted")
	stderr.await(t, "responds again")
	all := events(t, s.operatorEnv(), "--action=client_changed")
	last := all[len(all)-1]
	stdout.await(t, fmt.Sprintf(`{"number":%d,`, last.Number))

	if _, err := terminal.Write([]byte{3}); err != nil { // ^C
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(waitTimeout):
		t.Fatal("got no end after ^C")
	}
	if code := command.ProcessState.ExitCode(); code != exitDone {
		t.Errorf("got exit code %d after ^C, want 0; stderr: %s", code, stderr)
	}
	var printed, want []int64
	for line := range strings.Lines(stdout.String()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "^C")
		if line == "" {
			continue
		}
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("got line %q and error %v, want an event", line, err)
		}
		printed = append(printed, e.Number)
	}
	for _, e := range all[max(0, len(all)-len(printed)):] {
		want = append(want, e.Number)
	}
	if !slices.Equal(printed, want) || strings.Count(stderr.String(), "\n") != 2 {
		t.Errorf("got events %v and stderr %q, want %v and two lines", printed, stderr, want)
	}
}
