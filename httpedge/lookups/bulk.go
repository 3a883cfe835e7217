package lookups

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/httpedge/endpoint"
)

// Errors about the whole request. They are shared and never changed.
var (
	errBulkMalformed = endpoint.ProblemOf(
		&geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonMalformed}).
		Saying(`The body must be a JSON object with one member "queries", an array of 1 to 50 strings.`)
	errBulkEmpty = endpoint.ProblemOf(
		&geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonEmpty}).
		Saying(`The list "queries" is empty. Send 1 to 50 addresses or domains.`)
	errBulkTooMany = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonTooMany}
)

const maxBulk = 50 // queries per request (interface document, section 8)

// bulkBatch is the working memory of one bulk request. Its strings are views into the parser's copy
// of the body.
type bulkBatch struct {
	parser   fastjson.Parser
	chosen   selection
	texts    []string
	outcomes []geo.Outcome // one a text, in their order
	sources  []geo.Source  // distinct
}

var bulkBatches = sync.Pool{New: func() any { return new(bulkBatch) }}

// maxPooledBody limits the bodies whose working memory is reused, in bytes. A parser's memory can
// be many times as large as the body.
const maxPooledBody = 16 << 10

// bulk serves POST /api/bulk.
func (s *service) bulk(ctx *fasthttp.RequestCtx, keyed netip.Addr) {
	if !endpoint.IsJSON(ctx.Request.Header.ContentType()) {
		endpoint.WriteLookup(ctx, "", endpoint.ErrNotJSON)
		return
	}
	body := ctx.PostBody()
	chosen, fault := selectionOf(ctx.QueryArgs())
	if fault != nil {
		endpoint.WriteLookup(ctx, "", fault)
		return
	}
	b := bulkBatches.Get().(*bulkBatch)
	b.chosen = chosen
	if err := b.read(body); err != nil {
		endpoint.WriteLookup(ctx, "", err)
	} else {
		b.outcomes = slices.Grow(b.outcomes, len(b.texts))[:len(b.texts)]
		from := func() lookup.Origin { return s.origin(ctx, keyed) }
		s.lookups.LookupAll(b.texts, from, time.Now(), b.outcomes)
		b.write(ctx)
	}
	if len(body) <= maxPooledBody {
		b.reset()
		bulkBatches.Put(b)
	}
}

// read fills texts from body, or returns the error of the whole request. encoding/json validates
// the body, since fastjson accepts some malformed JSON.
func (b *bulkBatch) read(body []byte) error {
	if !json.Valid(body) {
		return errBulkMalformed
	}
	v, err := b.parser.ParseBytes(body)
	if err != nil {
		return errBulkMalformed
	}
	queries, err := memberOf(v, "queries")
	if err != nil {
		return err
	}
	return b.readQueries(queries)
}

// memberOf returns the member of an object with that name, which must occur once.
func memberOf(v *fastjson.Value, name string) (member *fastjson.Value, err error) {
	object, err := v.Object()
	if err != nil {
		return nil, errBulkMalformed
	}
	times := 0
	object.Visit(func(key []byte, value *fastjson.Value) {
		if string(key) == name {
			member = value
			times++
		}
	})
	if times != 1 {
		return nil, errBulkMalformed
	}
	return member, nil
}

func (b *bulkBatch) readQueries(queries *fastjson.Value) error {
	items, err := queries.Array()
	switch {
	case err != nil:
		return errBulkMalformed
	case len(items) == 0:
		return errBulkEmpty
	case len(items) > maxBulk:
		return errBulkTooMany
	}
	for _, item := range items {
		text, err := item.StringBytes()
		if err != nil {
			return errBulkMalformed
		}
		b.texts = append(b.texts, endpoint.View(text))
	}
	return nil
}

// write responds with the outcomes, or with one error when all were refused for overload.
func (b *bulkBatch) write(ctx *fasthttp.RequestCtx) {
	if refusal := b.refusal(); refusal != nil {
		endpoint.WriteLookup(ctx, "", refusal)
		return
	}
	failed := 0
	for i := range b.outcomes {
		if b.outcomes[i].Err != nil {
			failed++
		}
		b.addSource(&b.outcomes[i])
	}
	response := endpoint.NewBody(b.size())
	body := append(response.B, `{"ok":true,"count":`...)
	body = strconv.AppendInt(body, int64(len(b.outcomes)), 10)
	body = append(body, `,"failed":`...)
	body = strconv.AppendInt(body, int64(failed), 10)
	body = append(body, `,"results":[`...)
	for i := range b.outcomes {
		if i > 0 {
			body = append(body, ',')
		}
		if err := b.outcomes[i].Err; err != nil {
			body = endpoint.AppendItem(body, b.texts[i], err)
		} else {
			body = b.chosen.append(body, b.texts[i], &b.outcomes[i])
		}
	}
	response.B = append(body, ']', '}')
	response.Send(ctx)
	endpoint.SetJSON(&ctx.Response.Header)
	endpoint.SetNoStore(&ctx.Response.Header)
	b.setSources(&ctx.Response.Header)
	endpoint.Compress(ctx)
}

// itemRoom is about the size of an item whose size is not known, in bytes.
const itemRoom = 512

// size returns about the size of the response, in bytes.
func (b *bulkBatch) size() int {
	n := itemRoom * len(b.outcomes)
	for i := range b.outcomes {
		if entry := b.outcomes[i].Entry; entry != nil {
			n += len(entry.Body) + len(b.texts[i]) - itemRoom
		}
	}
	return n + itemRoom
}

// refusal returns the error of the whole request: the one with the shortest wait when every item
// was refused by a limit or for overload, else nil.
func (b *bulkBatch) refusal() *geo.Error {
	var soonest *geo.Error
	for i := range b.outcomes {
		err := b.outcomes[i].Err
		if err == nil || err.Code != geo.CodeRateLimited && err.Code != geo.CodeOverloaded {
			return nil
		}
		if soonest == nil || err.RetryAfter < soonest.RetryAfter {
			soonest = err
		}
	}
	return soonest
}

func (b *bulkBatch) addSource(o *geo.Outcome) {
	if !o.HasAnswer() {
		return
	}
	if source := o.Source(); !slices.Contains(b.sources, source) {
		b.sources = append(b.sources, source)
	}
}

func (b *bulkBatch) setSources(h *fasthttp.ResponseHeader) {
	if len(b.sources) == 0 {
		return
	}
	var buf [48]byte
	value := buf[:0]
	for i, source := range b.sources {
		if i > 0 {
			value = append(value, ", "...)
		}
		value = append(value, source...)
	}
	h.SetCanonical(headerSource, value)
}

// reset drops all references to the request.
func (b *bulkBatch) reset() {
	clear(b.texts)
	clear(b.outcomes)
	b.texts, b.outcomes, b.sources = b.texts[:0], b.outcomes[:0], b.sources[:0]
}
