package geo

import "net/netip"

// Result is what is known of one address (interface document, section 2.1). A value that is not known is the zero
// value.
type Result struct {
	IP       netip.Addr // the address asked about, or the one the domain resolved to; never IPv4-mapped
	Location Location
	Network  Network
	Flags    Flags
}

// Location is where an address is, at best to the level of a city.
type Location struct {
	Continent        string // English name
	Country          string // English name
	CountryCode      string // ISO 3166-1 alpha-2
	RegionName       string
	City             string
	Zip              string
	Lat, Lon         float64 // degrees
	Timezone         string  // IANA zone name
	UTCOffsetSeconds int     // east of UTC, now
	Currency         string  // ISO 4217 code
}

// Network is who announces and uses an address.
type Network struct {
	ISP     string
	Org     string
	AS      string // "AS15169 Google LLC"
	ASName  string
	Reverse string // reverse DNS name, no trailing dot
}

// Flags mark kinds of networks.
type Flags struct {
	Mobile, Proxy, Hosting bool
}
