package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// sweepInterval is the time between two shards of the directory, so that all are seen about once a minute.
const sweepInterval = idleTime / 256

// sweep tells the actors of one shard after the other to leave if they are idle, until the limits stop.
func (l *limits) sweep() {
	defer close(l.swept)
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	var members []*actor.PID
	for n := 0; ; n = (n + 1) % len(l.directory.shards) {
		select {
		case <-l.lifetime.Done():
			return
		case <-ticker.C:
		}
		members = l.directory.members(n, members[:0])
		message := &sweep{now: time.Now()}
		for i, pid := range members {
			l.identity.root.Send(pid, message)
			members[i] = nil
		}
	}
}
