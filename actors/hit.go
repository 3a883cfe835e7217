package actors

import (
	"time"

	"gatehouse/actors/geo"
)

// Hit returns the live result that lies in the cache for the query whose canonical form is text, at a fraction of what parsing it
// and Lookup cost. nil says nothing about the query.
func (s *System) Hit(text string, now time.Time) *geo.Entry { return s.cache.Find(text, now) }
