package emulator_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/cmd/stack/stacktest/emulator"
)

// do sends a request and returns status, headers and body.
func do(t *testing.T, method, url, body string) (int, http.Header, string) {
	t.Helper()
	return doBy(t, http.DefaultClient, method, url, body)
}

// doBy is do with another client.
func doBy(t *testing.T, client *http.Client, method, url, body string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// inBubble runs a test with an emulator in virtual time.
func inBubble(t *testing.T, config emulator.Config,
	test func(t *testing.T, e *emulator.Emulator, client *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := emulator.NewPiped(t, config)
		test(t, e, &http.Client{Transport: &http.Transport{DialContext: e.Dial, DisableKeepAlives: true}})
	})
}

func TestBudgetsAreCounted(t *testing.T) {
	config := emulator.Config{Singles: 3, Batches: 1, Window: 1500 * time.Millisecond, Violations: 3}
	inBubble(t, config, func(t *testing.T, e *emulator.Emulator, client *http.Client) {
		for i, want := range []struct {
			status int
			left   string
		}{{200, "2"}, {200, "1"}, {200, "0"}, {429, "0"}, {429, "0"}} {
			status, header, _ := doBy(t, client, "GET", fmt.Sprintf("%s/json/9.9.9.%d", e.URL, i), "")
			if status != want.status || header.Get("X-Rl") != want.left || header.Get("X-Ttl") != "1" {
				t.Errorf("got %d, X-Rl %s and X-Ttl %s for request %d, want %v and 1", status,
					header.Get("X-Rl"), header.Get("X-Ttl"), i, want)
			}
		}
		for i, want := range []int{200, 429} {
			if status, _, _ := doBy(t, client, "POST", e.URL+"/batch", `["9.9.9.9"]`); status != want {
				t.Errorf("got %d for batch %d, want %d: batches have their own budget", status, i, want)
			}
		}
		if got := e.Stats(); got != (emulator.Stats{Singles: 5, Batches: 2, Items: 2,
			Largest: 1, Empty: 3}) {
			t.Errorf("got %+v, want 5 singles, 2 batches and 3 on an empty budget", got)
		}
		time.Sleep(1500 * time.Millisecond)
		if status, header, _ := doBy(t, client, "GET", e.URL+"/json/9.9.9.9", ""); status != 200 ||
			header.Get("X-Rl") != "2" {
			t.Errorf("got %d and X-Rl %s in the next window, want 200 and 2", status, header.Get("X-Rl"))
		}
	})
}

func TestTimeToWindowEndIsRounded(t *testing.T) {
	for want, roundUp := range map[string]bool{"57": false, "58": true} {
		inBubble(t, emulator.Config{Singles: 3, RoundUp: roundUp},
			func(t *testing.T, e *emulator.Emulator, client *http.Client) {
				doBy(t, client, "GET", e.URL+"/json/9.9.9.9", "")
				time.Sleep(2500 * time.Millisecond)
				_, header, _ := doBy(t, client, "GET", e.URL+"/json/9.9.9.9", "")
				if header.Get("X-Ttl") != want {
					t.Errorf("got X-Ttl %s, want %s", header.Get("X-Ttl"), want)
				}
			})
	}
}

func TestViolationsAreCounted(t *testing.T) {
	e := emulator.New(t, emulator.Config{Violations: 5})
	many, err := json.Marshal(slices.Repeat([]string{"9.9.9.9"}, 101))
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range [][3]string{
		{"POST", "/batch", string(many)}, {"POST", "/batch", "{}"}, {"GET", "/json/", ""},
		{"GET", "/elsewhere", ""},
	} {
		if status, _, _ := do(t, request[0], e.URL+request[1], request[2]); status != 422 {
			t.Errorf("got %d for %s %s, want 422", status, request[0], request[1])
		}
	}
	do(t, "POST", e.URL+"/batch", `["9.9.9.9","example.com"]`)
	if got := e.Stats(); got.Strays != 4 || got.Domains != 1 {
		t.Errorf("got %+v, want 4 strays and a domain in a batch", got)
	}
}

func TestUpAndDown(t *testing.T) {
	e := emulator.New(t, emulator.Config{Key: "right"})
	if status, _, _ := do(t, "GET", e.URL+"/json/9.9.9.9?key=wrong", ""); status != 403 {
		t.Errorf("got %d with a wrong key, want 403", status)
	}
	if err := e.Down(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(e.URL + "/json/9.9.9.9?key=right"); err == nil {
		t.Error("got a response while down, want none")
	}
	if err := e.Up(); err != nil {
		t.Fatal(err)
	}
	if status, _, body := do(t, "GET", e.URL+"/json/9.9.9.9?key=right", ""); status != 200 ||
		!strings.Contains(body, emulator.City("9.9.9.9")) {
		t.Errorf("got %d %s, want the same address to respond again", status, body)
	}
}
