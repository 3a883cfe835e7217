package lookup

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"gatehouse/actors/geo"
)

// mostShared is how many queries one message to another node has at most.
const mostShared = 200

// errMessage says that a message of another node cannot be read.
var errMessage = errors.New("malformed message about lookups")

// request asks another node to look up queries.
type request struct {
	Caller  netip.Prefix  // whose share of the queue they take
	Left    time.Duration // until the caller gives up
	Queries []string
	Trace   string `json:",omitempty"` // the trace context of the request; "" = none
}

// encodeRequest returns the message that asks for queries.
func encodeRequest(queries []geo.Query, caller netip.Prefix, trace string, left time.Duration) []byte {
	r := request{Caller: caller, Left: left, Trace: trace}
	for _, q := range queries {
		r.Queries = append(r.Queries, q.String())
	}
	return encode(r)
}

// decodeRequest returns the request of a node and its queries.
func decodeRequest(body []byte) (r request, queries []geo.Query, err error) {
	if err := decode(body, &r); err != nil {
		return r, nil, err
	}
	if n := len(r.Queries); n == 0 || n > mostShared {
		return r, nil, fmt.Errorf("%d queries: %w", n, errMessage)
	}
	for _, text := range r.Queries {
		q, err := geo.ParseQuery(text)
		if err != nil {
			return r, nil, errMessage
		}
		queries = append(queries, q)
	}
	return r, queries, nil
}

// reply is the outcome of one query of a request.
type reply struct {
	Entry  *geo.Copy `json:",omitempty"`
	Cached bool      `json:",omitempty"` // Entry was in the cache of the node that replies
	Error  *geo.Error
	// FallBack and Moved are those of outcome.
	FallBack bool `json:",omitempty"`
	Moved    bool `json:",omitempty"`
}

// encodeReplies returns the message with the outcomes of a request.
func encodeReplies(outcomes []outcome, now time.Time) []byte {
	replies := make([]reply, len(outcomes))
	for i, o := range outcomes {
		replies[i] = reply{Error: o.Err, FallBack: o.mayFallBack, Moved: o.moved}
		if o.Entry != nil {
			c := o.Entry.Copy(now)
			replies[i] = reply{Entry: &c, Cached: o.Cached}
		}
	}
	return encode(replies)
}

// decodeReplies returns the outcomes of queries that another node has sent.
func decodeReplies(body []byte, queries []geo.Query, now time.Time) ([]outcome, error) {
	var replies []reply
	if err := decode(body, &replies); err != nil {
		return nil, err
	}
	if len(replies) != len(queries) {
		return nil, fmt.Errorf("%d replies to %d queries: %w", len(replies), len(queries), errMessage)
	}
	outcomes := make([]outcome, len(replies))
	for i, r := range replies {
		switch {
		case r.Entry != nil:
			entry, err := geo.EntryOf(queries[i], *r.Entry, now)
			if err != nil {
				return nil, err
			}
			outcomes[i].Outcome = geo.Outcome{Entry: entry, Err: entry.Err, Cached: r.Cached}
		case r.Error != nil && slices.Contains(geo.Codes, r.Error.Code):
			outcomes[i] = outcome{
				Outcome: geo.Outcome{Err: r.Error}, mayFallBack: r.FallBack, moved: r.Moved,
			}
		default:
			return nil, errMessage
		}
	}
	return outcomes, nil
}

// news is an answer that a node tells all others.
type news struct {
	Query string
	Entry geo.Copy
}

// encodeNews returns the messages that tell entries, which may have nil elements.
func encodeNews(queries []geo.Query, entries []*geo.Entry, now time.Time) (messages [][]byte) {
	var all []news
	for i, e := range entries {
		if e != nil {
			all = append(all, news{queries[i].String(), e.Copy(now)})
		}
	}
	for some := range slices.Chunk(all, mostShared) {
		messages = append(messages, encode(some))
	}
	return messages
}

// decodeNews calls put for each answer that another node has told.
func decodeNews(body []byte, now time.Time, put func(geo.Query, *geo.Entry)) error {
	var all []news
	if err := decode(body, &all); err != nil {
		return err
	}
	for _, n := range all {
		q, invalid := geo.ParseQuery(n.Query)
		if invalid != nil {
			return errMessage
		}
		entry, err := geo.EntryOf(q, n.Entry, now)
		if err != nil {
			return err
		}
		put(q, entry)
	}
	return nil
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of this file cannot be encoded
	}
	return body
}

func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return errors.Join(errMessage, err)
	}
	return nil
}
