package geo_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/geo"
)

// known is what a provider of files knows of an answer.
var known = geo.Data{
	Prefix: netip.MustParsePrefix("8.8.8.0/24"), AccuracyRadiusKm: 20, ASN: 15169,
	AsOf: time.Date(2026, 11, 3, 23, 59, 0, 0, time.UTC),
}

const knownJSON = `{"prefix":"8.8.8.0/24","accuracyRadiusKm":20,"asn":15169,"source":"mmdb",` +
	`"asOf":"2026-11-03"}`

// resultOf returns a result with these data.
func resultOf(data geo.Data) geo.Result {
	return geo.Result{IP: netip.MustParseAddr("8.8.8.8"), Data: data}
}

func TestDetails(t *testing.T) {
	for _, c := range []struct {
		name   string
		source geo.Source
		data   geo.Data
		want   string
	}{
		{"all known", geo.SourceMMDB, known, knownJSON},
		{"none known", geo.SourceUpstream, geo.Data{},
			`{"prefix":null,"accuracyRadiusKm":null,"asn":null,"source":"upstream","asOf":null}`},
		{"some known", geo.SourceMMDB, geo.Data{Prefix: netip.MustParsePrefix("2001:200::/23")},
			`{"prefix":"2001:200::/23","accuracyRadiusKm":null,"asn":null,"source":"mmdb","asOf":null}`},
	} {
		for _, text := range []string{"8.8.8.8", " 8.8.8.8"} {
			e := geo.NewEntry(geo.ResultTTL, query(t, "8.8.8.8"),
				geo.Answer{Result: resultOf(c.data)}, c.source, epoch)
			o := geo.Outcome{Entry: e}
			plain := string(o.AppendJSON(nil, text))
			if strings.Contains(plain, "data") || !json.Valid([]byte(plain)) {
				t.Errorf("%s: got %s, want no data", c.name, plain)
			}
			want := strings.TrimSuffix(plain, "}") + `,"data":` + c.want + "}"
			if got := string(o.AppendDetails([]byte("x"), text)); got != "x"+want {
				t.Errorf("%s, %q: got %s, want x%s", c.name, text, got, want)
			}
			if ready := o.Ready(text); (ready != nil) != (text == "8.8.8.8") {
				t.Errorf("%s, %q: got %s ready", c.name, text, ready)
			}
		}
	}
}

// TestDetailsOfCopy sends an answer to another node, also to and from a node of an older version.
func TestDetailsOfCopy(t *testing.T) {
	q := query(t, "8.8.8.8")
	sent := geo.NewEntry(geo.ResultTTL, q, geo.Answer{Result: resultOf(known)}, geo.SourceMMDB, epoch)
	message, err := json.Marshal(sent.Copy(epoch))
	if err != nil {
		t.Fatal(err)
	}
	unknown := `{"prefix":null,"accuracyRadiusKm":null,"asn":null,"source":"mmdb","asOf":null}`
	var members map[string]any
	if err := json.Unmarshal(message, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "Data")
	older, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{string(message): knownJSON, string(older): unknown} {
		var c geo.Copy
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		e, err := geo.EntryOf(q, c, epoch)
		if err != nil {
			t.Fatal(err)
		}
		o := geo.Outcome{Entry: e}
		if got := string(o.AppendDetails(nil, "8.8.8.8")); !strings.HasSuffix(got, `,"data":`+want+"}") {
			t.Errorf("got %s, want data %s", got, want)
		}
	}
}
