//go:build programs

package programs_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestOAuth2Proxy puts oauth2-proxy before a page.
func TestOAuth2Proxy(t *testing.T) {
	a := newApp(t, "oauth2-proxy", "", "/oauth2/callback")
	at := gatehouse(t, a)
	file := filepath.Join(t.TempDir(), "oauth2-proxy.cfg")
	settings := strings.Replace(a.settings(at), `cookie_refresh = "1m"`, `cookie_refresh = "1s"`, 1)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := start(t, "Cookie settings",
		exec.Command(tool(t, "oauth2-proxy-v7.8.1"), "--config", file))
	awaitPort(t, a.port)
	signIn := func() *person {
		p := newPerson(t)
		p.visit(a.base + "/")
		p.reach(a.base, at.signIn, func() bool {
			return strings.Contains(p.text(), "Authenticated")
		})
		return p
	}
	who := func(p *person) (who map[string]any) {
		p.visit(a.base + "/oauth2/userinfo")
		json.Unmarshal([]byte(p.text()), &who)
		return who
	}
	p := signIn()
	state := who(p)
	wantClaim(t, state, "email", at.email)
	wantSame(t, state["user"], who(signIn())["user"])
	at.service.Alter(t, "UPDATE users SET disabled = TRUE")
	p.reach("", nil, func() bool { // it keeps its own session, as its documentation says
		who(p)
		return strings.Contains(printed.String(), "Unable to refresh session")
	})
}

// wantSame checks what identifies the person after two sign-ins.
func wantSame(t *testing.T, first, again any) {
	t.Helper()
	if first == nil || first == "" || first != again {
		t.Errorf("got %v and then %v, want the same person", first, again)
	}
}

// between returns the part of text after begin and before end; "" = there is none.
func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	part, _, _ := strings.Cut(rest, end)
	return part
}

// TestKubelogin signs in as kubectl does: a program on a person's computer, which gets an id_token.
func TestKubelogin(t *testing.T) {
	a := newApp(t, "kubelogin", "", "")
	a.base = fmt.Sprintf("http://localhost:%d", a.port)
	at := gatehouse(t, a)
	signIn := func() (subject string) {
		script := strings.Replace(a.settings(at), "kubelogin get-token", tool(t, "kubelogin-v1.28.0")+
			" get-token --skip-open-browser --token-cache-dir="+t.TempDir(), 1)
		printed := start(t, "Please visit", exec.Command("bash", "-euc", "exec "+script))
		p := newPerson(t)
		p.visit(a.base + "/")
		p.reach(a.base, at.signIn, func() bool {
			return strings.Contains(printed.String(), "ExecCredential")
		})
		idToken := between(printed.String(), `"token":"`, `"`)
		payload, err := base64.RawURLEncoding.DecodeString(between(idToken, ".", "."))
		if err != nil || len(payload) == 0 {
			t.Fatalf("got %s and error %v, want an id_token", printed, err)
		}
		return between(string(payload), `"sub":"`, `"`)
	}
	wantSame(t, signIn(), signIn())
}

// TestOIDCAgent gets a token in a terminal, by a code that a person enters in a browser.
func TestOIDCAgent(t *testing.T) {
	a := newApp(t, "oidc-agent", "", "")
	at := gatehouse(t, a)
	wantSame(t, connectAgent(t, a, at), connectAgent(t, a, at))
}

// connectAgent starts an agent and returns what identifies the person whose tokens it gets.
func connectAgent(t *testing.T, a *app, at *provider) (subject string) {
	t.Helper()
	begin, rest, _ := strings.Cut(a.settings(at), "\n") // begin starts the agent
	script := begin + "\nwhile ! oidc-add --loaded >/dev/null 2>&1; do sleep 0.05; done\n" + rest +
		`curl -sS -H "Authorization: Bearer $(oidc-token --force-new gatehouse)" ` + at.issuer +
		"/oauth/userinfo; echo; echo done"
	printed := start(t, "enter the code: ", withEnvironment(exec.Command("bash", "-euc", script),
		map[string]string{"HOME": t.TempDir(), "TMPDIR": t.TempDir()}))
	t.Cleanup(func() { // the agent runs on without the script
		agent, err := strconv.Atoi(between(printed.String(), "Agent pid ", "\n"))
		if err == nil {
			err = syscall.Kill(agent, syscall.SIGTERM)
		}
		if err != nil {
			t.Errorf("end oidc-agent: %v", err)
		}
	})
	code := between(printed.String(), "enter the code: ", "\n")
	p := newPerson(t)
	p.visit(at.issuer + "/device")
	p.reach(at.issuer, append(at.signIn, step{`input[id="user_code"]`,
		map[string]string{`input[id="user_code"]`: code}, "form button"}),
		func() bool { return strings.Contains(p.text(), "Your device will be connected") })
	p.reach("", nil, func() bool { return strings.Contains(printed.String(), "\ndone") })
	if !strings.Contains(printed.String(), `"email":"`+at.email+`"`) {
		t.Errorf("got %s, want the claims by the refreshed token", printed)
	}
	return between(printed.String(), `"sub":"`, `"`)
}

// TestAuthlib runs a script with Python's Authlib.
func TestAuthlib(t *testing.T) {
	a := newApp(t, "Authlib", "", "/callback")
	a.recipe.CheckCode(t, "apps/authlib_app.py")
	back := make(chan string, 1)
	server := &http.Server{Addr: strings.TrimPrefix(a.base, "http://"),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/callback" {
				back <- a.base + r.URL.String()
			}
			io.WriteString(w, "<p>Back</p>")
		})}
	go server.ListenAndServe()
	t.Cleanup(func() { server.Close() })
	at := gatehouse(t, a)
	wantSame(t, runAuthlib(t, a, at, back), runAuthlib(t, a, at, back))
}

// runAuthlib signs in with the script and returns what identifies the person. back is where the
// browser came back to.
func runAuthlib(t *testing.T, a *app, at *provider, back <-chan string) (subject string) {
	t.Helper()
	command := withEnvironment(exec.Command("/usr/bin/python3", "apps/authlib_app.py"), map[string]string{
		"ISSUER": at.issuer, "CLIENT_ID": at.id, "CLIENT_SECRET": at.secret, "BASE": a.base,
	})
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		t.Fatal("got no authorization URL")
	}
	p := newPerson(t)
	p.visit(lines.Text())
	p.reach(a.base, at.signIn, func() bool { return true })
	fmt.Fprintln(in, <-back)
	subject, ok := "", lines.Scan()
	if ok {
		subject, ok = strings.CutPrefix(lines.Text(), "ok "+at.email+" ")
	}
	if !ok {
		t.Errorf("got %q, want ok, the address and the subject", lines.Text())
	}
	return subject
}
