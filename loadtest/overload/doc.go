// Package overload overloads a server with idle connections, clients that send a byte a second, and
// a flood of garbage queries. Meanwhile it measures the latency of cached lookups.
//
// Load is an open model: a request starts when it is due, whether or not earlier responses have
// arrived. Latency counts from that time. It sends to loopback only.
package overload
