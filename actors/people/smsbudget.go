package people

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/ratelimit"
)

// smsPeriod is the period of a budget of text messages, counted from its first message.
const smsPeriod = time.Hour

// allCountries is the key of the budget of text messages to all countries together.
const allCountries = "all"

// smsBudget limits the text messages with codes that strangers cause, in all and for each country.
// Browsers that are known to the account are not limited, so that nobody can use up their way in.
// Its methods may be called by many goroutines.
type smsBudget struct {
	perHour, perCountry int             // 0 = no limit
	nodes               ratelimit.Nodes // nil = this node counts
	metrics             *metrics
	logger              *slog.Logger

	mu   sync.Mutex
	used map[string]smsUse // by country, and allCountries
}

// networkShare is the part of a budget that one network may use: one in so many.
const networkShare = 5

// smsUse is what is used of a budget in its current period.
type smsUse struct {
	since    time.Time
	n        int
	networks map[netip.Prefix]int // of n
	told     bool                 // that the budget is reached
}

func newSMSBudget(config *Config, metrics *metrics) *smsBudget {
	b := &smsBudget{
		perHour: config.SMSPerHour, perCountry: config.SMSPerCountry, nodes: config.Nodes,
		metrics: metrics, logger: config.Logger, used: map[string]smsUse{},
	}
	if b.nodes != nil {
		b.nodes.Serve(smsLimit, b.serve)
	}
	return b
}

// smsLimit is the name of the budgets among nodes. All have one holder: a message takes of several.
const smsLimit = "sms"

// smsRequest asks another node to count a message.
type smsRequest struct {
	Country string
	Network netip.Prefix
	Undo    bool // take it back
}

// smsReply is the outcome of a request.
type smsReply struct {
	Wait    time.Duration // how long the message has to wait; 0 = it is counted
	Reached []string      // budgets that it uses up
}

// ask has the holder of the budgets count a message, or counts it.
func (b *smsBudget) ask(r smsRequest, now time.Time) (reply smsReply) {
	if b.nodes != nil {
		body, ok := b.nodes.Ask(smsLimit, nil, encodeSMS(r))
		if ok && json.Unmarshal(body, &reply) == nil {
			return reply
		}
	}
	return b.count(r.Country, r.Network, now)
}

// takeBack undoes ask.
func (b *smsBudget) takeBack(r smsRequest) {
	here := func() { b.undo(r.Country, r.Network) }
	if b.nodes == nil {
		here()
		return
	}
	r.Undo = true
	b.nodes.Tell(smsLimit, nil, encodeSMS(r), here)
}

// serve handles the request of another node.
func (b *smsBudget) serve(request []byte, now time.Time) []byte {
	var r smsRequest
	if err := json.Unmarshal(request, &r); err != nil {
		return nil
	}
	if r.Undo {
		b.undo(r.Country, r.Network)
		return nil
	}
	return encodeSMS(b.count(r.Country, r.Network, now))
}

func encodeSMS(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // smsRequest and smsReply can be encoded
	}
	return body
}

// take counts the message of c for a network, unless it is no text message or the browser is known.
// It returns a *ThrottledError if a budget is used up. The context makes the write that uses up a
// budget record that. undo takes the message back, after it was not sent.
func (b *smsBudget) take(
	ctx context.Context, c *account.Challenge, network netip.Prefix, now time.Time,
) (_ context.Context, undo func(), err error) {
	if c.Channel != account.SMS || c.Requester == account.KnownBrowsers {
		return ctx, func() {}, nil
	}
	r := smsRequest{Country: account.PhoneCountry(c.Address), Network: network}
	reply := b.ask(r, now)
	if reply.Wait > 0 {
		return ctx, nil, &ThrottledError{RetryAfter: reply.Wait}
	}
	for _, key := range reply.Reached {
		ctx = audit.With(ctx, audit.Event{
			Action: audit.BudgetReached, Outcome: audit.Refused, Details: []string{"sms", key},
		})
	}
	return ctx, func() { b.takeBack(r) }, nil
}

// count counts a message to a country for a network here.
func (b *smsBudget) count(country string, network netip.Prefix, now time.Time) (reply smsReply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range []string{allCountries, country} {
		if wait := b.wait(key, network, now); wait > 0 {
			return smsReply{Wait: wait}
		}
	}
	for _, key := range []string{allCountries, country} {
		use := b.used[key]
		if use.n++; use.n == 1 {
			use.since, use.networks = now, map[netip.Prefix]int{}
		}
		if b.limit(key) > 0 { // else nothing bounds the number of networks
			use.networks[network]++
		}
		b.used[key] = use
		if use.n == b.limit(key) {
			reply.Reached = append(reply.Reached, key)
		}
	}
	return reply
}

// limit returns the limit of a budget; 0 = none.
func (b *smsBudget) limit(key string) int {
	if key == allCountries {
		return b.perHour
	}
	return b.perCountry
}

// wait returns how long a budget, or the share of a network (if it is known), is used up; 0 = it is
// not. It begins a new period if the last one has ended.
func (b *smsBudget) wait(key string, network netip.Prefix, now time.Time) time.Duration {
	use := b.used[key]
	end := use.since.Add(smsPeriod)
	if !now.Before(end) {
		delete(b.used, key)
		return 0
	}
	limit := b.limit(key)
	switch {
	case limit == 0:
		return 0
	case use.n >= limit:
		b.tell(key)
	case !network.IsValid() || use.networks[network] < max(1, limit/networkShare):
		return 0
	}
	return end.Sub(now)
}

// tell counts a refusal, and logs the first one of a period.
func (b *smsBudget) tell(key string) {
	b.metrics.smsRefused.WithLabelValues(budgetName(key)).Inc()
	if use := b.used[key]; !use.told {
		use.told = true
		b.used[key] = use
		b.logger.Warn("the budget of text messages for this hour is used up", "country", key)
	}
}

// budgetName returns the value of the label budget.
func budgetName(key string) string {
	if key == allCountries {
		return allCountries
	}
	return "country"
}

// undo takes back a message.
func (b *smsBudget) undo(country string, network netip.Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range []string{allCountries, country} {
		if use, ok := b.used[key]; ok && use.n > 0 {
			use.n--
			if use.networks[network] > 0 {
				use.networks[network]--
			}
			b.used[key] = use
		}
	}
}
