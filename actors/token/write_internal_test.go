package token

import (
	"errors"
	"testing"
)

// TestWriteIsAppliedBeforeItsEnd checks that nobody learns of the end of a write before this
// process applies it.
func TestWriteIsAppliedBeforeItsEnd(t *testing.T) {
	planted := errors.New("planted")
	for _, want := range []error{nil, planted} {
		var w write
		applied := false
		w = newWrite(func(err error) {
			applied = true
			if len(w.ended) != 0 || !errors.Is(err, want) {
				t.Errorf("got %v, %d callers told, want %v and none", err, len(w.ended), want)
			}
		})
		w.end(want)
		if got := <-w.ended; !applied || !errors.Is(got, want) {
			t.Errorf("got %v, applied %t, want %v", got, applied, want)
		}
	}
}
