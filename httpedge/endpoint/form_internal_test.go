package endpoint

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

func TestParseParameters(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []oauth.Parameter
		ok   bool
	}{
		{"", nil, true},
		{"&&", nil, true},
		{"a=1&b=2", []oauth.Parameter{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}, true},
		{"a=1&a=2", []oauth.Parameter{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, true},
		{"a", []oauth.Parameter{{Name: "a"}}, true},
		{"=x", []oauth.Parameter{{Value: "x"}}, true},
		{"a=b=c", []oauth.Parameter{{Name: "a", Value: "b=c"}}, true},
		{"a+b=c+d", []oauth.Parameter{{Name: "a b", Value: "c d"}}, true},
		{"a%3Db=%26%2b%C3%bc", []oauth.Parameter{{Name: "a=b", Value: "&+ü"}}, true},
		{"token=1&toke%6E=2&client_secret",
			[]oauth.Parameter{{Name: "token", Value: "1"}, {Name: "token", Value: "2"},
				{Name: "client_secret"}}, true},
		{"a=1;b=2", []oauth.Parameter{{Name: "a", Value: "1;b=2"}}, true},
		{"a=%00", []oauth.Parameter{{Name: "a", Value: "\x00"}}, true},
		{"a=%", nil, false},
		{"a=%4", nil, false},
		{"a=%4g", nil, false},
		{"%zz=1", nil, false},
		{strings.Repeat("a=1&", maxParameters),
			slices.Repeat([]oauth.Parameter{{Name: "a", Value: "1"}}, maxParameters), true},
		{strings.Repeat("a=1&", maxParameters+1), nil, false},
	} {
		got, ok := ParseParameters([]byte(test.in))
		if ok != test.ok || !slices.Equal(got, test.want) {
			t.Errorf("%q: got %v %v, want %v %v", test.in, got, ok, test.want, test.ok)
		}
	}
}

func TestParametersAreCopies(t *testing.T) {
	src := []byte("a=secret")
	got, _ := ParseParameters(src)
	copy(src, "xxxxxxxxxxxx")
	if got[0].Name != "a" || got[0].Value != "secret" {
		t.Errorf("got %v, want what stood there before", got)
	}
}

func FuzzParseParameters(f *testing.F) {
	for _, seed := range []string{"a=1&b=%41+x", "%", "a=%zz&&=",
		"grant_type=client_credentials&client_id=\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, ok := ParseParameters(src)
		if !ok || bytes.IndexByte(src, ';') >= 0 {
			return
		}
		want, err := url.ParseQuery(string(src))
		if err != nil {
			t.Fatalf("got %v, want the error %v", got, err)
		}
		for _, p := range got {
			if !slices.Contains(want[p.Name], p.Value) {
				t.Errorf("got %q=%q, want it among %q", p.Name, p.Value, want)
			}
		}
	})
}

// BenchmarkParseParameters reads the form of an introspection.
func BenchmarkParseParameters(b *testing.B) {
	form := []byte("client_id=6f1c2a34-8f5e-4c7e-9d8b-2f6f3b0a1c55&client_secret=gtcs_" +
		strings.Repeat("a", 49) + "&token=gtat_" + strings.Repeat("b", 60))
	b.ReportAllocs()
	for b.Loop() {
		if all, ok := ParseParameters(form); !ok || len(all) != 3 {
			b.Fatalf("got %v, %v, want three parameters", all, ok)
		}
	}
}
