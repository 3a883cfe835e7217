// Package nodes runs several gatehouse processes on one PostgreSQL server, and measures what they
// promise together: docs/cluster.md has the promises.
//
// Everything is on loopback and in a temporary folder: the PostgreSQL server, a key file, the
// nodes, a balancer, and a TCP proxy on each link that a scenario cuts. It needs Linux.
package nodes
