package token

import (
	"errors"
	"testing"
)

// TestWriteIsHonouredBeforeItsEnd checks that nobody learns of the end of a write before this
// process honours it.
func TestWriteIsHonouredBeforeItsEnd(t *testing.T) {
	planted := errors.New("planted")
	for _, want := range []error{nil, planted} {
		var w write
		honoured := false
		w = newWrite(func(err error) {
			honoured = true
			if len(w.ended) != 0 || !errors.Is(err, want) {
				t.Errorf("got %v, %d callers told, want %v and none", err, len(w.ended), want)
			}
		})
		w.end(want)
		if got := <-w.ended; !honoured || !errors.Is(got, want) {
			t.Errorf("got %v, honoured %t, want %v", got, honoured, want)
		}
	}
}
