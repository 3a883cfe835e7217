package lookup

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

func parse(tb testing.TB, texts ...string) (queries []geo.Query) {
	tb.Helper()
	for _, text := range texts {
		q, err := geo.ParseQuery(text)
		if err != nil {
			tb.Fatal(err)
		}
		queries = append(queries, q)
	}
	return queries
}

func TestRequestIsDecoded(t *testing.T) {
	queries := parse(t, "8.8.8.8", "2606:4700::1111", "bücher.example.com", "xn--bcher-kva.example.org")
	for _, caller := range []string{"192.0.2.1/32", "2001:db8::/64"} {
		want := request{
			Caller: netip.MustParsePrefix(caller), Left: 4321 * time.Millisecond,
			Queries: []string{
				"8.8.8.8", "2606:4700::1111", "xn--bcher-kva.example.com", "xn--bcher-kva.example.org",
			},
		}
		r, got, err := decodeRequest(encodeRequest(queries, want.Caller, want.Trace, want.Left))
		if err != nil || !reflect.DeepEqual(r, want) || !slices.Equal(got, queries) {
			t.Errorf("got %+v with %v, %v, want %+v with %v", r, got, err, want, queries)
		}
	}
	r, _, err := decodeRequest(encodeRequest(queries, netip.Prefix{}, "", 0))
	if err != nil || r.Caller.IsValid() {
		t.Errorf("no caller: got %v, %v", r.Caller, err)
	}
}

func TestRepliesAreDecoded(t *testing.T) {
	now := time.Now()
	queries := parse(t, "8.8.8.8", "9.9.9.9", "a.example.com", "b.example.com", "1.1.1.1")
	city := geo.Location{City: `"<é` + "\u2028" + `>& \`, Lat: -1.5}
	located := geo.NewEntry(geo.ResultTTL, queries[0], geo.Answer{Result: geo.Result{
		IP: queries[0].Addr(), Location: city,
	}}, geo.SourceUpstream, now.Add(-time.Minute))
	notFound := geo.NewEntry(geo.ResultTTL, queries[1], geo.Answer{Err: &geo.Error{
		Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound,
	}}, geo.SourceSim, now.Add(-time.Second))
	limited := &geo.Error{Code: geo.CodeRateLimited, RetryAfter: 12345678901}
	sent := []outcome{
		{Outcome: geo.Outcome{Entry: located}},
		{Outcome: geo.Outcome{Entry: notFound, Err: notFound.Err}},
		rejection(limited), rejection(errOverloaded), movedAway,
	}
	later := now.Add(time.Hour) // the other clock
	got, err := decodeReplies(encodeReplies(sent, now), queries, later)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range got {
		want := sent[i]
		if o.moved != want.moved || o.mayFallBack != want.mayFallBack || (o.Entry == nil) != (want.Entry == nil) {
			t.Errorf("%d: got %+v, want %+v", i, o, want)
		}
		if (o.Err == nil) != (want.Err == nil) || o.Err != nil && *o.Err != *want.Err {
			t.Errorf("%d: got error %+v, want %+v", i, o.Err, want.Err)
		}
		if e := o.Entry; e != nil {
			w := want.Entry
			same := string(e.Body) == string(w.Body) && e.Age(later) == w.Age(now) &&
				e.TTL() == w.TTL() && e.Source() == w.Source()
			if !same {
				t.Errorf("%d: got %s, age %d, want %s, age %d", i, e.Body, e.Age(later), w.Body, w.Age(now))
			}
			if e.Err == nil && string(e.AppendFor(nil, "x")) != string(w.AppendFor(nil, "x")) {
				t.Errorf("%d: got another answer for another text", i)
			}
		}
	}
}

func TestMalformedMessages(t *testing.T) {
	queries := parse(t, "8.8.8.8")
	many := `{"Queries":["8.8.8.8"` + strings.Repeat(`,"8.8.8.8"`, mostShared) + `]}`
	for _, body := range []string{
		"", "null", "{}", "[]", many, `{"Queries":[""]}`, `{"Queries":["10.0.0.1"]}`,
		`{"Queries":["8.8.8.8"],"Caller":"nobody"}`, `{"Queries":["8.8.8.8"],"Left":1e99}`,
	} {
		if _, _, err := decodeRequest([]byte(body)); err == nil {
			t.Errorf("request %.40s: got no error", body)
		}
	}
	for _, body := range []string{
		"", "null", "[]", "[null]", "[{}]", `[{"Error":{}}]`, `[{"Error":{"Code":"x"}}]`,
		`[{"Entry":{}}]`, `[{"Entry":{"Source":"sim"}}]`,
		`[{"Entry":{"Source":"sim","JSON":",","Reason":"x"}}]`,
		`[{"Entry":{"Source":"x","JSON":","}}]`, `[{"Entry":{"Source":"sim","JSON":",","Age":-1}}]`,
		`[{"Entry":{"Source":"sim","JSON":",","TTL":64800000000001}}]`,
		`[{"Entry":{"Source":"sim","JSON":"}"}},{"Entry":{"Source":"sim","JSON":"}"}}]`,
	} {
		if o, err := decodeReplies([]byte(body), queries, time.Now()); err == nil {
			t.Errorf("replies %s: got %+v, want an error", body, o)
		}
	}
}

// FuzzMessages decodes what no node sends.
func FuzzMessages(f *testing.F) {
	queries := parse(f, "8.8.8.8", "a.example.com")
	now := time.Now()
	entry := geo.NewEntry(geo.ResultTTL, queries[0], geo.Answer{}, geo.SourceSim, now)
	f.Add(encodeRequest(queries, netip.MustParsePrefix("192.0.2.1/32"), "", time.Second))
	f.Add(encodeReplies([]outcome{{Outcome: geo.Outcome{Entry: entry}}, movedAway}, now))
	f.Add(encodeNews(queries[:1], []*geo.Entry{entry}, now)[0])
	f.Add([]byte("[null]"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, got, err := decodeRequest(body); err == nil {
			again, same, err := decodeRequest(encodeRequest(got, r.Caller, r.Trace, r.Left))
			if err != nil || !slices.Equal(got, same) || again.Left != r.Left {
				t.Errorf("got %v, %v from the encoded request, want %v", same, err, got)
			}
		}
		if o, err := decodeReplies(body, queries, now); err == nil && len(o) != len(queries) {
			t.Errorf("got %d outcomes, want %d", len(o), len(queries))
		}
		_ = decodeNews(body, now, func(q geo.Query, e *geo.Entry) {
			if e.Err == nil && !e.IsFor(q.String()) {
				t.Errorf("got %s for %v", e.Body, q)
			}
			e.AppendFor(nil, "x")
		})
	})
}
