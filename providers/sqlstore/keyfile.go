package sqlstore

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"gatehouse/actors/oauth"
)

// ErrKeyFile: a key file is missing, or is not usable.
var ErrKeyFile = errors.New("unusable key file")

const (
	keyFileLength = 32  // bytes of its key
	keyFileLimit  = 256 // bytes of a file that are read

	keyFileSuffix = ".key" // after the name of a SQLite file

	wrapKeyInfo     = "gatehouse: wraps keys"
	keyFileNameInfo = "gatehouse: name of a key file"
)

// DefaultKeyFile returns the key file of a SQLite database for which Config names none: its path
// without symbolic links, with .key. It returns "" for other URLs.
func DefaultKeyFile(url string) string {
	e, path, err := parseURL(url)
	if err != nil || e != sqliteEngine {
		return ""
	}
	if resolved, err := resolve(path); err == nil { // else Open fails, and says why
		path = resolved
	}
	return path + keyFileSuffix
}

// keyFile is the key of a key file. It wraps the secret keys in the database.
type keyFile struct {
	path string
	name [8]byte // derived from the key; each wrapped key begins with it
	aead cipher.AEAD
}

// keyFiles are those that a process was given, in the order of Config.KeyFiles.
type keyFiles []*keyFile

// readKeyFile reads a key file that must exist. missing says what to do if it does not.
func readKeyFile(config Config, path, missing string) (*keyFile, error) {
	info, err := os.Stat(path) // first, because opening a pipe blocks
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, keyFileError(path, "does not exist: "+missing)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	case !info.Mode().IsRegular():
		return nil, keyFileError(path, "is not a file: name the file with the key")
	}
	if refused := info.Mode().Perm() & config.refusedBits(path, info); refused != 0 {
		return nil, keyFileError(path, fmt.Sprintf("has mode %04o, so that others may read or "+
			"change it: run chmod 600, and replace the key if others had access. The group may read "+
			"it (0440 or 0640) if it is a group of this process, and the owner is root or this "+
			"process, %s. A secret of Docker Swarm needs uid, gid and mode (0400), and one of "+
			"Kubernetes defaultMode (0440) and fsGroup", info.Mode().Perm(), ownersOf(info)))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	content, err := io.ReadAll(io.LimitReader(f, keyFileLimit))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	key, ok := parseKey(content)
	if !ok {
		return nil, keyFileError(path, fmt.Sprintf("must have %d bytes in base64 and nothing else: "+
			"restore it from its copy", keyFileLength))
	}
	return newKeyFile(path, key), nil
}

func keyFileError(path, problem string) error {
	return fmt.Errorf("%w: %s %s", ErrKeyFile, path, problem)
}

// makeKeyFile is the hint for a key file that nothing is wrapped under yet.
func makeKeyFile(path string) string {
	return "create it with (umask 077; head -c 32 /dev/urandom | base64 > " + path + ")"
}

// refusedBits returns the mode bits that a key file must not have. Its group may read it if that is
// a group of this process, as Kubernetes makes it (fsGroup), or if it is a credential that the
// service manager gives the service.
func (c Config) refusedBits(path string, info fs.FileInfo) fs.FileMode {
	inside, err := filepath.Rel(c.Credentials, path)
	isCredential := c.Credentials != "" && err == nil && filepath.IsLocal(inside)
	if isCredential || isOfOwnGroup(info) {
		return othersBits &^ 0o040
	}
	return othersBits
}

// parseKey decodes the content of a key file. Padding and the end of the line may be missing.
func parseKey(content []byte) (key [keyFileLength]byte, ok bool) {
	text := string(bytes.TrimRight(content, "\r\n"))
	if strings.ContainsAny(text, "\r\n") { // the decoder would skip them
		return key, false
	}
	decoded, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimSuffix(text, "="))
	if err != nil || len(decoded) != len(key) {
		return key, false
	}
	return [keyFileLength]byte(decoded), true
}

func newKeyFile(path string, key [keyFileLength]byte) *keyFile {
	f := &keyFile{path: path}
	copy(f.name[:], derive(key, keyFileNameInfo, len(f.name)))
	aead, err := chacha20poly1305.NewX(derive(key, wrapKeyInfo, chacha20poly1305.KeySize))
	if err != nil {
		panic(err) // the key has another length
	}
	f.aead = aead
	return f
}

func derive(key [keyFileLength]byte, info string, length int) []byte {
	derived, err := hkdf.Key(sha256.New, key[:], nil, info, length)
	if err != nil {
		panic(err) // the length is too great
	}
	return derived
}

// createKeyFile creates a key file with a new key, for its owner only, unless the file exists: made
// is false then. The file is durable when createKeyFile returns. It gets its name when it is
// complete, so that nobody ever sees a part of it.
func createKeyFile(path string) (made bool, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return false, fmt.Errorf("create key file: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	var key [keyFileLength]byte
	rand.Read(key[:])
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key[:]) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, fmt.Errorf("create key file: %w", err)
	}
	err = os.Link(f.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("create key file: %w", err)
	}
	return err == nil, syncFolder(folder)
}

// wrap returns the stored form of a key: the name of the key file, a nonce and the sealed secret.
func (f *keyFile) wrap(k *oauth.Key) []byte {
	secret := k.Secret[:]
	if k.Purpose.IsSigning() {
		secret = []byte(k.Private)
	}
	return f.seal(secret, wrapData(k))
}

// wrapData binds a wrapped key to its row.
func wrapData(k *oauth.Key) []byte { return fmt.Appendf(nil, "%s %d", k.Purpose, k.Number) }

// unwrap sets the secret of a stored key.
func (files keyFiles) unwrap(k *storedKey) error {
	f, err := files.wrapping(k)
	if err != nil {
		return err
	}
	head := len(f.name) + chacha20poly1305.NonceSizeX
	if len(k.wrapped) < head {
		return damaged(k)
	}
	secret, err := f.aead.Open(nil, k.wrapped[len(f.name):head], k.wrapped[head:], wrapData(&k.Key))
	switch {
	case err != nil:
		return damaged(k)
	case k.Purpose.IsSigning():
		k.Private = string(secret)
		return nil
	case len(secret) != len(k.Secret):
		return damaged(k)
	}
	k.Secret = [32]byte(secret)
	return nil
}

// wrapping returns the file that wraps a stored key.
func (files keyFiles) wrapping(k *storedKey) (*keyFile, error) {
	for _, f := range files {
		if bytes.HasPrefix(k.wrapped, f.name[:]) {
			return f, nil
		}
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	what := "is not the key file of this database"
	if len(files) > 1 {
		what = "are not the key files of this database"
	}
	return nil, keyFileError(strings.Join(paths, " and "), what+": give the one that wraps its keys")
}

func damaged(k *storedKey) error {
	return fmt.Errorf("the %v is damaged: restore the database from a backup, or, while no server "+
		"runs, delete this row of the table keys, which ends all that the key sealed", k.Key)
}

// fileName returns the short name of the file that wraps a stored key.
func (k *storedKey) fileName() string {
	return hex.EncodeToString(k.wrapped[:min(len(k.wrapped), len(keyFile{}.name))])
}
