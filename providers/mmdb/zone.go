package mmdb

import (
	"sync"
	"time"
	_ "time/tzdata" // without it, the offset would be 0 everywhere on a machine that has no zone files
)

// zones remembers the time zones that were asked for. The zero value is ready.
type zones struct {
	byName sync.Map // string → *time.Location, nil for a name that is no zone
}

// offset returns the seconds that the zone is east of UTC at now, 0 when there is no such zone.
func (z *zones) offset(name string, now time.Time) int {
	if name == "Local" { // this machine's, to time.LoadLocation
		return 0
	}
	location, ok := z.byName.Load(name)
	if !ok {
		loaded, err := time.LoadLocation(name)
		if err != nil {
			loaded = nil
		}
		location, _ = z.byName.LoadOrStore(name, loaded)
	}
	if location.(*time.Location) == nil {
		return 0
	}
	_, seconds := now.In(location.(*time.Location)).Zone()
	return seconds
}
