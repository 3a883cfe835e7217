package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// registerFrom fills in the page at base+path, then the code that sent returns.
func registerFrom(t *testing.T, base, path string, fields url.Values,
	sent func() string) *http.Response {
	t.Helper()
	b := newBrowser(t, "")
	page := b.send(t, b.open(t, http.MethodGet, base+path, nil), fields)
	if page.StatusCode != http.StatusOK || page.Request.URL.Path != path+"/verify" {
		t.Fatalf("got %s at %s, want the page for the code", page.Status, page.Request.URL.Path)
	}
	return b.send(t, page, url.Values{"code": {sent()}, "name": {"Rosa"}})
}

var loggedCode = regexp.MustCompile(`code=(\d{6}) `)

// TestDemoWritesCodesToItsLog registers by either channel with codes from the demo's log.
func TestDemoWritesCodesToItsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, nil, append([]string{"demo", "--dir", dir}, anyPorts...)...)
	p.stderr.await(t, "msg=serving")
	base := readDemo(t, dir).BaseURL
	for _, row := range []struct {
		path, line string
		fields     url.Values
	}{
		{"/register", `level=INFO msg="email code" code=`,
			url.Values{"name": {"Rosa"}, "email": {person}, "password": {password}}},
		{"/register/phone", `level=INFO msg="phone code" code=`,
			url.Values{"phone_number": {"+1 202 555 0177"}}},
	} {
		page := registerFrom(t, base, row.path, row.fields, func() string {
			found := loggedCode.FindStringSubmatch(p.stderr.await(t, row.line))
			if found == nil {
				t.Fatalf("got log\n%s\nwant a code in it", p.stderr)
			}
			return found[1]
		})
		if page.StatusCode != http.StatusOK || page.Request.URL.Path != "/me" {
			t.Errorf("%s: got %s at %s, want 200 at /me", row.path, page.Status,
				page.Request.URL.Path)
		}
	}
}

func TestServeSendsCodesByWebhook(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasPrefix(r.Header.Get("X-Gatehouse-Signature"), "t=") {
			t.Errorf("got %v and signature %q, want a signed request", err,
				r.Header.Get("X-Gatehouse-Signature"))
		}
		bodies <- body
	}))
	t.Cleanup(receiver.Close)
	env := []string{"GATEHOUSE_MESSENGER=sms=" + receiver.URL,
		"GATEHOUSE_MESSENGER_SECRET=" + strings.Repeat("k", 32)}
	p := start(t, env, append([]string{"serve", "--roles=identity"}, anyPorts...)...)
	listen, _ := p.ready(t)
	base := "http://" + listen
	page := registerFrom(t, base, "/register/phone", url.Values{"phone_number": {"+12025550177"}},
		func() string {
			var message struct{ Service, Channel, To, Code string }
			select {
			case body := <-bodies:
				if err := json.Unmarshal(body, &message); err != nil {
					t.Fatal(err)
				}
			case <-time.After(waitTimeout):
				t.Fatalf("got no message in %v, want one; log:\n%s", waitTimeout, p.stderr)
			}
			if message.Service != listen || message.Channel != "sms" ||
				message.To != "+12025550177" {
				t.Errorf("got %v, want a text message of %s to +12025550177", message, listen)
			}
			if strings.Contains(p.stderr.String(), message.Code) ||
				strings.Contains(p.stderr.String(), "2025550177") {
				t.Errorf("got log\n%s\nwant neither code nor number", p.stderr)
			}
			return message.Code
		})
	if page.StatusCode != http.StatusOK || page.Request.URL.Path != "/me" {
		t.Errorf("got %s at %s, want 200 at /me", page.Status, page.Request.URL.Path)
	}
	if status, _ := get(t, newClient(t, ""), base+"/register"); status != http.StatusNotFound {
		t.Errorf("got %d, want 404: nobody can be reached by e-mail", status)
	}
	p.signal(t, syscall.SIGTERM)
	if got := p.code(t); got != exitDone {
		t.Errorf("got code %d, want 0; stderr:\n%s", got, p.stderr)
	}
}

func TestServeWithoutMessengerRegistersNobody(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"serve", "--roles=identity"}, anyPorts...)...)
	listen, _ := p.ready(t)
	client := newClient(t, "")
	for _, path := range []string{"/register", "/register/verify", "/register/phone",
		"/register/phone/verify", "/reset", "/reset/verify"} {
		if status, body := get(t, client, "http://"+listen+path); status != http.StatusNotFound {
			t.Errorf("%s: got %d %s, want 404", path, status, body)
		}
	}
	if status, body := get(t, client, "http://"+listen+"/login"); status != http.StatusOK ||
		strings.Contains(body, "/register") || strings.Contains(body, "/reset") {
		t.Errorf("got %d\n%s\nwant 200 without links to what is not offered", status, body)
	}
}

func TestServeWarnsOfCodesInItsLog(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"GATEHOUSE_MESSENGER=log"},
		append([]string{"serve", "--roles=identity"}, anyPorts...)...)
	p.ready(t)
	if line := p.stderr.await(t, "codes for people"); !strings.Contains(line, `"level":"WARN"`) {
		t.Errorf("got %s, want a warning", line)
	}
}
