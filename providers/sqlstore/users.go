package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

const selectUser = `SELECT id, service_id, name, email, phone, username, gender, bio, place_of_birth, date_of_birth, address,
profile_picture, password_hash, disabled, created, updated, version FROM users `

const (
	selectUserByID    = selectUser + `WHERE id = $1`
	selectUserByEmail = selectUser + `WHERE email_key = $1`
	selectUserByPhone = selectUser + `WHERE phone_key = $1`
	selectUsers       = selectUser + `WHERE id > $1 ORDER BY id LIMIT $2`
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
	return s.readUser(ctx, selectUserByEmail, fold(email))
}

// UserByPhone implements account.Store.
func (s *Store) UserByPhone(ctx context.Context, phone string) (*account.User, error) {
	if phone == "" || !isText(phone) {
		return nil, fmt.Errorf("read user: %w", account.ErrNotFound)
	}
	return s.readUser(ctx, selectUserByPhone, phone)
}

func (s *Store) readUser(ctx context.Context, text string, key any) (u *account.User, err error) {
	err = readOne(ctx, s, account.ErrNotFound, text, []any{key}, func(r row) error {
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
	var created, updated int64
	err := r.Scan(&u.ID, &u.ServiceID, &u.Name, &u.Email, &u.Phone, &u.Username, &u.Gender, &u.Bio,
		&u.PlaceOfBirth, &u.DateOfBirth, &u.Address, &u.ProfilePicture, &u.PasswordHash,
		&u.Disabled, &created, &updated, &u.Version)
	u.Created, u.Updated = fromMillis(created), fromMillis(updated)
	return &u, err
}

// fold returns the form of an e-mail address or username for case-insensitive comparison.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// key returns the value of a unique column: NULL for "", which several users may have.
func key(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

const (
	nextUserID = `UPDATE counters SET value = value + 1 WHERE name = 'user' RETURNING value`
	insertUser = `INSERT INTO users (id, service_id, name, email, email_key, phone, phone_key, username, username_key, gender,
bio, place_of_birth, date_of_birth, address, profile_picture, password_hash, disabled, created, updated, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) ON CONFLICT DO NOTHING`
	userVersion = `SELECT version FROM users WHERE id = $1`
	otherUser   = `SELECT id FROM users WHERE id <> $1 AND (email_key = $2 OR phone_key = $3 OR username_key = $4) LIMIT 1`
	updateUser  = `UPDATE users SET name = $2, email = $3, email_key = $4, phone = $5, phone_key = $6, username = $7,
username_key = $8, gender = $9, bio = $10, place_of_birth = $11, date_of_birth = $12, address = $13, profile_picture = $14,
password_hash = $15, disabled = $16, created = $17, updated = $18,
version = version + 1 WHERE id = $1 AND version = $19`
	deleteUserChallenges = `DELETE FROM challenges WHERE user_id = $1 AND user_id <> 0
OR lower(address) IN (SELECT email_key FROM users WHERE id = $1 UNION ALL SELECT phone_key FROM users WHERE id = $1)`
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
	u.ID, u.ServiceID, u.Version = created.ID, created.ServiceID, created.Version
	return nil
}

// newUserIdentity sets a new ServiceID.
func newUserIdentity(u *account.User) error {
	id, err := uuid.NewRandom()
	u.ServiceID, u.Version = id.String(), 0
	return err
}

// checkNew returns a refusal if u cannot be inserted.
func (b *batch) checkNew(u *account.User) error {
	if err := checkUser(u); err != nil {
		return err
	}
	u.ID = 0 // compare with all users
	return b.checkFree(u)
}

// insertUser keeps u, whom checkNew has passed, and sets its ID.
func (b *batch) insertUser(u *account.User) error {
	if err := b.conn.one(b.ctx, nextUserID, nil, &u.ID); err != nil {
		return err
	}
	n, err := b.conn.exec(b.ctx, insertUser, append([]any{u.ID, u.ServiceID}, userValues(u)...)...)
	if err == nil && n == 0 {
		err = refusal{account.ErrTaken} // by another process since; the ID stays unused
	}
	return err
}

// UpdateUser implements account.Store. It does not change ServiceID.
func (s *Store) UpdateUser(ctx context.Context, u *account.User) error {
	if err := s.do(ctx, func(b *batch) error { return b.updateUser(u) }); err != nil {
		return fmt.Errorf("update user: %w", err)
	}
	u.Version++
	return nil
}

func (b *batch) updateUser(u *account.User) error {
	if err := checkUser(u); err != nil {
		return err
	}
	if err := b.checkVersion(u); err != nil {
		return err
	}
	if err := b.checkFree(u); err != nil {
		return err
	}
	n, err := b.conn.execUnique(b.ctx, updateUser, append([]any{u.ID}, userValues(u)...)...)
	if isDuplicate(err) {
		return refusal{account.ErrTaken} // by another process since
	}
	if err != nil || n > 0 {
		return err
	}
	if err := b.checkVersion(u); err != nil { // another process changed the user since
		return err
	}
	return refusal{account.ErrConflict}
}

// checkVersion returns a refusal if the user was deleted, or changed since u was read. Another
// process may change the user before the next statement.
func (b *batch) checkVersion(u *account.User) error {
	var version int64
	err := b.conn.one(b.ctx, userVersion, []any{u.ID}, &version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return refusal{account.ErrNotFound}
	case err == nil && version != u.Version:
		return refusal{account.ErrConflict}
	}
	return err
}

func checkUser(u *account.User) error {
	for _, s := range []string{u.Name, u.Email, u.Phone, u.Username, u.Gender, u.Bio,
		u.PlaceOfBirth, u.DateOfBirth, u.Address, u.ProfilePicture, u.PasswordHash} {
		if !isText(s) {
			return refusal{errText}
		}
	}
	return nil
}

// checkFree returns a refusal if another user has the e-mail address, phone number or username.
// Without it, the write would fail and abort the whole transaction.
func (b *batch) checkFree(u *account.User) error {
	err := b.conn.one(b.ctx, otherUser, []any{u.ID, key(fold(u.Email)), key(u.Phone),
		key(fold(u.Username))}, new(int64))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = refusal{account.ErrTaken}
	}
	return err
}

func userValues(u *account.User) []any {
	return []any{u.Name, u.Email, key(fold(u.Email)), u.Phone, key(u.Phone), u.Username,
		key(fold(u.Username)), u.Gender, u.Bio, u.PlaceOfBirth, u.DateOfBirth, u.Address,
		u.ProfilePicture, u.PasswordHash, u.Disabled, millis(u.Created), millis(u.Updated),
		u.Version}
}

// DeleteUser implements account.Store. It returns ErrNotFound if there is no such user.
func (s *Store) DeleteUser(ctx context.Context, id int64) ([][32]byte, error) {
	var revoked []oauth.Hash
	err := s.do(ctx, func(b *batch) error {
		if _, err := b.conn.exec(b.ctx, deleteUserChallenges, id); err != nil {
			return err
		}
		n, err := b.conn.exec(b.ctx, deleteUser, id) // cascades to sessions and consents
		if err != nil {
			return err
		}
		if n == 0 {
			return refusal{account.ErrNotFound}
		}
		if revoked, err = b.revokeUser(id, ""); err != nil {
			return err
		}
		_, err = b.run(steps{{deleteUserCodes, []any{id}}, {deleteUserFamilies, []any{id}}}, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("delete user: %w", err)
	}
	s.eraseDeleted()
	tokens := make([][32]byte, len(revoked))
	for i, hash := range revoked {
		tokens[i] = hash
	}
	return tokens, nil
}
