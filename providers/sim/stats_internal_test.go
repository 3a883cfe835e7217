package sim

import (
	"testing"
	"time"
)

func TestMemoryIsBounded(t *testing.T) {
	var m memory
	now := time.Now()
	for key := range uint64(2*repeatMemory + 1) {
		if m.repeats(key, now) {
			t.Fatalf("key %d: got a repeat, want none", key)
		}
	}
	if got := len(m.young) + len(m.old); got > 2*repeatMemory {
		t.Errorf("got %d keys in memory, want at most %d", got, 2*repeatMemory)
	}
	if !m.repeats(repeatMemory+1, now) {
		t.Error("got no repeat, want the last queries remembered")
	}
}
