package actors

import (
	"testing"

	"gatehouse/actors/oauth"
)

// TestANewerRecordIsNotSwappedForAnOlder is told of a write when what another process wrote after it has been read.
func TestANewerRecordIsNotSwappedForAnOlder(t *testing.T) {
	s, e := &Identity{clients: newClients()}, &clientEntry{state: &clientState{}}
	s.clients.entries["app"] = e
	for _, row := range []struct{ there, written, want int64 }{{1, 2, 2}, {3, 2, 3}, {2, 2, 2}} {
		e.state.client.Store(&oauth.Client{ID: "app", Version: row.there})
		s.swapClient(&oauth.Client{ID: "app", Version: row.written})
		if got := e.state.client.Load().Version; got != row.want {
			t.Errorf("version %d, then %d written: got %d, want %d", row.there, row.written, got, row.want)
		}
	}
}
