package endpoint

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// Coding is a content coding of responses (RFC 9110 section 8.4.1); "" = none.
type Coding string

// The codings.
const (
	Gzip Coding = "gzip" // RFC 1952
	Zstd Coding = "zstd" // RFC 8878, with a window of at most 8 MiB (RFC 9659)
)

// leastCompressed is the size of the largest body that is not compressed, in bytes.
const leastCompressed = 1 << 10

var (
	headerAcceptEncoding = []byte(fasthttp.HeaderAcceptEncoding)
	headerVary           = []byte(fasthttp.HeaderVary)
)

// AcceptedCoding returns the coding that a request likes most: by weight, zstd before gzip (RFC
// 9110 section 12.5.3).
func AcceptedCoding(h *fasthttp.RequestHeader) Coding {
	accepted := h.PeekCanonical(headerAcceptEncoding)
	if len(accepted) == 0 {
		return ""
	}
	const unnamed = -1
	choices := [...]struct {
		coding Coding
		weight float64
	}{{Zstd, unnamed}, {Gzip, unnamed}}
	identity, other := 0.0, 0.0
	for _, line := range h.PeekAll(fasthttp.HeaderAcceptEncoding) {
		for element := range bytes.SplitSeq(line, []byte{','}) {
			name, weight := weighted(element)
			switch {
			case strings.EqualFold(name, "identity"):
				identity = weight
			case name == "*":
				other = weight
			}
			for i := range choices {
				if strings.EqualFold(name, string(choices[i].coding)) {
					choices[i].weight = weight
				}
			}
		}
	}
	chosen, most := Coding(""), identity // that is acceptable without being named
	for _, c := range choices {
		if c.weight == unnamed {
			c.weight = other
		}
		if c.weight > most || chosen == "" && c.weight > 0 && c.weight == most {
			chosen, most = c.coding, c.weight
		}
	}
	return chosen
}

// weighted returns the name of an element of Accept-Encoding, and its weight. The weight is 0 if it
// is malformed. The name is valid as long as element.
func weighted(element []byte) (name string, weight float64) {
	coding, parameter, has := strings.Cut(View(element), ";")
	name = strings.TrimSpace(coding)
	if !has {
		return name, 1
	}
	key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
	weight, err := strconv.ParseFloat(value, 64)
	if !strings.EqualFold(key, "q") || err != nil || !(weight >= 0 && weight <= 1) {
		return name, 0
	}
	return name, weight
}

// setCoding sets the headers of a compressed response.
func setCoding(h *fasthttp.ResponseHeader, c Coding) {
	h.SetContentEncoding(string(c))
	h.SetCanonical(headerVary, headerAcceptEncoding)
}

// encoder compresses what is written to it.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

var encoders = map[Coding]*sync.Pool{
	Gzip: {New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is valid
		}
		return w
	}},
	Zstd: {New: func() any {
		w, err := zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(256<<10))
		if err != nil {
			panic(err) // the options are valid
		}
		return w
	}},
}

// maxCompressors is how many responses are compressed at once. Each takes about a MiB.
const maxCompressors = 64

var compressing atomic.Int64

// compressor compresses a response. Call free at the end.
type compressor struct {
	coding  Coding
	encoder encoder
	out     *bufio.Writer
}

// newCompressor returns a compressor that writes to w, or nil if there are too many.
func newCompressor(c Coding, w io.Writer) *compressor {
	if compressing.Add(1) > maxCompressors {
		compressing.Add(-1)
		return nil
	}
	z := &compressor{c, encoders[c].Get().(encoder), bufio.NewWriterSize(w, 8<<10)}
	z.encoder.Reset(z.out)
	return z
}

// Write compresses p.
func (z *compressor) Write(p []byte) (int, error) { return z.encoder.Write(p) }

// Flush writes what was compressed.
func (z *compressor) Flush() error {
	if err := z.encoder.Flush(); err != nil {
		return err
	}
	return z.out.Flush()
}

// finish writes the end.
func (z *compressor) finish() error {
	if err := z.encoder.Close(); err != nil {
		return err
	}
	return z.out.Flush()
}

// free gives back the memory.
func (z *compressor) free() {
	z.encoder.Reset(io.Discard)
	encoders[z.coding].Put(z.encoder)
	compressing.Add(-1)
}

// Compress compresses the body of the response if it is large enough and the request accepts it.
func Compress(ctx *fasthttp.RequestCtx) {
	if len(ctx.Response.Body()) <= leastCompressed {
		return
	}
	coding := AcceptedCoding(&ctx.Request.Header)
	if coding == "" {
		return
	}
	var small bytes.Buffer
	z := newCompressor(coding, &small)
	if z == nil {
		return
	}
	defer z.free()
	if _, err := z.Write(ctx.Response.Body()); err == nil && z.finish() == nil {
		ctx.Response.SetBodyRaw(small.Bytes())
		setCoding(&ctx.Response.Header, coding)
	}
}
