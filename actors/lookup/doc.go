// Package lookup finds what is known of addresses and domains: in the cache, or from a provider
// that has a budget. Service is its only way in.
//
// Who owns what, and what a restart loses:
//
//   - The cache (geo.Cache) holds results for ten minutes or another set time. Request goroutines
//     read it. The batcher writes it, and request goroutines write what the offline files know. A
//     restart loses it, unless there is a cache file.
//   - The batcher, one actor, owns the pending lookups (one a query, with the requests that wait
//     for it), their queues, the budgets and the timer. It never blocks, so the goroutine that
//     sends it a message runs it. A restart loses the lookups, whose callers are gone too. It also
//     loses the budgets, so the first request to each endpoint is a probe.
//   - The pool, N actors with goroutines of their own, runs one exchange each, through the
//     breaker, and reports to the batcher. The batcher gives work to idle workers only: they have
//     no queue.
//   - The breaker (geo.Breaker) learns from the exchanges. A restart closes it.
//
// An address that a local provider answers meets neither cache nor actor. A hit meets no actor. On
// a miss the request goroutine reads the snapshot that the batcher published, and ends there if the
// batcher would reject the lookup. Else it asks the batcher, which decides by breaker, caller
// limit, budget and queue in one place. The request waits for its outcomes until its own deadline.
package lookup
