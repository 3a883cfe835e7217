package mmdb

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// slot is a value that records of any known layout may have.
type slot uint8

const (
	noSlot slot = iota

	// Nested places, as in GeoIP2 and its clones. A name is followed by the one in the language.
	nestedContinentCode
	nestedContinentName
	nestedContinentLocal
	nestedCountryCode
	nestedCountryName
	nestedCountryLocal
	registeredCode
	registeredName
	registeredLocal
	subdivisionCode
	subdivisionName
	subdivisionLocal
	nestedCityName
	nestedCityLocal
	nestedEU
	cityGeoname
	subdivisionGeoname
	countryGeoname
	registeredGeoname
	cityConfidence
	subdivisionConfidence
	countryConfidence

	// Flat places. What flatContinent, flatCountry and flatRegion mean depends on the other keys.
	flatContinent
	flatContinentCode
	flatContinentName
	flatCountry
	flatCountryCode
	flatCountryName
	flatRegion
	flatRegionCode
	flatRegionName
	flatCity
	flatGeoname
	flatEU

	// Places of both kinds.
	postalCode
	latitude
	longitude
	timeZone
	accuracyRadius

	// Networks.
	autonomousNumber
	autonomousName
	traitsISP
	traitsOrganization
	traitsDomain
	connectionType
	userType
	flatASN
	flatASName
	flatASDomain
	flatName // of the network, a company or a carrier
	flatDomain
	flatOrg
	flatDescription
	flatAS
	asOrganization // an object with the seat of a company
	asInfo
	carrierCode
	carrierName

	// Flags.
	isAnonymous
	anonymousVPN
	anonymousProxy
	publicProxy
	residentialProxy
	torExitNode
	hostingProvider
	vpnFlag
	torFlag
	proxyFlag
	relayFlag
	hostingFlag
	mobileFlag

	// Members of records that tell by being there.
	proxyType
	usageType
	datacenter
	vpnService
	anonymizer

	slots
)

// slotPaths are where records have the slots; in each record the first that is not empty counts.
var slotPaths = [slots][]string{
	nestedContinentCode:   {"continent.code"},
	nestedContinentName:   {"continent.names.en"},
	nestedCountryCode:     {"country.iso_code"},
	nestedCountryName:     {"country.names.en"},
	registeredCode:        {"registered_country.iso_code"},
	registeredName:        {"registered_country.names.en"},
	subdivisionCode:       {"subdivisions[0].iso_code"},
	subdivisionName:       {"subdivisions[0].names.en"},
	nestedCityName:        {"city.names.en"},
	nestedEU:              {"country.is_in_european_union"},
	cityGeoname:           {"city.geoname_id"},
	subdivisionGeoname:    {"subdivisions[0].geoname_id"},
	countryGeoname:        {"country.geoname_id"},
	registeredGeoname:     {"registered_country.geoname_id"},
	cityConfidence:        {"city.confidence"},
	subdivisionConfidence: {"subdivisions[0].confidence"},
	countryConfidence:     {"country.confidence"},

	flatContinent:     {"continent"},
	flatContinentCode: {"continent_code", "continentCode"},
	flatContinentName: {"continent_name", "continentName"},
	flatCountry:       {"country"},
	flatCountryCode:   {"country_code", "countryCode"},
	flatCountryName:   {"country_name", "countryName"},
	flatRegion:        {"region", "state1", "state"},
	flatRegionCode:    {"region_code", "regionCode"},
	flatRegionName:    {"region_name", "regionName"},
	flatCity:          {"city", "city_name", "cityName"},
	flatGeoname:       {"geoname_id"},
	flatEU:            {"is_in_european_union", "is_eu"},

	postalCode:     {"postal.code", "postal_code", "postcode", "zip", "zip_code"},
	latitude:       {"location.latitude", "latitude", "lat"},
	longitude:      {"location.longitude", "longitude", "lng", "lon"},
	timeZone:       {"location.time_zone", "timezone", "time_zone"},
	accuracyRadius: {"location.accuracy_radius", "radius", "accuracy_radius"},

	autonomousNumber:   {"autonomous_system_number", "traits.autonomous_system_number"},
	autonomousName:     {"autonomous_system_organization", "traits.autonomous_system_organization"},
	traitsISP:          {"isp", "traits.isp"},
	traitsOrganization: {"organization", "traits.organization"},
	traitsDomain:       {"traits.domain"},
	connectionType:     {"connection_type", "traits.connection_type"},
	userType:           {"user_type", "traits.user_type"},
	flatASN:            {"asn"},
	flatASName:         {"as_name"},
	flatASDomain:       {"as_domain"},
	flatName:           {"name"},
	flatDomain:         {"domain"},
	flatOrg:            {"org"},
	flatDescription:    {"descr"},
	flatAS:             {"as"},
	asOrganization:     {"organization.name"},
	asInfo:             {"info.name"},
	carrierCode:        {"mcc"},
	carrierName:        {"carrier"},

	isAnonymous:      anywhere("is_anonymous"),
	anonymousVPN:     anywhere("is_anonymous_vpn"),
	anonymousProxy:   anywhere("is_anonymous_proxy"),
	publicProxy:      anywhere("is_public_proxy"),
	residentialProxy: anywhere("is_residential_proxy"),
	torExitNode:      anywhere("is_tor_exit_node"),
	hostingProvider:  anywhere("is_hosting_provider"),
	vpnFlag:          {"is_vpn", "vpn"},
	torFlag:          {"is_tor", "tor"},
	proxyFlag:        {"is_proxy", "proxy"},
	relayFlag:        {"is_relay", "relay"},
	hostingFlag:      {"is_hosting", "hosting"},
	mobileFlag:       {"is_mobile", "mobile"},

	proxyType:  {"proxy_type"},
	usageType:  {"usage_type"},
	datacenter: {"datacenter"},
	vpnService: {"serviceName", "exitNodeType"},
	anonymizer: {"anonymizer_confidence", "network_last_seen", "provider_name"},
}

// anywhere returns the paths of a flag in files about flags, Enterprise files and hybrids.
func anywhere(flag string) []string { return []string{flag, "traits." + flag, "anonymous_ip." + flag} }

// node is a place in records at which something may be wanted.
type node struct {
	path     string
	id       uint16           // index in layout.nodes
	keys     *[buckets]*entry // of an object; nil = none is wanted
	elements []*node          // of an array; nil = not wanted
	slot     slot
	isText   bool  // most files have a text here
	isShared bool  // most files have the same object in many records
	rank     uint8 // the place among the slot's paths
	mapped   []int // what a mapping takes from here: indexes in layout.mapped
}

// entry is a key of an object that is wanted.
type entry struct {
	key   string
	node  *node
	other *entry // another key with the same hash
}

const buckets = 128

// hashOf returns the bucket of a key. It is several times as fast as that of a map.
func hashOf(key []byte) uint {
	n := uint(len(key))
	if n == 0 {
		return 0
	}
	return (n*5 + uint(key[0]) + 3*uint(key[n-1]) + 7*uint(key[n/2])) % buckets
}

// wants returns the node of a key of an object; nil = it is not wanted.
func (n *node) wants(key []byte) *node {
	for e := n.keys[hashOf(key)]; e != nil; e = e.other {
		if e.key == string(key) {
			return e.node
		}
	}
	return nil
}

// layout says what to read of records. It is compiled once for all files that are opened together,
// and never changes.
type layout struct {
	root    *node
	nodes   []*node // the first one is of values that are missing
	mapping *Mapping
	mapped  [members][]int // of each member: where values.mapped has its values
	pool    sync.Pool      // of *values
}

// compile returns the layout for a mapping, which may be nil, and a language of names.
func compile(mapping *Mapping, language string) *layout {
	l := &layout{root: &node{}, mapping: mapping}
	for s, paths := range slotPaths {
		for rank, path := range paths {
			l.root.at(path).take(slot(s), rank)
			if local, ok := strings.CutSuffix(path, ".en"); ok && language != "" && language != "en" {
				l.root.at(local+"."+language).take(slot(s)+1, rank)
			}
		}
	}
	n := 0
	if mapping != nil {
		for m, paths := range mapping.paths {
			for _, path := range paths {
				at := l.root.at(path)
				at.mapped = append(at.mapped, n)
				l.mapped[m] = append(l.mapped[m], n)
				n++
			}
		}
	}
	l.nodes = []*node{nil}
	l.number(l.root)
	l.pool.New = func() any { return &values{layout: l, mapped: make([]value, n)} }
	return l
}

// number adds a node, and those below it, to the nodes.
func (l *layout) number(n *node) {
	n.id = uint16(len(l.nodes))
	l.nodes = append(l.nodes, n)
	n.isShared = isShared(n.path)
	for _, element := range n.elements {
		if element != nil {
			l.number(element)
		}
	}
	if n.keys == nil {
		return
	}
	for _, e := range n.keys {
		for ; e != nil; e = e.other {
			l.number(e.node)
		}
	}
}

func (n *node) take(s slot, rank int) {
	n.slot, n.rank = s, uint8(rank)
	n.isText = s < nestedEU || s >= flatContinent && s <= flatCity || s == postalCode ||
		s == timeZone || s >= autonomousName && s <= userType
}

// at returns the node at a path below n, such as "a.b[0].c", and makes it if there is none. The path
// must be one that checkPath accepts.
func (n *node) at(path string) *node {
	for part := range strings.SplitSeq(path, ".") {
		key, indexes, _ := strings.Cut(part, "[")
		n = n.key(key)
		for index := range strings.SplitSeq(strings.TrimSuffix(indexes, "]"), "][") {
			if i, err := strconv.Atoi(index); err == nil {
				n = n.element(i)
			}
		}
	}
	return n
}

func (n *node) key(key string) *node {
	if n.keys == nil {
		n.keys = &[buckets]*entry{}
	}
	next := n.wants([]byte(key))
	if next == nil {
		next = &node{path: strings.TrimPrefix(n.path+"."+key, ".")}
		bucket := &n.keys[hashOf([]byte(key))]
		*bucket = &entry{key, next, *bucket}
	}
	return next
}

func (n *node) element(i int) *node {
	for len(n.elements) <= i {
		n.elements = append(n.elements, nil)
	}
	if n.elements[i] == nil {
		n.elements[i] = &node{path: fmt.Sprintf("%s[%d]", n.path, i)}
	}
	return n.elements[i]
}
