package people

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
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

// hashLane is a class of callers whose hashes wait together.
type hashLane int

// The lanes, in the order of their turns.
const (
	knownLane    hashLane = iota // browsers that are known to the account
	operatorLane                 // the admin API and commands
	strangerLane
	hashLanes
)

// laneNames are the lanes as values of the label by.
var laneNames = [hashLanes]string{"known", "operator", "stranger"}

// hashPayer is who a hash is charged to. The zero hashPayer is the user 0 of knownLane.
type hashPayer struct {
	lane   hashLane
	userID int64        // in knownLane
	site   netip.Prefix // in strangerLane: an IPv4 address or an IPv6 /48
}

// payerKey is the key of a context's hashPayer.
type payerKey struct{}

// paidBy returns a context whose hashes are charged to a known browser of user u. If known is false,
// they are charged to the network of caller.
func paidBy(ctx context.Context, u *account.User, known bool, caller netip.Addr) context.Context {
	payer := hashPayer{lane: strangerLane, site: ratelimit.SitePrefix(caller)}
	if known {
		payer = hashPayer{lane: knownLane, userID: u.ID}
	}
	return context.WithValue(ctx, payerKey{}, payer)
}

// paidByOperator returns a context whose hashes are an operator's.
func paidByOperator(ctx context.Context) context.Context {
	return context.WithValue(ctx, payerKey{}, hashPayer{lane: operatorLane})
}

// payerOf returns who pays for the hashes of ctx. Those of nobody share the limits of one stranger.
func payerOf(ctx context.Context) hashPayer {
	if payer, ok := ctx.Value(payerKey{}).(hashPayer); ok {
		return payer
	}
	return hashPayer{lane: strangerLane}
}

// hashScheduler shares the slots for hashes among payers. A lane serves its payers in turn, and free
// slots go to the lanes in turn. If there are several slots, one is kept for known browsers. A
// payer may use half a core over time, whatever comes of its hashes; operators are not limited. Its
// methods may be called by many goroutines. A hash that has begun cannot be interrupted.
type hashScheduler struct {
	hasher *account.Hasher
	slots  int
	spent  *prometheus.CounterVec // seconds, by laneNames; nil = not counted

	mu      sync.Mutex
	waiting [hashLanes]*fair.Queue[hashPayer, *waitingHash]
	turn    hashLane // lane to serve first
	running map[hashPayer]int
	busy    int // slots in use
	others  int // slots in use by others than known browsers
	// paid has the time from which a payer owes no CPU time.
	paid *simplelru.LRU[hashPayer, time.Time]
}

// waitingHash is a hash in a queue.
type waitingHash struct {
	payer hashPayer
	start chan error // nil = it has a slot; holds one element
}

// newHashScheduler returns a scheduler with that many slots; 0 = one a core.
func newHashScheduler(hasher *account.Hasher, slots int) *hashScheduler {
	if slots == 0 {
		slots = runtime.GOMAXPROCS(0)
	}
	s := &hashScheduler{
		hasher: hasher, slots: slots, running: map[hashPayer]int{},
		paid: newLRU[hashPayer, time.Time](hashPayers),
	}
	for lane := range s.waiting {
		s.waiting[lane] = fair.NewQueue[hashPayer, *waitingHash]()
	}
	return s
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasRoom(payerOf(ctx), time.Now()) {
		return account.ErrBusy
	}
	return nil
}

// run runs hash in a slot and charges its time.
func (s *hashScheduler) run(ctx context.Context, hash func()) error {
	payer := payerOf(ctx)
	if err := s.enter(ctx, payer); err != nil {
		return err
	}
	begun := time.Now()
	defer func() { s.leave(payer, begun, time.Now()) }()
	hash()
	return nil
}

// enter waits for a slot.
func (s *hashScheduler) enter(ctx context.Context, payer hashPayer) error {
	w, err := s.enqueue(payer, time.Now())
	if err != nil {
		return err
	}
	select {
	case err := <-w.start:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case err := <-w.start:
		if err == nil {
			s.free(payer)
		}
	default:
		s.waiting[payer.lane].Filter(func(other *waitingHash) bool { return other != w })
	}
	return fmt.Errorf("wait to hash: %w", ctx.Err())
}

func (s *hashScheduler) enqueue(payer hashPayer, now time.Time) (*waitingHash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasRoom(payer, now) {
		return nil, account.ErrBusy
	}
	queue := s.waiting[payer.lane]
	if queue.Len() == hashQueue {
		evicted, ok := queue.EvictLongest(1)
		if !ok { // each payer has one
			evicted = s.usedLast(payer.lane)
			queue.Filter(func(other *waitingHash) bool { return other != evicted })
		}
		evicted.start <- account.ErrBusy
	}
	w := &waitingHash{payer: payer, start: make(chan error, 1)}
	queue.Push(payer, w)
	s.serve(now)
	return w, nil
}

// hasRoom reports whether a hash of payer may wait. A full lane makes room for a payer that has
// none waiting, if another has several, or has had a hash since: else some hundred addresses that
// ask again and again would keep all others out.
func (s *hashScheduler) hasRoom(payer hashPayer, now time.Time) bool {
	queue := s.waiting[payer.lane]
	if payer.lane == operatorLane {
		return queue.Len() < hashQueue
	}
	held := queue.Held(payer)
	return held < hashesWaiting && !s.overdrawn(payer, now) &&
		(queue.Len() < hashQueue || held == 0 && (queue.Excess(1) > 0 ||
			s.used(payer).Before(s.used(s.usedLast(payer.lane).payer))))
}

// used returns about when payer had its last hash; the zero time if that is not remembered.
func (s *hashScheduler) used(payer hashPayer) time.Time {
	paid, _ := s.paid.Peek(payer)
	return paid
}

// usedLast returns the waiting hash of the payer that has had the last hash; nil = none waits.
func (s *hashScheduler) usedLast(lane hashLane) (last *waitingHash) {
	s.waiting[lane].Filter(func(w *waitingHash) bool {
		if last == nil || s.used(w.payer).After(s.used(last.payer)) {
			last = w
		}
		return true
	})
	return last
}

// overdrawn reports whether payer has used its CPU time.
func (s *hashScheduler) overdrawn(payer hashPayer, now time.Time) bool {
	paid, ok := s.paid.Peek(payer)
	return ok && paid.Sub(now) > hashCPUShare*hashCPUBurst
}

// serve starts hashes that wait as long as there are slots for them.
func (s *hashScheduler) serve(now time.Time) {
	for s.busy < s.slots {
		w := s.next(now)
		if w == nil {
			return
		}
		s.busy++
		s.running[w.payer]++
		if w.payer.lane != knownLane {
			s.others++
		}
		w.start <- nil
	}
}

// next dequeues the hash that gets the next slot; nil = none may have one.
func (s *hashScheduler) next(now time.Time) *waitingHash {
	for i := range hashLanes {
		lane := (s.turn + i) % hashLanes
		if lane != knownLane && s.others >= max(1, s.slots-1) {
			continue
		}
		if w := s.nextOf(lane, now); w != nil {
			s.turn = (lane + 1) % hashLanes
			return w
		}
	}
	return nil
}

// nextOf is next for one lane. It refuses hashes of payers that have used their CPU time meanwhile.
func (s *hashScheduler) nextOf(lane hashLane, now time.Time) *waitingHash {
	for {
		w, ok := s.waiting[lane].PopIf(func(payer hashPayer) bool {
			return lane == operatorLane || s.running[payer] < hashesAtOnce
		})
		if !ok {
			return nil
		}
		if lane == operatorLane || !s.overdrawn(w.payer, now) {
			return w
		}
		w.start <- account.ErrBusy
	}
}

// leave ends a hash of payer that ran from begun to now.
func (s *hashScheduler) leave(payer hashPayer, begun, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent != nil {
		s.spent.WithLabelValues(laneNames[payer.lane]).Add(now.Sub(begun).Seconds())
	}
	if payer.lane != operatorLane {
		paid, ok := s.paid.Get(payer)
		if !ok || paid.Before(begun) {
			paid = begun
		}
		s.paid.Add(payer, paid.Add(hashCPUShare*now.Sub(begun)))
	}
	s.free(payer)
}

// free gives a slot of payer to the next hash.
func (s *hashScheduler) free(payer hashPayer) {
	s.busy--
	if payer.lane != knownLane {
		s.others--
	}
	if s.running[payer]--; s.running[payer] == 0 {
		delete(s.running, payer)
	}
	s.serve(time.Now())
}

// newLRU returns a map of size entries, at least 1. A full map drops the least recently used entry.
func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // size is below 1
	}
	return lru
}
