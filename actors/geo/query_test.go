package geo_test

import (
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"gatehouse/actors/geo"
)

// queryRow is a line of testdata/queries.tsv. Its first column is the body of a Go string literal,
// so that a line can contain control characters and bytes that are not UTF-8.
type queryRow struct {
	query     string
	reason    geo.Reason
	canonical string
	why       string
}

func queryRows(t testing.TB) []queryRow {
	t.Helper()
	text, err := os.ReadFile("testdata/queries.tsv")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "\n")
	var rows []queryRow
	for line := range strings.Lines(body) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		query, err := strconv.Unquote(`"` + cells[0] + `"`)
		if err != nil || len(cells) != 5 || (cells[1] == "ok") != (cells[2] == "") ||
			(cells[1] == "ok") != (cells[3] != "") {
			t.Fatalf("testdata/queries.tsv: bad line %q", line)
		}
		rows = append(rows, queryRow{query, geo.Reason(cells[2]), cells[3], cells[4]})
	}
	return rows
}

func TestParseQuery(t *testing.T) {
	for _, row := range queryRows(t) {
		q, err := geo.ParseQuery(row.query)
		switch {
		case row.reason == "" && err != nil:
			t.Errorf("%q (%s): got %v, want %s", row.query, row.why, err, row.canonical)
		case row.reason == "" && q.String() != row.canonical:
			t.Errorf("%q (%s): got %s, want %s", row.query, row.why, q, row.canonical)
		case row.reason != "" && err == nil:
			t.Errorf("%q (%s): got %s, want %s", row.query, row.why, q, row.reason)
		case row.reason != "" && (*err != geo.Error{Code: geo.CodeInvalidQuery,
			Reason: row.reason} || q != geo.Query{}):
			t.Errorf("%q (%s): got %v and %v, want %s alone", row.query, row.why, err, q,
				row.reason)
		}
	}
}

func TestEveryLocalReasonHasARow(t *testing.T) {
	seen := map[geo.Reason]int{}
	for _, row := range queryRows(t) {
		seen[row.reason]++
	}
	for _, reason := range []geo.Reason{geo.ReasonEmpty, geo.ReasonMalformed, geo.ReasonHasScheme,
		geo.ReasonHasPath, geo.ReasonPrivateRange, geo.ReasonReservedRange} {
		if seen[reason] < 3 {
			t.Errorf("%s: got %d rows, want at least 3", reason, seen[reason])
		}
	}
}

func TestAddrQuery(t *testing.T) {
	for _, row := range []struct {
		addr   netip.Addr
		want   string
		reason geo.Reason
	}{
		{netip.MustParseAddr("8.8.8.8"), "8.8.8.8", ""},
		{netip.MustParseAddr("::ffff:8.8.8.8"), "8.8.8.8", ""},
		{netip.MustParseAddr("2001:4860::8888"), "2001:4860::8888", ""},
		{netip.MustParseAddr("127.0.0.1"), "", geo.ReasonReservedRange},
		{netip.MustParseAddr("::ffff:10.1.1.1"), "", geo.ReasonPrivateRange},
		{netip.MustParseAddr("fd00::1"), "", geo.ReasonPrivateRange},
		{netip.MustParseAddr("2001:4860::8888%eth0"), "", geo.ReasonMalformed},
		{netip.MustParseAddr("::ffff:8.8.8.8%eth0"), "", geo.ReasonMalformed},
		{netip.Addr{}, "", geo.ReasonMalformed},
	} {
		q, err := geo.AddrQuery(row.addr)
		if row.reason != "" {
			if err == nil || err.Reason != row.reason {
				t.Errorf("%v: got %v, want %s", row.addr, err, row.reason)
			}
			continue
		}
		parsed, _ := geo.ParseQuery(row.want)
		if err != nil || q != parsed || q.Addr() != netip.MustParseAddr(row.want) {
			t.Errorf("%v: got %v, %v, want %s", row.addr, q, err, row.want)
		}
	}
}

func TestSpellingsOfOneQueryAreEqual(t *testing.T) {
	for _, same := range [][]string{
		{"8.8.8.8", " 8.8.8.8 ", "::ffff:8.8.8.8", "::FFFF:808:808"},
		{"2606:4700::1111", "2606:4700:0:0::1111", "2606:4700::0.0.17.17"},
		{"example.com", "EXAMPLE.com.", "ｅxample。com"},
		{"bücher.ch", "xn--bcher-kva.ch", "XN--Bcher-KVA.ch."},
	} {
		first, _ := geo.ParseQuery(same[0])
		for _, s := range same[1:] {
			if q, err := geo.ParseQuery(s); err != nil || q != first {
				t.Errorf("%q: got %v, %v, want %v", s, q, err, first)
			}
		}
	}
}

func TestCloneSharesNoMemory(t *testing.T) {
	text := []byte("example.com")
	shared, err := geo.ParseQuery(unsafe.String(&text[0], len(text)))
	if err != nil {
		t.Fatal(err)
	}
	cloned := shared.Clone()
	copy(text, "leaked!")
	if got := shared.String(); got != "leaked!.com" {
		t.Errorf("parsed: got %s, want the bytes of the input", got)
	}
	if got := cloned.String(); got != "example.com" {
		t.Errorf("cloned: got %s, want example.com", got)
	}
}

func TestParseQueryAllocatesNothing(t *testing.T) {
	for _, s := range []string{
		"8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "www.example.com", "example.com.",
		" example.com ",
		"10.0.0.1", "fd00::1", "printer.local",
		"", "router", "a_b.com", "http://example.com", "mailto:a@example.com", "example.com/a",
		"example.com:53",
		"user:pw@example.com", "\x00\x01\x02", "ab--cd.com", strings.Repeat("a",
			64) + ".com", strings.Repeat("1:", 500),
		strings.Repeat("é", 600), "é.xn--" + strings.Repeat("b", 1000),
	} {
		if got := testing.AllocsPerRun(10, func() { geo.ParseQuery(s) }); got != 0 {
			t.Errorf("%.20q: got %v allocations, want 0", s, got)
		}
	}
}

var safe = regexp.MustCompile(`^[a-z0-9]([a-z0-9.:-]*[a-z0-9:])?$|^::`)

// FuzzParseQuery checks that the canonical form of a query parses to the same query and is safe in
// a URL path.
func FuzzParseQuery(f *testing.F) {
	for _, row := range queryRows(f) {
		f.Add(row.query)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, refusal := geo.ParseQuery(s)
		if refusal != nil {
			if refusal.Code != geo.CodeInvalidQuery || refusal.Reason == "" || q != (geo.Query{}) {
				t.Fatalf("%q: got %v and %v, want a reason alone", s, refusal, q)
			}
			return
		}
		text := q.String()
		again, refusal := geo.ParseQuery(text)
		if refusal != nil || again != q {
			t.Fatalf("%q, printed %q: got %v, %v, want the same", s, text, again, refusal)
		}
		if !safe.MatchString(text) || strings.Contains(text, "..") || len(text) > 253 ||
			url.PathEscape(text) != text {
			t.Fatalf("%q: got %q, which is not safe in a path", s, text)
		}
		if q.IsDomain() == q.Addr().IsValid() || q.IsDomain() && strings.Contains(text, ":") {
			t.Fatalf("%q: got %q, want either an address or a domain", s, text)
		}
		if q.Addr().IsValid() && (q.Addr().Zone() != "" || q.Addr().Is4In6() ||
			q.Addr().IsPrivate()) {
			t.Fatalf("%q: got %v, want a public address", s, q)
		}
	})
}

func BenchmarkParseQuery(b *testing.B) {
	for _, row := range []struct{ name, query string }{
		{"ipv4", "8.8.8.8"},
		{"ipv4-long", "203.208.100.254"},
		{"ipv6", "2001:4860:4860::8888"},
		{"domain", "www.example.com"},
		{"domain-upper", "WWW.Example.com"},
		{"idn", "bücher.ch"},
		{"a-label", "xn--bcher-kva.ch"},
		{"private", "192.168.1.1"},
		{"url", "https://example.com/a/b?c=d"},
		{"garbage", "x9!k2$vv0)q~~1|w"},
		{"garbage-address", "256.1.1.1"},
		{"garbage-unicode", "\u202eexample.com"},
		{"garbage-long", strings.Repeat("a", 1024)},
		{"garbage-labels", strings.Repeat("a.", 512)},
		{"garbage-unicode-long", distinct(300)},
		{"garbage-unicode-labels", distinct(60) + "." + distinct(60) + "." + distinct(60) + "." + distinct(60)},
		{"garbage-a-label-long", "é.xn--" + strings.Repeat("b", 1000)},
		{"garbage-a-labels", strings.Repeat("xn--"+strings.Repeat("a", 58)+".", 4)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				geo.ParseQuery(row.query)
			}
		})
	}
}

// distinct returns n different non-ASCII letters: the worst case for Punycode.
func distinct(n int) string {
	var s strings.Builder
	for i := range n {
		s.WriteRune('一' + rune(i))
	}
	return s.String()
}
