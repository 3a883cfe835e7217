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

// closing is what the holder of a window asks its actor before others, and tells it afterwards; and
// what an asker asks its own.
type closing struct {
	step     closingStep
	endpoint Endpoint
	name     partition.WindowName
	any      bool              // also if the window has requests left
	grants   []partition.Grant // those with a rest; then as other nodes have replied
	spent    int
	known    bool // spent is what was spent
}

type closingStep uint8

const (
	beginClosing closingStep = iota // the holder: grants nothing more, and says who has a rest
	endClosing                      // the holder: takes back what was not spent
	closeHere                       // the asker: spends nothing more, and says what was spent
)

func (a *tokenActor) close(m *closing) {
	w := a.shared.windows[m.endpoint]
	if w == nil {
		return
	}
	clock := a.service.clock(time.Now())
	switch m.step {
	case beginClosing:
		if !m.any && !w.MustClose(limitOf[m.endpoint], clock) {
			return
		}
		w.Tight, m.name = true, w.Name
		for _, g := range w.Grants {
			if g.Granted > g.Spent {
				m.grants = append(m.grants, g)
			}
		}
	case endClosing:
		for _, g := range m.grants {
			w.TakeBack(g.Node, m.name, g.Spent)
		}
	case closeHere:
		m.spent, m.known = w.Close(m.name)
	}
}

// takeBack has all nodes give back what they have not spent of a window, before a request is
// refused. It returns when they have, or cannot be reached: what they have then counts as spent.
// Requests that need the same wait together.
func (s *Service) takeBack(a *tokenActor, endpoint Endpoint, always bool) {
	_, _, _ = s.closing.Do(string(append(a.id[:], byte(endpoint))), func() (any, error) {
		m := &closing{endpoint: endpoint, any: always}
		if a.Ask(m) != nil || len(m.grants) == 0 {
			return nil, nil
		}
		var all sync.WaitGroup
		for i := range m.grants {
			all.Go(func() { s.askSpent(a, m, &m.grants[i]) })
		}
		all.Wait()
		m.step = endClosing
		_ = a.Ask(m) // an actor that has too much to do is asked again: the rest is still open
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
	}
	_ = all.Wait()
}

const mostClosing = 64

// askSpent asks a node what it has spent of its allowance.
func (s *Service) askSpent(a *tokenActor, m *closing, g *partition.Grant) {
	id := windowID{token: a.id, endpoint: m.endpoint, name: m.name}
	reply, err := s.config.Peers.AskNode(g.Node, partition.ServiceTokens, int(a.id[0]),
		id.append([]byte{askClose}), time.Now().Add(askTime))
	r := wire.Reader{Rest: reply}
	if known := r.Bool(); err == nil && known {
		if spent := r.UpTo(partition.MostCounted); !r.Bad {
			g.Spent = max(g.Spent, min(spent, g.Granted))
			s.metrics.returned.Add(float64(g.Granted - g.Spent))
			return
		}
	}
	s.metrics.lost.Add(float64(g.Granted - g.Spent))
	g.Spent = g.Granted
}

// closeForPeer closes an allowance of this node for the holder that has granted it.
func (s *Service) closeForPeer(
	body []byte, reply func(status partition.Status, epoch int64, body []byte),
) {
	var id windowID
	if r := (wire.Reader{Rest: body}); id.read(&r) {
		m := &closing{step: closeHere, endpoint: id.endpoint, name: id.name}
		if a := s.directory.find(&id.token); a != nil && a.Ask(m) == nil && m.known {
			reply(partition.Done, 0, binary.AppendUvarint([]byte{1}, uint64(m.spent)))
			return
		}
	}
	reply(partition.Done, 0, []byte{0})
}

// givingBack has an actor close all allowances, or at the holder take back the rest of one.
type givingBack struct {
	dst  []byte // of windowIDs
	from string // the node whose rest this one takes back; "" = it gives back itself
	id   windowID
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
		w := a.shared.windows.at(m.id.endpoint)
		used := w.Used
		w.TakeBack(m.from, m.id.name, m.id.spent)
		a.service.metrics.returned.Add(float64(used - w.Used))
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
		m := &givingBack{from: from}
		if !m.id.read(&r) || int(m.id.token[0]) != part {
			break
		}
		s.metrics.returned.Add(float64(s.directory.takeBackHanded(m, held)))
		if a := s.directory.find(&m.id.token); a != nil {
			_ = a.Ask(m) // an actor that stops has no open window
		}
	}
	reply(partition.Done, held.Epoch, nil)
}

// takeBackHanded is for windows that a former holder has handed over, and no request has needed yet.
func (d *directory) takeBackHanded(m *givingBack, part *partition.Part) (returned int) {
	shard := d.shard(&m.id.token)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	windows, found := shard.handed.byToken[m.id.token]
	if w := windows[m.id.endpoint]; found && w != nil && shard.handed.areValid(part) {
		used := w.Used
		w.TakeBack(m.from, m.id.name, m.id.spent)
		return used - w.Used
	}
	return 0
}
