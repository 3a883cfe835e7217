package token

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/actors/ratelimit"
	"gatehouse/actors/wire"
)

// askTime is how long a request waits for the holder of its token's partition.
const askTime = 3 * time.Second

// mostOpening is how many tokens are opened at once for other nodes. More come only from a broken
// node, or while the store does not respond.
const mostOpening = mailbox.Limit

// countElsewhere has the holder of the token's partition count a request, and then has the actor
// decide the rest.
func (s *Service) countElsewhere(a *tokenActor, m *admission) error {
	until := time.Now().Add(askTime)
	for withText := !m.remote.known; ; {
		if m.remote.closing {
			s.takeBack(a, m.endpoint, false)
			m.remote.closing, m.remote.elsewhere, m.now = false, false, time.Now()
			err := a.Ask(m)
			if err != nil || m.stale || !m.remote.elsewhere {
				return err
			}
			if time.Now().After(until) {
				return a.notCounted(m, TryLater)
			}
			withText = !m.remote.known
			continue
		}
		ask := countAsk{
			id: a.id, endpoint: m.endpoint, report: m.remote.report, named: s.holderKnowsNames(&a.id),
		}
		if withText {
			ask.text = a.text
		}
		sent := time.Now()
		reply, epoch, err := s.config.Peers.Ask(
			partition.ServiceTokens, int(a.id[0]), ask.append(nil), until)
		var counted countReply
		if err == nil && !counted.parse(reply, ask.named) {
			err = errors.New("malformed reply")
		}
		switch {
		case err == nil && counted.unknown && !withText:
			withText = true
			continue
		case errors.Is(err, partition.ErrHere):
			m.remote.mode, m.now = countHere, time.Now()
		case errors.Is(err, partition.ErrUnreachable):
			m.remote.mode = countAlone
		case err != nil || counted.unknown:
			return a.notCounted(m, TryLater)
		case !counted.isCounted():
			return a.notCounted(m, counted.verdict)
		default:
			m.remote.mode = countedByHolder
			m.remote.rate, m.remote.reply, m.remote.sent = counted.rate, counted.reply, s.clock(sent)
			m.remote.reply.Epoch, m.remote.reply.Reset = epoch, counted.rate.Reset
		}
		m.remote.elsewhere = false
		err = a.Ask(m)
		if err == nil && m.stale && m.remote.mode == countedByHolder && s.readAgain(a) {
			m.stale = false // the request is counted: it must not be asked about again
			err = a.Ask(m)
		}
		if err != nil || m.stale || !m.remote.elsewhere {
			return err
		}
		if time.Now().After(until) {
			return a.notCounted(m, TryLater)
		}
		withText = !m.remote.known
	}
}

// notCounted ends a request that nobody has counted.
func (a *tokenActor) notCounted(m *admission, verdict Verdict) error {
	m.remote.mode, m.remote.elsewhere = countNowhere, false
	err := a.Ask(m)
	m.stale, m.result = false, Admission{Verdict: verdict}
	return err
}

// readAgain reads the records of a token's client and user that have changed. It reports whether
// they are there.
func (s *Service) readAgain(a *tokenActor) bool {
	ctx, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	_, _, err := s.clients.load(ctx, a.session.client.record.key)
	if a.session.user != nil && err == nil {
		_, _, err = s.users.load(ctx, a.session.user.key)
	}
	return err == nil
}

// HandlePeer replies to an ask of another node, now or later.
func (s *Service) HandlePeer(
	m partition.Message, reply func(status partition.Status, epoch int64, body []byte),
) {
	if reply == nil {
		return // a cast, which no node sends
	}
	if len(m.Body) == 0 {
		m.Body = []byte{0}
	}
	switch m.Body[0] {
	case askReports:
		s.addReports(m.Partition, m.Body[1:], reply)
		return
	case askClose:
		s.closeForPeer(m.Body[1:], reply)
		return
	case askGivenBack:
		s.addGivenBack(m.Partition, m.From, m.Body[1:], reply)
		return
	}
	ask := countAsk{from: m.From}
	if !ask.parse(m.Body) || int(ask.id[0]) != m.Partition {
		reply(partition.Done, 0, (&countReply{verdict: TryLater}).append(nil, false))
		return
	}
	s.replyToAsk(&ask, reply)
}

// replyToAsk counts a request at another node and replies, now or later.
func (s *Service) replyToAsk(
	ask *countAsk, reply func(status partition.Status, epoch int64, body []byte),
) {
	if a := s.directory.find(&ask.id); a != nil && (ask.text == "" || a.is(ask.text)) {
		counted, settled := s.countForPeer(a, ask)
		if settled && counted.closing {
			go func() { // it asks other nodes
				s.takeBack(a, ask.endpoint, false)
				s.replyToAsk(ask, reply)
			}()
			return
		}
		if settled {
			counted.send(ask, reply)
			return
		}
	} else if ask.text == "" {
		(&countReply{unknown: true}).send(ask, reply)
		return
	}
	if s.opening.Add(1) > mostOpening {
		s.opening.Add(-1)
		(&countReply{busy: true}).send(ask, reply)
		return
	}
	go func() { // it may read the store
		defer s.opening.Add(-1)
		if counted := s.openForPeer(ask); !counted.closing {
			counted.send(ask, reply)
			return
		}
		s.replyToAsk(ask, reply) // it waits with what was granted
	}()
}

// countForPeer counts a request at another node. False says that the token's client or user has to
// be read first, or that another actor takes the place of a.
func (s *Service) countForPeer(a *tokenActor, ask *countAsk) (_ *countReply, settled bool) {
	m := &admission{
		endpoint: ask.endpoint, now: time.Now(),
		remote: &remoteCount{mode: countForPeer, report: ask.report},
	}
	if ask.named {
		m.remote.from = ask.from
	}
	err := a.Ask(m)
	if m.remote.closing {
		ask.report.Extra = 0 // it is added
		return &countReply{closing: true}, true
	}
	switch {
	case err == nil && m.stale || hasStopped(err):
		return nil, false
	case err != nil:
		return &countReply{busy: true}, true
	}
	return &countReply{
		elsewhere: m.remote.elsewhere, epoch: m.remote.epoch,
		verdict: m.result.Verdict, rate: m.result.Rate, reply: m.remote.reply,
	}, true
}

// openForPeer is countForPeer for a token that has no actor here, or whose client or user has to be
// read.
func (s *Service) openForPeer(ask *countAsk) *countReply {
	text := ask.text
	if text == "" {
		a := s.directory.find(&ask.id)
		if a == nil {
			return &countReply{unknown: true}
		}
		text = a.text
	}
	now := time.Now()
	_, number, ok := oauth.PeekAccessToken(text)
	if !ok || s.stopped.Load() {
		return &countReply{verdict: TryLater}
	}
	t, verdict := s.check(text, number, now)
	if verdict != Admitted || t.ID != ask.id {
		return &countReply{verdict: verdict}
	}
	ctx, cancel := context.WithTimeout(s.lifetime, loadTimeout)
	defer cancel()
	for ctx.Err() == nil {
		x, verdict := s.open(ctx, &t)
		if verdict != Admitted {
			return &countReply{verdict: verdict}
		}
		a := s.use(&x, t.ID, text)
		if a == nil {
			return &countReply{verdict: TryLater}
		}
		if counted, settled := s.countForPeer(a, ask); settled {
			return counted
		}
	}
	return &countReply{verdict: TryLater}
}

// shadows returns how many tokens in use here are counted by other nodes.
func (s *Service) shadows() (n float64) {
	view := s.config.Peers.View()
	for i := range s.directory.shards {
		if shard := &s.directory.shards[i]; !view.Parts[i].Mine {
			shard.mu.RLock()
			n += float64(len(shard.actors))
			shard.mu.RUnlock()
		}
	}
	return n
}

// confirm returns when every node applies what this one has committed. The outcome of a change that
// not every node is known to apply is unknown.
func (s *Service) confirm() error {
	if s.config.Peers == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.lifetime, confirmTimeout)
	defer cancel()
	if err := s.config.Peers.Confirm(ctx); err != nil {
		return fmt.Errorf("wait until all nodes know: %w", errors.Join(oauth.ErrUnknownOutcome, err))
	}
	return nil
}

// confirmTimeout is how long a change waits for other nodes. A node that does not respond may
// decide no longer after 5.5 seconds.
const confirmTimeout = 9 * time.Second

// The first byte of asks.
const (
	askCount     byte = 1 // a countAsk
	askReports   byte = 2 // what the sender knows of many tokens
	askNamed     byte = 3 // a countAsk with a name, whose reply has one
	askClose     byte = 4 // a windowID: the node that is asked closes its allowance
	askGivenBack byte = 5 // what the sender has spent of many allowances, all of which it has closed
)

// countAsk asks the holder of a token's partition to count a request.
type countAsk struct {
	id       oauth.TokenID
	endpoint Endpoint
	report   partition.Report
	named    bool   // the report has the name of its window
	text     string // of the token; "" = the holder should know it
	from     string // ID of the node that asks; not sent
}

func (c *countAsk) append(dst []byte) []byte {
	kind := askCount
	if c.named {
		kind = askNamed
	}
	dst = append(append(append(dst, kind), c.id[:]...), byte(c.endpoint))
	dst = appendReport(dst, c.report)
	if c.named {
		dst = binary.AppendUvarint(c.report.Name.Append(dst), uint64(c.report.Spent))
	}
	return append(dst, c.text...)
}

// parse reads what append has written, and is not empty. It returns false for anything else.
func (c *countAsk) parse(body []byte) bool {
	r := wire.Reader{Rest: body[1:]}
	copy(c.id[:], r.Bytes(len(c.id)))
	c.endpoint, c.report = Endpoint(r.Byte()), readReport(&r)
	if c.named = body[0] == askNamed; c.named {
		c.report.Name, c.report.Spent = partition.ReadWindowName(&r), r.UpTo(partition.MostCounted)
	}
	if len(r.Rest) > oauth.MaxAccessToken {
		return false
	}
	c.text = string(r.Rest)
	return !r.Bad && (c.named || body[0] == askCount) && c.endpoint.isLimited() && c.report.Epoch >= 0
}

// countReply is the reply to a countAsk.
type countReply struct {
	elsewhere bool  // this node does not hold the partition
	busy      bool  // this node is overloaded
	closing   bool  // what was granted and not spent has to come back first; not sent
	epoch     int64 // of the partition

	unknown bool // the ask must have the token's text
	verdict Verdict
	rate    ratelimit.Decision
	reply   partition.Reply
}

// isCounted reports whether the request was counted.
func (c *countReply) isCounted() bool {
	switch c.verdict {
	case RateLimited, InsufficientScope, UnapprovedScope, InsufficientAuthentication, Admitted:
		return true
	}
	return false
}

func (c *countReply) send(
	ask *countAsk, to func(status partition.Status, epoch int64, body []byte),
) {
	switch {
	case c.elsewhere:
		to(partition.Elsewhere, c.epoch, nil)
	case c.busy:
		to(partition.Busy, c.epoch, nil)
	default:
		to(partition.Done, c.epoch, c.append(nil, ask.named))
	}
}

func (c *countReply) append(dst []byte, named bool) []byte {
	if c.unknown {
		return append(dst, 0)
	}
	allowed := byte(0)
	if c.rate.Allowed {
		allowed = 1
	}
	verdict := c.verdict
	if verdict == InsufficientAuthentication && !named {
		verdict = InsufficientScope // which the release before knows, and decides again itself
	}
	dst = append(dst, 1+byte(verdict), allowed)
	dst = binary.AppendUvarint(dst, uint64(c.rate.Limit))
	dst = binary.AppendUvarint(dst, uint64(c.rate.Remaining))
	dst = binary.AppendUvarint(dst, uint64(c.rate.Reset))
	dst = binary.AppendUvarint(dst, uint64(c.rate.Wait))
	dst = binary.AppendUvarint(dst, uint64(c.reply.Used))
	dst = wire.AppendDuration(dst, c.reply.Age)
	if named {
		dst = binary.AppendUvarint(c.reply.Name.Append(dst), uint64(c.reply.Held))
		dst = binary.AppendUvarint(dst, uint64(c.reply.Granted))
	}
	return dst
}

// parse reads what append has written. It returns false for anything else.
func (c *countReply) parse(body []byte, named bool) bool {
	r := wire.Reader{Rest: body}
	head := r.Byte()
	if head == 0 {
		c.unknown = !r.Bad
		return c.unknown && len(r.Rest) == 0
	}
	c.verdict, c.rate.Allowed = Verdict(head-1), r.Byte() == 1
	c.rate.Limit, c.rate.Remaining = r.UpTo(partition.MostCounted), r.UpTo(partition.MostCounted)
	c.rate.Reset, c.rate.Wait = int64(r.Uint()), int64(r.UpTo(partition.MostCounted))
	c.reply.Used, c.reply.Age = r.UpTo(partition.MostCounted), r.Duration()
	if named {
		c.reply.Name, c.reply.Held = partition.ReadWindowName(&r), r.UpTo(partition.MostCounted)
		c.reply.Granted = r.UpTo(partition.MostCounted)
	}
	return !r.Bad && len(r.Rest) == 0 && c.verdict <= InsufficientAuthentication
}

func appendReport(dst []byte, r partition.Report) []byte {
	dst = wire.AppendDuration(dst, r.Age)
	dst = binary.AppendUvarint(dst, uint64(r.Used))
	dst = binary.AppendUvarint(dst, uint64(r.Epoch))
	return binary.AppendUvarint(dst, uint64(r.Extra))
}

func readReport(r *wire.Reader) (report partition.Report) {
	report.Age, report.Used = r.Duration(), r.UpTo(partition.MostCounted)
	report.Epoch, report.Extra = int64(r.Uint()), r.UpTo(partition.MostCounted)
	return report
}
