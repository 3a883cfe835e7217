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
	if name == "Local" { // time.LoadLocation would return the machine's zone
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
