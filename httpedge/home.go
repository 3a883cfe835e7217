package httpedge

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// homeEndpoints returns the endpoint of the page at /. Programs get there what they get where nothing
// is.
func (s *Server) homeEndpoints() []endpoint.Endpoint {
	if !s.homeSignIn() && !s.homeLookups() {
		return nil
	}
	page := s.site.Handle(s.home)
	return []endpoint.Endpoint{{Pattern: pages.PathHome,
		Methods: []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost},
		Handle: func(ctx *fasthttp.RequestCtx) {
			if !prefersPage(ctx) || ctx.IsPost() && !visit.ChoosesLanguage(ctx) {
				endpoint.WriteError(ctx, endpoint.JSON, endpoint.ErrNotFound)
				return
			}
			page(ctx)
		}}}
}

func (s *Server) homeSignIn() bool {
	return s.config.Tokens != nil && slices.Contains([]string{"", "identity", "both"}, s.config.Home)
}

// homeLookups reports whether the page has the form for lookups: those of people have no key.
func (s *Server) homeLookups() bool {
	return s.config.Lookups != nil && !s.config.LookupKeys.Required() &&
		slices.Contains([]string{"", "geo", "both"}, s.config.Home)
}

// home shows the page at /.
func (s *Server) home(v *visit.Visit) {
	page, status := pages.Home{SignIn: s.homeSignIn()}, fasthttp.StatusOK
	if page.SignIn {
		visitors, err := s.site.Visitors(v)
		if err != nil {
			s.site.WriteFailure(v.HTTP, "read sessions", err)
			return
		}
		page.SignedIn = len(visitors) > 0
	}
	if s.homeLookups() {
		page.Lookup = &pages.HomeLookup{}
		status = s.lookUpForPage(v, page.Lookup)
	}
	s.site.WritePage(v.HTTP, status, page)
}

// paramQuery is the parameter of the form, as that of /api/lookup.
const paramQuery = "q"

// lookUpForPage fills in what the page shows of lookups, and returns its status. It uses the service
// as /api/lookup does. The place of the visitor is what is known without a lookup.
func (s *Server) lookUpForPage(v *visit.Visit, page *pages.HomeLookup) int {
	own := s.site.Caller(v)
	if own.IsValid() {
		page.Own = own.String()
		if _, fault := geo.AddrQuery(own); fault == nil {
			page.OwnPlace = s.site.PlaceOf(own)
			page.CanLookUpOwn = page.OwnPlace == ""
		}
	}
	args := v.HTTP.QueryArgs()
	if !args.Has(paramQuery) {
		return fasthttp.StatusOK
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(args.Peek(paramQuery)), "\uFFFD"))
	page.Query = text[:min(len(text), visit.MaxSecretText)]
	from := func() lookup.Origin { return lookup.Origin{Caller: own, Trace: endpoint.Trace(v.HTTP)} }
	outcome := s.config.Lookups.Lookup(text, from, v.Now)
	if outcome.Err == nil {
		page.Rows = resultRows(outcome.AppendJSON(nil, text))
		page.Curl = fmt.Sprintf("curl '%s/api/lookup?q=%s'", s.config.BaseURL, url.QueryEscape(text))
		return fasthttp.StatusOK
	}
	p := endpoint.ProblemOf(outcome.Err)
	endpoint.SetRetryAfter(&v.HTTP.Response.Header, &p)
	page.Problems = pages.Problems{{Field: paramQuery, Text: lookupText(outcome.Err, &p)}}
	return p.Status
}

// lookupText says why a lookup has no result.
func lookupText(err *geo.Error, p *endpoint.Problem) texts.Text {
	switch {
	case err.Code == geo.CodeRateLimited, err.Code == geo.CodeOverloaded:
		return texts.Of("home.busy", "wait", texts.Wait(int(endpoint.WholeSeconds(p.RetryAfter))))
	case err.Code != geo.CodeInvalidQuery:
		return texts.Of("home.failed")
	case err.Reason == geo.ReasonPrivateRange, err.Reason == geo.ReasonReservedRange:
		return texts.Of("home.reserved")
	case err.Reason == geo.ReasonNotFound, err.Reason == geo.ReasonNoLocation:
		return texts.Of("home.unknown")
	}
	return texts.Of("home.malformed")
}

// resultRows returns a result, as /api/lookup has it, for people.
func resultRows(body []byte) (rows []pages.HomeRow) {
	var r struct {
		IP       string
		Location struct {
			Country, RegionName, City, Zip, Timezone, Currency string
			Lat, Lon                                           float64
		}
		Network struct{ ISP, Org, AS, Reverse string }
		Flags   struct{ Mobile, Proxy, Hosting bool }
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil // it is our own
	}
	place := r.Location.Country
	for _, part := range []string{r.Location.RegionName, r.Location.City} {
		switch {
		case part == "" || strings.HasPrefix(place, part+", "):
		case place == "":
			place = part
		default:
			place = part + ", " + place
		}
	}
	var coordinates string
	if r.Location.Lat != 0 || r.Location.Lon != 0 {
		coordinates = fmt.Sprintf("%.4f, %.4f", r.Location.Lat, r.Location.Lon)
	}
	for _, row := range []struct{ key, value string }{
		{"home.ip", r.IP}, {"home.place", place}, {"home.zip", r.Location.Zip},
		{"home.coordinates", coordinates}, {"home.timezone", r.Location.Timezone},
		{"home.currency", r.Location.Currency}, {"home.isp", r.Network.ISP},
		{"home.org", r.Network.Org}, {"home.as", r.Network.AS}, {"home.reverse", r.Network.Reverse},
	} {
		if row.value != "" {
			rows = append(rows, pages.HomeRow{Name: texts.Of(row.key), Value: texts.Literal(row.value)})
		}
	}
	var kinds []texts.Text
	for _, kind := range []struct {
		is  bool
		key string
	}{{r.Flags.Mobile, "home.mobile"}, {r.Flags.Proxy, "home.proxy"}, {r.Flags.Hosting, "home.hosting"}} {
		if kind.is {
			kinds = append(kinds, texts.Of(kind.key))
		}
	}
	if kinds != nil {
		rows = append(rows, pages.HomeRow{Name: texts.Of("home.kind"), Value: texts.List(kinds)})
	}
	return rows
}
