package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fakeServer serves a token endpoint and admin, and returns the environment of its operator.
func fakeServer(t *testing.T, admin http.HandlerFunc) []string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("scope") != "server-operations" || r.FormValue("client_secret") != secret {
			t.Errorf("got form %v, want the operator's secret and scope", r.Form)
		}
		fmt.Fprint(w, `{"access_token":"gtat_x","token_type":"Bearer","expires_in":300}`)
	})
	mux.HandleFunc("/", admin)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return []string{"GATEHOUSE_BASE_URL=" + s.URL, "GATEHOUSE_ADMIN_URL=" + s.URL,
		"GATEHOUSE_CLIENT_ID=x", "GATEHOUSE_CLIENT_SECRET=" + secret}
}

func TestListsGoOnToTheLastPage(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"users":[{"id":1,"name":"Ada"},{"id":2,"name":"Eve\u001b[2J"}],"next":"2"}`,
		"2": `{"users":[{"id":9007199254740991,"name":null}],"next":""}`,
	}
	env := fakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer gtat_x" {
			t.Errorf("got authorization %q, want the token", r.Header.Get("Authorization"))
		}
		fmt.Fprint(w, pages[r.FormValue("after")])
	})
	if got := decode[[]record](t, runOnce(t, env, "user", "list", "--json")); len(got) != 3 ||
		got[2].ID != 9007199254740991 {
		t.Errorf("got %v, want the users of both pages", got)
	}
	got := runOnce(t, env, "user", "list").stdout
	if strings.Count(got, "\n") != 4 || !strings.HasPrefix(got, "ID ") ||
		!strings.Contains(got, "9007199254740991") || strings.Contains(got, "\x1b") {
		t.Errorf("got\n%q, want a heading, three lines and no control characters", got)
	}
}

// TestUnexpectedResponses has another server in place of the admin API.
func TestUnexpectedResponses(t *testing.T) {
	t.Parallel()
	for name, admin := range map[string]http.HandlerFunc{
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"another JSON": func(w http.ResponseWriter,
			_ *http.Request) {
			fmt.Fprint(w, `{"clients":{}}`)
		},
		"empty": func(http.ResponseWriter, *http.Request) {},
		"error page": func(w http.ResponseWriter,
			_ *http.Request) {
			http.Error(w, "<html>\nbad", http.StatusBadGateway)
		},
		"redirect": func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
		"cut off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"page after page": func(w http.ResponseWriter,
			_ *http.Request) {
			fmt.Fprint(w, `{"clients":[],"next":"x"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := runOnce(t, fakeServer(t, admin), "client", "list")
			if got.code != exitFailed || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 ||
				strings.Contains(got.stderr, secret) {
				t.Errorf("got code %d, stdout %q, stderr %q, want 1 and one line", got.code,
					got.stdout, got.stderr)
			}
		})
	}
}

// TestRequestIDOfFailure prints the id that the message asks people to give.
func TestRequestIDOfFailure(t *testing.T) {
	t.Parallel()
	env := fakeServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "4f2a")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"message":"Give the request id when you ask for help."}`)
	})
	if got := runOnce(t, env, "client", "list"); !strings.Contains(got.stderr, "request id 4f2a: see the log") {
		t.Errorf("got %q, want the request id", got.stderr)
	}
}

// TestClientOfDocumentByItsURL names a client by the URL of the document that describes it.
func TestClientOfDocumentByItsURL(t *testing.T) {
	t.Parallel()
	const document, id = "https://agent.example/client.json", "8a5a9c27-4722-851c-a477-8e3c9cbad6de"
	env := fakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/admin/v1/audit" && r.URL.Path != "/admin/v1/clients/"+id+"/disable" ||
			r.URL.Path == "/admin/v1/audit" && r.FormValue("client") != id {
			t.Errorf("got a request for %s, want the client %s", r.URL, id)
		}
		fmt.Fprint(w, `{"client_id":"`+id+`","events":[],"next":""}`)
	})
	for _, args := range [][]string{{"client", "disable", document}, {"audit", "--client", document}} {
		if got := runOnce(t, env, args...); got.code != exitDone {
			t.Errorf("%s: got %+v, want code 0", args, got)
		}
	}
}
