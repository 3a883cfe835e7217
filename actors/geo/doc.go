// Package geo holds the rules of IP geolocation as values: what a query is, which addresses have no place on a
// map, what a result looks like, how an upstream's budget is spent, what is cached and for how long.
//
// Nothing here starts a goroutine, reads a clock or does I/O; time comes in as now. The cache and the breaker
// guard their state with a mutex and may be used by many goroutines; every other type is for one owner at a time.
package geo
