package partition_test

import (
	"fmt"
	"slices"
	"testing"

	"gatehouse/actors/partition"
)

// nodeIDs returns IDs as a cluster has them.
func nodeIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%032x", uint64(i+1)*0x9e3779b97f4a7c15)
	}
	return ids
}

func TestTargetSpreadsPartitions(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 5, 7} {
		ids := nodeIDs(nodes)
		held := map[string]int{}
		for i := range partition.Tokens {
			held[partition.Target(partition.Name(i), ids)]++
		}
		fair := partition.Tokens / nodes
		for _, id := range ids {
			if got := held[id]; got < fair*6/10 || got > fair*14/10 {
				t.Errorf("%d nodes: %s got %d partitions, want about %d", nodes, id, got, fair)
			}
		}
	}
}

func TestTargetMovesOnlyPartitionsOfTheLeaver(t *testing.T) {
	for _, nodes := range []int{3, 5, 7} {
		all := nodeIDs(nodes)
		for leaver := range all {
			rest := slices.Delete(slices.Clone(all), leaver, leaver+1)
			for i := range partition.Tokens {
				before := partition.Target(partition.Name(i), all)
				after := partition.Target(partition.Name(i), rest)
				if before != all[leaver] && before != after {
					t.Errorf("partition %d moved from %s to %s, which both stay", i, before, after)
				}
			}
		}
	}
}

func TestTargetIgnoresTheOrderOfNodes(t *testing.T) {
	ids := nodeIDs(5)
	reversed := slices.Clone(ids)
	slices.Reverse(reversed)
	for i := range partition.Tokens {
		name := partition.Name(i)
		if a, b := partition.Target(name, ids), partition.Target(name, reversed); a != b {
			t.Errorf("partition %s: got %s and %s, want the same node", name, a, b)
		}
	}
	if got := partition.Target("00", nil); got != "" {
		t.Errorf("without nodes got %q, want none", got)
	}
}
