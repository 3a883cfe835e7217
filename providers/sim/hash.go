package sim

import "net/netip"

// The hashes are FNV-1a with a finalizer. The code is here, and not in a library, because answers
// must never change.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
	// salt is chosen so that 8.8.8.8, 1.1.1.1, 2001:4860:4860::8888 and example.com are in places
	// without daylight saving time: documents can show their answers.
	salt = 13507
)

func hashString(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return mix(h)
}

func hashAddr(addr netip.Addr) uint64 {
	a16 := addr.As16()
	return hashBytes(a16[:])
}

// hashNet returns the hash of the address's /24 or, for IPv6, /48.
func hashNet(addr netip.Addr) uint64 {
	a16 := addr.As16()
	if addr.Is4() {
		return hashBytes(a16[:15])
	}
	return hashBytes(a16[:6])
}

func hashBytes(b []byte) uint64 {
	h := uint64(fnvOffset ^ salt)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return mix(h)
}

// mix spreads each bit of h over all bits (the finalizer of SplitMix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
