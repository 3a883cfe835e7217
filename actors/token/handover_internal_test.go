package token

import (
	"crypto/rand"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/wire"
)

// TestHandedWindowsAreBounded has another node hand over the windows of more tokens than there may
// be, and report more. The first ones stay.
func TestHandedWindowsAreBounded(t *testing.T) {
	s := &Service{directory: newDirectory(mostHanded)}
	var first oauth.TokenID
	var counts []byte
	for i := range 2 * mostHanded {
		id := oauth.TokenID{7}
		rand.Read(id[1:])
		if i == 0 {
			first = id
		}
		counts = append(counts, id[:]...)
		for range (sharedWindows{}) {
			counts = append(wire.AppendDuration(counts, 1), 1, 0)
		}
	}
	for i := range 3 {
		s.ReceiveWindows(7, 1, i == 0, counts)
	}
	for range mostHanded {
		id := oauth.TokenID{7}
		rand.Read(id[1:])
		s.directory.keepReports(&id, sharedReports{}, &partition.Part{Epoch: 1}, 0)
	}
	kept := s.directory.shards[7].handed.byToken
	if len(kept) != mostHanded || kept[first][0].Used != 1 {
		t.Errorf("got windows of %d tokens, want %d with the first one", len(kept), mostHanded)
	}
}

// TestVerdictsOfTheReleaseBefore holds the numbers that a node of the release before understands.
// Else it refuses, and asks again about, what this one has counted.
func TestVerdictsOfTheReleaseBefore(t *testing.T) {
	for verdict, want := range map[Verdict]byte{
		TokenInvalid: 1, TokenExpired: 2, RateLimited: 3, InsufficientScope: 4, UnapprovedScope: 5,
		Admitted: 6, TryLater: 7, InsufficientAuthentication: 4,
	} {
		if got := (&countReply{verdict: verdict}).append(nil, false)[0]; got != want {
			t.Errorf("verdict %d: got the number %d, want %d", verdict, got, want)
		}
	}
}
