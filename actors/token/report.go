package token

import (
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/wire"
)

// reportToHolders tells a node that takes partitions from one that failed what this node knows of
// their tokens, from a View on until the Service stops. The new holder would otherwise hear of a
// token when it is next used here, and allow too much until then.
func (s *Service) reportToHolders(view *partition.View) {
	var taken [partition.Tokens]takenPart
	for {
		select {
		case <-view.Changed:
		case <-s.lifetime.Done():
			return
		}
		before, now := view, time.Now()
		view = s.config.Peers.View()
		if knowNames(before) && !knowNames(view) {
			go s.takeAllBack()
		}
		for part := range partition.Tokens {
			was, is := &before.Parts[part], &view.Parts[part]
			if is.Epoch != was.Epoch {
				taken[part] = takenPart{from: was.Holder, at: now}
			}
			from := taken[part].from
			if _, there := view.Nodes[from]; there || from == "" {
				continue
			}
			failed := now.Sub(taken[part].at) < goneWithin
			taken[part] = takenPart{}
			if failed && is.Holder != view.Self && s.lifetime.Err() == nil {
				s.reportTo(part, is.Epoch)
			}
		}
	}
}

// takenPart says from which node another one took a partition, and when this node learned of it.
type takenPart struct {
	from string // "" = nobody
	at   time.Time
}

// goneWithin is how long after it learned of a new holder a node learns that the one before has
// failed. What is reported of one that has handed over changes nothing.
const goneWithin = 4 * partition.ReadEvery

// reporting collects what this node knows of a partition's tokens.
type reporting struct {
	epoch   int64
	clock   time.Duration
	dst     []byte
	reports sharedReports // of the last token; all zero if there are none
}

// reported tells an actor that the holder has got its reports, or has not, or that the holder is to
// add those of another node.
type reported struct {
	reports sharedReports
	add     bool
	failed  bool
}

// sharedReports are the reports of a token's windows, one for each endpoint.
type sharedReports [len(limitOf)]partition.Report

// report appends the token's reports, unless the holder knows all of it.
func (a *tokenActor) report(m *reporting) {
	m.reports = sharedReports{}
	for i, w := range a.shared.windows {
		if w != nil && (w.Epoch != m.epoch || w.Extra > 0) {
			m.reports[i] = w.Send(m.clock)
		}
	}
	if m.reports == (sharedReports{}) {
		return
	}
	m.dst = append(m.dst, a.id[:]...)
	for _, r := range m.reports {
		m.dst = appendReport(m.dst, r)
	}
}

// takeReport adds the reports of another node, if this one is the holder, or notes that the holder
// has those of this one.
func (a *tokenActor) takeReport(m *reported) {
	if !m.add {
		for i, w := range a.shared.windows {
			if w == nil {
				continue
			}
			w.Unsent(m.reports[i])
			if !m.failed {
				w.Extra = max(0, w.Extra-m.reports[i].Extra)
			}
		}
		return
	}
	now := time.Now()
	peers, clock := a.service.config.Peers, a.service.clock(now)
	view := peers.View()
	part := &view.Parts[a.id[0]]
	if !part.Mine || part.Moving || !peers.Decides(now) {
		return
	}
	a.hold(view, clock)
	for i, r := range m.reports {
		if r != (partition.Report{}) {
			w := a.shared.windows.at(Endpoint(i))
			w.Hold(part.Epoch, part.Claimed, clock)
			w.Add(r, part.Claimed, clock)
		}
	}
}

// reportTo sends the reports of a partition's tokens to its holder. What does not arrive is
// reported again when a token is used.
func (s *Service) reportTo(part int, epoch int64) {
	type sent struct {
		to      *tokenActor
		reports sharedReports
	}
	var all []sent
	m := &reporting{epoch: epoch, clock: s.clock(time.Now())}
	flush := func() {
		if len(m.dst) == 0 {
			return
		}
		body := append([]byte{askReports}, m.dst...)
		_, _, err := s.config.Peers.Ask(
			partition.ServiceTokens, part, body, time.Now().Add(askTime))
		for _, one := range all {
			_ = one.to.Ask(&reported{reports: one.reports, failed: err != nil}) // it may have stopped
		}
		m.dst, all = m.dst[:0], all[:0]
	}
	for _, a := range s.directory.members(part, nil) {
		if err := a.Ask(m); err == nil && m.reports != (sharedReports{}) {
			all = append(all, sent{a, m.reports})
		}
		if len(m.dst) > exportChunk {
			flush()
		}
	}
	flush()
}

// addReports adds what another node knows of a partition's tokens. Reports of tokens that are not
// in use here are kept until they are.
func (s *Service) addReports(
	part int, body []byte, reply func(status partition.Status, epoch int64, body []byte),
) {
	now := time.Now()
	if part < 0 || part >= partition.Tokens {
		reply(partition.Done, 0, nil)
		return
	}
	held := &s.config.Peers.View().Parts[part]
	if !held.Mine || held.Moving || !s.config.Peers.Decides(now) {
		reply(partition.Elsewhere, held.Epoch, nil)
		return
	}
	for r := (wire.Reader{Rest: body}); len(r.Rest) > 0; {
		var id oauth.TokenID
		m := &reported{add: true}
		copy(id[:], r.Bytes(len(id)))
		for i := range m.reports {
			m.reports[i] = readReport(&r)
		}
		if r.Bad || int(id[0]) != part {
			break
		}
		a := s.directory.find(&id)
		if a == nil {
			s.directory.keepReports(&id, m.reports, held, s.clock(now))
			if a = s.directory.find(&id); a == nil {
				continue
			}
			if _, ok := s.directory.takeHanded(&id, held); !ok {
				continue // the actor that was made meanwhile has them
			}
		}
		_ = a.Ask(m) // an actor that stops has no open window
	}
	reply(partition.Done, held.Epoch, nil)
}

// keepReports keeps reports of a token that is not in use here.
func (d *directory) keepReports(
	id *oauth.TokenID, reports sharedReports, part *partition.Part, clock time.Duration,
) {
	shard := d.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if h := &shard.handed; !h.areValid(part) {
		*h = handedWindows{epoch: part.Epoch, byToken: map[oauth.TokenID]sharedWindows{}}
	}
	shard.handed.until = clock + handedFor
	windows := shard.handed.byToken[*id]
	for i, r := range reports {
		if r != (partition.Report{}) {
			windows.at(Endpoint(i)).Epoch = part.Epoch
			windows[i].Add(r, part.Claimed, clock)
		}
	}
	d.keepHanded(id, &windows)
}
