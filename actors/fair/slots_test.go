package fair_test

import (
	"testing"

	"gatehouse/actors/fair"
)

// TestSlots takes and gives slots one after the other, and checks what is in use after each step.
func TestSlots(t *testing.T) {
	type step struct {
		do     string // take, add or give
		n      int
		keys   string // each a letter; w has two shares
		want   bool   // of take
		inUse  int
		byKeys int
	}
	shares := func(key byte) int {
		if key == 'w' {
			return 2
		}
		return 1
	}
	for _, row := range []struct {
		what         string
		total, share int
		shares       func(byte) int
		steps        []step
	}{
		{"a share leaves some to others", 4, 2, nil, []step{
			{"take", 1, "a", true, 1, 1}, {"take", 1, "a", true, 2, 1}, {"take", 1, "a", false, 2, 1},
			{"take", 2, "b", true, 4, 2}, {"take", 1, "c", false, 4, 2}, {"give", 1, "a", true, 3, 2},
			{"take", 1, "c", true, 4, 3}, {"give", 1, "a", true, 3, 2}, {"give", 2, "b", true, 1, 1},
			{"give", 1, "c", true, 0, 0}, {"take", 2, "a", true, 2, 1},
		}},
		{"nothing is taken when one of several keys has no room", 10, 3, nil, []step{
			{"take", 2, "ab", true, 2, 2}, {"take", 2, "ca", false, 2, 2}, {"take", 3, "c", true, 5, 3},
			{"take", 1, "abd", true, 6, 4}, {"give", 2, "ab", true, 4, 4}, {"give", 1, "abd", true, 3, 1},
		}},
		{"a key of two shares", 9, 3, shares, []step{
			{"take", 7, "w", false, 0, 0}, {"take", 6, "w", true, 6, 1}, {"take", 1, "w", false, 6, 1},
			{"take", 4, "a", false, 6, 1}, {"take", 3, "a", true, 9, 2},
		}},
		{"without a key", 2, 1, nil, []step{
			{"take", 3, "", false, 0, 0}, {"take", 2, "", true, 2, 0}, {"take", 1, "a", false, 2, 0},
			{"give", 2, "", true, 0, 0},
		}},
		{"no limit in all", 0, 1, nil, []step{
			{"take", 1, "a", true, 1, 1}, {"take", 1, "b", true, 2, 2}, {"take", 1, "a", false, 2, 2},
		}},
		{"no shares", 3, 0, nil, []step{{"take", 3, "a", true, 3, 1}, {"take", 1, "b", false, 3, 1}}},
		{"no limits", 0, 0, nil, []step{{"take", 1 << 30, "ab", true, 1 << 30, 2}}},
		{"more than the limits", 2, 1, nil, []step{
			{"add", 3, "a", true, 3, 1}, {"take", 1, "b", false, 3, 1}, {"give", 2, "a", true, 1, 1},
			{"take", 1, "a", false, 1, 1}, {"take", 1, "b", true, 2, 2},
		}},
	} {
		s := fair.Slots[byte]{Total: row.total, Share: row.share, Shares: row.shares}
		for i, step := range row.steps {
			keys, took := []byte(step.keys), true
			switch step.do {
			case "take":
				took = s.Take(step.n, keys...)
			case "add":
				s.Add(step.n, keys...)
			case "give":
				s.Give(step.n, keys...)
			}
			inUse, byKeys := s.Used()
			if took != step.want || inUse != step.inUse || byKeys != step.byKeys {
				t.Errorf("%s, step %d: got %t with %d in use by %d keys, want %t with %d by %d", row.what,
					i, took, inUse, byKeys, step.want, step.inUse, step.byKeys)
			}
		}
	}
}
