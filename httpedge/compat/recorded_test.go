package compat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/cmd/stack/stacktest"
)

// example is a request and the response that a service documents.
type example struct {
	Request  string
	Status   int
	Response any      // a text, or JSON whose texts may be "…" for any
	Lacks    []string // members that no source of gatehouse knows, with dots between
}

// recorded is a file of testdata.
type recorded struct {
	Examples []example
	Bits     map[string]int    // ip-api: of the parameter fields
	Order    []string          // likewise: of the members of JSON
	Masks    map[string]uint32 // likewise: sums of bits
	Batches  []string          // likewise: bodies
}

func readRecorded(t *testing.T, name string) (r recorded) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Examples) == 0 {
		t.Fatalf("got %d examples and error %v", len(r.Examples), err)
	}
	return r
}

// examples is what the provider knows of the addresses in testdata.
var examples = map[string]geo.Result{
	"24.48.0.1": {
		Location: geo.Location{Country: "Canada", CountryCode: "CA", RegionName: "Quebec", City: "Montreal",
			Zip: "H1K", Lat: 45.6085, Lon: -73.5493, Timezone: "America/Toronto"},
		Network: geo.Network{ISP: "Le Groupe Videotron Ltee", Org: "Videotron Ltee",
			AS: "AS5769 Videotron Telecom Ltee"},
		Data: geo.Data{RegionCode: "QC"},
	},
	"66.87.125.72": {
		Location: geo.Location{Country: "United States", CountryCode: "US", RegionName: "Massachusetts",
			City: "Springfield", Zip: "01105", Lat: 42.0999, Lon: -72.5783, Timezone: "America/New_York"},
		Network: geo.Network{AS: "AS10507 Sprint Personal Communications Systems",
			Reverse: "ip-66-87-125-72.spfdma.spcsdns.net"},
	},
	"8.8.8.8": {
		Location: geo.Location{Continent: "North America", Country: "United States", CountryCode: "US",
			RegionName: "California", City: "Mountain View", Zip: "94043", Lat: 37.4056, Lon: -122.0775,
			Timezone: "America/Los_Angeles"},
		Network: geo.Network{AS: "AS15169 Google LLC", Reverse: "dns.google"},
		Flags:   geo.Flags{Hosting: true},
		Data:    geo.Data{RegionCode: "CA", ASN: 15169, ASDomain: "google.com"},
	},
}

// startRecorded starts a server that knows the addresses in testdata, and has an API key.
func startRecorded(t *testing.T, service string) func(method, path, body string) stacktest.Response {
	t.Helper()
	_, line, err := stack.NewLookupKey("shop")
	keys := filepath.Join(t.TempDir(), "keys")
	if err != nil || os.WriteFile(keys, []byte(line+"\n"), 0o600) != nil {
		t.Fatalf("got error %v", err)
	}
	provider := stacktest.NewProvider()
	provider.Ask = func(_ context.Context, q geo.Query) (geo.Answer, error) {
		r, ok := examples[q.String()]
		if !ok {
			return geo.Answer{Err: &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNoLocation}}, nil
		}
		r.IP = q.Addr()
		return geo.Answer{Result: r}, nil
	}
	st, base := start(t, service, func(c *stack.Config) {
		c.Lookups.Provider, c.Lookups.KeyFile = provider, keys
	})
	return func(method, path, body string) stacktest.Response { return st.Send(t, method, base+path, body) }
}

// TestRecorded plays the requests that both services document, and expects the documented responses.
func TestRecorded(t *testing.T) {
	for _, service := range []string{"ip-api", "ipinfo"} {
		send := startRecorded(t, service)
		for _, e := range readRecorded(t, service).Examples {
			method, path, _ := strings.Cut(e.Request, " ")
			got := send(method, path, "")
			var is any = got.Body
			if want, ok := e.Response.(map[string]any); ok {
				var object map[string]any
				if err := json.Unmarshal([]byte(got.Body), &object); err != nil {
					t.Errorf("%s %s: %v", service, e.Request, err)
				}
				for _, member := range e.Lacks {
					remove(want, strings.Split(member, "."))
				}
				fill(want, object)
				is = object
			}
			if got.Status != e.Status || !reflect.DeepEqual(is, e.Response) {
				t.Errorf("%s %s: got %d %s, want %d %v", service, e.Request, got.Status, got.Body, e.Status, e.Response)
			}
		}
	}
}

// remove removes a member of an object.
func remove(object map[string]any, path []string) {
	if inner, ok := object[path[0]].(map[string]any); ok && len(path) > 1 {
		remove(inner, path[1:])
		return
	}
	delete(object, path[0])
}

// fill replaces "…" by the text that an object has there.
func fill(want, is map[string]any) {
	for name, value := range want {
		if text, ok := is[name].(string); ok && value == "…" && text != "" {
			want[name] = text
		}
		inner, ok := value.(map[string]any)
		if other, ok2 := is[name].(map[string]any); ok && ok2 {
			fill(inner, other)
		}
	}
}

// TestRecordedFields expects each bit of ip-api's parameter fields to choose its member, their sums
// likewise, and batches to keep the order of their elements.
func TestRecordedFields(t *testing.T) {
	send, r := startRecorded(t, "ip-api"), readRecorded(t, "ip-api")
	inOrder := func(mask uint32) (all []string) {
		for _, name := range r.Order {
			if mask&uint32(r.Bits[name]) != 0 {
				all = append(all, name)
			}
		}
		return all
	}
	// CSV has a cell for each chosen member, known or not.
	header := func(mask uint32) string {
		got := send("GET", fmt.Sprintf("/csv/24.48.0.1?header=true&fields=%d", mask), "")
		line, _, _ := strings.Cut(got.Body, "\n")
		return line
	}
	masks := slices.Collect(maps.Values(r.Masks))
	for _, bit := range r.Bits {
		masks = append(masks, uint32(bit))
	}
	for _, mask := range masks {
		want := slices.DeleteFunc(inOrder(mask), func(name string) bool { return name == "message" })
		if got := header(mask); len(want) > 0 && got != strings.Join(want, ",") {
			t.Errorf("fields=%d: got %s, want %s", mask, got, want)
		}
	}
	for _, body := range r.Batches {
		var items []any
		got := send("POST", "/batch", body)
		if err := json.Unmarshal([]byte(body), &items); err != nil {
			t.Fatal(err)
		}
		var results []struct{ Query string }
		if err := json.Unmarshal([]byte(got.Body), &results); err != nil || len(results) != len(items) {
			t.Errorf("%s: got error %v and %s", body, err, got.Body)
		}
		for i, item := range items {
			if object, ok := item.(map[string]any); ok {
				item = object["query"]
			}
			if results[i].Query != item {
				t.Errorf("%s: got %s, want the order of the queries", body, got.Body)
			}
		}
	}
}
