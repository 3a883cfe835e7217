package httpedge

import (
	"testing"

	"github.com/valyala/fasthttp"
)

func TestPrefersPage(t *testing.T) {
	const firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, test := range []struct {
		accept []string
		want   bool
	}{
		{[]string{firefox}, true},
		{[]string{"text/html"}, true},
		{[]string{"TEXT/HTML ; charset=utf-8"}, true},
		{[]string{"text/*"}, true},
		{[]string{"application/json", "text/html;q=0.5"}, false},
		{[]string{"application/json;q=0.4", "text/html;q=0.5"}, true},
		{[]string{"text/html;q=0.1, */*;q=0.9"}, false},
		{[]string{"text/html, */*"}, false},
		{[]string{"text/html;q=0"}, false},
		{[]string{"text/html;q=2"}, false},
		{[]string{"text/html;q=x"}, false},
		{[]string{"text/html;q=NaN"}, false},
		{[]string{"text/html;Q=1, application/*;q=0.9"}, true},
		{[]string{"text/*;q=0.1, text/html, application/json;q=0.9"}, true},
		{[]string{"text/html;level=1;q=0.3, application/json;q=0.4"}, false},
		{[]string{"*/*"}, false},
		{[]string{""}, false},
		{nil, false},
		{[]string{",;=,text/html"}, true},
	} {
		var ctx fasthttp.RequestCtx
		for _, line := range test.accept {
			ctx.Request.Header.Add("Accept", line)
		}
		if got := prefersPage(&ctx); got != test.want {
			t.Errorf("%q: got %v, want %v", test.accept, got, test.want)
		}
	}
}
