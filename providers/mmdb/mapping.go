package mmdb

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// memberNames are the names of the members in a mapping.
var memberNames = [members]string{
	memberContinent: "continent", memberContinentCode: "continent_code", memberCountry: "country",
	memberCountryCode: "country_code", memberRegion: "region_name", memberRegionCode: "region_code",
	memberCity: "city", memberZip: "zip", memberLat: "lat", memberLon: "lon",
	memberTimezone: "timezone", memberRadius: "accuracy_radius", memberConfidence: "confidence",
	memberGeoname: "geoname_id", memberEU: "is_eu", memberISP: "isp", memberOrg: "org",
	memberASN: "asn", memberASName: "as_name", memberASDomain: "as_domain",
	memberConnection: "connection_type", memberMobile: "mobile", memberProxy: "proxy",
	memberHosting: "hosting", memberVPN: "vpn", memberTor: "tor",
}

// memberByName finds members by their names in lower case without underscores, so that the names of
// results (countryCode, isVPN) are members too.
var memberByName = func() map[string]member {
	all := map[string]member{
		"latitude": memberLat, "longitude": memberLon, "region": memberRegion, "as": memberASN,
		"accuracyradiuskm": memberRadius, "isproxy": memberProxy, "ishosting": memberHosting,
		"isvpn": memberVPN, "istor": memberTor, "ismobile": memberMobile, "postalcode": memberZip,
	}
	for m, name := range memberNames {
		all[strings.ReplaceAll(name, "_", "")] = member(m)
	}
	return all
}()

// Mapping says where the records of files have members that are not recognized, or not as they are
// meant. It never changes.
type Mapping struct {
	names [members]bool     // the mapping names the member
	paths [members][]string // where it is: the first that is not empty; none = unknown
}

// String returns the mapping in a form of its own; two that differ have different ones.
func (m *Mapping) String() string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%v %q", m.names, m.paths)
}

// pathForm is the form of a path: keys with dots between, and indexes of arrays, as "a.b[0].c".
var pathForm = regexp.MustCompile(`^[^.\[\]\s]+(\[\d{1,3}\])*(\.[^.\[\]\s]+(\[\d{1,3}\])*)*$`)

// ReadMapping reads a mapping: YAML, or lines such as "country_code: geo.cc". The path may be a
// list or have commas, and then the first that is not empty counts; without one the member is
// unknown.
func ReadMapping(path string) (*Mapping, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := parseMapping(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func parseMapping(text []byte) (*Mapping, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%w (want lines such as \"country_code: geo.cc\")", err)
	}
	if len(document.Content) == 0 {
		return nil, errors.New("it is empty (want lines such as \"country_code: geo.cc\")")
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errors.New("want lines such as \"country_code: geo.cc\"")
	}
	m := &Mapping{}
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		name := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key.Value))
		at, known := memberByName[name]
		switch {
		case !known:
			return nil, fmt.Errorf("line %d: unknown member %q: the members are %s", key.Line,
				key.Value, strings.Join(memberNames[:], ", "))
		case m.names[at]:
			return nil, fmt.Errorf("line %d: %s is there twice", key.Line, memberNames[at])
		}
		m.names[at] = true
		if err := m.add(at, value); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", value.Line, key.Value, err)
		}
	}
	return m, nil
}

// add adds the paths of a value: a text or a list of texts.
func (m *Mapping) add(at member, value *yaml.Node) error {
	switch value.Kind {
	case yaml.ScalarNode:
		if value.Tag == "!!null" {
			return nil
		}
		for path := range strings.SplitSeq(value.Value, ",") {
			if path = strings.TrimSpace(path); path == "" {
				continue
			}
			if !pathForm.MatchString(path) {
				return fmt.Errorf("%q is no path such as geo.cc or places[0].name", path)
			}
			m.paths[at] = append(m.paths[at], path)
		}
		return nil
	case yaml.SequenceNode:
		for _, element := range value.Content {
			if element.Kind != yaml.ScalarNode {
				return errPath
			}
			if err := m.add(at, element); err != nil {
				return err
			}
		}
		return nil
	}
	return errPath
}

var errPath = errors.New("want a path or a list of paths")
