// Package partition holds the rules by which the nodes of a cluster share the counting of requests:
// who counts what, until when a node may decide, how counts move, and when everyone knows of a
// change. It has no goroutine, no clock and no I/O: the caller passes the time, rows and messages.
//
// The names of the parts:
//
//   - A node is one process of a cluster. Its row says that it is there, its beat that it lives.
//   - A node's lease lets it decide. It ends a while after its last beat was sent.
//   - A partition is a part of all access tokens, or the lookups of one egress label. One node
//     holds it: it counts the requests. A partition's epoch grows with each new holder.
//   - An asker is a node that gets a request and asks the holder of the token's partition to count
//     it.
//   - An allowance is what the holder of a window grants an asker: requests that the asker allows
//     without asking. The rest of it is what the asker has not spent.
//
// # Protocol
//
// [Member] is the part of one node. The rows in the database decide; messages only save waiting.
//
//   - Join. A node inserts its row under a new ID before it reads anything that it will trust. It
//     greets each node that is up. It is up itself when all have welcomed it, and it has applied the
//     changes that it has read of.
//   - Beat. Each second the node adds 1 to its row's beat, and each half second it reads all rows.
//     Its lease ends 4.5 s after it has sent the last beat that has succeeded, or the last reading
//     whose changes it has applied: the earlier of both. A node whose lease has ended drops all that
//     it holds and knows, and joins under a new ID.
//   - Remove. A node deletes another's row when it has seen the same beat for 5.5 s, if the row has
//     that beat still.
//   - Claim. A partition whose holder has no row goes to its [Target], at the next epoch.
//   - Move. A holder that is not the target stops to decide, and sends its counts. When they have
//     arrived, it makes the target the holder in the row, at the next epoch.
//   - Change. A node that has committed a change reads the rows, and waits for each other node that
//     is up until that one has applied the change or has no row, but at most 5.5 s.
//
// # Why only one node decides on a partition
//
// A node decides while its lease is valid and it knows that a row names it. Two things can change
// that row: a claim, and the holder's own hand.
//
// A claim needs that the holder has no row, and then its lease has ended. There are three ways to
// delete the row. The node itself does it in Leave, or when it joins under the next ID: it no
// longer decides then. Another node does it after it has seen the same beat for 5.5 s. It has seen
// that beat later than the beat was sent, so that the lease of 4.5 s is over by then. A later beat
// comes first, and then the row is not deleted, or it finds no row. Only differences of clocks are
// used; the second between both times is for clocks that do not run alike.
//
// A hand is sent by the holder while it does not decide. When the outcome is unknown, the hand may
// be executed at any time, even after a reading that does not show it. Therefore the holder only
// repeats the same hand, and never decides again. A holder that fails meanwhile drops all. Both
// updates name the epoch that they end: of two that compete, one changes nothing.
//
// # Why nobody is admitted against a confirmed change
//
// The changer reads the rows after its commit. There are four kinds of other nodes then.
//
//   - A node without a row has no lease, or it inserts its row later and reads all after that, the
//     change included.
//   - A node that is up, or leaves, has applied the change, or the changer waits. It waits until the
//     node says that it has applied the change, or its row is gone, and its lease with it.
//   - A node that joins decides nothing. When it has learned that its row says Up, it sends a
//     reading, and decides when it has applied what that shows. The row says Joining in the changer's
//     reading, and no beat makes it say so again. So the change is older than the row's Up, and the
//     node's reading shows it.
//   - Any node that still has not applied the change 5.5 s after it has no lease: 4.5 s ago, it had
//     sent no reading yet whose changes it has applied. Only differences of clocks are used here too.
//
// So no node delays a change for longer, however it fails. The changer's own lease follows the same
// rules. A change outlives it, unless the database has lost commits: the change may be among them.
//
// A frozen node finds its lease ended when it goes on: requests look at the lease when they begin.
//
// Numbers of changes must become visible in their order. Else a node that follows them misses one.
//
// # Why allowances keep the limit exact
//
// A [WindowName] names a window. All that the holder of that name admits or grants counts as used,
// up to the limit. So no more is admitted under a name than the limit, whatever fails:
//
//   - An asker spends under the name of which it was granted, until half a second before the end of
//     the window. A reply of an earlier name or epoch changes nothing, and one of a later name ends
//     the allowance.
//   - Both sides tell totals, what was ever granted and ever spent under the name. They keep the
//     greater one: a reply that is lost, late or doubled gives nothing twice.
//   - The holder takes back a rest only when the asker has said what it has spent and closed its
//     allowance. Then the asker spends nothing of that name, also of grants that are on their way.
//     A node that does not reply, or does not know, has spent all.
//   - A new holder gets name and grants with the counts. It takes its own rest back at once, and
//     grants of the former holder to it are void, since their epoch is older than its own.
//   - A holder of a partition that was claimed opens a window with a new name. It knows of no grants,
//     and makes none in a window that it has rebuilt. Allowances of the former holder lie within that
//     one's limit.
//
// And no less than the limit is admitted, as long as all reply. A holder that would refuse a request
// while a rest is open makes the window tight, which ends all grants, and closes the allowances
// first. A node that leaves gives back what it has not spent. An asker refuses by itself only when
// the holder has said that the whole limit was used: what is granted and not spent is not used.
//
// # What is outside
//
// A failover to a standby without the last commits takes rows back. Nodes that notice it drop all:
// a beat, an epoch or the last change is lower than known. Until their leases end, two nodes may
// decide on a partition. A cluster therefore needs a synchronous standby. A virtual machine that is
// paused with its clock is outside as well, until its clock on the wall jumps: that ends the lease.
package partition
