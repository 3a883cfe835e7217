// Package loadtest sends the requests of users to a running gatehouse, at a rate or by a number of
// users, and measures the response times.
//
// A Scenario makes hits. A hit is one or more requests, its steps. In the open model hits begin at
// the times of a Schedule, even if earlier ones have no response yet: many independent users do the
// same. The latency of a hit's first step counts from the time at which it should have begun. So
// all hits during a stall of the server show it.
//
// In the closed model each of a number of users waits for a response before the next request. It
// finds the highest rate. Its latencies look better than what independent users see.
package loadtest
