package actors

import "time"

// sweepInterval is the time between two shards of the directory, so that all are seen about once a minute.
const sweepInterval = idleTime / 256

// sweep tells the actors of one shard after the other to leave if they are idle, until the limits stop.
func (l *limits) sweep() {
	defer close(l.swept)
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	var members []member
	for n := 0; ; n = (n + 1) % len(l.directory.shards) {
		select {
		case <-l.lifetime.Done():
			return
		case <-ticker.C:
		}
		members = l.directory.members(n, members[:0])
		now := time.Now()
		for _, m := range members {
			l.identity.root.Send(m.pid, &sweep{now: now, hash: m.hash})
		}
		clear(members)
	}
}
