package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
)

const selectUser = `SELECT id, service_id, name, email, phone, username, gender, bio, place_of_birth, date_of_birth, address,
profile_picture, password_hash, disabled, created, updated, version, epoch, phone_sign_in, password_since, email_since,
phone_since, phone_sign_in_since, language, credentials, attributes,
COALESCE((SELECT string_agg(g.name || ' ' || m.source, '
') FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE m.user_id = users.id), '')
FROM users `

const (
	selectUserByID    = selectUser + `WHERE id = $1`
	selectUserByEmail = selectUser + `WHERE email_key = $1`
	// Two users from before may have keys that mean one number: then each has the number as it is.
	selectUserByPhone = selectUser + `WHERE phone_key IN ($1, $2)
ORDER BY CASE WHEN phone_key = $1 THEN 0 ELSE 1 END LIMIT 1`
	selectUserByHandle     = selectUser + `WHERE handle = $1`
	selectUserByConnection = selectUser + `WHERE id = (SELECT user_id FROM connections WHERE issuer = $1 AND subject = $2)`
	selectUsers            = selectUser + `WHERE id > $1 ORDER BY id LIMIT CAST($2 AS BIGINT)`
)

// User implements account.Store.
func (s *Store) User(ctx context.Context, id int64) (*account.User, error) {
	return s.readUser(ctx, selectUserByID, id)
}

// UserByEmail implements account.Store.
func (s *Store) UserByEmail(ctx context.Context, email string) (*account.User, error) {
	if email == "" || !isText(email) {
		return nil, fmt.Errorf("read user: %w", account.ErrNotFound)
	}
	return s.readUser(ctx, selectUserByEmail, account.Fold(email))
}

// UserByPhone implements account.Store.
func (s *Store) UserByPhone(ctx context.Context, phone string) (*account.User, error) {
	if phone == "" || !isText(phone) {
		return nil, fmt.Errorf("read user: %w", account.ErrNotFound)
	}
	return s.readUser(ctx, selectUserByPhone, phone, account.PhoneKey(phone))
}

// UserByHandle implements account.Store.
func (s *Store) UserByHandle(ctx context.Context, handle []byte) (*account.User, error) {
	return s.readUser(ctx, selectUserByHandle, handle)
}

// UserByConnection implements account.Store.
func (s *Store) UserByConnection(ctx context.Context, issuer,
	subject string) (*account.User, error) {
	if !isText(issuer) || !isText(subject) {
		return nil, fmt.Errorf("read user: %w", account.ErrNotFound)
	}
	return s.readUser(ctx, selectUserByConnection, issuer, subject)
}

func (s *Store) readUser(ctx context.Context, text string,
	keys ...any) (u *account.User, err error) {
	err = readOne(ctx, s, account.ErrNotFound, text, keys, func(r row) error {
		u, err = scanUser(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

// Users implements account.Store.
func (s *Store) Users(ctx context.Context, after int64,
	limit int) (users []*account.User, err error) {
	err = readAll(ctx, s, selectUsers, []any{after, max(0, limit)}, func(r row) error {
		u, err := scanUser(r)
		users = append(users, u)
		return err
	})
	return users, wrap("read users", err)
}

func scanUser(r row) (*account.User, error) {
	var u account.User
	var credentials string
	var created, updated, password, email, phone, phoneSignIn int64
	var groups string
	err := r.Scan(&u.ID, &u.ServiceID, &u.Name, &u.Email, &u.Phone, &u.Username, &u.Gender, &u.Bio,
		&u.PlaceOfBirth, &u.DateOfBirth, &u.Address, &u.ProfilePicture, &u.PasswordHash,
		&u.Disabled, &created, &updated, &u.Version, &u.Epoch, &u.PhoneSignIn,
		&password, &email, &phone, &phoneSignIn, &u.Language, &credentials, &u.Attributes, &groups)
	setGroups(&u, groups)
	if err == nil && credentials != "" {
		err = json.Unmarshal([]byte(credentials), &u.Credentials)
	}
	u.PasswordSince, u.EmailSince = fromMillis(password), fromMillis(email)
	u.PhoneSince, u.PhoneSignInSince = fromMillis(phone), fromMillis(phoneSignIn)
	u.Created, u.Updated = fromMillis(created), fromMillis(updated)
	return &u, err
}

// key returns the value of a unique column: NULL for "", which several users may have.
func key(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

const (
	// skipUserIDs goes on above all IDs that were ever given, if those were less than one a
	// millisecond since 1970 or since it was last done.
	skipUserIDs = `UPDATE counters SET value = $1 WHERE name = 'user' AND value < $1`
	nextUserID  = `UPDATE counters SET value = value + 1 WHERE name = 'user' RETURNING value`
	insertUser  = `INSERT INTO users (id, service_id, name, email, email_key, phone, phone_key, username, username_key, gender,
bio, place_of_birth, date_of_birth, address, profile_picture, password_hash, phone_sign_in, disabled, created, updated, version,
credentials, handle, epoch, language, attributes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26) ON CONFLICT DO NOTHING`
	setLanguage = `UPDATE users SET language = $2 WHERE id = $1`
	userVersion = `SELECT version, credentials FROM users WHERE id = $1`
	otherUser   = `SELECT id FROM users WHERE id <> $1 AND (email_key = $2 OR username_key = $4
OR phone_key = $3 AND NOT EXISTS (SELECT 1 FROM users own WHERE own.id = $1 AND own.phone = $5)) LIMIT 1`
	updateUser = `UPDATE users SET name = $2, email = $3, email_key = $4, phone = $5,
phone_key = CASE WHEN phone = $5 THEN phone_key ELSE $6 END, username = $7, username_key = $8, gender = $9, bio = $10,
place_of_birth = $11, date_of_birth = $12, address = $13, profile_picture = $14, password_hash = $15, phone_sign_in = $16,
disabled = $17, created = $18, updated = $19, credentials = $21, handle = $22, password_since = $23, email_since = $24,
phone_since = $25, phone_sign_in_since = $26, attributes = $27, version = version + 1 WHERE id = $1 AND version = $20 RETURNING epoch`
	useCredential        = `UPDATE users SET credentials = $3, version = version + 1 WHERE id = $1 AND version = $2`
	otherConnection      = `SELECT user_id FROM connections WHERE issuer = $1 AND subject = $2 AND user_id <> $3`
	deleteConnections    = `DELETE FROM connections WHERE user_id = $1`
	insertConnection     = `INSERT INTO connections (issuer, subject, user_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	deleteUserChallenges = `DELETE FROM challenges WHERE user_id = $1 AND user_id <> 0 OR lower(address) IN
(SELECT email_key FROM users WHERE id = $1 UNION ALL SELECT phone FROM users WHERE id = $1 AND phone <> '')`
	lockUser        = `UPDATE users SET version = version WHERE id = $1`
	deleteUser      = `DELETE FROM users WHERE id = $1`
	deleteUserCodes = `DELETE FROM authorization_codes
WHERE family_id <> '' AND family_id IN (SELECT id FROM families WHERE user_id = $1)`
	deleteUserFamilies = `DELETE FROM families WHERE user_id = $1`
)

// CreateUser implements account.Store. IDs increase and are never reused. u's own ID is
// overwritten.
func (s *Store) CreateUser(ctx context.Context, u *account.User) error {
	created := *u
	if err := newUserIdentity(&created); err != nil {
		return fmt.Errorf("create user: %w", err)
	}
	err := s.do(ctx, func(b *batch) error {
		if err := b.checkNew(&created); err != nil {
			return err
		}
		return b.insertUser(&created)
	})
	if err != nil {
		return fmt.Errorf("create user: %w", err)
	}
	u.ID, u.ServiceID = created.ID, created.ServiceID
	u.Version, u.Epoch = created.Version, created.Epoch
	return nil
}

// newUserIdentity sets a new ServiceID and the first Version and Epoch.
func newUserIdentity(u *account.User) error {
	id, err := uuid.NewRandom()
	u.ServiceID, u.Version, u.Epoch = id.String(), 0, time.Now().UnixMicro()
	return err
}

// checkNew returns a refusal if u cannot be inserted.
func (b *batch) checkNew(u *account.User) error {
	if err := checkUser(u); err != nil {
		return err
	}
	if missing, err := b.missingGroup(u); err != nil {
		return err
	} else if missing != "" {
		return refusal{account.ErrNoGroup}
	}
	u.ID = 0 // compare with all users
	return b.checkFree(u)
}

// insertUser keeps u, whom checkNew has passed, and sets its ID.
func (b *batch) insertUser(u *account.User) error {
	if err := b.conn.one(b.ctx, nextUserID, nil, &u.ID); err != nil {
		return err
	}
	b.created = u.ID
	return b.insertNumbered(u)
}

// insertNumbered is insertUser for a user with an ID.
func (b *batch) insertNumbered(u *account.User) error {
	args := append(append([]any{u.ID, u.ServiceID}, userValues(u)...), u.Epoch, u.Language, string(u.Attributes))
	n, err := b.conn.exec(b.ctx, insertUser, args...)
	if err == nil && n == 0 {
		err = refusal{account.ErrTaken} // by another process since; the ID stays unused
	}
	if err == nil {
		err = b.insertConnections(u)
	}
	if err == nil {
		err = b.insertMembers(u)
	}
	if err != nil {
		return err
	}
	return b.insertMapped(u)
}

// insertConnections keeps by which connections u is found, after checkFree.
func (b *batch) insertConnections(u *account.User) error {
	for _, c := range u.Credentials.Connections {
		n, err := b.conn.exec(b.ctx, insertConnection, c.Issuer, c.Subject, u.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return account.ErrTaken // by another process since: the transaction fails
		}
	}
	return nil
}

// UseCredential implements account.Store.
func (s *Store) UseCredential(ctx context.Context, u *account.User,
	notices ...account.Notice) error {
	err := s.do(ctx, func(b *batch) error {
		before, err := b.checkVersion(u)
		if err != nil {
			return err
		}
		err = b.change(useCredential, u.ID, u.Version, credentialsText(u))
		if errors.As(err, new(refusal)) {
			return refusal{account.ErrConflict} // another process changed the user since
		}
		if err == nil {
			err = b.mapGroups(u, before)
		}
		if err != nil {
			return err
		}
		return b.addNotices(notices)
	})
	if err != nil {
		return fmt.Errorf("use credential: %w", err)
	}
	u.Version++
	return nil
}

// SetLanguage implements account.Store.
func (s *Store) SetLanguage(ctx context.Context, userID int64, tag string) error {
	return wrap("set language", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, setLanguage, userID, tag)
		return err
	}))
}

// UpdateUser implements account.Store. It changes neither ServiceID nor Language, and sets u's Epoch.
func (s *Store) UpdateUser(ctx context.Context, u *account.User) error {
	var epoch int64
	err := s.do(ctx, func(b *batch) (err error) {
		if epoch, err = b.updateUser(u); err != nil {
			return err
		}
		b.noteUser(u.ID)
		if u.Disabled {
			return b.tellOfDisabled(u.ID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("update user: %w", err)
	}
	u.Version++
	u.Epoch = epoch
	return nil
}

// updateUser returns the user's epoch. It changes nothing if it returns a refusal.
func (b *batch) updateUser(u *account.User) (epoch int64, err error) {
	if err := checkUser(u); err != nil {
		return 0, err
	}
	before, err := b.checkVersion(u)
	if err != nil {
		return 0, err
	}
	if err := b.checkFree(u); err != nil {
		return 0, err
	}
	err = b.conn.unique(b.ctx, func() error {
		args := append(append([]any{u.ID}, userValues(u)...), millis(u.PasswordSince),
			millis(u.EmailSince), millis(u.PhoneSince), millis(u.PhoneSignInSince),
			string(u.Attributes))
		return b.conn.one(b.ctx, updateUser, args, &epoch)
	})
	if err == nil && credentialsText(u) != before {
		if err = b.run(u.ID, deleteConnections); err == nil {
			err = b.insertConnections(u)
		}
		if err == nil {
			err = b.mapGroups(u, before)
		}
	}
	switch {
	case isDuplicate(err):
		return 0, refusal{account.ErrTaken} // by another process since
	case errors.Is(err, sql.ErrNoRows): // another process changed the user since
		if _, err := b.checkVersion(u); err != nil {
			return 0, err
		}
		return 0, refusal{account.ErrConflict}
	}
	return epoch, err
}

// checkVersion returns the stored credentials of u, or a refusal if the user was deleted, or changed
// since u was read. Another process may change the user before the next statement.
func (b *batch) checkVersion(u *account.User) (credentials string, err error) {
	var version int64
	err = b.conn.one(b.ctx, userVersion, []any{u.ID}, &version, &credentials)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", refusal{account.ErrNotFound}
	case err == nil && version != u.Version:
		return "", refusal{account.ErrConflict}
	}
	return credentials, err
}

func checkUser(u *account.User) error {
	for _, s := range []string{u.Name, u.Email, u.Phone, u.Username, u.Gender, u.Bio,
		u.PlaceOfBirth, u.DateOfBirth, u.Address, u.ProfilePicture, u.PasswordHash,
		string(u.Attributes)} {
		if !isText(s) {
			return refusal{errText}
		}
	}
	for _, c := range u.Credentials.Connections {
		if !isText(c.Issuer) || !isText(c.Subject) {
			return refusal{errText}
		}
	}
	return nil
}

// checkFree returns a refusal if another user has the e-mail address, phone number, username or a
// connection.
// Without it, the write would fail and abort the whole transaction.
func (b *batch) checkFree(u *account.User) error {
	err := b.conn.one(b.ctx, otherUser, []any{u.ID, key(account.Fold(u.Email)),
		key(account.PhoneKey(u.Phone)), key(account.Fold(u.Username)), u.Phone}, new(int64))
	for i := 0; errors.Is(err, sql.ErrNoRows); i++ {
		if i == len(u.Credentials.Connections) {
			return nil
		}
		c := &u.Credentials.Connections[i]
		err = b.conn.one(b.ctx, otherConnection, []any{c.Issuer, c.Subject, u.ID}, new(int64))
	}
	if err == nil {
		err = refusal{account.ErrTaken}
	}
	return err
}

func userValues(u *account.User) []any {
	return []any{u.Name, u.Email, key(account.Fold(u.Email)), u.Phone, key(account.PhoneKey(u.Phone)),
		u.Username, key(account.Fold(u.Username)), u.Gender, u.Bio, u.PlaceOfBirth, u.DateOfBirth,
		u.Address, u.ProfilePicture, u.PasswordHash, u.PhoneSignIn, u.Disabled, millis(u.Created), millis(u.Updated),
		u.Version, credentialsText(u), u.Credentials.Handle}
}

// credentialsText returns the stored form of u's Credentials.
func credentialsText(u *account.User) string {
	text, err := json.Marshal(&u.Credentials)
	if err != nil || string(text) == "{}" { // a struct of strings, bytes and times has no error
		return ""
	}
	return string(text)
}

// DeleteUser implements account.Store. It returns ErrNotFound if there is no such user.
func (s *Store) DeleteUser(ctx context.Context, id int64, session [32]byte,
	notices ...account.Notice) error {
	err := s.delete(ctx, func(b *batch) error {
		if err := b.holdSession(id, session); err != nil {
			return err
		}
		if _, err := b.conn.exec(b.ctx, deleteUserChallenges, id); err != nil {
			return err
		}
		if _, err := b.dropSessions("user_id = $1", new(int64), id); err != nil {
			return err
		}
		n, err := b.conn.exec(b.ctx, deleteUser, id) // cascades to sessions and consents
		if err != nil {
			return err
		}
		if n == 0 {
			return refusal{account.ErrNotFound}
		}
		b.noteUser(id)
		if err := b.run(id, revokeUserCodes, deleteUserCodes, deleteUserFamilies,
			deleteUserNotices, deleteUserAttempts); err != nil {
			return err
		}
		return b.addNotices(notices)
	})
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	s.eraseDeleted()
	return nil
}
