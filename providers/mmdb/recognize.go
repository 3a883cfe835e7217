package mmdb

import (
	"math"
	"strings"

	"gatehouse/actors/geo"
)

// member is a member of a record that a mapping can name.
type member int

const (
	memberContinent member = iota
	memberContinentCode
	memberCountry
	memberCountryCode
	memberRegion
	memberRegionCode
	memberCity
	memberZip
	memberLat
	memberLon
	memberTimezone
	memberRadius
	memberConfidence
	memberGeoname
	memberEU
	memberISP
	memberOrg
	memberASN
	memberASName
	memberASDomain
	memberConnection
	memberMobile
	memberProxy
	memberHosting
	memberVPN
	memberTor
	members
)

// record sets r, which is empty, to what the values mean. Each member is recognized by its own keys, so that a record
// may mix layouts.
func (v *values) record(r *record) {
	mapped := v.layout.mapping != nil
	if mapped || v.there.meets(&placeSlots) {
		v.locate(&r.place)
	}
	if mapped || v.there.meets(&networkSlots) {
		v.connect(&r.network)
	}
	if mapped || v.shape.saysNo || v.there.meets(&flagSlots) {
		v.flag(&r.network)
	}
}

// The slots that members of a kind depend on.
var (
	placeSlots   = slotsFrom(nestedContinentCode, accuracyRadius)
	networkSlots = slotsFrom(autonomousNumber, carrierName, proxyType, datacenter)
	flagSlots    = slotsFrom(isAnonymous, anonymizer, connectionType, userType, carrierCode)
)

// has reports whether the record has one of the slots, maybe empty.
func (v *values) has(some ...slot) bool {
	for _, s := range some {
		if v.there.has(s) {
			return true
		}
	}
	return false
}

// pick returns the value of a member: what the mapping says, or the first of the slots that is not
// empty.
func (v *values) pick(m member, from ...slot) *value {
	if l := v.layout; l.mapping != nil && l.mapping.names[m] {
		for _, i := range l.mapped[m] {
			if x := &v.mapped[i]; !x.isEmpty() {
				return v.note(m, x)
			}
		}
		if len(l.mapped[m]) == 0 {
			return &unknown
		}
	}
	for _, s := range from {
		if v.full.has(s) {
			return v.note(m, &v.known[s])
		}
	}
	return &unknown
}

// at returns the value of a slot.
func (v *values) at(s slot) *value {
	if v.there.has(s) {
		return &v.known[s]
	}
	return &unknown
}

var unknown value

// note keeps where a member comes from, if somebody wants to know.
func (v *values) note(m member, x *value) *value {
	if v.origins != nil {
		v.origins[m] = v.layout.nodes[x.at]
	}
	return x
}

func (v *values) locate(l *locality) {
	v.locateCountry(l)
	l.region = v.regionName()
	l.regionCode = v.regionCode()
	l.city = v.pick(memberCity, nestedCityLocal, nestedCityName, flatCity).string()
	l.zip = v.pick(memberZip, postalCode).string()
	l.timezone = v.pick(memberTimezone, timeZone).string()
	lat, okLat := v.pick(memberLat, latitude).float()
	lon, okLon := v.pick(memberLon, longitude).float()
	if (okLat || okLon) && math.Abs(lat) <= 90 && math.Abs(lon) <= 180 {
		l.lat, l.lon = lat, lon
	}
	l.radius = v.pick(memberRadius, accuracyRadius).uint(math.MaxUint16)
	l.confidence = uint8(v.pick(memberConfidence, cityConfidence, subdivisionConfidence,
		countryConfidence).uint(100))
	l.geoname = v.pick(memberGeoname, flatGeoname, cityGeoname, subdivisionGeoname, countryGeoname,
		registeredGeoname).uint(math.MaxUint32)
}

func (v *values) locateCountry(l *locality) {
	name, code := flatCountryName, flatCountryCode
	switch v.bareCountry() {
	case nameOfAddress:
		if !v.full.has(name) {
			name = flatCountry
		}
	case codeOfRegistry:
		l.ofRegistry = !v.isMapped(memberCountryCode)
		code = flatCountry
	case codeOfAddress:
		code = flatCountry
	}
	if v.seatOfHolder() {
		code = noSlot
	}
	// The only country of anycast and satellite networks is the registered one.
	l.countryCode = v.pick(memberCountryCode, nestedCountryCode, registeredCode, code).string()
	switch {
	case strings.EqualFold(l.countryCode, "ZZ"): // of blocks that nobody has
		l.countryCode = ""
	case len(l.countryCode) == 2:
		l.countryCode = strings.ToUpper(l.countryCode)
	}
	l.country = v.pick(memberCountry, nestedCountryLocal, nestedCountryName, registeredLocal,
		registeredName, name).string()

	name, code = flatContinentName, flatContinentCode
	if bare := v.at(flatContinent).text; !v.has(flatContinentCode) && isContinent(bare) {
		code = flatContinent
	} else if !v.has(flatContinentName) {
		name = flatContinent
	}
	l.continentCode = v.pick(memberContinentCode, nestedContinentCode, code).string()
	if l.continentCode == "ZZ" {
		l.continentCode = ""
	}
	l.continent = v.pick(memberContinent, nestedContinentLocal, nestedContinentName, name).string()

	l.eu = v.pick(memberEU, nestedEU, flatEU).truth(geo.Unknown)
	if l.eu == geo.Unknown && v.full.has(nestedCountryCode) && v.has(countryGeoname) && !v.isMapped(memberEU) {
		l.eu = geo.No // GeoIP2 writes only true; clones without numbers of places write nothing
	}
}

// isMapped reports whether a mapping says where a member is.
func (v *values) isMapped(m member) bool {
	return v.layout.mapping != nil && v.layout.mapping.names[m]
}

func isContinent(code string) bool {
	switch code {
	case "AF", "AN", "AS", "EU", "NA", "OC", "SA":
		return true
	}
	return false
}

// bareMeaning is what the key "country" means in a record.
type bareMeaning int

const (
	nothing bareMeaning = iota
	nameOfAddress
	codeOfAddress
	codeOfRegistry
)

// bareCountry returns what the key "country" means: with a country_code it is a name, with a
// country_name a code. With neither, the other records of the file tell, and then its length.
func (v *values) bareCountry() bareMeaning {
	bare := v.at(flatCountry)
	code := v.has(flatCountryCode)
	if !code && !v.has(flatCountryName) {
		code = v.shape.seen[flatCountryCode] && !v.shape.seen[flatCountryName]
	}
	switch {
	case bare.isEmpty():
		return nothing
	case code || len(bare.text) != 2:
		return nameOfAddress
	case v.has(flatCountryName):
		return codeOfAddress
	case v.has(flatName) && !v.isPlace():
		return nothing // of a company, a carrier or an autonomous system
	case v.has(flatASN) && v.has(flatOrg, flatDescription) && !v.isPlace():
		return codeOfRegistry
	}
	return codeOfAddress
}

// seatOfHolder reports whether the key "country_code" is where an autonomous system is registered.
func (v *values) seatOfHolder() bool {
	return v.has(flatASN) && v.has(flatName, flatOrg) && !v.isPlace() &&
		!v.has(flatCountry, flatCountryName, flatContinentCode, flatContinent)
}

// isPlace reports whether a flat record has more of a place than a country.
func (v *values) isPlace() bool { return v.has(flatCity, flatRegion, flatRegionName, latitude) }

// regionName and regionCode know that "region" is a code beside "region_name", else a name.
func (v *values) regionName() string {
	bare := flatRegion
	if v.has(flatRegionName) {
		bare = flatRegionName
	}
	return v.pick(memberRegion, subdivisionLocal, subdivisionName, bare).string()
}

func (v *values) regionCode() string {
	code := flatRegionCode
	if v.has(flatRegionName) && !v.has(flatRegionCode) {
		code = flatRegion
	}
	return v.pick(memberRegionCode, subdivisionCode, code).string()
}

// connect sets the network. Who holds an autonomous system has the keys "name", "org" and others
// only beside "asn": elsewhere they are anybody's.
func (v *values) connect(n *network) {
	n.number = v.pick(memberASN, autonomousNumber, flatASN).system()
	n.connection = v.pick(memberConnection, connectionType).string()
	switch {
	case v.has(flatASN):
		n.domain = v.pick(memberASDomain, flatASDomain, flatDomain, traitsDomain).string()
		n.holder = v.pick(memberASName, autonomousName, flatASName, asOrganization, flatOrg,
			flatDescription, flatAS, flatName, asInfo).string()
	case v.has(flatOrg, datacenter, proxyType):
		n.domain = v.pick(memberASDomain, flatASDomain, flatDomain, traitsDomain).string()
		fallthrough
	default:
		n.domain = first(n.domain, v.pick(memberASDomain, flatASDomain, traitsDomain).string())
		n.holder = v.pick(memberASName, autonomousName, flatASName).string()
	}
	n.asName = n.holder
	isp, org := noSlot, noSlot
	switch name := v.at(flatName).string(); {
	case name == "":
	case v.has(flatASN) && v.has(flatASName): // a file of companies
		org = flatName
	case v.has(flatASN) && !v.isMapped(memberASName):
		n.asName = name
	case v.has(carrierCode):
		isp = flatName
	}
	n.isp = v.pick(memberISP, traitsISP, carrierName, isp, flatOrg).string()
	if v.has(proxyType) {
		org = traitsISP
	}
	n.org = v.pick(memberOrg, traitsOrganization, flatOrg, org).string()
}

// flag sets the flags. It ignores is_anonymous, which MaxMind also sets for every hosting provider.
func (v *values) flag(n *network) {
	n.mobile = v.anyOf(memberMobile, geo.Unknown, mobileFlag)
	n.proxy = v.anyOf(memberProxy, v.shape.absent.proxy, anonymousProxy, anonymousVPN, publicProxy,
		residentialProxy, torExitNode, proxyFlag, vpnFlag, torFlag, relayFlag)
	n.hosting = v.anyOf(memberHosting, v.shape.absent.hosting, hostingProvider, hostingFlag)
	n.vpn = v.anyOf(memberVPN, v.shape.absent.vpn, anonymousVPN, vpnFlag)
	n.tor = v.anyOf(memberTor, v.shape.absent.tor, torExitNode, torFlag)

	v.decide(memberMobile, &n.mobile, connectionType, "cellular")
	v.decide(memberMobile, &n.mobile, userType, "cellular")
	v.decide(memberMobile, &n.mobile, usageType, "mob", "isp/mob")
	v.decide(memberHosting, &n.hosting, userType, "hosting", "content_delivery_network")
	v.decide(memberHosting, &n.hosting, usageType, "dch", "cdn")
	v.decide(memberProxy, &n.proxy, proxyType, "vpn", "tor", "pub", "web", "res", "cpn", "epn")
	v.decide(memberVPN, &n.vpn, proxyType, "vpn")
	v.decide(memberTor, &n.tor, proxyType, "tor")

	v.listed(memberMobile, &n.mobile, carrierCode)
	v.listed(memberHosting, &n.hosting, datacenter)
	v.listed(memberVPN, &n.vpn, vpnService)
	v.listed(memberProxy, &n.proxy, vpnService)
	if v.shape.listsProxies {
		v.listed(memberProxy, &n.proxy, anonymizer)
	}
}

// anyOf returns Yes if a slot says so, else No if one says that. Without any it returns absent.
func (v *values) anyOf(m member, absent geo.Truth, from ...slot) geo.Truth {
	empty := geo.Unknown
	if v.shape.aboutFlags {
		empty = geo.No
	}
	if v.isMapped(m) {
		if x := v.pick(m); x != &unknown || len(v.layout.mapped[m]) == 0 {
			return x.truth(empty)
		}
	}
	result := absent
	for _, s := range from {
		if !v.there.has(s) {
			continue
		}
		if got := v.known[s].truth(empty); got > result {
			result = got
			v.note(m, &v.known[s])
		}
	}
	return result
}

// decide lets a text that is not empty decide a flag that is not Yes.
func (v *values) decide(m member, flag *geo.Truth, by slot, yes ...string) {
	if !v.full.has(by) || *flag == geo.Yes || v.isMapped(m) {
		return
	}
	x := &v.known[by]
	if *flag == geo.Unknown {
		*flag = geo.No
	}
	for _, text := range yes {
		if strings.EqualFold(x.text, text) {
			*flag = geo.Yes
		}
	}
	v.note(m, x)
}

// listed sets a flag if the record has a slot at all: who is in such a file is listed.
func (v *values) listed(m member, flag *geo.Truth, by slot) {
	if v.there.has(by) && *flag == geo.Unknown && !v.isMapped(m) {
		*flag = geo.Yes
		v.note(m, &v.known[by])
	}
}
