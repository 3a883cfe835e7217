package sim

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"
)

// batchMax is the maximum number of queries in a batch.
const batchMax = 100

// serveBatch serves POST /batch.
func (s *Server) serveBatch(ctx *fasthttp.RequestCtx) {
	s.exchange(ctx, EndpointBatch, func(w *work, f Fault) int {
		if !ctx.IsPost() {
			ctx.Response.Header.Set(fasthttp.HeaderAllow, fasthttp.MethodPost)
			return fasthttp.StatusMethodNotAllowed
		}
		return w.batch(ctx.PostBody(), string(ctx.QueryArgs().Peek("fields")), f)
	})
}

// batch renders the response to a batch and returns its HTTP status.
func (w *work) batch(body []byte, fieldsParam string, f Fault) int {
	doc, err := w.parser.ParseBytes(body)
	if err != nil {
		return fasthttp.StatusBadRequest
	}
	elements, err := doc.Array()
	if err != nil {
		return fasthttp.StatusBadRequest
	}
	if len(elements) > batchMax {
		return fasthttp.StatusUnprocessableEntity
	}
	now, common := time.Now(), ParseFields(fieldsParam)
	w.body = append(w.body, '[')
	for i, e := range elements {
		query, fields := element(e, common)
		a := answerText(query)
		if a.domain {
			a = answer{query: query, message: messageInvalid, domain: true}
		}
		w.answers = append(w.answers, a)
		if f.Kind == FaultShortBatch && i == len(elements)-1 {
			break
		}
		if i > 0 {
			w.body = append(w.body, ',')
		}
		if f.Kind == FaultBadElement && i == len(elements)/2 {
			w.body = append(w.body,
				`{"status":7,"country":["?"],"lat":"north","offset":"soon","query":null}`...)
			continue
		}
		w.body = a.append(w.body, fields&^FieldReverse, now)
	}
	w.body = append(w.body, ']')
	return fasthttp.StatusOK
}

// element reads one element of a batch: a query, or an object with a query and its own fields.
// Anything else is an invalid query.
func element(e *fastjson.Value, common Fields) (query string, fields Fields) {
	if e.Type() != fastjson.TypeObject {
		return string(e.GetStringBytes()), common
	}
	own := e.Get("fields")
	switch {
	case own == nil:
		fields = common
	case own.Type() == fastjson.TypeNumber:
		fields = ParseFields(strconv.FormatUint(own.GetUint64(), 10))
	default:
		fields = ParseFields(string(own.GetStringBytes()))
	}
	return string(e.GetStringBytes("query")), fields
}
