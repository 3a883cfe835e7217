package bulk

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fastjson"

	"gatehouse/actors/geo"
)

// Format is how rows are written.
type Format string

// The formats of an output.
const (
	CSV    Format = "csv"
	TSV    Format = "tsv"
	NDJSON Format = "ndjson" // one object a line
	JSON   Format = "json"   // one array
)

func (f Format) isJSON() bool { return f == NDJSON || f == JSON }

// hasRows reports whether the output has the rows of an input of a kind.
func (f Format) hasRows(input Kind) bool {
	return input == Commas || input == Tabs || input == Objects && f.isJSON()
}

// Record is what several queries may have in common: a result without its query and address, or an
// error. It is rendered once and immutable.
type Record struct {
	failed  bool
	unknown bool   // failed only because the source has no data about the address
	special bool   // failed because the address is private or reserved
	code    string // of an error
	// text has the members of the JSON object, each with a comma before it, or the fields in the form
	// of the output, one after the other.
	text  []byte
	ends  []uint32 // of the fields in text; those of the Answer are empty
	facts *facts   // nil = not counted
}

// field returns the text of a field.
func (r *Record) field(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = r.ends[i-1]
	}
	return r.text[from:r.ends[i]]
}

// Answer is the answer to a query.
type Answer struct {
	IP     netip.Addr // the zero value with an error
	Record *Record
}

// facts are what a summary counts.
type facts struct {
	country, as            string
	mobile, proxy, hosting bool
	problem                string // code and reason of an error
}

// field is a member of an answer that was asked for.
type field struct {
	name string
	path []string
	own  int                   // how it is found in the Answer; 0 = in the Record
	get  func(*geo.Result) any // a shorter way to it than by JSON; nil = none
}

// Members of an answer that a Record does not have.
const (
	ownQuery = iota + 1
	ownIP
	ownVersion
)

// Plan says which fields of an answer are written, and how.
type Plan struct {
	format  Format
	fields  []field
	whole   bool // a JSON object has all members
	direct  bool // all fields are cells with a shorter way
	details bool // a field is a member that a server adds with details=1
	sourced bool // a field depends on the source, which a server adds with details=1

	Comma byte // another separator of the output than a comma or a semicolon; 0 = none

	// Safe writes a quote before texts that a spreadsheet takes for formulas. It is set before use.
	Safe bool

	summary  *Summary // counts the answers instead of writing rows; nil = rows are written
	failures sync.Map // problem → *Record
}

// details are the members that a server adds with details=1, and a provider may not know.
var details = []string{"prefix", "accuracyRadiusKm", "asn", "source", "asOf",
	"regionCode", "continentCode", "connectionType", "asDomain", "geonameId", "confidence", "isEU",
	"isVPN", "isTor", "isProxy", "isHosting"}

// standard are the fields of CSV and TSV if none are named.
var standard = []string{"country", "countryCode", "regionName", "city", "lat", "lon", "timezone",
	"as", "isp", "mobile", "proxy", "hosting"}

// Plan returns the plan of a run that only counts, in s.
func (s *Summary) Plan() *Plan { return &Plan{format: CSV, summary: s} }

// paths returns where the members of an answer are by their names, and the names of the members of
// each object in it.
func paths() (all map[string][]string, groups map[string][]string) {
	all = map[string][]string{"error": {"error"}, "reason": {"reason"}, "message": {"message"},
		"ok": {"ok"}, "query": {"query"}, "ip": {"ip"}, "ipVersion": {"ipVersion"}}
	groups = map[string][]string{"data": details}
	text := (&geo.Result{}).AppendJSON([]byte(`{"ok":true`))
	object := fastjson.MustParseBytes(text).GetObject()
	object.Visit(func(group []byte, v *fastjson.Value) {
		if members, err := v.Object(); err == nil {
			members.Visit(func(name []byte, _ *fastjson.Value) {
				groups[string(group)] = append(groups[string(group)], string(name))
			})
		}
	})
	for group, names := range groups {
		for _, name := range names {
			all[name] = []string{group, name}
			all[group+"."+name] = all[name]
		}
	}
	all["accuracyRadius"] = all["accuracyRadiusKm"]
	return all, groups
}

// NewPlan returns the plan for fields by name, by path such as data.prefix, or by the name of an
// object, which stands for its members. A name such as country=from writes the field with another
// name. Without names, JSON has the whole answer, and other formats have the standard fields. The
// query comes first if the output lacks the rows of the input.
func NewPlan(format Format, names []string, input Kind) (*Plan, error) {
	p := &Plan{format: format, whole: format.isJSON() && len(names) == 0}
	if len(names) == 0 && !p.whole {
		names = standard
	}
	known, groups := paths()
	var wanted []string
	for _, name := range names {
		name = strings.TrimSpace(name)
		if members, ok := groups[name]; ok {
			wanted = append(wanted, members...)
		} else {
			wanted = append(wanted, name)
		}
	}
	if !p.whole && !format.hasRows(input) && !slices.ContainsFunc(wanted, isQuery) {
		wanted = append([]string{"query"}, wanted...)
	}
	for _, name := range wanted {
		name, renamed, isRenamed := strings.Cut(name, "=")
		name, renamed = strings.TrimSpace(name), strings.TrimSpace(renamed)
		f := field{name: name, path: known[name]}
		if isRenamed {
			f.name = renamed
		}
		switch {
		case f.path == nil:
			return nil, unknownField(name, known, groups)
		case isRenamed && (renamed == "" || renamed == "error" || name == "error"):
			return nil, fmt.Errorf("%q cannot be renamed to %q: error keeps its name, and no other has it",
				name, renamed)
		case name == "error":
			continue // every row has it
		case slices.ContainsFunc(p.fields, func(has field) bool {
			return has.name == f.name && slices.Equal(has.path, f.path)
		}):
			continue
		case slices.ContainsFunc(p.fields, func(has field) bool { return has.name == f.name }):
			return nil, fmt.Errorf("two fields have the name %q", f.name)
		}
		f.own = max(0, slices.Index([]string{"", "query", "ip", "ipVersion"}, name))
		f.get = members[strings.Join(f.path, ".")]
		p.fields = append(p.fields, f)
		p.details = p.details || f.path[0] == "data"
		p.sourced = p.sourced || f.path[0] == "flags"
	}
	p.sourced = p.sourced || p.details || p.whole
	p.direct = !format.isJSON() &&
		!slices.ContainsFunc(p.fields, func(f field) bool { return f.get == nil && f.own == 0 })
	return p, nil
}

// isQuery reports whether a field is the query, perhaps with another name.
func isQuery(field string) bool {
	name, _, _ := strings.Cut(field, "=")
	return strings.TrimSpace(name) == "query"
}

// unknownField returns an error that lists the fields.
func unknownField(name string, known, groups map[string][]string) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return fmt.Errorf("unknown field %q: the fields are %s; and %s for all members of each", name,
		strings.Join(names, ", "), strings.Join(slices.Sorted(maps.Keys(groups)), ", "))
}

// record returns the Record of an object of the HTTP interface.
func (p *Plan) record(v *fastjson.Value) *Record {
	r := &Record{failed: !v.GetBool("ok")}
	if r.failed {
		r.code = cmp.Or(string(v.GetStringBytes("error")), "unknown")
		switch reason := geo.Reason(v.GetStringBytes("reason")); reason {
		case geo.ReasonNoLocation:
			r.code, r.unknown = string(reason), true
			v.Set("error", fastjson.MustParse(`"no_location"`))
		case geo.ReasonPrivateRange, geo.ReasonReservedRange:
			r.special = true
		}
	}
	var buf [1024]byte
	text := buf[:0]
	if !r.failed && p.summary == nil {
		forget(v)
	}
	switch {
	case p.summary != nil:
		r.facts = factsOf(v)
	case p.whole:
		v.GetObject().Visit(func(name []byte, member *fastjson.Value) {
			switch string(name) {
			case "ok", "query", "ip", "ipVersion", "retry_after", "data":
			default:
				text = append(geo.AppendQuoted(append(text, ','), string(name)), ':')
				text = member.MarshalTo(text)
			}
		})
	default:
		r.ends = make([]uint32, len(p.fields))
		for i, f := range p.fields {
			if f.own == 0 {
				text = p.appendValue(text, v.Get(f.path...))
			}
			r.ends[i] = uint32(len(text))
		}
	}
	r.text = bytes.Clone(text)
	return r
}

// failure returns the Record of a problem.
func (p *Plan) failure(e problem) *Record {
	if r, ok := p.failures.Load(e); ok {
		return r.(*Record)
	}
	text := append(e.appendJSON([]byte(`{"ok":false`)), '}')
	r, _ := p.failures.LoadOrStore(e, p.record(fastjson.MustParseBytes(text)))
	return r.(*Record)
}

func factsOf(v *fastjson.Value) *facts {
	return &facts{
		country: string(v.GetStringBytes("location", "countryCode")),
		as:      string(v.GetStringBytes("network", "as")),
		mobile:  v.GetBool("flags", "mobile"), proxy: v.GetBool("flags", "proxy"),
		hosting: v.GetBool("flags", "hosting"),
		problem: strings.TrimSpace(string(v.GetStringBytes("error")) + " " +
			string(v.GetStringBytes("reason"))),
	}
}

// appendValue appends a value as a cell or as JSON.
func (p *Plan) appendValue(dst []byte, v *fastjson.Value) []byte {
	if p.format.isJSON() {
		if v == nil {
			return append(dst, "null"...)
		}
		return v.MarshalTo(dst)
	}
	switch {
	case v == nil || v.Type() == fastjson.TypeNull:
		return dst
	case v.Type() == fastjson.TypeString:
		return p.appendCell(dst, view(v.GetStringBytes()))
	}
	return p.appendCell(dst, view(v.MarshalTo(nil)))
}

// appendCell appends a cell of CSV or TSV.
func (p *Plan) appendCell(dst []byte, s string) []byte {
	if p.Safe && isFormula(s) {
		s = "'" + s
	}
	if p.format == TSV {
		for i := range len(s) {
			if s[i] == '\t' || s[i] == '\n' || s[i] == '\r' {
				dst = append(dst, ' ')
			} else {
				dst = append(dst, s[i])
			}
		}
		return dst
	}
	if !needsQuotes(s) && (p.Comma == 0 || strings.IndexByte(s, p.Comma) < 0) {
		return append(dst, s...)
	}
	return appendQuotedCell(dst, s)
}

// isFormula reports whether a spreadsheet takes a text for a formula. A number is none.
func isFormula(s string) bool {
	if s == "" || strings.IndexByte("=+-@\t\r", s[0]) < 0 {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}

// appendQuotedCell appends a quoted cell of CSV.
func appendQuotedCell(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

func needsQuotes(s string) bool {
	for i := range len(s) {
		if c := s[i]; c == ',' || c == ';' || c == '"' || c == '\n' || c == '\r' {
			return true
		}
	}
	return strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ")
}

// appendCells appends a cell for each field and one for the error, each with a comma before it.
func (p *Plan) appendCells(dst []byte, comma byte, query []byte, a Answer) []byte {
	for i := range p.fields {
		dst = append(dst, comma)
		switch f := &p.fields[i]; f.own {
		case ownQuery:
			dst = p.appendCell(dst, view(query))
		case ownIP:
			if a.IP.IsValid() {
				dst = a.IP.AppendTo(dst)
			}
		case ownVersion:
			dst = append(dst, version(a.IP)...)
		default:
			dst = append(dst, a.Record.field(i)...)
		}
	}
	dst = append(dst, comma)
	return p.appendCell(dst, a.Record.code)
}

// appendObject appends the answer as a JSON object.
func (p *Plan) appendObject(dst, query []byte, a Answer) []byte {
	if p.whole {
		if a.Record.failed {
			dst = append(dst, `{"ok":false,"query":`...)
		} else {
			dst = append(dst, `{"ok":true,"query":`...)
		}
		dst = geo.AppendQuoted(dst, view(query))
		if !a.Record.failed {
			dst = append(append(dst, `,"ip":"`...), a.IP.String()...)
			dst = append(append(append(dst, `","ipVersion":"`...), version(a.IP)...), '"')
		}
		return append(append(dst, a.Record.text...), '}')
	}
	dst = append(dst, '{')
	for i := range p.fields {
		f := &p.fields[i]
		dst = append(geo.AppendQuoted(dst, f.name), ':')
		switch f.own {
		case ownQuery:
			dst = geo.AppendQuoted(dst, view(query))
		case ownIP:
			dst = appendTextOrNull(dst, ipText(a.IP))
		case ownVersion:
			dst = appendTextOrNull(dst, version(a.IP))
		default:
			dst = append(dst, a.Record.field(i)...)
		}
		dst = append(dst, ',')
	}
	if a.Record.failed {
		dst = geo.AppendQuoted(append(dst, `"error":`...), a.Record.code)
		return append(dst, '}')
	}
	return append(bytes.TrimSuffix(dst, []byte{','}), '}')
}

func appendTextOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return geo.AppendQuoted(dst, s)
}

func ipText(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

func version(ip netip.Addr) string {
	switch {
	case ip.Is4():
		return "IPv4"
	case ip.Is6():
		return "IPv6"
	}
	return ""
}
