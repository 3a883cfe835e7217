package lookups

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/httpedge/endpoint"
)

// selection says which members of results a request wants. The zero value is all but "data".
type selection struct {
	fields  geo.Fields // 0 = all
	details bool       // with "data", if fields does not say
}

// Errors of the parameters of a selection. They are shared and never changed.
var (
	errFields = &endpoint.Problem{Status: fasthttp.StatusBadRequest, Code: "invalid_request",
		Message: "The parameter fields must occur once and hold names of members of a result, separated by commas, such as country,city,as."}
	errDetails = &endpoint.Problem{Status: fasthttp.StatusBadRequest, Code: "invalid_request",
		Message: "The parameter details must occur once and be 0 or 1."}
)

// selectionOf returns the selection that the query of a request asks for.
func selectionOf(args *fasthttp.Args) (s selection, fault error) {
	fields, details := 0, 0
	for name, value := range args.All() {
		switch string(name) {
		case "fields":
			fields++
			var ok bool
			if s.fields, ok = geo.ParseFields(endpoint.View(value)); !ok || fields > 1 {
				return selection{}, errFields
			}
		case "details":
			details++
			s.details = string(value) == "1"
			if !s.details && string(value) != "0" || details > 1 {
				return selection{}, errDetails
			}
		}
	}
	return s, nil
}

// append appends the JSON of a result, with text as the value of "query".
func (s selection) append(dst []byte, text string, o *geo.Outcome) []byte {
	begin := len(dst)
	switch {
	case s.fields == 0 && !s.details:
		return o.AppendJSON(dst, text)
	case s.fields.HasData(), s.fields == 0:
		dst = o.AppendDetails(dst, text)
	default:
		dst = o.AppendJSON(dst, text)
	}
	if s.fields == 0 {
		return dst
	}
	return dst[:begin+len(s.fields.Select(dst[begin:]))]
}
