// Package overload brings more over a server than it is made for: thousands of idle connections, clients that send a
// byte a second, and a flood of queries that nobody can answer. Meanwhile it asks for what is cached and takes the time.
//
// All of it is an open model: requests start when they are due, whether the earlier ones have been answered or not, and
// times are taken from then on. It sends to loopback only.
package overload
