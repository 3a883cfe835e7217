package update

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/md5"  //nolint:gosec // publishers' checksums, not for security
	"crypto/sha1" //nolint:gosec // likewise
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
)

// maxSize limits a download, and what is unpacked from it, in bytes.
const maxSize = 4 << 30

// errNoDatabase says that an archive has none.
var errNoDatabase = errors.New("the archive has no file whose name ends in .mmdb")

// unpack writes the database that raw has to database: itself, in gzip, in zip or in tar.gz, as its
// content says.
func unpack(database, raw *os.File, size int64) error {
	if _, err := raw.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReader(raw)
	switch head, _ := in.Peek(4); {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return unzip(database, raw, size)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		packed, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		in = bufio.NewReaderSize(packed, 4096)
	}
	head, _ := in.Peek(262)
	if len(head) < 262 || string(head[257:]) != "ustar" {
		return copyTo(database, in)
	}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return errNoDatabase
		case err != nil:
			return fmt.Errorf("unpack: %w", err)
		case header.Typeflag == tar.TypeReg && strings.HasSuffix(header.Name, ".mmdb"):
			if err := copyTo(database, archive); err != nil {
				return err
			}
			_, err := io.Copy(io.Discard, in) // a cut-off archive is noticed at its end
			if err != nil {
				return fmt.Errorf("unpack: %w", err)
			}
			return nil
		}
	}
}

func unzip(database, raw *os.File, size int64) error {
	archive, err := zip.NewReader(raw, size)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	for _, f := range archive.File {
		if !strings.HasSuffix(strings.ToLower(f.Name), ".mmdb") {
			continue
		}
		member, err := f.Open()
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		return errors.Join(copyTo(database, member), member.Close())
	}
	return errNoDatabase
}

// copyTo writes what from has, if it is not too much.
func copyTo(database *os.File, from io.Reader) error {
	n, err := io.Copy(database, io.LimitReader(from, maxSize+1))
	switch {
	case err != nil:
		return fmt.Errorf("unpack: %w", err)
	case n > maxSize:
		return fmt.Errorf("the database has more than %d bytes", int64(maxSize))
	}
	return nil
}

// describe returns the size and the SHA-256 of a file.
func describe(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// checkSum returns an error unless a checksum is that of one of the files.
func checkSum(want string, files ...*os.File) error {
	for _, f := range files {
		var h hash.Hash
		switch len(want) {
		case 2 * md5.Size:
			h = md5.New() //nolint:gosec // see above
		case 2 * sha1.Size:
			h = sha1.New() //nolint:gosec // see above
		case 2 * sha256.Size:
			h = sha256.New()
		default:
			h = sha512.New()
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) == want {
			return nil
		}
	}
	return errors.New("the download does not have the checksum that the publisher names")
}
