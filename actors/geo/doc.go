// Package geo holds the rules of IP geolocation as values: queries and the addresses without a
// location, results and their JSON, the upstream's budget and how it is spent, and the cache.
//
// Nothing here starts a goroutine or does I/O. Time comes in as now; only the breaker reads a clock
// too, as its library does. The cache and the breaker guard their state with a mutex and may be
// used by many goroutines. Every other type has one owner.
package geo
