package ratelimit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// pollLeeway is how much earlier than its interval a poll may arrive: it may have traveled faster
// than the one before.
const pollLeeway = time.Second

// Polls paces those that ask for a key until something has happened (RFC 8628 section 3.5). A poll
// that comes before the interval has passed is refused, and makes the interval of its key longer. A
// Polls remembers a bounded number of keys, and forgets first those that were asked for longest
// ago. Its methods may be called by many goroutines.
type Polls[K comparable] struct {
	interval, growth time.Duration

	mu    sync.Mutex
	polls *simplelru.LRU[K, poll]
}

type poll struct {
	last     time.Time
	interval time.Duration
}

// NewPolls returns a Polls. growth is added to the interval of a key by each poll that is refused.
// keys is at least 1.
func NewPolls[K comparable](interval, growth time.Duration, keys int) *Polls[K] {
	polls, err := simplelru.NewLRU[K, poll](keys, nil)
	if err != nil {
		panic(err) // keys is below 1
	}
	return &Polls[K]{interval: interval, growth: growth, polls: polls}
}

// Take returns 0, or the new interval of key if it was asked for too early.
func (p *Polls[K]) Take(key K, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.polls.Get(key)
	if !known {
		p.polls.Add(key, poll{now, p.interval})
		return 0
	}
	if now.Sub(before.last) >= before.interval-pollLeeway {
		p.polls.Add(key, poll{now, before.interval})
		return 0
	}
	before.interval += p.growth
	p.polls.Add(key, poll{now, before.interval})
	return before.interval
}

// Forgive forgets key.
func (p *Polls[K]) Forgive(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polls.Remove(key)
}
