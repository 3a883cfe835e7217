package lookups

import (
	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/httpedge/endpoint"
)

// view says which members of results a request wants. The zero value is all but "data".
type view struct {
	fields  geo.Fields // 0 = all
	details bool       // with "data", if fields does not say
}

// Errors of the parameters of a view. They are shared and never changed.
var (
	errFields = &endpoint.Problem{Status: fasthttp.StatusBadRequest, Code: "invalid_request",
		Message: "The parameter fields must occur once and hold names of members of a result, separated by commas, such as country,city,as."}
	errDetails = &endpoint.Problem{Status: fasthttp.StatusBadRequest, Code: "invalid_request",
		Message: "The parameter details must occur once and be 0 or 1."}
)

// viewOf returns the view that the query of a request asks for.
func viewOf(args *fasthttp.Args) (v view, fault error) {
	fields, details := 0, 0
	for name, value := range args.All() {
		switch string(name) {
		case "fields":
			fields++
			var ok bool
			if v.fields, ok = geo.ParseFields(endpoint.View(value)); !ok || fields > 1 {
				return view{}, errFields
			}
		case "details":
			details++
			v.details = string(value) == "1"
			if !v.details && string(value) != "0" || details > 1 {
				return view{}, errDetails
			}
		}
	}
	return v, nil
}

// append appends the JSON of a result, with text as the value of "query".
func (v view) append(dst []byte, text string, o *geo.Outcome) []byte {
	begin := len(dst)
	switch {
	case v.fields == 0 && !v.details:
		return o.AppendJSON(dst, text)
	case v.fields.HasData(), v.fields == 0:
		dst = o.AppendDetails(dst, text)
	default:
		dst = o.AppendJSON(dst, text)
	}
	if v.fields == 0 {
		return dst
	}
	return dst[:begin+len(v.fields.Select(dst[begin:]))]
}
