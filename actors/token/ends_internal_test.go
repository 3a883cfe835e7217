package token

import (
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// TestVersionGrowsAfterEnd checks that an actor which sees the new version finds the end.
func TestVersionGrowsAfterEnd(t *testing.T) {
	var e endedTokens
	end := &oauth.End{Token: oauth.TokenID{1}, ClientID: "app", Expires: time.Now()}
	shard := e.tokenShard(&end.Token)
	shard.mu.Lock()
	var adder sync.WaitGroup
	adder.Go(func() { e.add(end) })
	time.Sleep(20 * time.Millisecond) // it waits for the lock
	if got := e.version.Load(); got != 0 {
		t.Errorf("got version %d before the end was added, want 0", got)
	}
	shard.mu.Unlock()
	adder.Wait()
	if got := e.version.Load(); got != 1 {
		t.Errorf("got version %d, want 1", got)
	}
}
