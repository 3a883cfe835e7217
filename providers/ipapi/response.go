package ipapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/actors/geo"
)

// record is one answer as the upstream writes it. A member that is absent or null is the zero value.
type record struct {
	Status  string `json:"status"`
	Message string `json:"message"` // beside status "fail"
	Query   string `json:"query"`   // the address asked about, or the one that the domain resolved to

	Continent   string  `json:"continent"`
	Country     string  `json:"country"`
	CountryCode string  `json:"countryCode"`
	RegionName  string  `json:"regionName"`
	City        string  `json:"city"`
	Zip         string  `json:"zip"`
	Lat         float64 `json:"lat"`
	Lon         float64 `json:"lon"`
	Timezone    string  `json:"timezone"`
	Offset      int     `json:"offset"` // seconds east of UTC
	Currency    string  `json:"currency"`
	ISP         string  `json:"isp"`
	Org         string  `json:"org"`
	AS          string  `json:"as"`
	ASName      string  `json:"asname"`
	Reverse     string  `json:"reverse"`
	Mobile      bool    `json:"mobile"`
	Proxy       bool    `json:"proxy"`
	Hosting     bool    `json:"hosting"`
}

// What is wrong with the body of a 200.
var (
	errNotJSON = errors.New("upstream answered something that is not the JSON agreed on")
	errMisfit  = errors.New("upstream's answer does not fit the query")
	errLength  = errors.New("upstream answered a batch with the wrong number of elements")
)

// The errors that stand in the place of a result.
var (
	errPrivateRange  = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonPrivateRange}
	errReservedRange = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonReservedRange}
	errNotFound      = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}
	errBadElement    = &geo.Error{Code: geo.CodeProviderUnreachable}
)

// decodeBatch returns one answer a query. What is wrong with one element stays with it.
func decodeBatch(body []byte, qs []geo.Query) ([]geo.Answer, error) {
	elements := make([]json.RawMessage, 0, len(qs))
	if err := json.Unmarshal(body, &elements); err != nil {
		return nil, errNotJSON
	}
	if len(elements) != len(qs) {
		return nil, errLength
	}
	answers := make([]geo.Answer, len(qs))
	for i, element := range elements {
		answer, err := decodeAnswer(element, qs[i])
		if err != nil {
			answer = geo.Answer{Err: errBadElement}
		}
		answers[i] = answer
	}
	return answers, nil
}

// decodeAnswer returns what body says of q, or errNotJSON or errMisfit.
func decodeAnswer(body []byte, q geo.Query) (geo.Answer, error) {
	var r record
	if err := json.Unmarshal(body, &r); err != nil {
		return geo.Answer{}, errNotJSON
	}
	addr, known := r.addr()
	if !q.IsDomain() && (!known || addr != q.Addr().Unmap()) {
		return geo.Answer{}, errMisfit
	}
	switch {
	case r.Status == "fail":
		return geo.Answer{Err: failure(r.Message)}, nil
	case r.Status != "success" || !known || !r.plausible():
		return geo.Answer{}, errMisfit
	}
	if q.IsDomain() {
		if _, err := geo.AddrQuery(addr); err != nil {
			return geo.Answer{Err: err}, nil
		}
	}
	return geo.Answer{Result: r.result(addr)}, nil
}

// addr returns the address in Query, never IPv4-mapped, and whether there is one.
func (r *record) addr() (netip.Addr, bool) {
	addr, err := netip.ParseAddr(r.Query)
	return addr.Unmap(), err == nil && addr.Zone() == ""
}

// failure returns what the upstream's message means. One that nobody has heard of says nothing about the query.
func failure(message string) *geo.Error {
	switch message {
	case "invalid query":
		return errNotFound
	case "private range":
		return errPrivateRange
	case "reserved range":
		return errReservedRange
	}
	return errBadElement
}

// plausible reports whether there is such a place and such an offset.
func (r *record) plausible() bool {
	const day = 24 * 60 * 60
	return math.Abs(r.Lat) <= 90 && math.Abs(r.Lon) <= 180 && -day < r.Offset && r.Offset < day
}

func (r *record) result(addr netip.Addr) geo.Result {
	return geo.Result{
		IP: addr,
		Location: geo.Location{
			Continent:        clean(r.Continent),
			Country:          clean(r.Country),
			CountryCode:      clean(r.CountryCode),
			RegionName:       clean(r.RegionName),
			City:             clean(r.City),
			Zip:              clean(r.Zip),
			Lat:              r.Lat,
			Lon:              r.Lon,
			Timezone:         clean(r.Timezone),
			UTCOffsetSeconds: r.Offset,
			Currency:         clean(r.Currency),
		},
		Network: geo.Network{
			ISP:     clean(r.ISP),
			Org:     clean(r.Org),
			AS:      clean(r.AS),
			ASName:  clean(r.ASName),
			Reverse: strings.TrimSuffix(clean(r.Reverse), "."),
		},
		Flags: geo.Flags{Mobile: r.Mobile, Proxy: r.Proxy, Hosting: r.Hosting},
	}
}

// maxText bounds a string of a result, in bytes: an upstream gone wrong must not fill the cache.
const maxText = 256

// clean returns s without control characters, cut to maxText.
func clean(s string) string {
	if strings.ContainsFunc(s, unicode.IsControl) {
		s = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, s)
	}
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end])
}
