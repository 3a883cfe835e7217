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

// record is the upstream's JSON for one query. A missing or null member is the zero value.
type record struct {
	Status  string `json:"status"`
	Message string `json:"message"` // with status "fail"
	Query   string `json:"query"`   // the queried address, or the domain's

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

// Errors in the body of a response with status 200.
var (
	errNotJSON = errors.New("upstream responded with malformed JSON")
	errMisfit  = errors.New("upstream's response does not match the query")
	errLength  = errors.New("upstream responded to a batch with the wrong number of elements")
)

// Errors of single queries.
var (
	errPrivateRange  = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonPrivateRange}
	errReservedRange = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonReservedRange}
	errNotFound      = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}
	errBadElement    = &geo.Error{Code: geo.CodeProviderUnreachable}
)

// decodeBatch returns one answer for each query. A bad element only fails its own query.
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

// decodeAnswer decodes the answer to q. Its error is errNotJSON or errMisfit.
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

// addr parses the address in Query. It is never IPv4-mapped. ok is false if there is none.
func (r *record) addr() (addr netip.Addr, ok bool) {
	addr, err := netip.ParseAddr(r.Query)
	return addr.Unmap(), err == nil && addr.Zone() == ""
}

// failure returns the error for the upstream's message. An unknown message counts as a failure of
// the upstream, not of the query.
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

// plausible reports whether the coordinates and the UTC offset are in range.
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

// maxText limits each string of a result, in bytes, so that a faulty upstream cannot fill the
// cache.
const maxText = 256

// clean removes control characters from s and cuts it to maxText.
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
