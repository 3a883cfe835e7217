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
		err   error
	}{
		{"none", nil, "", ErrNoToken},
		{"usual", []string{"Bearer gtat_abc"}, "gtat_abc", nil},
		{"lower case", []string{"bearer gtat_abc"}, "gtat_abc", nil},
		{"upper case", []string{"BEARER gtat_abc"}, "gtat_abc", nil},
		{"two spaces", []string{"Bearer  gtat_abc"}, "gtat_abc", nil},
		{"every character", []string{"Bearer aZ09-._~+/=="}, "aZ09-._~+/==", nil},
		{"longest", []string{"Bearer " + strings.Repeat("a", maxBearer)},
			strings.Repeat("a", maxBearer), nil},
		{"too long", []string{"Bearer " + strings.Repeat("a", maxBearer+1)}, "", ErrInvalidToken},
		{"scheme alone", []string{"Bearer"}, "", ErrInvalidToken},
		{"no token", []string{"Bearer  "}, "", ErrInvalidToken},
		{"none of ours", []string{`Bearer "ü" =b`}, `"ü" =b`, nil},
		{"tab", []string{"Bearer\ta"}, "", ErrNoToken},
		{"other scheme", []string{"Basic YTpi"}, "", ErrNoToken},
		{"longer scheme", []string{"BearerX a"}, "", ErrNoToken},
		{"empty", []string{""}, "", ErrNoToken},
		{"two headers", []string{"Bearer a", "Bearer a"}, "", ErrInvalidToken},
		{"two schemes", []string{"Bearer a", "Basic YTpi"}, "", ErrInvalidToken},
	} {
		var h fasthttp.RequestHeader
		for _, line := range test.lines {
			h.Add(fasthttp.HeaderAuthorization, line)
		}
		token, err := BearerToken(&h)
		if token != test.token || err != test.err {
			t.Errorf("%s: got %q %v, want %q %v", test.name, token, err, test.token, test.err)
		}
	}
}

func FuzzBearerToken(f *testing.F) {
	for _, seed := range []string{"Bearer gtat_abc", "bearer", "Bearer  =", "Basic x",
		"Bearer \xff", "Bearer 0\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var h fasthttp.RequestHeader
		h.Set(fasthttp.HeaderAuthorization, line)
		line = string(h.Peek(fasthttp.HeaderAuthorization)) // with spaces in place of line breaks
		token, err := BearerToken(&h)
		if (token == "") == (err == nil) || token != "" &&
			(len(token) > maxBearer || !strings.HasSuffix(line, token)) {
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
