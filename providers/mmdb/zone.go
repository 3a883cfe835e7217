package mmdb

import (
	"sync"
	"time"
	_ "time/tzdata" // for machines without zone files, where all offsets would be 0
)

// zones caches time zones. The zero value is ready to use, by many goroutines.
type zones struct {
	byName sync.Map // string → *time.Location; nil for an unknown zone
}

// offset returns the zone's offset at now in seconds, positive east of UTC; 0 for an unknown zone.
func (z *zones) offset(name string, now time.Time) int {
	location := z.find(name)
	if location == nil {
		return 0
	}
	_, seconds := now.In(location).Zone()
	return seconds
}

// never is after every time of a lookup.
var never = time.Unix(1<<40, 0)

// nextChange returns when the zone's offset changes next after now, or never.
func (z *zones) nextChange(name string, now time.Time) time.Time {
	if location := z.find(name); location != nil {
		if _, end := now.In(location).ZoneBounds(); !end.IsZero() {
			return end
		}
	}
	return never
}

// find returns the zone, or nil if it is unknown.
func (z *zones) find(name string) *time.Location {
	if name == "Local" { // time.LoadLocation would return the machine's zone
		return nil
	}
	location, ok := z.byName.Load(name)
	if !ok {
		loaded, err := time.LoadLocation(name)
		if err != nil {
			loaded = nil
		}
		location, _ = z.byName.LoadOrStore(name, loaded)
	}
	return location.(*time.Location)
}
