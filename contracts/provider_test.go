package contracts_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/contracts"
)

func start(t *testing.T, config contracts.Config) *contracts.Provider {
	t.Helper()
	p, err := contracts.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("got %v, want the provider to end", err)
		}
	})
	return p
}

// setUp puts the provider into a state.
func setUp(t *testing.T, p *contracts.Provider, state string, parameters map[string]any) map[string]any {
	t.Helper()
	values, err := p.SetUp(t.Context(), state, parameters)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// answer is what the service said.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.body), &o); err != nil {
		t.Fatalf("got %d %s, want a JSON object", a.status, a.body)
	}
	return o
}

// ask sends a request with headers name, value, name, value…
func ask(t *testing.T, p *contracts.Provider, method, path, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(content)}
}

func token(t *testing.T, p *contracts.Provider, values map[string]any, pairs ...string) answer {
	t.Helper()
	form := url.Values{"client_id": {values["client_id"].(string)}}
	if secret, ok := values["client_secret"].(string); ok {
		form.Set("client_secret", secret)
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return ask(t, p, "POST", "/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func bearer(values map[string]any) []string {
	return []string{"Authorization", "Bearer " + values["access_token"].(string)}
}

// TestEveryStateGivesItsValues sets up each state of the catalogue twice, by itself.
func TestEveryStateGivesItsValues(t *testing.T) {
	p := start(t, contracts.Config{})
	for _, s := range contracts.Catalogue() {
		t.Run(s.Name, func(t *testing.T) {
			began := time.Now()
			values := setUp(t, p, s.Name, nil)
			again := setUp(t, p, s.Name, nil)
			for _, v := range s.Values {
				if values[v.Name] == nil || values[v.Name] == "" {
					t.Errorf("got no value %s, want one", v.Name)
				}
				if again[v.Name] != values[v.Name] {
					t.Errorf("got %v at the second time, want %v", again[v.Name], values[v.Name])
				}
			}
			if len(values) != len(s.Values) {
				t.Errorf("got %v, want the values of the catalogue alone", values)
			}
			if err := p.TearDown(t.Context()); err != nil {
				t.Error(err)
			}
			t.Log(time.Since(began))
		})
	}
}
