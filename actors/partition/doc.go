// Package partition holds the rules by which the nodes of a cluster share the counting of requests:
// who counts what, until when a node may decide, how counts move, and when everyone knows of a
// change. It has no goroutine, no clock and no I/O: the caller passes the time, rows and messages.
//
// The names of the parts:
//
//   - A node is one process of a cluster. Its row says that it is there, and its beat that it lives.
//   - A node's lease lets it decide. It ends a while after its last beat was sent.
//   - A partition is a part of all access tokens, or the lookups of one egress label. One node
//     holds it: it counts the requests. A partition's epoch grows with each new holder.
//   - An asker is a node that gets a request and asks the holder of the token's partition to count
//     it.
package partition
