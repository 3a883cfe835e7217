package sim

import (
	"testing"
	"time"
)

func TestRecentIsBounded(t *testing.T) {
	var r recent
	now := time.Now()
	for key := range uint64(2*recentSize + 1) {
		if r.repeats(key, now) {
			t.Fatalf("key %d: got a repeat, want none", key)
		}
	}
	if got := len(r.young) + len(r.old); got > 2*recentSize {
		t.Errorf("got %d keys, want at most %d", got, 2*recentSize)
	}
	if !r.repeats(recentSize+1, now) {
		t.Error("got no repeat, want one for a recent query")
	}
}
