package sqlstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

const (
	selectKeys = `SELECT purpose, number, wrapped, made, starts, expires, needed FROM keys ORDER BY purpose, number DESC`
	insertKey  = `INSERT INTO keys (purpose, number, wrapped, made, starts, expires, needed) VALUES ($1, $2, $3, $4, $5, 0, $6)
ON CONFLICT (purpose, number) DO NOTHING`
	retireKey     = `UPDATE keys SET expires = $2 WHERE purpose = $1 AND expires = 0`
	needKey       = `UPDATE keys SET needed = $2 WHERE purpose = $1 AND expires = 0 AND needed < $2`
	deleteKeys    = `DELETE FROM keys WHERE purpose = $1`
	deleteExpired = `DELETE FROM keys WHERE purpose = $1 AND expires > 0 AND expires <= $2`
	rewrapKey     = `UPDATE keys SET wrapped = $3 WHERE purpose = $1 AND number = $2`
	// lockKeys makes other processes wait that rotate or rewrap keys.
	lockKeys = `LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE`
)

var errKeyNumbers = errors.New("no number is left for another key of this purpose")

// storedKey is a row of keys. Its Secret is zero until it is unwrapped.
type storedKey struct {
	oauth.Key
	wrapped []byte
}

// ListKeys implements oauth.Store.
func (s *Store) ListKeys(ctx context.Context) (list []oauth.KeyInfo, err error) {
	stored, err := s.storedKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	for _, k := range stored {
		list = append(list, oauth.KeyInfo{Purpose: k.Purpose, Number: k.Number, Made: k.Made,
			Starts: k.Starts, Expires: k.Expires, File: k.fileName()})
	}
	return list, nil
}

// Keys implements oauth.Store. Its error wraps ErrKeyFile if a key was wrapped again under a key
// file that the Store does not have.
func (s *Store) Keys(ctx context.Context, now time.Time) (keys []oauth.Key, err error) {
	stored, err := s.storedKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	for _, k := range stored {
		if !k.Expires.IsZero() && !k.Expires.After(now) && !k.Purpose.IsKept() {
			continue
		}
		if err := s.keyFiles.unwrap(&k); err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		keys = append(keys, k.Key)
	}
	return keys, nil
}

// storedKeys returns all rows in the order of oauth.Purposes, the current key of each first.
func (s *Store) storedKeys(ctx context.Context) (stored []storedKey, err error) {
	err = readAll(ctx, s, selectKeys, nil, func(r row) error {
		k, err := scanKey(r)
		stored = append(stored, k)
		return err
	})
	slices.SortStableFunc(stored, func(a, b storedKey) int {
		return slices.Index(oauth.Purposes, a.Purpose) - slices.Index(oauth.Purposes, b.Purpose)
	})
	return stored, err
}

func (b *batch) storedKeys() (stored []storedKey, err error) {
	err = b.conn.rows(b.ctx, selectKeys, nil, func(r row) error {
		k, err := scanKey(r)
		stored = append(stored, k)
		return err
	})
	return stored, wrap("read keys", err)
}

func scanKey(r row) (k storedKey, err error) {
	var made, starts, expires, needed int64
	err = r.Scan(&k.Purpose, &k.Number, &k.wrapped, &made, &starts, &expires, &needed)
	k.Needed = time.Duration(needed) * time.Millisecond
	k.Made, k.Starts, k.Expires = fromMillis(made), fromMillis(starts), fromMillis(expires)
	return k, err
}

// NeedKeys implements oauth.Store. Other processes need not know: RotateKeys reads what is stored.
func (s *Store) NeedKeys(ctx context.Context, needed map[oauth.Purpose]time.Duration) error {
	return wrap("keep keys for longer", s.do(ctx, func(b *batch) error {
		for _, purpose := range oauth.Purposes {
			_, err := b.conn.exec(b.ctx, needKey, string(purpose), needed[purpose].Milliseconds())
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// RotateKeys implements oauth.Store.
func (s *Store) RotateKeys(ctx context.Context, r oauth.KeyRotation) error {
	return wrap("rotate keys", s.do(ctx, func(b *batch) error { return b.rotateKeys(r, s.keyFiles) }))
}

func (b *batch) rotateKeys(r oauth.KeyRotation, files keyFiles) error {
	if err := b.lockKeys(); err != nil {
		return err
	}
	stored, err := b.storedKeys()
	if err != nil {
		return err
	}
	file, err := files.current(stored)
	if err != nil {
		return refusal{err}
	}
	if !r.Drop && slices.ContainsFunc(stored, func(k storedKey) bool { return blocks(&k.Key, &r) }) {
		return refusal{oauth.ErrKeysInUse}
	}
	fresh, err := newKey(r.Purpose, stored, r.Now)
	if err != nil {
		return refusal{err}
	}
	fresh.Private, fresh.Starts, fresh.Needed = r.Private, r.Starts, r.Needed
	if r.Purpose.IsSigning() {
		fresh.Secret = [32]byte{}
	}
	expires := r.Expires
	for _, k := range stored {
		if until := later(r.Now, r.Starts).Add(k.Needed); k.Purpose == r.Purpose && k.Expires.IsZero() {
			expires = later(expires, until)
		}
	}
	switch {
	case r.Purpose.IsKept():
		_, err = b.conn.exec(b.ctx, retireKey, string(r.Purpose), millis(r.Now))
	case r.Drop:
		_, err = b.conn.exec(b.ctx, deleteKeys, string(r.Purpose))
	default:
		_, err = b.conn.exec(b.ctx, deleteExpired, string(r.Purpose), millis(r.Now))
		if err == nil { // at least 1, because 0 is the current key
			_, err = b.conn.exec(b.ctx, retireKey, string(r.Purpose), max(1, millis(expires)))
		}
	}
	if err != nil {
		return err
	}
	b.note(keysChange, string(r.Purpose))
	return b.insertKey(fresh, file)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// blocks reports whether a stored key refuses a rotation. A signing key does that until it is in
// use, unless the new one is in use before it.
func blocks(k *oauth.Key, r *oauth.KeyRotation) bool {
	switch {
	case k.Purpose != r.Purpose, r.Purpose.IsKept():
		return false
	case r.Purpose.IsSigning():
		return k.Expires.IsZero() && k.Starts.After(r.Now) && !r.Starts.Before(k.Starts)
	}
	return k.Expires.After(r.Now)
}

func (b *batch) lockKeys() error {
	if b.conn.pools.engine == sqliteEngine {
		return nil // a transaction has the lock of the database
	}
	_, err := b.conn.exec(b.ctx, lockKeys)
	return wrap("lock keys", err)
}

// newKey returns a new key whose number is above all stored ones of its purpose.
func newKey(purpose oauth.Purpose, stored []storedKey, now time.Time) (*oauth.Key, error) {
	k := &oauth.Key{Purpose: purpose, Made: now}
	for _, s := range stored {
		if s.Purpose == purpose {
			k.Number = max(k.Number, s.Number)
		}
	}
	if k.Number == math.MaxUint16 {
		return nil, errKeyNumbers
	}
	k.Number++
	rand.Read(k.Secret[:])
	return k, nil
}

func (b *batch) insertKey(k *oauth.Key, file *keyFile) error {
	_, err := b.conn.exec(b.ctx, insertKey, string(k.Purpose), int64(k.Number), file.wrap(k),
		millis(k.Made), millis(k.Starts), k.Needed.Milliseconds())
	return wrap("save key", err)
}

// current returns the file for new keys: the one that wraps a current key, or the first one if
// there are no keys.
func (files keyFiles) current(stored []storedKey) (*keyFile, error) {
	for _, k := range stored {
		if k.Expires.IsZero() {
			return files.wrapping(&k)
		}
	}
	return files[0], nil
}

// firstKeys reads the key files and unwraps all stored keys, so that a wrong file is noticed. It
// creates the first key of each purpose. If several processes do so, all get the same one.
func firstKeys(ctx context.Context, p pools, config Config) (files keyFiles, err error) {
	missing, err := missingSigners(ctx, p)
	if err != nil {
		return nil, err
	}
	private, err := newPrivateKeys(missing)
	if err != nil {
		return nil, err
	}
	err = once(ctx, p, func(b *batch) error {
		stored, err := b.storedKeys()
		if err != nil {
			return err
		}
		if files, err = openKeyFiles(p, config, len(stored) > 0); err != nil {
			return err
		}
		file, err := files.current(stored)
		if err != nil {
			return err
		}
		if err := b.insertFirst(stored, private, file); err != nil {
			return err
		}
		if stored, err = b.storedKeys(); err != nil { // those of another process included
			return err
		}
		for i := range stored {
			if err := files.unwrap(&stored[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return files, err
}

// newPrivateKeys returns a private key for each of the purposes. On a busy machine that takes
// longer than a transaction may.
func newPrivateKeys(purposes []oauth.Purpose) (private map[oauth.Purpose]string, err error) {
	private = map[oauth.Purpose]string{}
	for _, purpose := range purposes {
		if private[purpose], err = oauth.NewPrivateKey(purpose); err != nil {
			return nil, err
		}
	}
	return private, nil
}

// missingSigners returns the purposes of signatures that have no current key.
func missingSigners(ctx context.Context, p pools) (missing []oauth.Purpose, err error) {
	err = once(ctx, p, func(b *batch) error {
		stored, err := b.storedKeys()
		missing = nil // of another try
		for _, purpose := range oauth.SigningPurposes {
			if !hasCurrent(stored, purpose) {
				missing = append(missing, purpose)
			}
		}
		return err
	})
	return missing, err
}

func hasCurrent(stored []storedKey, purpose oauth.Purpose) bool {
	return slices.ContainsFunc(stored, func(k storedKey) bool {
		return k.Purpose == purpose && k.Expires.IsZero()
	})
}

// insertFirst inserts a key for each purpose that has no current one.
func (b *batch) insertFirst(
	stored []storedKey, private map[oauth.Purpose]string, file *keyFile,
) error {
	for _, purpose := range oauth.Purposes {
		if hasCurrent(stored, purpose) || purpose.IsSigning() && private[purpose] == "" {
			continue
		}
		fresh, err := newKey(purpose, stored, time.Now())
		if err != nil {
			return err
		}
		if purpose.IsSigning() {
			fresh.Secret, fresh.Starts, fresh.Private = [32]byte{}, fresh.Made, private[purpose]
		}
		if err := b.insertKey(fresh, file); err != nil {
			return err
		}
		if len(stored) > 0 { // servers of the release before may run that lack it
			b.note(keysChange, string(purpose))
		}
	}
	return nil
}

// checkKeyFiles returns an error if openKeyFiles would fail on a database without keys.
func checkKeyFiles(p pools, config Config) error {
	if p.engine == sqliteEngine && len(config.KeyFiles) == 0 {
		return nil
	}
	_, err := openKeyFiles(p, config, false)
	return err
}

// openKeyFiles reads the key files of config. If none is given for SQLite and the database has no
// keys, it creates the file beside the database. Call it in a transaction: on SQLite, two processes
// must not create a file each.
func openKeyFiles(p pools, config Config, hasKeys bool) (files keyFiles, err error) {
	paths := config.KeyFiles
	if len(paths) == 0 {
		if p.engine == postgresEngine {
			return nil, fmt.Errorf("%w: PostgreSQL needs one: %s and set GATEHOUSE_KEY_FILE to its name",
				ErrKeyFile, makeKeyFile("FILE"))
		}
		paths = []string{p.path + keyFileSuffix}
		if !hasKeys {
			made, err := createKeyFile(paths[0])
			if err != nil {
				return nil, err
			}
			if made {
				config.Logger.Info("a key file was made: keep a copy of it, but not with those of the database",
					"file", paths[0])
			}
		}
	}
	for _, path := range paths {
		missing := "restore it from its copy, because the keys in the database are wrapped under it"
		if !hasKeys {
			missing = makeKeyFile(path)
		}
		f, err := readKeyFile(config, path, missing)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// newKeyFileError is the error of the file that Rewrap is to wrap the keys under.
type newKeyFileError struct{ error }

func (e newKeyFileError) Unwrap() error { return e.error }

// IsNewKeyFile reports whether an error of Rewrap is about the new key file.
func IsNewKeyFile(err error) bool { return errors.As(err, new(newKeyFileError)) }

// Rewrap wraps all keys again, under the key of another file, and returns their number. Running
// servers need both files before, and the new one afterwards. It creates the new file on SQLite if
// it does not exist. It returns an error that may wrap ErrKeyFile, ErrSchema or ErrNewer.
func Rewrap(ctx context.Context, config Config, newKeyFile string) (n int, err error) {
	err = changeKeys(ctx, config, func(b *batch, stored []storedKey) error {
		if len(stored) == 0 {
			return errors.New("the database has no keys yet")
		}
		files, err := openKeyFiles(b.conn.pools, config, true)
		if err != nil {
			return err
		}
		unwrapped := files.unwrap(&stored[0]) // else an earlier call may have wrapped them
		if b.conn.pools.engine == sqliteEngine && unwrapped == nil {
			if _, err := createKeyFile(newKeyFile); err != nil {
				return err
			}
		}
		file, err := readKeyFile(config, newKeyFile, makeKeyFile(newKeyFile))
		switch {
		case err != nil && unwrapped != nil:
			return unwrapped
		case err != nil:
			return newKeyFileError{err}
		}
		files = append(files, file)
		for _, k := range stored {
			if err := files.unwrap(&k); err != nil {
				return err
			}
			if _, err := b.conn.exec(b.ctx, rewrapKey, string(k.Purpose), int64(k.Number),
				file.wrap(&k.Key)); err != nil {
				return err
			}
		}
		n = len(stored) // no key has changed, so nobody has to be told
		return b.resealProviders(files, file)
	})
	if err != nil {
		return 0, fmt.Errorf("rewrap keys: %w", err)
	}
	return n, nil
}

// DropTokenKeys replaces all keys of TokenKeys by one, so that no access token is valid that was
// issued before. It replaces the signing keys as well, which verify the tokens that are JWTs, and
// deletes the links of notices, invitations, unfinished challenges and sign-ins, and the trust in
// browsers. It is for a database that was restored: it does not know what was ended since. It does not
// know which user IDs were given since either, so that the next one is
// above all of them. On SQLite it returns ErrInUse if a server has the database open.
func DropTokenKeys(ctx context.Context, config Config) (err error) {
	config.Exclusive = true // a server on SQLite would go on with the keys that it has read
	private, err := newPrivateKeys(oauth.SigningPurposes)
	if err != nil {
		return fmt.Errorf("drop token keys: %w", err)
	}
	lock, err := lockExclusive(config)
	if err != nil {
		return fmt.Errorf("drop token keys: %w", err)
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	return wrap("drop token keys", changeKeys(ctx, config,
		func(b *batch, stored []storedKey) error {
			files, err := openKeyFiles(b.conn.pools, config, len(stored) > 0)
			if err != nil {
				return err
			}
			file, err := files.current(stored)
			if err != nil {
				return err
			}
			dropped := append([]oauth.Purpose{oauth.TokenKeys}, oauth.SigningPurposes...)
			for _, purpose := range dropped {
				if _, err := b.conn.exec(b.ctx, deleteKeys, string(purpose)); err != nil {
					return err
				}
				b.note(keysChange, string(purpose))
			}
			if _, err := b.conn.exec(b.ctx, skipUserIDs, time.Now().UnixMilli()); err != nil {
				return err
			}
			for _, text := range []string{deleteLinks, deleteChallenges, deleteInvitations,
				dropInvitations, deletePendingSignIns, deleteTrustedBrowsers, deleteAttempts} {
				if _, err := b.conn.exec(b.ctx, text); err != nil {
					return err
				}
			}
			b.record(audit.With(ctx, audit.Event{Action: audit.KeysDropped,
				Target: string(oauth.TokenKeys)}))
			for i := range stored { // only their numbers count from now on
				if slices.Contains(dropped, stored[i].Purpose) {
					stored[i].Expires = time.Now()
				}
			}
			return b.insertFirst(stored, private, file)
		}))
}

// changeKeys opens a database, and calls change with the stored keys in a transaction that has
// their lock.
func changeKeys(ctx context.Context, config Config,
	change func(*batch, []storedKey) error) error {
	if e, path, err := locate(config.URL); err == nil && e == sqliteEngine {
		if _, err := os.Stat(path); err != nil { // opening it would create it
			return fmt.Errorf("find database: %w", err)
		}
	}
	return withDatabase(ctx, config, func(p pools) error {
		if err := settleSchema(ctx, p, config); err != nil {
			return err
		}
		return once(ctx, p, func(b *batch) error {
			if err := b.lockKeys(); err != nil {
				return err
			}
			stored, err := b.storedKeys()
			if err != nil {
				return err
			}
			return change(b, stored)
		})
	})
}
