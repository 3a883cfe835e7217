package ratelimit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Pacer limits the failed attempts of each key: a burst at once, then one for each interval. It
// remembers a bounded number of keys, and forgets first those that failed longest ago. Its methods
// may be called by many goroutines.
type Pacer[K comparable] struct {
	mu   sync.Mutex
	pace pace[K]
}

// NewPacer returns a Pacer that remembers up to keys of them. All arguments are at least 1.
func NewPacer[K comparable](burst int, every time.Duration, keys int) *Pacer[K] {
	return &Pacer[K]{pace: newPace[K](burst, every, keys)}
}

// Wait returns how long key has to wait, and counts nothing; 0 or less = not at all. With Take
// after a failure, attempts at the same time do not count each other.
func (p *Pacer[K]) Wait(key K, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pace.wait(key, now)
}

// Take counts an attempt of key as failed and returns 0, or returns how long key has to wait.
func (p *Pacer[K]) Take(key K, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.pace.wait(key, now); wait > 0 {
		return wait
	}
	p.pace.add(key, now)
	return 0
}

// Forgive takes back an attempt that Take has counted.
func (p *Pacer[K]) Forgive(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace.takeBack(key)
}

// pace is a Pacer without a mutex.
type pace[K comparable] struct {
	burst int
	every time.Duration
	paid  *simplelru.LRU[K, time.Time] // when a key owes nothing; an attempt adds the interval
}

func newPace[K comparable](burst int, every time.Duration, keys int) pace[K] {
	paid, err := simplelru.NewLRU[K, time.Time](keys, nil)
	if err != nil {
		panic(err) // keys is below 1
	}
	return pace[K]{burst, every, paid}
}

// wait returns how long key has to wait for its next attempt; 0 or less = not at all.
func (p *pace[K]) wait(key K, now time.Time) time.Duration {
	return p.owed(key, now).Sub(now) - time.Duration(p.burst-1)*p.every
}

func (p *pace[K]) add(key K, now time.Time) { p.paid.Add(key, p.owed(key, now).Add(p.every)) }

// owed returns when key owes nothing, at least now.
func (p *pace[K]) owed(key K, now time.Time) time.Time {
	if paid, ok := p.paid.Peek(key); ok && paid.After(now) {
		return paid
	}
	return now
}

func (p *pace[K]) takeBack(key K) {
	if paid, ok := p.paid.Peek(key); ok {
		p.paid.Add(key, paid.Add(-p.every))
	}
}
