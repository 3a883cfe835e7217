// Package actors is the running service behind the edge: Service is the only way in.
//
// Who owns what in the geolocation service, and what a restart loses:
//
//   - The cache (geo.Cache) holds answers for at most ten minutes. Request goroutines read it, the batcher writes it.
//     A restart loses it.
//   - The batcher, one actor, owns the flights (one for each query that is being looked up, with everybody who waits
//     for it), the queues of flights that are not sent yet, the budgets and the timer. It never blocks. A restart loses
//     the flights, whose callers are gone as well, and the budgets: so the first request to each endpoint is a probe.
//   - The pool, N actors, runs one exchange with the upstream each, through the breaker, and reports to the batcher. The
//     batcher hands work to idle ones only, so that they have no queue.
//
// A request goroutine that misses the cache looks at the gate, a snapshot that the batcher publishes, and is refused
// there when nothing can be done for it; else it sends its ask to the batcher and waits until its own deadline.
package lookup
