package compat

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/httpedge/endpoint"
)

// maxIPInfoBatch is how many elements a batch of ipinfo holds.
const maxIPInfoBatch = 1000

// family is one of the shapes of ipinfo.
type family struct {
	members func(*answer) []member
	fields  []string // that can be asked for alone; nil = none
	lite    bool     // its errors are those of the Lite API
}

var (
	classic = &family{members: classicMembers, fields: []string{"ip", "hostname", "city", "region",
		"country", "loc", "postal", "timezone", "org"}}
	lite = &family{members: liteMembers, lite: true, fields: []string{"ip", "asn", "as_name",
		"as_domain", "country_code", "country", "continent_code", "continent"}}
	core = &family{members: coreMembers, lite: true}
)

func classicMembers(a *answer) []member {
	l := &a.Location
	return []member{{"ip", a.IP}, {"hostname", a.Network.Reverse}, {"city", l.City},
		{"region", l.RegionName}, {"country", l.CountryCode}, {"loc", known(degrees(l.Lat)+","+
			degrees(l.Lon), a.hasPlace())}, {"org", a.Network.AS}, {"postal", l.Zip},
		{"timezone", l.Timezone}}
}

func degrees(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

func liteMembers(a *answer) []member {
	return []member{{"ip", a.IP}, {"asn", a.asNumber()}, {"as_name", a.asName()},
		{"as_domain", a.Data.ASDomain}, {"country_code", a.Location.CountryCode},
		{"country", a.Location.Country}, {"continent_code", a.Data.ContinentCode},
		{"continent", a.Location.Continent}}
}

func coreMembers(a *answer) []member {
	l := &a.Location
	place := appendObject(nil, member{"city", l.City}, member{"region", l.RegionName},
		member{"region_code", a.Data.RegionCode}, member{"country", l.Country},
		member{"country_code", l.CountryCode}, member{"continent", l.Continent},
		member{"continent_code", a.Data.ContinentCode},
		member{"latitude", known(l.Lat, a.hasPlace())},
		member{"longitude", known(l.Lon, a.hasPlace())},
		member{"timezone", l.Timezone}, member{"postal_code", l.Zip})
	system := appendObject(nil, member{"asn", a.asNumber()}, member{"name", a.asName()},
		member{"domain", a.Data.ASDomain})
	return []member{{"ip", a.IP}, {"hostname", a.Network.Reverse}, {"geo", object(place)},
		{"as", object(system)}, {"is_anonymous", known(a.proxy())},
		{"is_hosting", known(a.hosting())}, {"is_mobile", known(a.truth(a.Flags.Mobile))}}
}

// object returns the value of a member, or nil if the object is empty.
func object(text []byte) any {
	if len(text) == len("{}") {
		return nil
	}
	return json.RawMessage(text)
}

// ipinfoEndpoints returns the endpoints of ipinfo. batch = POST /batch is among them.
func (s *service) ipinfoEndpoints(batch bool) []endpoint.Endpoint {
	get := []string{fasthttp.MethodGet, fasthttp.MethodHead}
	var all []endpoint.Endpoint
	add := func(pattern string, methods []string, f *family, handle handler) {
		all = append(all, endpoint.Endpoint{Pattern: pattern, Methods: methods,
			Handle: s.keyed(handle, f.refused)})
	}
	own := func(f *family) handler {
		return func(ctx *fasthttp.RequestCtx, c *caller) {
			s.ipinfoLookup(ctx, c, f, s.ownAddress(ctx), segment(ctx, "field"))
		}
	}
	given := func(f *family) handler {
		return func(ctx *fasthttp.RequestCtx, c *caller) {
			s.ipinfoLookup(ctx, c, f, segment(ctx, "ip"), segment(ctx, "field"))
		}
	}
	add("/", get, classic, own(classic))
	add("/json", get, classic, own(classic))
	add("/{ip}", get, classic, func(ctx *fasthttp.RequestCtx, c *caller) {
		if field := segment(ctx, "ip"); slices.Contains(classic.fields, field) {
			s.ipinfoLookup(ctx, c, classic, s.ownAddress(ctx), field)
			return
		}
		given(classic)(ctx, c)
	})
	add("/{ip}/{field}", get, classic, given(classic))
	for _, f := range []struct {
		path string
		*family
	}{{"/lite", lite}, {"/lookup", core}} {
		add(f.path+"/me", get, f.family, own(f.family))
		add(f.path+"/{ip}", get, f.family, given(f.family))
		add(f.path+"/{ip}/{field}", get, f.family, given(f.family))
	}
	add("/lite/me/{field}", get, lite, own(lite))
	all = append(all, endpoint.Endpoint{Pattern: "/me", Methods: get, Handle: s.allowance})
	if batch {
		add("/batch", []string{fasthttp.MethodPost}, classic, s.ipinfoBatch)
	}
	return all
}

// ipinfoLookup responds with the location of an address, or with one field of it as text.
func (s *service) ipinfoLookup(ctx *fasthttp.RequestCtx, c *caller, f *family, ip, field string) {
	if field == "json" && !f.lite {
		field = ""
	}
	if _, err := netip.ParseAddr(ip); err != nil {
		f.wrongAddress(ctx)
		return
	}
	if field != "" && !slices.Contains(f.fields, field) {
		f.wrongField(ctx, field)
		return
	}
	a, err := s.lookup(ip, c)
	members, fault := f.result(a, err, ip)
	if fault != nil {
		f.failed(ctx, fault)
		return
	}
	if field == "" {
		write(ctx, fasthttp.StatusOK, appendObject(nil, members...))
		return
	}
	text := ""
	for _, m := range members {
		if m.name == field {
			text = m.textOf()
		}
	}
	writeText(ctx, fasthttp.StatusOK, text+"\n")
}

// result returns the members of a result. A failure of the service is an error; an address without
// a location has its own member alone.
func (f *family) result(a *answer, err *geo.Error, ip string) ([]member, *geo.Error) {
	switch {
	case err == nil:
		return f.members(a), nil
	case isOpen(err):
		return nil, err
	case isBogon(err):
		return []member{{"ip", ip}, {"bogon", true}}, nil
	}
	return []member{{"ip", ip}}, nil
}

// problem responds with an error: in the classic shape, or in the one of Lite.
func (f *family) problem(ctx *fasthttp.RequestCtx, status int, title, message string) {
	inner := appendObject(nil, member{"title", title}, member{"message", message})
	if f.lite {
		inner = appendObject(nil, member{"status", status}, member{"error", json.RawMessage(inner)})
	}
	write(ctx, status, inner)
}

func (f *family) refused(ctx *fasthttp.RequestCtx) {
	f.problem(ctx, fasthttp.StatusForbidden, "Unknown token",
		"Please ensure you've entered your token correctly.")
}

func (f *family) wrongAddress(ctx *fasthttp.RequestCtx) {
	const message = "Please provide a valid IP address"
	if f.lite {
		write(ctx, fasthttp.StatusBadRequest, appendObject(nil, member{"error", message}))
		return
	}
	inner := appendObject(nil, member{"title", "Wrong ip"}, member{"message", message})
	write(ctx, fasthttp.StatusNotFound, appendObject(nil, member{"status",
		fasthttp.StatusNotFound}, member{"error", json.RawMessage(inner)}))
}

func (f *family) wrongField(ctx *fasthttp.RequestCtx, field string) {
	if f.lite {
		write(ctx, fasthttp.StatusNotFound, appendObject(nil, member{"error",
			field + " is not a valid field."}))
		return
	}
	f.problem(ctx, fasthttp.StatusBadRequest, "Wrong module or field type",
		"Use one of "+strings.Join(f.fields, ", ")+".")
}

// failed responds to a failure of the service.
func (f *family) failed(ctx *fasthttp.RequestCtx, err *geo.Error) {
	p := endpoint.ProblemOf(err)
	endpoint.SetRetryAfter(&ctx.Response.Header, &p)
	if isLimit(err) {
		f.problem(ctx, fasthttp.StatusTooManyRequests, "Rate limit exceeded", p.Message)
		return
	}
	f.problem(ctx, p.Status, "Service unavailable", p.Message)
}

// allowance serves /me: the limits of the token.
func (s *service) allowance(ctx *fasthttp.RequestCtx) {
	endpoint.SetNoStore(&ctx.Response.Header)
	sent := keysOf(ctx)
	c := &caller{ctx: ctx, own: s.Caller}
	var fault error
	if s.Key != nil {
		c.keyed, fault = s.Key(sent)
	}
	if fault != nil || !c.keyed.IsValid() {
		token := ""
		if len(sent) > 0 {
			token = string(sent[0])
		}
		write(ctx, fasthttp.StatusBadRequest, appendObject(nil,
			member{"error", "Invalid API token"}, member{"token", token}))
		return
	}
	limit, left, wait := s.Lookups.Allowance(c.origin().Caller, time.Now())
	requests := any(nil)
	if limit > 0 {
		requests = json.RawMessage(appendObject(nil, member{"minute", limit - left},
			member{"limit", limit}, member{"remaining", left},
			member{"resets_in", int(endpoint.WholeSeconds(wait))}))
	}
	write(ctx, fasthttp.StatusOK, appendObject(nil, member{"token", string(sent[0])},
		member{"requests", requests}))
}

// ipinfoBatch serves POST /batch: an object with a result for each element, an address or one with
// a field.
func (s *service) ipinfoBatch(ctx *fasthttp.RequestCtx, c *caller) {
	var elements []string
	if json.Unmarshal(ctx.PostBody(), &elements) != nil || len(elements) > maxIPInfoBatch {
		classic.problem(ctx, fasthttp.StatusBadRequest, "Invalid batch",
			"Send a JSON array of at most 1000 addresses.")
		return
	}
	slices.Sort(elements)
	elements = slices.Compact(elements)
	texts, fields := make([]string, len(elements)), make([]string, len(elements))
	for i, element := range elements {
		texts[i], fields[i], _ = strings.Cut(element, "/")
		if _, err := netip.ParseAddr(texts[i]); err != nil {
			texts[i] = "" // an empty query is looked up nowhere
		}
	}
	outcomes := s.lookupAll(texts, c)
	filter := string(ctx.QueryArgs().Peek("filter")) == "1"
	var all []member
	limited := 0
	for i, element := range elements {
		a, err := read(&outcomes[i], texts[i])
		if err != nil && isLimit(err) {
			limited++
		}
		value := batchValue(a, err, texts[i], fields[i])
		if filter && value == "" {
			continue
		}
		if text, ok := value.(string); ok {
			value = json.RawMessage(geo.AppendQuoted(nil, text))
		}
		all = append(all, member{element, value})
	}
	if limited > 0 && limited == len(elements) {
		classic.failed(ctx, outcomes[0].Err)
		return
	}
	write(ctx, fasthttp.StatusOK, appendObject(nil, all...))
}

// batchValue returns the value of an element of a batch: an object, or the text of a field.
func batchValue(a *answer, err *geo.Error, ip, field string) any {
	problem := func(title, message string) any {
		inner := appendObject(nil, member{"title", title}, member{"message", message})
		return json.RawMessage(appendObject(nil, member{"error", json.RawMessage(inner)}))
	}
	members, fault := classic.result(a, err, ip)
	switch {
	case ip == "":
		return problem("Wrong ip", "Please provide a valid IP address")
	case fault != nil && isLimit(fault):
		return problem("Rate limit exceeded", endpoint.ProblemOf(fault).Message)
	case fault != nil:
		return problem("Service unavailable", endpoint.ProblemOf(fault).Message)
	case field == "" || field == "json":
		return json.RawMessage(appendObject(nil, members...))
	case !slices.Contains(classic.fields, field):
		return problem("Wrong module or field type", "Use one of "+
			strings.Join(classic.fields, ", ")+".")
	}
	for _, m := range members {
		if m.name == field {
			return m.textOf()
		}
	}
	return ""
}
