package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"gatehouse/actors/account"
)

const (
	selectInvitation   = `SELECT id, hash, email, name, group_names, made, ends FROM invitations `
	selectByInvitation = selectInvitation + `WHERE hash = $1`
	selectByInvited    = selectInvitation + `WHERE email_key = $1`
	selectInvitations  = selectInvitation + `WHERE id > $1 ORDER BY id LIMIT CAST($2 AS BIGINT)`
	insertInvitation   = `INSERT INTO invitations (id, hash, email, email_key, name, group_names, made, ends)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (email_key) DO UPDATE SET id = excluded.id, hash = excluded.hash,
email = excluded.email, name = excluded.name, group_names = excluded.group_names, made = excluded.made, ends = excluded.ends`
	useInvitation     = `DELETE FROM invitations WHERE hash = $1`
	deleteInvitation  = `DELETE FROM invitations WHERE id = $1`
	deleteInvitations = `DELETE FROM invitations`
)

// CreateInvitation implements account.InvitationStore.
func (s *Store) CreateInvitation(
	ctx context.Context, i account.Invitation, n account.Notice,
) error {
	return wrap("create invitation", s.do(ctx, func(b *batch) error {
		u := account.User{Name: i.Name, Email: i.Email, Groups: i.Groups}
		if err := b.checkNew(&u); err != nil {
			return err
		}
		if _, err := b.conn.exec(b.ctx, dropInvitationTo, i.Email); err != nil {
			return err
		}
		_, err := b.conn.exec(b.ctx, insertInvitation, i.ID, i.Hash[:], i.Email,
			account.Fold(i.Email), i.Name, string(i.Groups), millis(i.Made), millis(i.Ends))
		if err != nil {
			return err
		}
		return b.addNotice(n)
	}))
}

// Invitation implements account.InvitationStore.
func (s *Store) Invitation(ctx context.Context, hash [32]byte) (*account.Invitation, error) {
	return s.readInvitation(ctx, selectByInvitation, hash[:])
}

// InvitationTo implements account.InvitationStore.
func (s *Store) InvitationTo(ctx context.Context, email string) (*account.Invitation, error) {
	if !isText(email) {
		return nil, fmt.Errorf("read invitation: %w", account.ErrNotFound)
	}
	return s.readInvitation(ctx, selectByInvited, account.Fold(email))
}

func (s *Store) readInvitation(
	ctx context.Context, text string, key any,
) (i *account.Invitation, err error) {
	err = readOne(ctx, s, account.ErrNotFound, text, []any{key}, func(r row) error {
		i, err = scanInvitation(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read invitation: %w", err)
	}
	return i, nil
}

// Invitations implements account.InvitationStore.
func (s *Store) Invitations(
	ctx context.Context, after string, limit int,
) (all []*account.Invitation, err error) {
	if !isText(after) {
		return nil, fmt.Errorf("read invitations: %w", errText)
	}
	err = readAll(ctx, s, selectInvitations, []any{after, max(0, limit)}, func(r row) error {
		i, err := scanInvitation(r)
		all = append(all, i)
		return err
	})
	return all, wrap("read invitations", err)
}

func scanInvitation(r row) (*account.Invitation, error) {
	var i account.Invitation
	var hash []byte
	var groups string
	var made, ends int64
	if err := r.Scan(&i.ID, &hash, &i.Email, &i.Name, &groups, &made, &ends); err != nil {
		return nil, err
	}
	i.Hash, i.Groups = [32]byte(hash), account.Groups(groups)
	i.Made, i.Ends = fromMillis(made), fromMillis(ends)
	return &i, nil
}

// AcceptInvitation implements account.InvitationStore.
func (s *Store) AcceptInvitation(
	ctx context.Context, hash [32]byte, u *account.User,
) error {
	created := *u
	if err := newUserIdentity(&created); err != nil {
		return fmt.Errorf("accept invitation: %w", err)
	}
	err := s.do(ctx, func(b *batch) error {
		created.Groups = u.Groups // also after a try
		for {                     // without the groups that were deleted since
			missing, err := b.missingGroup(&created)
			if err != nil {
				return err
			}
			if missing == "" {
				break
			}
			created.Groups = account.NewGroups(slices.DeleteFunc(created.Groups.Names(),
				func(name string) bool { return name == missing }))
		}
		if err := b.checkNew(&created); err != nil {
			return err
		}
		if err := b.change(useInvitation, hash[:]); err != nil {
			return err
		}
		return undone(b.insertUser(&created)) // a refusal now undoes all
	})
	if err != nil {
		return fmt.Errorf("accept invitation: %w", err)
	}
	*u = created
	return nil
}

// DeleteInvitation implements account.InvitationStore.
func (s *Store) DeleteInvitation(ctx context.Context, id string) error {
	if !isText(id) {
		return fmt.Errorf("delete invitation: %w", account.ErrNotFound)
	}
	return wrap("delete invitation", s.delete(ctx, func(b *batch) error {
		if _, err := b.conn.exec(b.ctx, dropInvitationEnded, id); err != nil {
			return err
		}
		return b.change(deleteInvitation, id)
	}))
}
