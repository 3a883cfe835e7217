package fair

import "sync"

// Slots counts the slots that are in use, in all and for each key, so that one key leaves some to
// the others. A slot is whatever is scarce: a place in a queue, a connection, a byte of memory. Set
// the limits before the first call; the zero value has none. Its methods may be called by many
// goroutines.
type Slots[K comparable] struct {
	Total  int         // most slots in use; 0 = no limit
	Share  int         // most slots of a key; 0 = no limit
	Shares func(K) int // how many shares a key has; nil = one each

	mu    sync.Mutex
	used  int
	byKey map[K]int // without those that have none
}

// Take takes n slots, which count for each of the keys. It returns false and takes none if a limit
// would be exceeded.
func (s *Slots[K]) Take(n int, keys ...K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Total > 0 && s.used+n > s.Total {
		return false
	}
	if s.Share > 0 {
		for _, key := range keys {
			if s.byKey[key]+n > s.most(key) {
				return false
			}
		}
	}
	s.add(n, keys)
	return true
}

func (s *Slots[K]) most(key K) int {
	if s.Shares == nil {
		return s.Share
	}
	return s.Share * s.Shares(key)
}

// Add takes n slots like Take, whatever the limits say.
func (s *Slots[K]) Add(n int, keys ...K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(n, keys)
}

// Give gives back n slots that were taken for these keys.
func (s *Slots[K]) Give(n int, keys ...K) { s.Add(-n, keys...) }

func (s *Slots[K]) add(n int, keys []K) {
	s.used += n
	if s.byKey == nil {
		s.byKey = map[K]int{}
	}
	for _, key := range keys {
		if s.byKey[key] += n; s.byKey[key] == 0 {
			delete(s.byKey, key)
		}
	}
}

// Used returns how many slots are in use, and how many keys have some.
func (s *Slots[K]) Used() (slots, keys int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.byKey)
}
