package visit

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/brand"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
)

// noPage cannot be made.
type noPage struct{}

func (noPage) Render(*pages.View) ([]byte, error) { return nil, errors.New("planted") }

// TestPageThatCannotBeRendered tells the client when there is one to tell.
func TestPageThatCannotBeRendered(t *testing.T) {
	failed := 0
	s := New(Config{Issuer: "https://id.example.com", View: pages.NewView(brand.Brand{}, texts.Default()),
		Failures:     endpoint.NewFailures(slog.New(slog.DiscardHandler)),
		ClientFailed: func(*fasthttp.RequestCtx, string, string, *oauth.Error) { failed++ }})
	var ctx fasthttp.RequestCtx
	s.Show(&Visit{HTTP: &ctx}, fasthttp.StatusOK, noPage{})
	if got := ctx.Response.StatusCode(); got != 500 ||
		!strings.Contains(string(ctx.Response.Body()), "server_error") {
		t.Errorf("got %d %s with nobody to tell, want 500", got, ctx.Response.Body())
	}
	ctx.Response.Reset()
	request := &oauth.AuthorizationRequest{RedirectURI: "https://app.example/callback", State: "s"}
	s.Show(&Visit{HTTP: &ctx, Pending: &Pending{
		Request: request, Client: &oauth.Client{},
	}}, fasthttp.StatusOK, noPage{})
	to, err := url.Parse(string(ctx.Response.Header.Peek("Location")))
	if q := to.Query(); err != nil || ctx.Response.StatusCode() != 302 ||
		to.Host != "app.example" || q.Get("error") != "server_error" ||
		q.Get("state") != "s" || q.Get("iss") != "https://id.example.com" {
		t.Errorf("got %d to %v, want 302 to the client with server_error, state and iss",
			ctx.Response.StatusCode(), to)
	}
	if failed != 1 {
		t.Errorf("got %d failed requests of clients, want that of the client", failed)
	}
}

// TestFailureBeforeClientIsKnown shows a page for a failure of the service when the person does not
// know the client: signing in first would not help.
func TestFailureBeforeClientIsKnown(t *testing.T) {
	s := New(Config{Issuer: "https://id.example.com", View: pages.NewView(brand.Brand{}, texts.Default()),
		Failures:     endpoint.NewFailures(slog.New(slog.DiscardHandler)),
		ClientFailed: func(*fasthttp.RequestCtx, string, string, *oauth.Error) {}})
	client := &oauth.Client{Options: oauth.ClientOptions{SelfRegistered: true}}
	for _, row := range []struct {
		refuse func(*Visit)
		status int
		says   string
	}{
		{func(v *Visit) { s.RefuseFailure(v, "read", errors.New("disk full")) }, 500, "our fault"},
		{func(v *Visit) { s.RefuseFailure(v, "read", oauth.ErrUnknownOutcome) }, 503, "our fault"},
		{func(v *Visit) { s.Refuse(v, &oauth.Error{Code: oauth.InvalidScope, Description: "No."}) },
			400, "Sign in first"},
	} {
		var ctx fasthttp.RequestCtx
		request := &oauth.AuthorizationRequest{RedirectURI: "https://app.example/callback"}
		row.refuse(&Visit{HTTP: &ctx, Pending: &Pending{Request: request, Client: client}})
		body := string(ctx.Response.Body())
		if got := ctx.Response.StatusCode(); got != row.status || !strings.Contains(body, row.says) {
			t.Errorf("got %d %s, want %d with %q", got, body, row.status, row.says)
		}
	}
}

func TestShownAddress(t *testing.T) {
	for _, row := range []struct {
		purpose account.Purpose
		address string
		want    string
	}{
		{account.ForReset, "ada@example.org", "ada@example.org"},
		{account.ForResetProof, "ada@example.org", "a…@example.org"},
		{account.ForResetProof, "ü@example.org", "ü…@example.org"},
		{account.ForResetProof, "+14155550123", "…23"},
		{account.ForResetProof, "", "…"},
	} {
		c := &account.Challenge{Purpose: row.purpose, Address: row.address}
		if got := shownAddress(c); got != row.want {
			t.Errorf("%s of %s: got %q, want %q", row.address, row.purpose, got, row.want)
		}
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
