// Package loadtest asks a running gatehouse what its users ask, at a rate or by a number of users, and says how long the
// answers took.
//
// A Scenario makes hits; a hit is one or more requests, its steps. In the open model hits begin at the times of a Schedule
// whether or not earlier ones have been answered, as those of many independent users do, and the latency of a hit's first
// step counts from the time it should have begun: so a server that stalls is seen by all who would have come meanwhile. In
// the closed model a number of users wait for each answer before they ask again: this finds the highest rate, and its
// latencies flatter the server.
package loadtest
