package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/fair"
	"gatehouse/actors/ratelimit"
)

// Limits on hashing.
const (
	hashesAtOnce  = 2  // running hashes of one payer
	hashesWaiting = 8  // waiting hashes of one payer
	hashQueue     = 64 // waiting hashes of each lane

	hashCPUBurst = 2 * time.Second // CPU time that a payer may use at once
	hashCPUShare = 2               // then one second of CPU time for each so many seconds
	hashPayers   = 10_000          // payers whose use of CPU time is remembered
)

// The lanes of hashes: classes of payers, see fair.Turns. Known browsers are the trusted ones.
const (
	knownLane    = iota // browsers that are known to the account
	operatorLane        // the admin API and commands
	strangerLane
	hashLanes
)

// laneNames are the lanes as values of the label by.
var laneNames = [hashLanes]string{"known", "operator", "stranger"}

// payerKey is the key of a context's fair.Payer.
type payerKey struct{}

// paidBy returns a context whose hashes are charged to a known browser of user u. If known is
// false, they are charged to the network of caller.
func paidBy(ctx context.Context, u *account.User, known bool, caller netip.Addr) context.Context {
	payer := fair.Payer{Class: strangerLane, Network: ratelimit.SitePrefix(caller)}
	if known {
		payer = fair.Payer{Class: knownLane, Key: strconv.FormatInt(u.ID, 10)}
	}
	return context.WithValue(ctx, payerKey{}, payer)
}

// paidByOperator returns a context whose hashes are an operator's.
func paidByOperator(ctx context.Context) context.Context {
	return context.WithValue(ctx, payerKey{}, fair.Payer{Class: operatorLane})
}

// payerOf returns who pays for the hashes of ctx. Those of nobody share the limits of one stranger.
func payerOf(ctx context.Context) fair.Payer {
	if payer, ok := ctx.Value(payerKey{}).(fair.Payer); ok {
		return payer
	}
	return fair.Payer{Class: strangerLane}
}

// hashScheduler shares the slots for hashes among payers (see fair.Turns). A payer may use half a
// core over time, whatever comes of its hashes; operators are not limited. Its methods may be
// called by many goroutines. A hash that has begun cannot be interrupted.
type hashScheduler struct {
	hasher *account.Hasher
	turns  *fair.Turns
	spent  *prometheus.CounterVec // seconds, by laneNames; nil = not counted

	mu sync.Mutex
	// paid has the time from which a payer owes no CPU time.
	paid *simplelru.LRU[fair.Payer, time.Time]
}

// newHashScheduler returns a scheduler with that many slots; 0 = one a core.
func newHashScheduler(hasher *account.Hasher, slots int) *hashScheduler {
	if slots == 0 {
		slots = runtime.GOMAXPROCS(0)
	}
	payers := fair.Class{Waiting: hashQueue, Own: hashesWaiting, AtOnce: hashesAtOnce}
	return &hashScheduler{
		hasher: hasher, paid: newLRU[fair.Payer, time.Time](hashPayers),
		turns: fair.NewTurns(slots,
			[]fair.Class{knownLane: payers, operatorLane: {Waiting: hashQueue}, strangerLane: payers}...),
	}
}

// Hash is account.Hasher.Hash in a slot. The error is account.ErrBusy or wraps ctx's error.
func (s *hashScheduler) Hash(ctx context.Context, password string) (hash string, err error) {
	err = s.run(ctx, func() { hash = s.hasher.Hash(password) })
	return hash, err
}

// Verify is account.Hasher.Verify in a slot. The error may also be account.ErrBusy or wrap ctx's
// error.
func (s *hashScheduler) Verify(
	ctx context.Context, kept, password string,
) (ok, outdated bool, err error) {
	var wrong error
	err = s.run(ctx, func() { ok, outdated, wrong = s.hasher.Verify(kept, password) })
	if err == nil {
		err = wrong
	}
	return ok, outdated, err
}

// checkRoom returns account.ErrBusy if a hash of ctx's payer would be refused at once. It spares
// the work before a hash.
func (s *hashScheduler) checkRoom(ctx context.Context) error {
	payer := payerOf(ctx)
	if s.overdrawn(payer, time.Now()) || !s.turns.HasRoom(payer) {
		return account.ErrBusy
	}
	return nil
}

// run runs hash in a slot and charges its time.
func (s *hashScheduler) run(ctx context.Context, hash func()) error {
	payer := payerOf(ctx)
	if s.overdrawn(payer, time.Now()) {
		return account.ErrBusy
	}
	err := s.turns.Enter(ctx, payer)
	switch {
	case errors.Is(err, fair.ErrFull):
		return account.ErrBusy
	case err != nil:
		return fmt.Errorf("wait to hash: %w", err)
	}
	defer s.turns.Leave(payer)
	begun := time.Now()
	if s.overdrawn(payer, begun) { // by hashes that ran meanwhile
		return account.ErrBusy
	}
	defer func() { s.charge(payer, begun, time.Now()) }()
	hash()
	return nil
}

// overdrawn reports whether payer has used its CPU time.
func (s *hashScheduler) overdrawn(payer fair.Payer, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	paid, ok := s.paid.Peek(payer)
	return ok && paid.Sub(now) > hashCPUShare*hashCPUBurst
}

// charge charges a hash that ran from begun to now.
func (s *hashScheduler) charge(payer fair.Payer, begun, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent != nil {
		s.spent.WithLabelValues(laneNames[payer.Class]).Add(now.Sub(begun).Seconds())
	}
	if payer.Class == operatorLane {
		return
	}
	paid, ok := s.paid.Get(payer)
	if !ok || paid.Before(begun) {
		paid = begun
	}
	s.paid.Add(payer, paid.Add(hashCPUShare*now.Sub(begun)))
}

// newLRU returns a map of size entries, at least 1. A full map drops the least recently used entry.
func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // size is below 1
	}
	return lru
}
