package partition

// Target returns the node that ought to hold a partition: the one with the highest hash of both
// names (rendezvous hashing). When a node comes or goes, only its own partitions move. It returns
// "" if there are no nodes.
func Target(name string, nodes []string) string {
	best, target := uint64(0), ""
	start := hash(14695981039346656037, name)
	for _, node := range nodes {
		h := mix(hash(start, node))
		if target == "" || h > best || h == best && node > target {
			best, target = h, node
		}
	}
	return target
}

// hash continues a 64-bit FNV-1a hash with s and a byte that ends it.
func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return (h ^ 0xff) * 1099511628211
}

// mix makes each bit of the result depend on all bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
