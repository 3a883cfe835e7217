// Package compat serves lookups at the paths and in the shapes of other services, so that their
// clients work with another base URL: ip-api.com and ipinfo.io. What the source of a result lacks is
// absent, as it is there. Names are in the language of the source.
package compat

import (
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/httpedge/endpoint"
)

// The services whose shapes there are.
const (
	IPAPI  = "ip-api"
	IPInfo = "ipinfo"
)

// Config configures the endpoints.
type Config struct {
	Services []string // IPAPI, IPInfo or both
	Lookups  *lookup.Service
	Caller   func(*fasthttp.RequestCtx) netip.Addr // the address of a client, or the zero Addr
	// Key returns the address that stands for the caller of a key, the zero Addr without a key, or
	// why the request is refused. Optional: nil = keys are ignored.
	Key func(sent [][]byte) (netip.Addr, error)
}

// chunk is how many queries of a batch are looked up at once, as in a bulk request.
const chunk = 50

// service holds what the handlers share.
type service struct{ Config }

// caller is who sent a request.
type caller struct {
	ctx   *fasthttp.RequestCtx
	keyed netip.Addr // of its key; zero = it has none
	own   func(*fasthttp.RequestCtx) netip.Addr
}

// origin returns where the lookups of the caller come from.
func (c *caller) origin() lookup.Origin {
	o := lookup.Origin{Caller: c.keyed, Trace: endpoint.Trace(c.ctx)}
	if !o.Caller.IsValid() {
		o.Caller = c.own(c.ctx)
	}
	return o
}

// Endpoints returns the endpoints of the services. With both, POST /batch is that of ip-api, and
// /json that of ipinfo; ip-api's /json/ stays.
func Endpoints(c Config) []endpoint.Endpoint {
	s := &service{c}
	var all []endpoint.Endpoint
	hasIPAPI, hasIPInfo := slices.Contains(c.Services, IPAPI), slices.Contains(c.Services, IPInfo)
	if hasIPInfo {
		all = append(all, s.ipinfoEndpoints(!hasIPAPI)...)
	}
	if hasIPAPI {
		all = append(all, s.ipapiEndpoints(!hasIPInfo)...)
	}
	for i := range all {
		all[i].AnyOrigin = true
	}
	return all
}

// handler serves a request of a caller.
type handler func(ctx *fasthttp.RequestCtx, c *caller)

// keyed returns a handler that refuses requests without a valid key by refuse.
func (s *service) keyed(handle handler, refuse fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		endpoint.SetNoStore(&ctx.Response.Header)
		c := &caller{ctx: ctx, own: s.Caller}
		if s.Key != nil {
			var fault error
			if c.keyed, fault = s.Key(keysOf(ctx)); fault != nil {
				refuse(ctx)
				return
			}
		}
		handle(ctx, c)
	}
}

// keysOf returns the distinct keys of a request: in X-Api-Key, ?key=, ?token=, as a bearer token, or
// as the user of HTTP basic.
func keysOf(ctx *fasthttp.RequestCtx) (all [][]byte) {
	add := func(key []byte) {
		if len(key) > 0 && !slices.ContainsFunc(all, func(other []byte) bool {
			return string(other) == string(key)
		}) {
			all = append(all, key)
		}
	}
	h := &ctx.Request.Header
	for _, key := range h.PeekAll("X-Api-Key") {
		add(key)
	}
	for name, value := range ctx.QueryArgs().All() {
		if string(name) == "key" || string(name) == "token" {
			add(value)
		}
	}
	for _, line := range h.PeekAll(fasthttp.HeaderAuthorization) {
		scheme, value, _ := strings.Cut(endpoint.View(line), " ")
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(scheme, "Bearer"):
			add([]byte(value))
		case strings.EqualFold(scheme, "Basic"):
			text, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				text = []byte("?") // no key has this form
			}
			user, _, _ := strings.Cut(string(text), ":")
			add([]byte(user))
		}
	}
	return all
}

// segment returns a part of the path.
func segment(ctx *fasthttp.RequestCtx, name string) string {
	text, _ := ctx.UserValue(name).(string)
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// answer is a result as the other endpoints have it in JSON with details=1.
type answer struct {
	IP       string
	Location struct {
		Continent, Country, CountryCode, RegionName, City, Zip, Timezone, Currency string

		Lat, Lon         float64
		UTCOffsetSeconds int
	}
	Network struct{ ISP, Org, AS, ASName, Reverse string }
	Flags   struct{ Mobile, Proxy, Hosting bool }
	Data    struct {
		RegionCode, ContinentCode, ASDomain string
		ASN                                 uint32
		Source                              geo.Source
		IsVPN, IsTor, IsProxy, IsHosting    *bool
	}
}

// lookup looks up one text for the caller.
func (s *service) lookup(text string, c *caller) (*answer, *geo.Error) {
	outcome := s.Lookups.Lookup(text, c.origin, time.Now())
	return read(&outcome, text)
}

// lookupAll is lookup for several texts. Their outcomes are in their order.
func (s *service) lookupAll(texts []string, c *caller) []geo.Outcome {
	outcomes := make([]geo.Outcome, len(texts))
	for from := 0; from < len(texts); from += chunk {
		to := min(len(texts), from+chunk)
		s.Lookups.LookupAll(texts[from:to], c.origin, time.Now(), outcomes[from:to])
	}
	return outcomes
}

// read returns the answer in an outcome.
func read(o *geo.Outcome, text string) (*answer, *geo.Error) {
	if o.Err != nil {
		return nil, o.Err
	}
	var a answer
	if err := json.Unmarshal(o.AppendDetails(nil, text), &a); err != nil {
		panic(err) // never: this program wrote it
	}
	if a.Data.ContinentCode == "" {
		a.Data.ContinentCode = continentCodes[a.Location.Continent]
	}
	return &a, nil
}

var continentCodes = map[string]string{"Africa": "AF", "Antarctica": "AN", "Asia": "AS",
	"Europe": "EU", "North America": "NA", "Oceania": "OC", "South America": "SA"}

// hasPlace reports whether the coordinates are known.
func (a *answer) hasPlace() bool { return a.Location.Lat != 0 || a.Location.Lon != 0 }

// asNumber returns the number of the autonomous system with "AS" before it, "" if it is not known.
func (a *answer) asNumber() string {
	if a.Data.ASN != 0 {
		return "AS" + strconv.FormatUint(uint64(a.Data.ASN), 10)
	}
	number, _, _ := strings.Cut(a.Network.AS, " ")
	return number
}

// asName returns the name of the organization that runs the autonomous system, "" if it is not known.
func (a *answer) asName() string {
	if _, name, ok := strings.Cut(a.Network.AS, " "); ok {
		return name
	}
	return a.Network.ASName
}

// truth returns a flag. known is false if the source does not say: an online provider and the
// simulator always do.
func (a *answer) truth(flag bool, facts ...*bool) (value, known bool) {
	value, known = flag, flag || a.Data.Source != geo.SourceMMDB
	for _, fact := range facts {
		if fact != nil {
			value, known = value || *fact, true
		}
	}
	return value, known
}

// proxy reports whether the address hides its user, and hosting whether it is one of a data centre.
func (a *answer) proxy() (value, known bool) {
	return a.truth(a.Flags.Proxy, a.Data.IsProxy, a.Data.IsVPN, a.Data.IsTor)
}

func (a *answer) hosting() (value, known bool) {
	return a.truth(a.Flags.Hosting, a.Data.IsHosting)
}

// isBogon reports whether err says that an address is set aside for private or special use.
func isBogon(err *geo.Error) bool {
	return err.Reason == geo.ReasonPrivateRange || err.Reason == geo.ReasonReservedRange
}

// isOpen reports whether err is about the service, not about the query.
func isOpen(err *geo.Error) bool { return err.Code != geo.CodeInvalidQuery }

// isLimit reports whether err is a limit.
func isLimit(err *geo.Error) bool { return err.Code == geo.CodeRateLimited }

// member is a member of a JSON object.
type member struct {
	name  string
	value any // "" and nil are left out
}

// appendObject appends a JSON object with the members in their order. Empty objects stay.
func appendObject(dst []byte, members ...member) []byte {
	dst = append(dst, '{')
	for _, m := range members {
		if m.value == nil || m.value == "" {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(geo.AppendQuoted(dst, m.name), ':')
		dst = appendValue(dst, m.value)
	}
	return append(dst, '}')
}

func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return geo.AppendQuoted(dst, v)
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case bool:
		return strconv.AppendBool(dst, v)
	case json.RawMessage:
		return append(dst, v...)
	}
	panic("compat: a value of another type")
}

// known returns the value if it is known, else nil.
func known[T any](value T, isKnown bool) any {
	if !isKnown {
		return nil
	}
	return value
}

// write responds with JSON.
func write(ctx *fasthttp.RequestCtx, status int, body []byte) {
	endpoint.SetJSON(&ctx.Response.Header)
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
}

// writeText responds with plain text.
func writeText(ctx *fasthttp.RequestCtx, status int, body string) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetStatusCode(status)
	ctx.SetBodyString(body)
}
