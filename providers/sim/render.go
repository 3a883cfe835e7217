package sim

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"gatehouse/actors/geo"
)

// append appends the answer's JSON with the selected members to dst.
func (a answer) append(dst []byte, fields Fields, now time.Time) []byte {
	o := object{dst: append(dst, '{'), fields: fields}
	if a.message != "" {
		o.text(FieldStatus, "status", "fail")
		o.text(FieldMessage, "message", a.message)
	} else {
		o.text(FieldStatus, "status", "success")
		o.result(a.addr, now)
	}
	o.text(FieldQuery, "query", a.query)
	return append(o.dst, '}')
}

// object appends the selected members of a JSON object to dst.
type object struct {
	dst    []byte
	fields Fields
}

// result appends the members of a success.
func (o *object) result(addr netip.Addr, now time.Time) {
	h := hashNet(addr)
	at := int(h % uint64(len(places)))
	p := &places[at]
	n := &networks[h>>32%uint64(len(networks))]
	o.text(FieldContinent, "continent", p.continent.name)
	o.text(FieldContinentCode, "continentCode", p.continent.code)
	o.text(FieldCountry, "country", p.country.name)
	o.text(FieldCountryCode, "countryCode", p.country.code)
	o.text(FieldRegion, "region", p.region)
	o.text(FieldRegionName, "regionName", p.name)
	o.text(FieldCity, "city", p.city)
	o.text(FieldDistrict, "district", "")
	o.text(FieldZip, "zip", p.zip)
	o.degrees(FieldLat, "lat", p.lat)
	o.degrees(FieldLon, "lon", p.lon)
	o.text(FieldTimezone, "timezone", p.zone)
	if o.member(FieldOffset, "offset") {
		o.dst = strconv.AppendInt(o.dst, int64(offset(at, now)), 10)
	}
	o.text(FieldCurrency, "currency", p.country.currency)
	o.network(n)
	if o.fields&FieldReverse != 0 {
		o.text(FieldReverse, "reverse", reverse(addr))
	}
	o.flag(FieldMobile, "mobile", n.mobile)
	o.flag(FieldProxy, "proxy", h>>56%16 == 0)
	o.flag(FieldHosting, "hosting", n.hosting)
}

func (o *object) network(n *network) {
	if o.member(FieldISP, "isp") {
		o.dst = append(append(append(o.dst, '"'), n.name...), ` (simulated)"`...)
	}
	o.text(FieldOrg, "org", n.name)
	if o.member(FieldAS, "as") {
		o.dst = strconv.AppendInt(append(o.dst, `"AS`...), int64(n.number), 10)
		o.dst = append(append(append(o.dst, ' '), n.name...), '"')
	}
	o.text(FieldASName, "asname", n.asName)
}

func (o *object) text(bit Fields, name, value string) {
	if o.member(bit, name) {
		o.dst = geo.AppendQuoted(o.dst, value)
	}
}

func (o *object) degrees(bit Fields, name string, value float64) {
	if o.member(bit, name) {
		o.dst = strconv.AppendFloat(o.dst, value, 'f', -1, 64)
	}
}

func (o *object) flag(bit Fields, name string, value bool) {
	if o.member(bit, name) {
		o.dst = strconv.AppendBool(o.dst, value)
	}
}

// member begins a member and returns true if it is selected.
func (o *object) member(bit Fields, name string) bool {
	if o.fields&bit == 0 {
		return false
	}
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(append(append(o.dst, '"'), name...), '"', ':')
	return true
}

// reverse returns the reverse DNS name, such as host-8-8-8-8.example.net.
func reverse(addr netip.Addr) string {
	return "host-" + strings.NewReplacer(".", "-", ":",
		"-").Replace(addr.StringExpanded()) + ".example.net"
}
