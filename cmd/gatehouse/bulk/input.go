package bulk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Input is a stream of rows, decompressed if its content is gzip or zstd.
type Input struct {
	file   *os.File // nil = not a regular file
	raw    counter
	text   counter     // of raw, decompressed
	stream io.Reader   // of text
	plain  bool        // text has the bytes of raw
	bom    int64       // length of the byte order mark
	head   []byte      // some bytes of the beginning
	opened os.FileInfo // of the regular file, when it was opened
}

// The beginnings of compressed files.
var (
	magicGzip = []byte{0x1f, 0x8b}
	magicZstd = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// maxWindow limits the memory that decompresses zstd, in bytes.
const maxWindow = 16 << 20

// magicUTF8 is the byte order mark, by which some programs recognize UTF-8.
var magicUTF8 = []byte{0xef, 0xbb, 0xbf}

// foreign are the beginnings of files that are no text, and what to do about them.
var foreign = []struct{ magic, problem string }{
	{"\xff\xfe", "the input is UTF-16: convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does"},
	{"\xfe\xff", "the input is UTF-16: convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does"},
	{"PK\x03\x04", "the input is a ZIP archive or a workbook: extract a file, or save it as CSV"},
	{"BZh91AY&SY", "the input is compressed by bzip2: decompress it, as bzcat does"},
	{"\xfd7zXZ\x00", "the input is compressed by xz: decompress it, as xzcat does"},
	{"PAR1\x15", "the input is Parquet: make it CSV, as duckdb -csv -c \"FROM 'FILE'\" does"},
}

// counter counts the bytes read.
type counter struct {
	io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c *counter) reset(r io.Reader) {
	c.Reader = r
	c.n.Store(0)
}

// NewInput reads r, from its beginning. If r is a regular file, the input can be read again.
func NewInput(r io.Reader) (*Input, error) {
	in := &Input{}
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			in.file, in.opened = f, info
		}
	}
	return in, in.open(r)
}

// open begins to read r.
func (in *Input) open(r io.Reader) error {
	in.raw.reset(r)
	head, stream, err := peek(&in.raw)
	if err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(head, magicGzip):
		in.stream, err = gzip.NewReader(stream)
	case bytes.HasPrefix(head, magicZstd):
		in.stream, err = zstd.NewReader(stream, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	default:
		in.stream, in.plain = stream, true
	}
	if err != nil {
		return cutOff(err)
	}
	head, in.stream, err = peek(in.stream)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return errors.New("the input needs more than 16 MiB to be decompressed: decompress it, as" +
			" zstd -dc --long=31 does")
	}
	if err != nil {
		return cutOff(err)
	}
	in.text.reset(in.stream)
	in.stream, in.bom, in.head = &in.text, 0, bytes.Clone(head)
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return errors.New(f.problem)
		}
	}
	if bytes.HasPrefix(head, magicUTF8) {
		in.bom = int64(len(magicUTF8))
		_, err = io.CopyN(io.Discard, in.stream, in.bom)
	}
	return err
}

// Read reads the stream, for those who look for rows themselves.
func (in *Input) Read(p []byte) (int, error) { return in.stream.Read(p) }

// cutOff returns the error of a decompression, and says so if the file is cut off.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the compressed file is cut off: the rows before its end are written")
	}
	return fmt.Errorf("decompress: %w", err)
}

// peek returns the first bytes of r, and a reader of all of it.
func peek(r io.Reader) ([]byte, io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 4096)
	_, err := buffered.Peek(len(magicZstd))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	head, err := buffered.Peek(buffered.Buffered())
	return head, buffered, err
}

// Separator returns the first byte of order that the first line has, or else a comma.
func (in *Input) Separator(order string) byte {
	line, _, _ := bytes.Cut(in.head, []byte{'\n'})
	for _, separator := range []byte(order) {
		if bytes.IndexByte(line, separator) >= 0 {
			return separator
		}
	}
	return ','
}

// IsArray reports whether the input begins as an array of JSON does.
func (in *Input) IsArray() bool { return bytes.HasPrefix(bytes.TrimSpace(in.head), []byte{'['}) }

// seek goes to an offset of the decompressed stream. Only a regular file can.
func (in *Input) seek(offset int64) error {
	if in.file == nil {
		return errors.New("the input cannot be read again: it is not a regular file")
	}
	start := int64(0)
	if in.plain {
		start = offset
	}
	if _, err := in.file.Seek(start, io.SeekStart); err != nil {
		return err
	}
	if in.plain {
		in.stream = in.file
		return nil
	}
	if err := in.open(in.file); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, in.stream, offset-in.bom)
	return err
}

// Size returns the number of bytes of a regular file, or -1.
func (in *Input) Size() int64 {
	if in.file == nil {
		return -1
	}
	info, err := in.file.Stat()
	if err != nil {
		return -1
	}
	return info.Size()
}

// Done returns about how many bytes of the file have the rows up to an offset of the decompressed
// stream. It may be called while the input is read.
func (in *Input) Done(offset int64) int64 {
	read := in.text.n.Load()
	if in.plain || read == 0 {
		return offset
	}
	return int64(float64(in.raw.n.Load()) * float64(offset) / float64(read))
}
