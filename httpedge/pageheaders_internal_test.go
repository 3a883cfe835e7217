package httpedge

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/oauth"
)

// noPage cannot be made.
type noPage struct{}

func (noPage) Render() ([]byte, error) { return nil, errors.New("planted") }

// TestAPageThatCannotBeMade tells the client when there is one to tell.
func TestAPageThatCannotBeMade(t *testing.T) {
	s := &Server{log: slog.New(slog.DiscardHandler), config: Config{Issuer: "https://id.example.com"}}
	var ctx fasthttp.RequestCtx
	s.show(&visit{http: &ctx}, fasthttp.StatusOK, noPage{})
	if got := ctx.Response.StatusCode(); got != 500 || !strings.Contains(string(ctx.Response.Body()), "server_error") {
		t.Errorf("got %d %s with nobody to tell, want 500", got, ctx.Response.Body())
	}
	ctx.Response.Reset()
	request := &oauth.AuthorizationRequest{RedirectURI: "https://app.example/callback", State: "s"}
	s.show(&visit{http: &ctx, pending: &pending{request: request}}, fasthttp.StatusOK, noPage{})
	to, err := url.Parse(string(ctx.Response.Header.Peek("Location")))
	if q := to.Query(); err != nil || ctx.Response.StatusCode() != 302 || to.Host != "app.example" || q.Get("error") != "server_error" ||
		q.Get("state") != "s" || q.Get("iss") != "https://id.example.com" {
		t.Errorf("got %d to %v, want 302 to the client with server_error, state and iss", ctx.Response.StatusCode(), to)
	}
}

func TestFormTarget(t *testing.T) {
	for uri, want := range map[string]string{
		"":                                  "",
		"https://app.example/cb?x=1":        " https://app.example",
		"https://app.example:8443/cb":       " https://app.example:8443",
		"http://127.0.0.1:5000/cb":          " http://127.0.0.1:5000",
		"http://localhost/cb":               " http://localhost",
		"http://[::1]:5000/cb":              " http:",
		"com.example.app:/cb":               " com.example.app:",
		"com.example.app://host/cb":         " com.example.app:",
		"https://a;b.example/cb":            " https:",
		"https://a,script-src.example/cb":   " https:",
		"https://a'unsafe-inline'.example/": " https:",
		"no uri":                            "",
		"; script-src *:x":                  "",
	} {
		if got := formTarget(uri); got != want {
			t.Errorf("%q: got %q, want %q", uri, got, want)
		}
	}
}

func TestDevice(t *testing.T) {
	for agent, want := range map[string]string{
		"": "Unknown browser",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                  "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36":                            "Chrome on Android",
		"curl/8.5.0":                        "curl",
		"SomethingElse on Windows <script>": "Browser on Windows",
	} {
		if got := device(agent); got != want {
			t.Errorf("%q: got %q, want %q", agent, got, want)
		}
	}
}
