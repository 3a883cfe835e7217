package bulk

import (
	"bytes"
	"strconv"

	"github.com/valyala/fastjson"

	"gatehouse/actors/geo"
)

// members are the members of a result by their paths in JSON. They save most of the time that a
// record of a file takes. A member that is missing here is read from the JSON. They return nil for
// what the file does not have.
var members = map[string]func(*geo.Result) any{
	"location.continent":        func(r *geo.Result) any { return &r.Location.Continent },
	"location.country":          func(r *geo.Result) any { return &r.Location.Country },
	"location.countryCode":      func(r *geo.Result) any { return &r.Location.CountryCode },
	"location.regionName":       func(r *geo.Result) any { return &r.Location.RegionName },
	"location.city":             func(r *geo.Result) any { return &r.Location.City },
	"location.zip":              func(r *geo.Result) any { return &r.Location.Zip },
	"location.lat":              func(r *geo.Result) any { return knownIf(isPlaced(r), &r.Location.Lat) },
	"location.lon":              func(r *geo.Result) any { return knownIf(isPlaced(r), &r.Location.Lon) },
	"location.timezone":         func(r *geo.Result) any { return &r.Location.Timezone },
	"location.utcOffsetSeconds": func(r *geo.Result) any { return knownIf(r.Location.Timezone != "", &r.Location.UTCOffsetSeconds) },
	"location.currency":         func(r *geo.Result) any { return &r.Location.Currency },
	"network.isp":               func(r *geo.Result) any { return &r.Network.ISP },
	"network.org":               func(r *geo.Result) any { return &r.Network.Org },
	"network.as":                func(r *geo.Result) any { return &r.Network.AS },
	"network.asname":            func(r *geo.Result) any { return &r.Network.ASName },
	"network.reverse":           func(r *geo.Result) any { return &r.Network.Reverse },
	"flags.mobile": func(r *geo.Result) any {
		return knownIf(r.Flags.Mobile || r.Data.ConnectionType != "", &r.Flags.Mobile)
	},
	"flags.proxy": func(r *geo.Result) any {
		return knownIf(r.Flags.Proxy || r.Data.IsProxy != geo.Unknown, &r.Flags.Proxy)
	},
	"flags.hosting": func(r *geo.Result) any {
		return knownIf(r.Flags.Hosting || r.Data.IsHosting != geo.Unknown, &r.Flags.Hosting)
	},
}

// isPlaced reports whether the coordinates are known: those of 0, 0 are in the sea.
func isPlaced(r *geo.Result) bool { return r.Location.Lat != 0 || r.Location.Lon != 0 }

// knownIf returns value, or nil if it is not known.
func knownIf(known bool, value any) any {
	if !known {
		return nil
	}
	return value
}

// forget sets to null what the source of a result does not have. A flag of a file that is not set
// is unknown, unless "data" has the fact behind it.
func forget(v *fastjson.Value) {
	unset := fastjson.MustParse("null")
	for _, group := range []string{"location", "network"} {
		members := v.GetObject(group)
		var unknown []string
		members.Visit(func(name []byte, member *fastjson.Value) {
			if member.Type() == fastjson.TypeString && len(member.GetStringBytes()) == 0 {
				unknown = append(unknown, string(name))
			}
		})
		for _, name := range unknown {
			members.Set(name, unset)
		}
	}
	location, flags := v.GetObject("location"), v.GetObject("flags")
	if v.GetFloat64("location", "lat") == 0 && v.GetFloat64("location", "lon") == 0 {
		for _, name := range []string{"lat", "lon"} {
			if location.Get(name) != nil {
				location.Set(name, unset)
			}
		}
	}
	if location.Get("utcOffsetSeconds") != nil && len(v.GetStringBytes("location", "timezone")) == 0 {
		location.Set("utcOffsetSeconds", unset)
	}
	if string(v.GetStringBytes("data", "source")) != string(geo.SourceMMDB) {
		return
	}
	for name, fact := range map[string]string{"mobile": "connectionType", "proxy": "isProxy",
		"hosting": "isHosting"} {
		if flags.Get(name) != nil && !v.GetBool("flags", name) && !v.Exists("data", fact) {
			flags.Set(name, unset)
		}
	}
}

// recordOf is record for a result whose fields all have a shorter way.
func (p *Plan) recordOf(result *geo.Result) *Record {
	r := &Record{ends: make([]uint32, len(p.fields))}
	var buf [512]byte
	text := buf[:0]
	for i, f := range p.fields {
		if f.get != nil {
			switch v := f.get(result).(type) {
			case *string:
				text = p.appendCell(text, *v)
			case *float64:
				text = strconv.AppendFloat(text, *v, 'f', -1, 64)
			case *int:
				text = strconv.AppendInt(text, int64(*v), 10)
			case *bool:
				text = strconv.AppendBool(text, *v)
			}
		}
		r.ends[i] = uint32(len(text))
	}
	r.text = bytes.Clone(text)
	return r
}
