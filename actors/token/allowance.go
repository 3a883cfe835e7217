package token

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/wire"
)

// knowNames reports whether all nodes know names and allowances.
func knowNames(view *partition.View) bool { return view.Version >= 2 }

// holderKnowsNames reports whether the holder of a token's partition does. It may be a node whose
// row is not read yet.
func (s *Service) holderKnowsNames(id *oauth.TokenID) bool {
	view := s.config.Peers.View()
	if !knowNames(view) {
		return false
	}
	_, known := view.Nodes[view.Parts[id[0]].Holder]
	return known
}

// windowID says which allowance a message is about, and what was spent of it.
type windowID struct {
	token    oauth.TokenID
	endpoint Endpoint
	name     partition.WindowName
	spent    int
}

func (w *windowID) append(dst []byte) []byte {
	dst = append(append(dst, w.token[:]...), byte(w.endpoint))
	return binary.AppendUvarint(w.name.Append(dst), uint64(w.spent))
}

// read reads what append has written. It returns false for anything else.
func (w *windowID) read(r *wire.Reader) bool {
	copy(w.token[:], r.Bytes(len(w.token)))
	w.endpoint, w.name = Endpoint(r.Byte()), partition.ReadWindowName(r)
	w.spent = r.UpTo(partition.MostCounted)
	return !r.Bad && w.endpoint.isLimited()
}

// closing is what the holder of a window asks its actor before it asks other nodes, and what an
// asker asks its own.
type closing struct {
	here bool // the asker: spend nothing more of id, and say what was spent
	any  bool // the holder: also if the window has requests left

	id     windowID
	known  bool              // id.spent is what was spent
	grants []partition.Grant // those with a rest
}

func (a *tokenActor) close(m *closing) {
	w := a.shared.windows[m.id.endpoint]
	if m.here {
		if w != nil {
			m.id.spent, m.known = w.Close(m.id.name)
		}
		return
	}
	now := time.Now()
	clock, view := a.service.clock(now), a.service.config.Peers.View()
	if part := &view.Parts[a.id[0]]; !part.Mine || part.Moving {
		return
	}
	a.hold(view, clock)
	w = a.shared.windows[m.id.endpoint]
	if w != nil && (m.any || w.MustClose(limitOf[m.id.endpoint], clock)) {
		w.Tight, m.id.name, m.grants = true, w.Name, w.Open()
	}
}

// takeBack has all nodes give back what they have not spent of a window, before a request is
// refused; always does so even if none would be. It returns when they have, or cannot be reached:
// what they have then counts as spent. Requests that need the same wait together.
func (s *Service) takeBack(a *tokenActor, endpoint Endpoint, always bool) {
	_, _, _ = s.closing.Do(string(append(a.id[:], byte(endpoint))), func() (any, error) {
		m := &closing{any: always, id: windowID{token: a.id, endpoint: endpoint}}
		if a.Ask(m) == nil {
			s.askSpent(m.id, m.grants)
		}
		return nil, nil
	})
}

// takeAllBack takes back all that was granted, since a node joins that knows no allowances: it may
// become the holder. mostClosing windows are closed at a time.
func (s *Service) takeAllBack() {
	var all errgroup.Group
	all.SetLimit(mostClosing)
	for part := range partition.Tokens {
		for _, a := range s.directory.members(part, nil) {
			for e := range limitOf {
				all.Go(func() error {
					s.takeBack(a, Endpoint(e), true)
					return nil
				})
			}
		}
		for id, grants := range s.directory.closeHanded(part) {
			all.Go(func() error {
				s.askSpent(id, grants)
				return nil
			})
		}
	}
	_ = all.Wait()
}

const mostClosing = 64

// askSpent asks nodes what they have spent of their allowances, and takes back the rest.
func (s *Service) askSpent(id windowID, grants []partition.Grant) {
	body := id.append([]byte{askClose})
	var all sync.WaitGroup
	for _, g := range grants {
		all.Go(func() {
			id := id
			reply, err := s.config.Peers.AskNode(g.Node, partition.ServiceTokens, int(id.token[0]), body,
				time.Now().Add(askTime))
			r := wire.Reader{Rest: reply}
			known := r.Bool()
			if id.spent = r.UpTo(partition.MostCounted); err != nil || !known || r.Bad {
				id.spent = g.Granted
				s.metrics.lost.Add(float64(g.Granted - g.Spent))
			}
			s.takeBackFrom(g.Node, &id)
		})
	}
	all.Wait()
}

// takeBackFrom takes back what a node has not spent, if this one holds the window. An actor that has
// too much to do keeps it open.
func (s *Service) takeBackFrom(node string, id *windowID) {
	held := &s.config.Peers.View().Parts[id.token[0]]
	m := &givingBack{from: node, id: *id, returned: s.directory.takeBackHanded(node, id, held)}
	if a := s.directory.find(&id.token); a != nil {
		_ = a.Ask(m)
	}
	s.metrics.returned.Add(float64(m.returned))
}

// closeForPeer closes an allowance of this node for the holder that has granted it.
func (s *Service) closeForPeer(
	body []byte, reply func(status partition.Status, epoch int64, body []byte),
) {
	var id windowID
	if r := (wire.Reader{Rest: body}); id.read(&r) {
		m := &closing{here: true, id: id}
		if a := s.directory.find(&id.token); a != nil && a.Ask(m) == nil && m.known {
			reply(partition.Done, 0, binary.AppendUvarint([]byte{1}, uint64(m.id.spent)))
			return
		}
	}
	reply(partition.Done, 0, []byte{0})
}

// givingBack has an actor close all allowances, or at the holder take back the rest of one.
type givingBack struct {
	dst []byte // of windowIDs

	from     string // the node whose rest this one takes back; "" = it gives back itself
	id       windowID
	returned int // requests
}

func (a *tokenActor) giveBack(m *givingBack) {
	if m.from == "" {
		for i, w := range a.shared.windows {
			if w != nil && w.Granted > w.Spent {
				id := windowID{token: a.id, endpoint: Endpoint(i), name: w.Name, spent: w.Spent}
				_, _ = w.Close(w.Name)
				m.dst = id.append(m.dst)
			}
		}
		return
	}
	now := time.Now()
	peers := a.service.config.Peers
	view := peers.View()
	if part := &view.Parts[a.id[0]]; part.Mine && !part.Moving && peers.Decides(now) {
		a.hold(view, a.service.clock(now))
		if w := a.shared.windows[m.id.endpoint]; w != nil {
			used := w.Used
			w.TakeBack(m.from, m.id.name, m.id.spent)
			m.returned += used - w.Used
		}
	}
}

// giveBackTime is how long a node that leaves waits for the holders.
const giveBackTime = time.Second

// GiveBack returns to other nodes what this one has not spent of its allowances. A node that leaves
// calls it after its last request. What does not arrive counts as used.
func (s *Service) GiveBack(ctx context.Context) error {
	if s.config.Peers == nil {
		return nil
	}
	until := time.Now().Add(giveBackTime)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	var all errgroup.Group
	for part := range partition.Tokens {
		m := &givingBack{}
		flush := func(least int) {
			if len(m.dst) > least {
				body := append([]byte{askGivenBack}, m.dst...)
				m.dst = nil
				all.Go(func() error {
					_, _, err := s.config.Peers.Ask(partition.ServiceTokens, part, body, until)
					return err
				})
			}
		}
		for _, a := range s.directory.members(part, nil) {
			_ = a.Ask(m) // one that has stopped has no open window
			flush(exportChunk)
		}
		flush(0)
	}
	if err := all.Wait(); err != nil {
		return fmt.Errorf("give allowances back: %w", err)
	}
	return nil
}

// addGivenBack takes back what a node that leaves has not spent.
func (s *Service) addGivenBack(part int, from string, body []byte,
	reply func(status partition.Status, epoch int64, body []byte),
) {
	held := &s.config.Peers.View().Parts[part]
	if !held.Mine || held.Moving || !s.config.Peers.Decides(time.Now()) {
		reply(partition.Elsewhere, held.Epoch, nil)
		return
	}
	for r := (wire.Reader{Rest: body}); len(r.Rest) > 0; {
		var id windowID
		if !id.read(&r) || int(id.token[0]) != part {
			break
		}
		s.takeBackFrom(from, &id)
	}
	reply(partition.Done, held.Epoch, nil)
}

// takeBackHanded is for windows that a former holder has handed over, and no request has needed yet.
// It returns how many requests were not spent.
func (d *directory) takeBackHanded(node string, id *windowID, part *partition.Part) int {
	shard := d.shard(&id.token)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	windows, found := shard.handed.byToken[id.token]
	w := windows[id.endpoint]
	if !found || w == nil || !shard.handed.areValid(part) {
		return 0
	}
	used := w.Used
	w.TakeBack(node, id.name, id.spent)
	return used - w.Used
}

// closeHanded returns who has a rest of the windows that were handed over, and are not loaded. They
// grant nothing more.
func (d *directory) closeHanded(part int) map[windowID][]partition.Grant {
	shard := &d.shards[part]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	open := map[windowID][]partition.Grant{}
	for id, windows := range shard.handed.byToken {
		for e, w := range windows {
			if w != nil && w.Rest() > 0 {
				w.Tight = true
				open[windowID{token: id, endpoint: Endpoint(e), name: w.Name}] = w.Open()
			}
		}
	}
	return open
}
