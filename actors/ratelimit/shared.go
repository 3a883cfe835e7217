package ratelimit

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Limiter limits the failed attempts of each key, as Throttle and Pacer do. Its methods may be
// called by many goroutines.
type Limiter[K comparable] interface {
	// Take counts an attempt of key as failed and returns 0, or returns how long key has to wait.
	Take(key K, now time.Time) (wait time.Duration)
	// Forgive takes back an attempt that Take has counted.
	Forgive(key K)
}

// Nodes lets the nodes of a cluster count together: one of them holds each key and counts for all.
// Its methods may be called by many goroutines.
type Nodes interface {
	// Serve has count handle what other nodes ask of a limit. It is called before the first request
	// of any node, once for each limit. count must not block.
	Serve(limit string, count func(request []byte, now time.Time) (reply []byte))
	// Ask asks the node that holds key. ok is false if this node has to count: it holds key, or the
	// holder cannot be asked.
	Ask(limit string, key, request []byte) (reply []byte, ok bool)
	// Tell is Ask for a request whose reply nobody needs. It calls here, possibly later, if this
	// node has to count.
	Tell(limit string, key, request []byte, here func())
}

// The first byte of requests.
const (
	takeRequest byte = iota + 1
	forgiveRequest
)

// ShareThrottle returns a Limiter that counts as t over all nodes, by a name that no other limit
// has. Without nodes, which are nil then, it is t.
func ShareThrottle(nodes Nodes, name string, t *Throttle) Limiter[netip.Addr] {
	if nodes == nil {
		return t
	}
	return share(nodes, name, t, throttleKeys)
}

// SharePacer is ShareThrottle for a Pacer. decode is the inverse of encode.
func SharePacer[K comparable](
	nodes Nodes, name string, p *Pacer[K],
	encode func(K) []byte, decode func([]byte) (key K, ok bool),
) Limiter[K] {
	if nodes == nil {
		return p
	}
	return share(nodes, name, p, keysBy(encode, decode))
}

// SharePolls is SharePacer for a Polls.
func SharePolls[K comparable](
	nodes Nodes, name string, p *Polls[K],
	encode func(K) []byte, decode func([]byte) (key K, ok bool),
) Limiter[K] {
	if nodes == nil {
		return p
	}
	return share(nodes, name, p, keysBy(encode, decode))
}

// keysBy returns keys of which each is a site of its own.
func keysBy[K comparable](encode func(K) []byte, decode func([]byte) (K, bool)) keys[K] {
	return keys[K]{
		encode: func(key K) (text, site []byte) { text = encode(key); return text, text },
		decode: decode,
	}
}

// keys are how keys are written in requests.
type keys[K comparable] struct {
	encode func(K) (text, site []byte) // keys of one site have one holder
	decode func(text []byte) (key K, ok bool)
}

// throttleKeys write the first network of a caller: no more is counted.
var throttleKeys = keys[netip.Addr]{
	encode: func(caller netip.Addr) (text, site []byte) {
		return CallerPrefix(caller).Addr().AsSlice(), SitePrefix(caller).Addr().AsSlice()
	},
	decode: func(text []byte) (netip.Addr, bool) {
		caller, ok := netip.AddrFromSlice(text)
		return caller, ok || len(text) == 0
	},
}

// shared counts at the holder of a key.
type shared[K comparable] struct {
	nodes Nodes
	name  string
	own   Limiter[K]
	keys  keys[K]
}

func share[K comparable](nodes Nodes, name string, own Limiter[K], keys keys[K]) *shared[K] {
	s := &shared[K]{nodes, name, own, keys}
	nodes.Serve(name, s.count)
	return s
}

// Take implements Limiter.
func (s *shared[K]) Take(key K, now time.Time) time.Duration {
	text, site := s.keys.encode(key)
	reply, ok := s.nodes.Ask(s.name, site, append([]byte{takeRequest}, text...))
	if !ok || len(reply) != 8 {
		return s.own.Take(key, now)
	}
	return max(0, time.Duration(binary.BigEndian.Uint64(reply)))
}

// Forgive implements Limiter. The attempt stays counted for its time if another node counts for key
// by now than when it was taken.
func (s *shared[K]) Forgive(key K) {
	text, site := s.keys.encode(key)
	s.nodes.Tell(s.name, site, append([]byte{forgiveRequest}, text...), func() { s.own.Forgive(key) })
}

// count handles the request of another node.
func (s *shared[K]) count(request []byte, now time.Time) []byte {
	if len(request) == 0 {
		return nil
	}
	key, ok := s.keys.decode(request[1:])
	if !ok {
		return nil
	}
	switch request[0] {
	case takeRequest:
		return binary.BigEndian.AppendUint64(nil, uint64(s.own.Take(key, now)))
	case forgiveRequest:
		s.own.Forgive(key)
	}
	return nil
}
