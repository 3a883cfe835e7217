package token

import (
	"errors"
	"runtime"
	"time"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/wire"
)

// handedFor is how long the windows that another node has handed over are kept for tokens that are
// not used. All of them have ended by then.
const handedFor = partition.Length + lateTime

// handedWindows are those of a partition's tokens that a former holder has handed over, or that
// other nodes have reported, and that no request here has needed yet.
type handedWindows struct {
	epoch    int64 // of the partition when this node holds it
	received bool  // a former holder has handed them over
	until    time.Duration
	byToken  map[oauth.TokenID]sharedWindows
}

// mostHanded is how many windows of a partition's tokens are kept at least. A node sends no more
// than the tokens that are in use, but one that is at fault must not fill the memory of the others.
const mostHanded = 1000

// keepHanded keeps the windows of a token, unless as many are kept as tokens may be in use, and
// some more. It is called with the shard locked.
func (d *directory) keepHanded(id *oauth.TokenID, windows *sharedWindows) {
	kept := d.shard(id).handed.byToken
	if _, found := kept[*id]; found || len(kept) < max(mostHanded, int(d.max)/200) {
		kept[*id] = *windows
	}
}

// areValid reports whether the windows are those of the holder of a partition. A former holder that
// failed may have counted on after it had sent them.
func (h *handedWindows) areValid(part *partition.Part) bool {
	return h.epoch == part.Epoch && !(h.received && part.Claimed == part.Epoch)
}

// export collects the windows of a partition's tokens.
type export struct {
	view  *partition.View
	clock time.Duration
	dst   []byte
}

// export appends the token's open windows, with what this node has allowed before it was the
// holder.
func (a *tokenActor) export(m *export) {
	a.hold(m.view, m.clock)
	m.append(&a.shared.windows, &a.id)
}

// append appends the windows of a token, unless none is open.
func (m *export) append(s *sharedWindows, id *oauth.TokenID) {
	open := false
	for _, w := range s {
		open = open || w != nil && w.Used > 0 && !w.Over(m.clock)
	}
	if !open {
		return
	}
	named := knowNames(m.view)
	if named && len(m.dst) == 0 {
		m.dst = append(m.dst, namedMark(int(id[0])))
	}
	m.dst = append(m.dst, id[:]...)
	for _, w := range s {
		if w == nil {
			w = &partition.Window{}
		}
		m.dst = w.Append(m.dst, named, m.clock)
	}
}

// namedMark is the first byte of windows with names and allowances. It is not that of the tokens of
// the partition.
func namedMark(part int) byte { return ^byte(part) }

// exportChunk is how many bytes of windows are handed over at a time.
const exportChunk = 200 << 10

// ExportWindows returns the windows of a partition's tokens, which this node has just stopped to
// decide about, in parts for ReceiveWindows. Ages stand for times, since clocks differ.
func (s *Service) ExportWindows(part int) (chunks [][]byte) {
	m := &export{view: s.config.Peers.View(), clock: s.clock(time.Now())}
	flush := func(least int) {
		if len(m.dst) > least {
			chunks, m.dst = append(chunks, m.dst), nil
		}
	}
	for _, a := range s.directory.members(part, nil) {
		for errors.Is(a.Ask(m), mailbox.ErrFull) { // one that has stopped has no open window
			runtime.Gosched()
		}
		flush(exportChunk)
	}
	shard := &s.directory.shards[part]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.handed.areValid(&m.view.Parts[part]) {
		for id, windows := range shard.handed.byToken {
			m.append(&windows, &id)
			flush(exportChunk)
		}
	}
	flush(0)
	return chunks
}

// ReceiveWindows keeps windows that the holder of a partition hands over, for the time when this
// node holds it at epoch. first drops those that were kept before. Malformed ones are left out, and
// those beyond the tokens that may be in use.
func (s *Service) ReceiveWindows(part int, epoch int64, first bool, counts []byte) {
	clock := s.clock(time.Now())
	shard := &s.directory.shards[part]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if first || shard.handed.epoch != epoch {
		shard.handed = handedWindows{
			epoch: epoch, received: true, byToken: map[oauth.TokenID]sharedWindows{},
		}
	}
	shard.handed.until = clock + handedFor
	named := len(counts) > 0 && counts[0] == namedMark(part)
	if named {
		counts = counts[1:]
	}
	for r := (wire.Reader{Rest: counts}); len(r.Rest) > 0; {
		var id oauth.TokenID
		var windows sharedWindows
		copy(id[:], r.Bytes(len(id)))
		for i := range windows {
			if w := partition.ReadWindow(&r, named, epoch, clock); w.Used > 0 {
				windows[i] = &w
			}
		}
		if r.Bad {
			return
		}
		if int(id[0]) == part {
			s.directory.keepHanded(&id, &windows)
		}
	}
}

// takeHanded returns the windows of a token that other nodes have handed over or reported to the
// holder of a partition, once.
func (d *directory) takeHanded(
	id *oauth.TokenID, part *partition.Part,
) (windows sharedWindows, ok bool) {
	shard := d.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if !shard.handed.areValid(part) {
		return windows, false
	}
	windows, ok = shard.handed.byToken[*id]
	delete(shard.handed.byToken, *id)
	return windows, ok
}

// dropHanded forgets handed windows that have ended.
func (d *directory) dropHanded(n int, clock time.Duration) {
	shard := &d.shards[n]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.handed.byToken != nil && clock > shard.handed.until {
		shard.handed = handedWindows{}
	}
}
