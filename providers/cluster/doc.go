// Package cluster runs one node of a cluster: it carries out what a partition.Member decides, and
// carries asks and other messages between nodes.
//
// Frames go over the library's remote actors, with mutual TLS. All nodes derive one certificate
// authority from keys in their database. The row of each node names the certificates that it may
// present: no other one is spoken to.
//
// The parts: identity makes and checks certificates, handshakes are the credentials of connections,
// transport runs the library's server and inspects what comes in, a link is the way to one address,
// a lane orders what goes to one node, and Node ties them to the Member.
package cluster
