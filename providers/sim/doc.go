// Package sim simulates the upstream's HTTP API: the single and batch endpoints of ip-api.com with
// their budgets, and faults on demand. It is for demos, tests and load tests. Its data is invented:
// every ISP's name ends in "(simulated)".
//
// # Answers
//
// GET /json/{query} and POST /batch respond as the upstream does. An answer depends only on the
// query, so it is the same in every process. Addresses in one /24 (IPv6: /48) share a location and
// a network, and each domain has its own address. The addresses in 5.255.255.0/24 and
// 2a0f:ffff::/32, and nxdomain.example.com with the names below it, are not found.
//
// # Control
//
// GET /_sim shows the settings and the statistics. PUT /_sim changes the settings that it names.
// DELETE /_sim/stats resets the statistics. POST /_sim/reset restores the state after the start.
// See Settings for the JSON.
//
//	curl -X PUT localhost:8082/_sim -d '{"tier":"free","faults":[{"kind":"status","status":503,"rate":0.1}]}'
//
// Nothing is logged.
package sim
