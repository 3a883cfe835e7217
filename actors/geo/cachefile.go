package geo

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// fileMagic begins a file of cached answers. Its last byte is the version of the format.
const fileMagic = "gatehouse cache\x01"

// Errors of a file of cached answers.
var (
	ErrFileVersion = errors.New("it is no cache file of this version")
	ErrFileOrigin  = errors.New("its results are those of other settings")
	ErrFileDamaged = errors.New("it is damaged")
)

// Save writes the live answers of the cache to w. origin names where they come from: provider and
// settings.
//
// The file is fileMagic, the SHA-256 of origin, the answers, a byte 0, and the SHA-256 of all that.
// Each answer is a byte 1, the time of its fetch in nanoseconds since 1970, its lifetime in
// seconds, and five strings: query, source, reason, JSON and data. Numbers and lengths are varints.
func (c *Cache) Save(w io.Writer, origin string, now time.Time) error {
	c.mu.Lock()
	queries, entries := c.entries.Keys(), c.entries.Values() // the least recently used first
	c.mu.Unlock()
	sum := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(w, sum))
	of := sha256.Sum256([]byte(origin))
	buf := append([]byte(fileMagic), of[:]...)
	for i, e := range entries {
		if e.live(now.UnixNano()) {
			buf = e.appendRecord(buf, queries[i], now)
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	if _, err := out.Write(append(buf, 0)); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

func (e *Entry) appendRecord(dst []byte, q Query, now time.Time) []byte {
	c := e.Copy(now)
	dst = binary.AppendVarint(append(dst, 1), e.fetched)
	dst = binary.AppendUvarint(dst, uint64(e.ttl))
	for _, s := range []string{q.String(), string(c.Source), string(c.Reason), c.JSON, c.Data} {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	return dst
}

// Load puts the answers that Save has written to r into the cache, unless they have expired by now.
// It returns how many. It reads r twice, and puts nothing into the cache if r is not whole.
func (c *Cache) Load(r io.ReadSeeker, origin string, now time.Time) (n int, err error) {
	if err := checkFile(r, origin); err != nil {
		return 0, err
	}
	if _, err := r.Seek(int64(len(fileMagic)+sha256.Size), io.SeekStart); err != nil {
		return 0, err
	}
	in := bufio.NewReader(r)
	for {
		switch kind, err := in.ReadByte(); {
		case err == nil && kind == 0:
			return n, nil
		case err != nil || kind != 1:
			return n, ErrFileDamaged
		}
		q, e, err := readRecord(in, now)
		if err != nil {
			return n, errors.Join(ErrFileDamaged, err)
		}
		if e != nil {
			c.Put(q, e)
			n++
		}
	}
}

// checkFile reads all of r. It returns why the file must not be used, or nil.
func checkFile(r io.ReadSeeker, origin string) error {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var head [len(fileMagic) + sha256.Size]byte
	var sum, of [sha256.Size]byte
	hashed := sha256.New()
	if _, err := io.ReadFull(io.TeeReader(r, hashed), head[:]); err != nil ||
		string(head[:len(fileMagic)]) != fileMagic {
		return errors.Join(ErrFileVersion, err)
	}
	if _, err := io.CopyN(hashed, r, size-int64(len(head)+len(sum))); err != nil {
		return errors.Join(ErrFileDamaged, err)
	}
	if _, err := io.ReadFull(r, sum[:]); err != nil || sum != [sha256.Size]byte(hashed.Sum(nil)) {
		return errors.Join(ErrFileDamaged, err)
	}
	copy(of[:], head[len(fileMagic):])
	if of != sha256.Sum256([]byte(origin)) {
		return ErrFileOrigin
	}
	return nil
}

// readRecord reads what appendRecord has written after its first byte. The entry is nil if it has
// expired, or if the clock was set back.
func readRecord(r *bufio.Reader, now time.Time) (q Query, e *Entry, err error) {
	fetched, err := binary.ReadVarint(r)
	if err != nil {
		return q, nil, err
	}
	ttl, err := binary.ReadUvarint(r)
	if err != nil || ttl > uint64(MaxTTL/time.Second) {
		return q, nil, errors.Join(errCopy, err)
	}
	var texts [5]string
	for i := range texts {
		if texts[i], err = readText(r); err != nil {
			return q, nil, err
		}
	}
	q, invalid := ParseQuery(texts[0])
	if invalid != nil || q.String() != texts[0] {
		return q, nil, errCopy
	}
	c := Copy{
		Age: now.Sub(time.Unix(0, fetched)), TTL: time.Duration(ttl) * time.Second,
		Source: Source(texts[1]), Reason: Reason(texts[2]), JSON: texts[3], Data: texts[4],
	}
	if c.Age < 0 || c.Age >= c.TTL {
		return q, nil, nil
	}
	e, err = EntryOf(q, c, now)
	return q, e, err
}

// longestText bounds a string of a file, in bytes.
const longestText = 1 << 20

func readText(r *bufio.Reader) (string, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil || n > longestText {
		return "", errors.Join(errCopy, err)
	}
	text := make([]byte, n)
	_, err = io.ReadFull(r, text)
	return string(text), err
}
