package bulk

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

const (
	maxRow   = 1 << 20  // bytes; a longer row fails
	readSize = 64 << 10 // bytes of one read, and thus about those of a chunk
)

// chunk is a piece of the input: whole rows.
type chunk struct {
	data []byte
	ends []int            // end of each row in data, after its line end
	bad  map[int]*problem // rows that cannot be read, by number
	at   []int64          // offset in the input of the end of each row
	open bool             // its row has no end yet, which may be written later
}

// row returns the row with a number, with its line end.
func (c *chunk) row(i int) []byte {
	if i == 0 {
		return c.data[:c.ends[0]]
	}
	return c.data[c.ends[i-1]:c.ends[i]]
}

func (c *chunk) reset() {
	c.data, c.ends, c.at, c.bad = c.data[:0], c.ends[:0], c.at[:0], nil
	c.open = false
}

func (c *chunk) add(row []byte, p *problem, at int64) {
	if p != nil {
		if c.bad == nil {
			c.bad = map[int]*problem{}
		}
		c.bad[len(c.ends)] = p
	}
	c.data = append(c.data, row...)
	c.ends = append(c.ends, len(c.data))
	c.at = append(c.at, at)
}

// splitter cuts an input into rows. Its memory does not depend on the length of rows.
type splitter struct {
	input   io.Reader
	comma   byte // of CSV, whose quoted cells may hold line ends; 0 = a row is a line
	maxRows int  // of a chunk
	buf     []byte
	pos     int   // buf[pos:] was not taken yet
	offset  int64 // of buf[pos] in the input
	err     error // of the last read
}

// next fills c with the next rows. It returns io.EOF at the end of the input. It reads only if it
// has no whole row, so that rows of a slow input are not held back.
func (s *splitter) next(c *chunk) error {
	c.reset()
	for {
		for len(c.ends) < s.maxRows && s.take(c) {
		}
		switch {
		case len(c.ends) > 0:
			return nil
		case s.err != nil:
			return s.err
		case len(s.buf)-s.pos > maxRow:
			return s.skip(c)
		}
		s.read()
	}
}

// take moves one row to c and reports whether there was a whole one. A row with broken quotes ends
// with its line. A row that ends only because the input does begins a chunk of its own.
func (s *splitter) take(c *chunk) bool {
	rest, atEnd := s.buf[s.pos:], errors.Is(s.err, io.EOF)
	line := bytes.IndexByte(rest, '\n') + 1
	known := rest
	switch {
	case line > 0:
		known = rest[:line]
	case atEnd:
		line = len(rest)
	}
	n, open := line, atEnd && !bytes.HasSuffix(known, []byte{'\n'})
	var p *problem
	if s.comma != 0 && bytes.IndexByte(known, '"') >= 0 {
		var broken bool
		n, broken = quotedRow(rest, s.comma, atEnd)
		if broken || n == 0 && (atEnd || len(rest) > maxRow) {
			n, p, open = line, badQuotes, open || atEnd && !broken
		} else {
			open = atEnd && n == len(rest) && !bytes.HasSuffix(rest, []byte{'\n'})
		}
	}
	if n == 0 || open && len(c.ends) > 0 {
		return false
	}
	c.open = open
	s.pos += n
	s.offset += int64(n)
	if n > maxRow {
		c.add(nil, badLength, s.offset)
	} else {
		c.add(rest[:n], p, s.offset)
	}
	return true
}

// quotedRow returns the length of the CSV row that data begins with (RFC 4180), or 0 if its end is
// not in data. A cell is quoted if it begins with a quote. atEnd says that data has the last row of
// the input.
func quotedRow(data []byte, comma byte, atEnd bool) (n int, broken bool) {
	end := func(i int) (int, bool) { // the data ends after a whole cell
		if atEnd {
			return i, false
		}
		return 0, false
	}
	for i := 0; i < len(data); i++ { // data[i] begins a cell
		if data[i] == '"' {
			if i = quotedCell(data, i); i == 0 {
				return 0, false
			}
			if i < len(data) && data[i] == '\r' {
				i++
				if i < len(data) && data[i] != '\n' {
					return 0, true
				}
			}
		} else {
			for i < len(data) && data[i] != comma && data[i] != '\n' {
				i++
			}
		}
		switch {
		case i == len(data):
			return end(i)
		case data[i] == '\n':
			return i + 1, false
		case data[i] != comma:
			return 0, true
		}
	}
	return end(len(data))
}

// quotedCell returns the index after the quoted cell that begins at i, or 0 if its closing quote
// is not in data.
func quotedCell(data []byte, i int) int {
	for {
		i++
		k := bytes.IndexByte(data[i:], '"')
		if k < 0 {
			return 0
		}
		i += k + 1
		if i == len(data) || data[i] != '"' {
			return i
		}
	}
}

// skip passes over a row of more than maxRow bytes.
func (s *splitter) skip(c *chunk) error {
	found := false
	for !found {
		s.offset += int64(len(s.buf) - s.pos)
		s.buf, s.pos = s.buf[:0], 0
		if s.err != nil {
			break
		}
		s.read()
		if i := bytes.IndexByte(s.buf, '\n'); i >= 0 {
			found = true
			s.pos = i + 1
			s.offset += int64(i + 1)
		}
	}
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		return s.err
	}
	c.add(nil, badLength, s.offset)
	c.open = !found
	return nil
}

// read reads once, and appends to what was not taken yet.
func (s *splitter) read() {
	s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
	s.pos = 0
	s.buf = slices.Grow(s.buf, readSize)
	n, err := s.input.Read(s.buf[len(s.buf) : len(s.buf)+readSize])
	s.buf, s.err = s.buf[:len(s.buf)+n], err
}
