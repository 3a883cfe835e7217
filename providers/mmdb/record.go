package mmdb

import (
	"strconv"
	"strings"
	"time"

	"gatehouse/actors/geo"
)

// record is a record of a City, Country or Enterprise file. Members that a file lacks stay zero.
type record struct {
	Continent         named   `maxminddb:"continent"`
	Country           named   `maxminddb:"country"`
	RegisteredCountry named   `maxminddb:"registered_country"`
	Subdivisions      []named `maxminddb:"subdivisions"`
	City              named   `maxminddb:"city"`
	Postal            struct {
		Code string `maxminddb:"code"`
	} `maxminddb:"postal"`
	Location struct {
		Latitude  float64 `maxminddb:"latitude"`
		Longitude float64 `maxminddb:"longitude"`
		TimeZone  string  `maxminddb:"time_zone"`
		Radius    uint16  `maxminddb:"accuracy_radius"`
	} `maxminddb:"location"`
	Traits traits `maxminddb:"traits"`

	built time.Time // of the oldest file that it was read from
}

type named struct {
	ISOCode string `maxminddb:"iso_code"`
	Names   struct {
		English string `maxminddb:"en"`
	} `maxminddb:"names"`
}

// traits describe an address's network. They are the whole record of an ASN, ISP, Connection-Type
// or Anonymous-IP file, and a member of an Enterprise record.
type traits struct {
	ASNumber       uint32 `maxminddb:"autonomous_system_number"`
	ASOrganization string `maxminddb:"autonomous_system_organization"`
	ISP            string `maxminddb:"isp"`
	Organization   string `maxminddb:"organization"`
	ConnectionType string `maxminddb:"connection_type"`
	UserType       string `maxminddb:"user_type"`

	AnonymousProxy   bool `maxminddb:"is_anonymous_proxy"`
	AnonymousVPN     bool `maxminddb:"is_anonymous_vpn"`
	PublicProxy      bool `maxminddb:"is_public_proxy"`
	ResidentialProxy bool `maxminddb:"is_residential_proxy"`
	TorExitNode      bool `maxminddb:"is_tor_exit_node"`
	HostingProvider  bool `maxminddb:"is_hosting_provider"`
}

// merge fills the gaps of r from other. It takes a location as a whole: city and country must come
// from the same record.
func (r *record) merge(other *record) {
	if !r.placed() || !r.hasCoordinates() && other.hasCoordinates() {
		kept, built := r.Traits, r.built
		*r = *other
		r.Traits, r.built = kept, built
	}
	r.Traits.merge(&other.Traits)
}

func (r *record) placed() bool {
	return r.hasCoordinates() || r.Continent != named{} || r.Country != named{} ||
		r.RegisteredCountry != named{}
}

func (r *record) hasCoordinates() bool {
	return r.Location.Latitude != 0 || r.Location.Longitude != 0
}

func (t *traits) merge(other *traits) {
	if t.ASNumber == 0 {
		t.ASNumber, t.ASOrganization = other.ASNumber, other.ASOrganization
	}
	t.ISP = first(t.ISP, other.ISP)
	t.Organization = first(t.Organization, other.Organization)
	t.ConnectionType = first(t.ConnectionType, other.ConnectionType)
	t.UserType = first(t.UserType, other.UserType)
	t.AnonymousProxy = t.AnonymousProxy || other.AnonymousProxy
	t.AnonymousVPN = t.AnonymousVPN || other.AnonymousVPN
	t.PublicProxy = t.PublicProxy || other.PublicProxy
	t.ResidentialProxy = t.ResidentialProxy || other.ResidentialProxy
	t.TorExitNode = t.TorExitNode || other.TorExitNode
	t.HostingProvider = t.HostingProvider || other.HostingProvider
}

// date lets the record be no newer than a file that it was read from.
func (r *record) date(built time.Time) {
	if r.built.IsZero() || built.Before(r.built) {
		r.built = built
	}
}

// result converts the record to a geo.Result at now, without address and prefix.
func (r *record) result(zones *zones, now time.Time) geo.Result {
	return geo.Result{
		Location: r.location(zones, now),
		Network:  r.Traits.network(),
		Flags:    r.Traits.flags(),
		Data: geo.Data{
			AccuracyRadiusKm: int(r.Location.Radius), ASN: r.Traits.ASNumber, AsOf: r.built,
		},
	}
}

func (r *record) location(zones *zones, now time.Time) geo.Location {
	country := r.Country
	if country == (named{}) {
		country = r.RegisteredCountry // the only country of anycast and satellite networks
	}
	l := geo.Location{
		Continent:        r.Continent.Names.English,
		Country:          country.Names.English,
		CountryCode:      country.ISOCode,
		City:             r.City.Names.English,
		Zip:              r.Postal.Code,
		Lat:              r.Location.Latitude,
		Lon:              r.Location.Longitude,
		Timezone:         r.Location.TimeZone,
		UTCOffsetSeconds: zones.offset(r.Location.TimeZone, now),
		Currency:         currencyOf(country.ISOCode),
	}
	if len(r.Subdivisions) > 0 {
		l.RegionName = r.Subdivisions[0].Names.English
	}
	return l
}

func (t *traits) network() geo.Network {
	n := geo.Network{
		ISP:    first(t.ISP, t.ASOrganization),
		Org:    first(t.Organization, t.ASOrganization),
		ASName: t.ASOrganization,
	}
	if t.ASNumber != 0 {
		n.AS = strings.TrimSpace("AS" + strconv.FormatUint(uint64(t.ASNumber),
			10) + " " + t.ASOrganization)
	}
	return n
}

// flags converts the traits to geo.Flags. It ignores is_anonymous, which MaxMind also sets for
// every hosting provider.
func (t *traits) flags() geo.Flags {
	return geo.Flags{
		Mobile: strings.EqualFold(t.ConnectionType, "cellular") || t.UserType == "cellular",
		Proxy: t.AnonymousProxy || t.AnonymousVPN || t.PublicProxy ||
			t.ResidentialProxy || t.TorExitNode,
		Hosting: t.HostingProvider || t.UserType == "hosting" ||
			t.UserType == "content_delivery_network",
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
