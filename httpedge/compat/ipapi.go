package compat

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/httpedge/endpoint"
)

// maxIPAPIBatch is how many queries a batch of ip-api holds.
const maxIPAPIBatch = 100

// ipapiMembers are the members of a result in the order of ip-api's JSON, with their bits in the
// parameter fields.
var ipapiMembers = []struct {
	name string
	bit  uint32
	read func(*answer) any // nil = it is not of an answer
}{
	{"status", 1 << 14, nil}, {"message", 1 << 15, nil},
	{"continent", 1 << 20, func(a *answer) any { return a.Location.Continent }},
	{"continentCode", 1 << 21, func(a *answer) any { return a.Data.ContinentCode }},
	{"country", 1 << 0, func(a *answer) any { return a.Location.Country }},
	{"countryCode", 1 << 1, func(a *answer) any { return a.Location.CountryCode }},
	{"region", 1 << 2, func(a *answer) any { return a.Data.RegionCode }},
	{"regionName", 1 << 3, func(a *answer) any { return a.Location.RegionName }},
	{"city", 1 << 4, func(a *answer) any { return a.Location.City }},
	{"district", 1 << 19, func(*answer) any { return nil }},
	{"zip", 1 << 5, func(a *answer) any { return a.Location.Zip }},
	{"lat", 1 << 6, func(a *answer) any { return known(a.Location.Lat, a.hasPlace()) }},
	{"lon", 1 << 7, func(a *answer) any { return known(a.Location.Lon, a.hasPlace()) }},
	{"timezone", 1 << 8, func(a *answer) any { return a.Location.Timezone }},
	{"offset", 1 << 25, func(a *answer) any {
		return known(a.Location.UTCOffsetSeconds, a.Location.Timezone != "")
	}},
	{"currency", 1 << 23, func(a *answer) any { return a.Location.Currency }},
	{"isp", 1 << 9, func(a *answer) any { return a.Network.ISP }},
	{"org", 1 << 10, func(a *answer) any { return a.Network.Org }},
	{"as", 1 << 11, func(a *answer) any { return a.Network.AS }},
	{"asname", 1 << 22, func(a *answer) any { return a.Network.ASName }},
	{"reverse", 1 << 12, func(a *answer) any { return a.Network.Reverse }},
	{"mobile", 1 << 16, func(a *answer) any { return known(a.truth(a.Flags.Mobile)) }},
	{"proxy", 1 << 17, func(a *answer) any { return known(a.proxy()) }},
	{"hosting", 1 << 24, func(a *answer) any { return known(a.hosting()) }},
	{"query", 1 << 13, nil},
}

// Masks of the parameter fields.
const (
	ipapiDefault = 61439
	ipapiAll     = 66846719
)

// ipapiFields reads the parameter fields: names with commas, or the sum of their bits. Without one
// that is known it is the default, as there.
func ipapiFields(text string) uint32 {
	var mask uint32
	if sum, err := strconv.ParseUint(text, 10, 32); err == nil {
		mask = uint32(sum) & ipapiAll
	} else {
		for name := range strings.SplitSeq(text, ",") {
			for _, m := range ipapiMembers {
				if m.name == strings.TrimSpace(name) {
					mask |= m.bit
				}
			}
		}
	}
	if mask == 0 {
		return ipapiDefault
	}
	return mask
}

// ipapiResult returns the chosen members of an answer, or of a failure. Unknown ones have no value.
func ipapiResult(a *answer, err *geo.Error, query string, mask uint32) (all []member) {
	status, message := any("success"), any(nil)
	if err != nil {
		status, message = "fail", ipapiMessage(err)
	} else {
		query = a.IP
	}
	for _, m := range ipapiMembers {
		if mask&m.bit == 0 {
			continue
		}
		switch {
		case m.name == "status":
			all = append(all, member{m.name, status})
		case m.name == "message" && err != nil:
			all = append(all, member{m.name, message})
		case m.name == "query":
			all = append(all, member{m.name, query})
		case m.read != nil && err == nil:
			all = append(all, member{m.name, m.read(a)})
		}
	}
	return all
}

func ipapiMessage(err *geo.Error) string {
	switch {
	case err.Reason == geo.ReasonPrivateRange:
		return "private range"
	case err.Reason == geo.ReasonReservedRange:
		return "reserved range"
	case isOpen(err):
		return strings.ReplaceAll(string(err.Code), "_", " ")
	}
	return "invalid query"
}

// ownQuery stands for an empty query behind a slash. It is no address and no domain.
const ownQuery = "-"

// Slashed returns a handler that tells /json/ from /json, which the router does not: it inserts
// ownQuery.
func Slashed(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		switch path := string(ctx.URI().PathOriginal()); path {
		case "/json/", "/csv/", "/line/":
			ctx.URI().SetPath(path + ownQuery)
		}
		handle(ctx)
	}
}

// ipapiEndpoints returns the endpoints of ip-api. bare = /json is among them.
func (s *service) ipapiEndpoints(bare bool) (all []endpoint.Endpoint) {
	get := []string{fasthttp.MethodGet, fasthttp.MethodHead}
	for _, format := range []string{"json", "csv", "line"} {
		handle := s.keyed(func(ctx *fasthttp.RequestCtx, c *caller) {
			s.ipapiLookup(ctx, c, format)
		}, ipapiRefused)
		patterns := []string{"/" + format, "/" + format + "/{query}"}
		if !bare && format == "json" {
			patterns = patterns[1:]
		}
		for _, pattern := range patterns {
			all = append(all, endpoint.Endpoint{Pattern: pattern, Methods: get, Handle: handle})
		}
	}
	return append(all, endpoint.Endpoint{Pattern: "/batch", Methods: []string{fasthttp.MethodPost},
		Handle: s.keyed(s.ipapiBatch, ipapiRefused)})
}

// ipapiRefused responds to a key that is not known.
func ipapiRefused(ctx *fasthttp.RequestCtx) {
	writeText(ctx, fasthttp.StatusForbidden, "invalid or missing API key: send it as ?key=\n")
}

// ipapiLookup serves GET /json/, /csv/ and /line/, with a query behind or for the caller's address.
func (s *service) ipapiLookup(ctx *fasthttp.RequestCtx, c *caller, format string) {
	query := segment(ctx, "query")
	if query == "" || query == ownQuery {
		query = s.ownAddress(ctx)
	}
	a, err := s.lookup(query, c)
	s.ipapiLimits(ctx, c, err)
	if err != nil && isLimit(err) {
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
		return
	}
	if err != nil && isOpen(err) {
		ctx.SetStatusCode(endpoint.ProblemOf(err).Status)
	}
	mask := ipapiFields(endpoint.View(ctx.QueryArgs().Peek("fields")))
	result := ipapiResult(a, err, query, mask)
	switch format {
	case "json":
		ipapiJSON(ctx, appendObject(nil, result...))
	case "csv":
		writeText(ctx, ctx.Response.StatusCode(), ipapiCSV(result,
			string(ctx.QueryArgs().Peek("header")) == "true"))
		ctx.SetContentType("text/csv; charset=utf-8")
	default:
		writeText(ctx, ctx.Response.StatusCode(), ipapiLine(result))
	}
}

// ownAddress returns the address of the client as text.
func (s *service) ownAddress(ctx *fasthttp.RequestCtx) string {
	if own := s.Caller(ctx); own.IsValid() {
		return own.String()
	}
	return netip.IPv4Unspecified().String() // reserved, as an unknown one is
}

var callback = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$.]{0,127}$`)

// ipapiJSON responds with JSON, or JSONP if the request names a callback.
func ipapiJSON(ctx *fasthttp.RequestCtx, body []byte) {
	name := ctx.QueryArgs().Peek("callback")
	if !callback.Match(name) {
		write(ctx, ctx.Response.StatusCode(), body)
		return
	}
	ctx.SetContentType("text/javascript; charset=utf-8")
	ctx.SetBodyString(string(name) + "(" + string(body) + ");")
}

// textOf returns the value of a member as text, "" if it is not known.
func (m member) textOf() string {
	if text, ok := m.value.(string); ok || m.value == nil {
		return text
	}
	return string(appendValue(nil, m.value))
}

func ipapiLine(result []member) string {
	var b strings.Builder
	for _, m := range result {
		b.WriteString(strings.NewReplacer("\n", " ", "\r", " ").Replace(m.textOf()) + "\n")
	}
	return b.String()
}

func ipapiCSV(result []member, header bool) string {
	var names, values []string
	for _, m := range result {
		text := m.textOf()
		if strings.ContainsAny(text, ",\"\r\n") || strings.HasPrefix(text, " ") {
			text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		}
		names, values = append(names, m.name), append(values, text)
	}
	line := strings.Join(values, ",") + "\n"
	if header {
		return strings.Join(names, ",") + "\n" + line
	}
	return line
}

// ipapiLimits sets X-Rl and X-Ttl, where the caller has a limit.
func (s *service) ipapiLimits(ctx *fasthttp.RequestCtx, c *caller, err *geo.Error) {
	limit, left, wait := s.Lookups.Allowance(c.origin().Caller, time.Now())
	if err != nil && isLimit(err) {
		limit, left, wait = 1, 0, max(wait, err.RetryAfter)
	}
	if limit == 0 {
		return
	}
	ctx.Response.Header.Set("X-Rl", strconv.Itoa(left))
	ctx.Response.Header.Set("X-Ttl", strconv.FormatInt(endpoint.WholeSeconds(wait), 10))
}

// ipapiBatch serves POST /batch. Its Content-Type is not looked at, as there.
func (s *service) ipapiBatch(ctx *fasthttp.RequestCtx, c *caller) {
	var items []json.RawMessage
	if json.Unmarshal(ctx.PostBody(), &items) != nil || items == nil || len(items) > maxIPAPIBatch {
		writeText(ctx, fasthttp.StatusUnprocessableEntity,
			"the body must be a JSON array of at most 100 queries\n")
		return
	}
	fields := string(ctx.QueryArgs().Peek("fields"))
	texts, masks := make([]string, len(items)), make([]uint32, len(items))
	for i, item := range items {
		one := struct {
			Query  string
			Fields json.RawMessage
		}{}
		if json.Unmarshal(item, &one.Query) != nil && json.Unmarshal(item, &one) != nil {
			writeText(ctx, fasthttp.StatusUnprocessableEntity,
				"each element must be a query or an object with query, fields and lang\n")
			return
		}
		texts[i], masks[i] = one.Query, ipapiFields(fields)
		if one.Fields != nil {
			masks[i] = ipapiFields(strings.Trim(string(one.Fields), `"`))
		}
	}
	outcomes := s.lookupAll(texts, c)
	body, limited, worst := []byte{'['}, 0, (*geo.Error)(nil)
	for i := range outcomes {
		if i > 0 {
			body = append(body, ',')
		}
		a, err := read(&outcomes[i], texts[i])
		if err != nil && isLimit(err) {
			limited, worst = limited+1, err
		}
		body = appendObject(body, ipapiResult(a, err, texts[i], masks[i])...)
	}
	s.ipapiLimits(ctx, c, worst)
	if limited > 0 && limited == len(outcomes) {
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
		return
	}
	write(ctx, fasthttp.StatusOK, append(body, ']'))
}
