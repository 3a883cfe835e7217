// Package sim is a stand-in for the upstream's HTTP interface: the single and batch endpoints of ip-api.com with
// their budgets, and faults on demand. It serves demos, tests and load runs, knows nothing of the real world, and
// says so: every network's name ends in "(simulated)".
//
// # Answers
//
// GET /json/{query} and POST /batch answer as the upstream does. An answer is derived from the query alone, so it is
// the same in every process: addresses of one /24 (IPv6: /48) share a place and a network, a domain has an address
// of its own. Of the addresses in 5.255.255.0/24 and 2a0f:ffff::/32 and the names at and under nxdomain.example.com
// nothing is known.
//
// # Control
//
// GET /_sim shows the settings and the statistics, PUT /_sim changes the settings it names, DELETE /_sim/stats sets
// the statistics to zero, and POST /_sim/reset goes back to the state after the start. Settings describes the JSON.
//
//	curl -X PUT localhost:8082/_sim -d '{"tier":"free","faults":[{"kind":"status","status":503,"rate":0.1}]}'
//
// Nothing is logged.
package sim
