package geo

import (
	"net/netip"
	"time"
)

// Result is the location, network and flags of one address (interface document, section 2.1).
// Unknown values are zero.
type Result struct {
	IP       netip.Addr // the queried address, or the domain's; never IPv4-mapped
	Location Location
	Network  Network
	Flags    Flags
	Data     Data
}

// Location is the place of an address, at best its city.
type Location struct {
	Continent        string // English name
	Country          string // English name
	CountryCode      string // ISO 3166-1 alpha-2
	RegionName       string
	City             string
	Zip              string
	Lat, Lon         float64 // degrees
	Timezone         string  // IANA zone name
	UTCOffsetSeconds int     // current offset, positive east of UTC
	Currency         string  // ISO 4217 code
}

// Place returns city and country, as far as they are known; "" = neither is.
func (l Location) Place() string {
	switch {
	case l.Country == "":
		return l.City
	case l.City == "":
		return l.Country
	}
	return l.City + ", " + l.Country
}

// Network describes the network that announces and uses an address.
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

// Data says what a provider knows of its answer. Unknown values are zero.
type Data struct {
	Prefix           netip.Prefix // the addresses that the answer holds for
	AccuracyRadiusKm int          // around the coordinates
	ASN              uint32       // number of the autonomous system
	AsOf             time.Time    // when the data was published

	// What only some providers know.
	RegionCode     string // ISO 3166-2 without the country, such as "ENG"
	ContinentCode  string // "AF", "AN", "AS", "EU", "NA", "OC" or "SA"
	ConnectionType string // such as "Cable/DSL"
	ASDomain       string // of who runs the autonomous system, or else the network
	GeonameID      uint32 // number at geonames.org of the most exact place
	Confidence     uint8  // in the most exact place, in percent
	IsEU           Truth  // the country is in the European Union
	IsVPN          Truth
	IsTor          Truth
	IsProxy        Truth // known or not, unlike in Flags
	IsHosting      Truth // likewise
}

// Truth is a fact that may not be known.
type Truth uint8

// The values of a Truth. One that is known overrules Unknown, and Yes overrules No.
const (
	Unknown Truth = iota
	No
	Yes
)
