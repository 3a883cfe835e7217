package httpedge

import (
	"math"
	"testing"
)

func TestStreamsBytes(t *testing.T) {
	for limit, want := range map[int64]int{
		math.MaxInt64: maxStreamsBytes, // no limit
		1 << 30:       maxStreamsBytes,
		240 << 20:     30 << 20,
	} {
		if got := streamsBytes(limit); got != want {
			t.Errorf("limit of %d bytes: got %d, want %d", limit, got, want)
		}
	}
}
