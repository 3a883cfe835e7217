package sim

import (
	"strconv"
	"strings"
)

// Fields selects the members of an answer. It is a set of the bits of the upstream's parameter
// "fields".
type Fields uint32

// The members and their bits (ip-api.com, "returned data").
const (
	FieldCountry       Fields = 1 << iota // country
	FieldCountryCode                      // countryCode
	FieldRegion                           // region
	FieldRegionName                       // regionName
	FieldCity                             // city
	FieldZip                              // zip
	FieldLat                              // lat
	FieldLon                              // lon
	FieldTimezone                         // timezone
	FieldISP                              // isp
	FieldOrg                              // org
	FieldAS                               // as
	FieldReverse                          // reverse
	FieldQuery                            // query
	FieldStatus                           // status
	FieldMessage                          // message
	FieldMobile                           // mobile
	FieldProxy                            // proxy
	_                                     // not in use
	FieldDistrict                         // district
	FieldContinent                        // continent
	FieldContinentCode                    // continentCode
	FieldASName                           // asname
	FieldCurrency                         // currency
	FieldHosting                          // hosting
	FieldOffset                           // offset
)

// DefaultFields is used without the parameter: the first 16 bits except FieldReverse.
const DefaultFields Fields = 1<<16 - 1 - FieldReverse

// fieldNames holds the members in the order of an answer's JSON.
var fieldNames = []struct {
	bit  Fields
	name string
}{
	{FieldStatus, "status"}, {FieldMessage, "message"},
	{FieldContinent, "continent"}, {FieldContinentCode, "continentCode"},
	{FieldCountry, "country"}, {FieldCountryCode, "countryCode"},
	{FieldRegion, "region"}, {FieldRegionName, "regionName"},
	{FieldCity, "city"}, {FieldDistrict, "district"}, {FieldZip, "zip"},
	{FieldLat, "lat"}, {FieldLon, "lon"}, {FieldTimezone, "timezone"}, {FieldOffset, "offset"},
	{FieldCurrency, "currency"},
	{FieldISP, "isp"}, {FieldOrg, "org"}, {FieldAS, "as"}, {FieldASName, "asname"}, {FieldReverse, "reverse"},
	{FieldMobile, "mobile"}, {FieldProxy, "proxy"}, {FieldHosting, "hosting"},
	{FieldQuery, "query"},
}

// ParseFields parses the parameter "fields": a number, or member names separated by commas. It
// ignores unknown names and bits. If no known one is left, it returns DefaultFields.
func ParseFields(s string) Fields {
	var chosen Fields
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		chosen = Fields(n) & (1<<26 - 1) &^ (1 << 18)
	} else {
		for name := range strings.SplitSeq(s, ",") {
			chosen |= fieldBit(strings.TrimSpace(name))
		}
	}
	if chosen == 0 {
		return DefaultFields
	}
	return chosen
}

func fieldBit(name string) Fields {
	for _, f := range fieldNames {
		if f.name == name {
			return f.bit
		}
	}
	return 0
}
