package fair_test

import (
	"slices"
	"testing"

	"gatehouse/actors/fair"
)

func TestShed(t *testing.T) {
	for _, row := range []struct {
		held []int
		n    int
		want []int
	}{
		{[]int{5, 3, 1}, 1, []int{1, 0, 0}},
		{[]int{5, 3, 1}, 3, []int{3, 0, 0}},
		{[]int{5, 3, 1}, 5, []int{4, 1, 0}},
		{[]int{1, 1, 1}, 2, []int{1, 1, 0}},
		{[]int{1, 1}, 5, []int{1, 1}},
		{nil, 1, nil},
	} {
		if got := fair.Shed(row.held, row.n); !slices.Equal(got, row.want) {
			t.Errorf("%v, %d: got %v, want %v", row.held, row.n, got, row.want)
		}
	}
}
