package mmdb

import (
	"strconv"
	"time"

	"gatehouse/actors/geo"
)

// record is what is known of an address. Unknown members are zero.
type record struct {
	place   locality
	network network
	built   time.Time // of the oldest file that it was read from
}

// locality is the place of an address.
type locality struct {
	continent, continentCode string
	country, countryCode     string
	region, regionCode       string
	city, zip, timezone      string
	lat, lon                 float64
	radius                   uint32 // around them in kilometers
	geoname                  uint32
	confidence               uint8
	eu                       geo.Truth
	ofRegistry               bool // the country is where the network is registered
}

// network describes an address's network.
type network struct {
	number         uint32 // of the autonomous system
	holder, asName string // of that: who runs it, and its name
	isp, org       string // unknown means the holder
	domain         string
	connection     string

	mobile, proxy, hosting, vpn, tor geo.Truth
}

// merge fills the gaps of r from other.
func (r *record) merge(other *record) {
	r.place.merge(&other.place)
	r.network.merge(&other.network)
}

// merge takes a location as a whole: city and country must come from the same record. Only what
// follows from the country may come from another one.
func (l *locality) merge(other *locality) {
	had, more := l.exactness(), other.exactness()
	switch {
	case more == 0:
		return
	case had == 0:
		*l = *other
		return
	}
	from := *other
	if more > had {
		*l, from = *other, *l
	}
	if l.countryCode != "" && l.countryCode == from.countryCode {
		l.continent = first(l.continent, from.continent)
		l.continentCode = first(l.continentCode, from.continentCode)
		l.country = first(l.country, from.country)
		l.eu = max(l.eu, from.eu)
	}
}

// exactness says which of several locations is taken: the one with the highest, else the first.
func (l *locality) exactness() int {
	switch {
	case l.lat != 0 || l.lon != 0:
		return 4
	case l.ofRegistry:
		return 2
	case l.country != "" || l.countryCode != "" || l.continent != "" || l.continentCode != "":
		return 3
	case *l != (locality{}):
		return 1
	}
	return 0
}

func (n *network) merge(other *network) {
	if n.number == 0 {
		n.number, n.holder, n.asName = other.number, first(other.holder, n.holder),
			first(other.asName, n.asName)
	}
	n.isp = first(n.isp, other.isp)
	n.org = first(n.org, other.org)
	n.domain = first(n.domain, other.domain)
	n.connection = first(n.connection, other.connection)
	n.mobile = max(n.mobile, other.mobile)
	n.proxy = max(n.proxy, other.proxy)
	n.hosting = max(n.hosting, other.hosting)
	n.vpn = max(n.vpn, other.vpn)
	n.tor = max(n.tor, other.tor)
}

// date lets the record be no newer than a file that it was read from.
func (r *record) date(built time.Time) {
	if r.built.IsZero() || built.Before(r.built) {
		r.built = built
	}
}

// result converts the record to a geo.Result at now, without address and prefix.
func (r *record) result(zones *zones, now time.Time) geo.Result {
	l, n := &r.place, &r.network
	return geo.Result{
		Location: geo.Location{
			Continent: l.continent, Country: l.country, CountryCode: l.countryCode,
			RegionName: l.region, City: l.city, Zip: l.zip, Lat: l.lat, Lon: l.lon,
			Timezone: l.timezone, UTCOffsetSeconds: zones.offset(l.timezone, now),
			Currency: currencyOf(l.countryCode),
		},
		Network: geo.Network{
			ISP: first(n.isp, n.holder), Org: first(n.org, n.holder), AS: n.as(), ASName: n.asName,
		},
		Flags: geo.Flags{
			Mobile: n.mobile == geo.Yes, Proxy: n.proxy == geo.Yes, Hosting: n.hosting == geo.Yes,
		},
		Data: geo.Data{
			AccuracyRadiusKm: int(l.radius), ASN: n.number, AsOf: r.built,
			RegionCode: l.regionCode, ContinentCode: l.continentCode, ConnectionType: n.connection,
			ASDomain: n.domain, GeonameID: l.geoname, Confidence: l.confidence, IsEU: l.eu,
			IsVPN: n.vpn, IsTor: n.tor, IsProxy: n.proxy, IsHosting: n.hosting,
		},
	}
}

// as returns the autonomous system's number and name, such as "AS15169 Google LLC".
func (n *network) as() string {
	switch {
	case n.number == 0:
		return ""
	case n.holder == "":
		return "AS" + strconv.FormatUint(uint64(n.number), 10)
	}
	return "AS" + strconv.FormatUint(uint64(n.number), 10) + " " + n.holder
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
