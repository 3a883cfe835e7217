package endpoint

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestBearerToken(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		token string
		tried bool
	}{
		{"none", nil, "", false},
		{"usual", []string{"Bearer gtat_abc"}, "gtat_abc", true},
		{"lower case", []string{"bearer gtat_abc"}, "gtat_abc", true},
		{"upper case", []string{"BEARER gtat_abc"}, "gtat_abc", true},
		{"two spaces", []string{"Bearer  gtat_abc"}, "gtat_abc", true},
		{"every character", []string{"Bearer aZ09-._~+/=="}, "aZ09-._~+/==", true},
		{"longest", []string{"Bearer " + strings.Repeat("a", maxBearer)}, strings.Repeat("a", maxBearer), true},
		{"too long", []string{"Bearer " + strings.Repeat("a", maxBearer+1)}, "", true},
		{"scheme alone", []string{"Bearer"}, "", true},
		{"no token", []string{"Bearer  "}, "", true},
		{"none of ours", []string{`Bearer "ü" =b`}, `"ü" =b`, true},
		{"tab", []string{"Bearer\ta"}, "", false},
		{"other scheme", []string{"Basic YTpi"}, "", false},
		{"longer scheme", []string{"BearerX a"}, "", false},
		{"empty", []string{""}, "", false},
		{"two headers", []string{"Bearer a", "Bearer a"}, "", true},
		{"two schemes", []string{"Bearer a", "Basic YTpi"}, "", true},
	} {
		var h fasthttp.RequestHeader
		for _, line := range test.lines {
			h.Add(fasthttp.HeaderAuthorization, line)
		}
		token, tried := BearerToken(&h)
		if token != test.token || tried != test.tried {
			t.Errorf("%s: got %q %v, want %q %v", test.name, token, tried, test.token, test.tried)
		}
	}
}

func FuzzBearerToken(f *testing.F) {
	for _, seed := range []string{"Bearer gtat_abc", "bearer", "Bearer  =", "Basic x", "Bearer \xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var h fasthttp.RequestHeader
		h.Set(fasthttp.HeaderAuthorization, line)
		token, tried := BearerToken(&h)
		if token != "" && (!tried || len(token) > maxBearer || !strings.HasSuffix(line, token)) {
			t.Errorf("got token %q of %q, want none or what the line ends with", token, line)
		}
	})
}

func TestBearerTokenAllocatesNothing(t *testing.T) {
	var h fasthttp.RequestHeader
	h.Set(fasthttp.HeaderAuthorization, "Bearer gtat_"+strings.Repeat("a", 60))
	if got := testing.AllocsPerRun(100, func() { BearerToken(&h) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
