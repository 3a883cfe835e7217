package bulk

import (
	"bytes"
	"strconv"

	"gatehouse/actors/geo"
)

// members are the members of a result by their paths in JSON. They save most of the time that a
// record of a file takes. A member that is missing here is read from the JSON.
var members = map[string]func(*geo.Result) any{
	"location.continent":        func(r *geo.Result) any { return &r.Location.Continent },
	"location.country":          func(r *geo.Result) any { return &r.Location.Country },
	"location.countryCode":      func(r *geo.Result) any { return &r.Location.CountryCode },
	"location.regionName":       func(r *geo.Result) any { return &r.Location.RegionName },
	"location.city":             func(r *geo.Result) any { return &r.Location.City },
	"location.zip":              func(r *geo.Result) any { return &r.Location.Zip },
	"location.lat":              func(r *geo.Result) any { return &r.Location.Lat },
	"location.lon":              func(r *geo.Result) any { return &r.Location.Lon },
	"location.timezone":         func(r *geo.Result) any { return &r.Location.Timezone },
	"location.utcOffsetSeconds": func(r *geo.Result) any { return &r.Location.UTCOffsetSeconds },
	"location.currency":         func(r *geo.Result) any { return &r.Location.Currency },
	"network.isp":               func(r *geo.Result) any { return &r.Network.ISP },
	"network.org":               func(r *geo.Result) any { return &r.Network.Org },
	"network.as":                func(r *geo.Result) any { return &r.Network.AS },
	"network.asname":            func(r *geo.Result) any { return &r.Network.ASName },
	"network.reverse":           func(r *geo.Result) any { return &r.Network.Reverse },
	"flags.mobile":              func(r *geo.Result) any { return &r.Flags.Mobile },
	"flags.proxy":               func(r *geo.Result) any { return &r.Flags.Proxy },
	"flags.hosting":             func(r *geo.Result) any { return &r.Flags.Hosting },
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
