package actors

import "time"

// sweepInterval is the time between two shards of the directory, so that all are seen about once a minute.
const sweepInterval = idleTime / 256

// sweep tells the actors of one shard after the other to leave if they are idle, until the limits stop.
func (l *limits) sweep() {
	defer close(l.swept)
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	var members []*limitActor
	for n := 0; ; n = (n + 1) % len(l.directory.shards) {
		select {
		case <-l.lifetime.Done():
			return
		case <-ticker.C:
		}
		members = l.directory.members(n, members[:0])
		now := time.Now()
		for _, a := range members {
			l.identity.root.Send(a.mailbox.self(), &sweep{now: now})
		}
		clear(members)
	}
}
