package emulator

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/netip"
)

// element is the upstream's JSON for one query.
type element struct {
	Status      string  `json:"status"`
	Message     string  `json:"message,omitempty"`
	Continent   string  `json:"continent,omitempty"`
	Country     string  `json:"country,omitempty"`
	CountryCode string  `json:"countryCode,omitempty"`
	RegionName  string  `json:"regionName,omitempty"`
	City        string  `json:"city,omitempty"`
	Zip         string  `json:"zip,omitempty"`
	Lat         float64 `json:"lat,omitempty"`
	Lon         float64 `json:"lon,omitempty"`
	Timezone    string  `json:"timezone,omitempty"`
	Offset      int     `json:"offset,omitempty"`
	Currency    string  `json:"currency,omitempty"`
	ISP         string  `json:"isp,omitempty"`
	AS          string  `json:"as,omitempty"`
	Reverse     string  `json:"reverse,omitempty"`
	Query       string  `json:"query"`
}

// City returns the city for query. Each query has its own, so that a test notices swapped
// responses.
func City(query string) string { return "City of " + query }

// Address returns the address that a domain resolves to.
func Address(domain string) netip.Addr {
	h := fnv.New32a()
	h.Write([]byte(domain))
	n := h.Sum32()
	return netip.AddrFrom4([4]byte{151, 101, byte(n >> 8), byte(n)})
}

// elementsOf returns an element for each query. Only a single lookup has the reverse name.
func elementsOf(queries []string, endpoint int) []json.RawMessage {
	elements := make([]json.RawMessage, len(queries))
	for i, q := range queries {
		a := elementOf(q)
		if endpoint == single && a.Status == "success" {
			a.Reverse = "host.example.net"
		}
		text, err := json.Marshal(a)
		if err != nil {
			panic(err) // impossible: strings and numbers
		}
		elements[i] = text
	}
	return elements
}

func elementOf(query string) element {
	addr, err := netip.ParseAddr(query)
	if err != nil {
		addr = Address(query)
	}
	if addr.IsPrivate() {
		return element{Status: "fail", Message: "private range", Query: query}
	}
	return element{
		Status: "success", Query: addr.String(), City: City(query),
		Continent: "Europe", Country: "Emulatia", CountryCode: "EM", RegionName: "North", Zip: "12345",
		Lat: 48.5, Lon: -9.25, Timezone: "Europe/Berlin", Offset: 3600, Currency: "EUR", ISP: "Emulated",
		AS: "AS64501 Emulated",
	}
}

// write sends elements as an array, or only the first element.
func write(w http.ResponseWriter, elements []json.RawMessage, array bool) {
	body := []byte(elements[0])
	if array {
		var err error
		if body, err = json.Marshal(elements); err != nil {
			panic(err) // a Fault made an invalid element
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if _, err := w.Write(body); err != nil {
		return // the client has gone
	}
}
