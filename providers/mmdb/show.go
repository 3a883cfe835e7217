package mmdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"gatehouse/actors/geo"
)

const maxShown = 400 // bytes of a record in an error

// jsonOf returns a value of a record as JSON.
func jsonOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// leaf is a value in a record that is neither an object nor an array.
type leaf struct{ path, key, text string }

// leaves appends the leaves of a record.
func leaves(dst []leaf, path, key string, value any) []leaf {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			dst = leaves(dst, strings.TrimPrefix(path+"."+key, "."), key, v[key])
		}
	case []any:
		for i, element := range v {
			dst = leaves(dst, fmt.Sprintf("%s[%d]", path, i), key, element)
		}
	default:
		dst = append(dst, leaf{path, key, fmt.Sprint(v)})
	}
	return dst
}

// hints are parts of keys that suggest a member, the more exact ones first.
var hints = []struct {
	part string
	is   member
}{
	{"lat", memberLat}, {"lon", memberLon}, {"lng", memberLon}, {"city", memberCity},
	{"town", memberCity}, {"zip", memberZip}, {"postal", memberZip}, {"region", memberRegion},
	{"state", memberRegion}, {"continent", memberContinent}, {"country", memberCountry},
	{"land", memberCountry}, {"cc", memberCountryCode}, {"iso", memberCountryCode},
	{"zone", memberTimezone}, {"tz", memberTimezone}, {"asn", memberASN}, {"isp", memberISP},
	{"carrier", memberISP}, {"org", memberOrg}, {"company", memberOrg}, {"domain", memberASDomain},
	{"vpn", memberVPN}, {"tor", memberTor}, {"proxy", memberProxy}, {"hosting", memberHosting},
	{"mobile", memberMobile},
}

// suggestion returns the lines of a mapping to try for a record.
func suggestion(content any) string {
	var lines []string
	var taken [members]bool
	all := leaves(nil, "", "", content)
	for _, l := range all {
		for _, hint := range hints {
			is := hint.is
			if !strings.Contains(strings.ToLower(l.path), hint.part) {
				continue
			}
			if is == memberCountry && len(l.text) == 2 {
				is = memberCountryCode
			}
			if !taken[is] && pathForm.MatchString(l.path) {
				taken[is] = true
				lines = append(lines, fmt.Sprintf("%q", memberNames[is]+": "+l.path))
			}
			break
		}
	}
	if len(lines) == 0 {
		path := "path.to.member"
		if len(all) > 0 && pathForm.MatchString(all[0].path) {
			path = all[0].path
		}
		return fmt.Sprintf("a file with lines such as %q", "country_code: "+path)
	}
	return "a file with the lines " + strings.Join(lines, ", ")
}

// Description is what Describe tells of a file.
type Description struct {
	Type    string
	Built   time.Time
	Version uint     // 4 has IPv4 only, 6 both
	Mapping []string // where the members come from, as lines of a mapping
	Records []Described
}

// Described is a record of a file and what its members became.
type Described struct {
	Prefix  netip.Prefix
	JSON    string
	Members []Member
}

// Member is a member of a record. Value is a JSON value. From is the path in the record; "" = it
// follows from what the record or the file lacks.
type Member struct{ Name, Value, From string }

// Describe reads n records of a file, those with the most members first. Its error is that of Map;
// a file that has nothing that is recognized is described nevertheless.
func (o Options) Describe(path string, n int) (d Description, err error) {
	reader, err := maxminddb.Open(path)
	if err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	f := &file{path: path, reader: reader, layout: compile(o.Mapping, o.Language)}
	unrecognized := f.sample()
	d = Description{Type: strings.Clone(reader.Metadata.DatabaseType),
		Built: reader.Metadata.BuildTime().UTC(), Version: uint(reader.Metadata.IPVersion)}
	tried := 0
	for at := range sampled(reader) {
		one := Described{Prefix: at.Prefix()}
		var content any
		if at.Decode(&content) != nil || f.decode(at, one.describe) != nil {
			continue
		}
		one.JSON = jsonOf(content)
		d.Records = append(d.Records, one)
		if tried++; tried == samples {
			break
		}
	}
	slices.SortStableFunc(d.Records, func(a, b Described) int {
		return len(b.Members) - len(a.Members)
	})
	d.Mapping = mappingOf(d.Records)
	d.Records = d.Records[:min(n, len(d.Records))]
	if unrecognized != nil {
		return d, fmt.Errorf("%s: %w", path, unrecognized)
	}
	return d, nil
}

// mappingOf returns where the members of records come from, in the form of a mapping.
func mappingOf(records []Described) (lines []string) {
	from := map[string][]string{}
	for _, r := range records {
		for _, m := range r.Members {
			if m.From != "" && !slices.Contains(from[m.Name], m.From) {
				from[m.Name] = append(from[m.Name], m.From)
			}
		}
	}
	for _, name := range memberNames {
		if paths := from[name]; paths != nil {
			lines = append(lines, name+": "+strings.Join(paths, ", "))
		}
	}
	return lines
}

// describe sets the members from values.
func (d *Described) describe(v *values) {
	var origins [members]*node
	v.origins = &origins
	var r record
	v.record(&r)
	l, n := &r.place, &r.network
	text := func(s string) string {
		if s == "" {
			return ""
		}
		return jsonOf(s)
	}
	number := func(f float64) string {
		if f == 0 {
			return ""
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	truth := func(t geo.Truth) string { return [...]string{"", "false", "true"}[t] }
	for m, value := range [members]string{
		memberContinent: text(l.continent), memberContinentCode: text(l.continentCode),
		memberCountry: text(l.country), memberCountryCode: text(l.countryCode),
		memberRegion: text(l.region), memberRegionCode: text(l.regionCode),
		memberCity: text(l.city), memberZip: text(l.zip), memberLat: number(l.lat),
		memberLon: number(l.lon), memberTimezone: text(l.timezone),
		memberRadius: number(float64(l.radius)), memberConfidence: number(float64(l.confidence)),
		memberGeoname: number(float64(l.geoname)), memberEU: truth(l.eu),
		memberISP: text(first(n.isp, n.holder)), memberOrg: text(first(n.org, n.holder)),
		memberASN: number(float64(n.number)), memberASName: text(n.asName),
		memberASDomain: text(n.domain), memberConnection: text(n.connection),
		memberMobile: truth(n.mobile), memberProxy: truth(n.proxy), memberHosting: truth(n.hosting),
		memberVPN: truth(n.vpn), memberTor: truth(n.tor),
	} {
		if value == "" {
			continue
		}
		from := origins[m]
		if from == nil && (member(m) == memberISP || member(m) == memberOrg) {
			from = origins[memberASName]
		}
		one := Member{Name: memberNames[m], Value: value}
		if from != nil {
			one.From = from.path
		}
		d.Members = append(d.Members, one)
	}
}
