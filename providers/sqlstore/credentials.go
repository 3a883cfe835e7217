package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/trace"
)

const (
	insertLink = `INSERT INTO links (hash, user_id, made, ends, channel, sent_to, address, since) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	// A link that ends sessions only works while the account has the address that the message went to.
	// Programs before migration 23 did not store that: their links work whatever the address is.
	fromLink = ` FROM links l JOIN users u ON u.id = l.user_id
WHERE (l.address <> '' OR l.sent_to = '' OR l.sent_to IN (u.email, u.phone)) AND l.hash = `
	selectLink = `SELECT l.user_id, l.made, l.ends, l.channel, l.sent_to, l.address, l.since` + fromLink + `$1`
	linkOwner  = `SELECT l.user_id` + fromLink + `$1`
	restoring  = `SELECT made, ends, address, since FROM links
WHERE user_id = $1 AND channel = $2 AND address <> '' AND ends > $3 ORDER BY made`
	deleteLink = `DELETE FROM links WHERE hash = $1`
	// deleteLaterLinks deletes what would restore a channel that was added after an undone change.
	deleteLaterLinks = `DELETE FROM links WHERE user_id = $1 AND made >= $2 AND address <> ''`
	deleteLinks      = `DELETE FROM links`

	// similarNotice returns the notice that waits, or else the last one that was sent.
	similarNotice = `SELECT id, sent FROM outbox WHERE user_id = $1 AND kind = $2 AND channel = $3 AND address = $4
AND (sent = 0 OR sent > $5) ORDER BY CASE WHEN sent = 0 THEN 0 ELSE 1 END, sent DESC LIMIT 1`
	mergeNotice  = `UPDATE outbox SET count = count + 1, at = $2, browser = $3, operator = $4, language = $5 WHERE id = $1 AND sent = 0`
	insertNotice = `INSERT INTO outbox (id, user_id, channel, address, kind, operator, browser, seed, link, made, at, count, attempts, due, sent, language)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, 1, 0, $11, 0, $12)`
	dueNotices = `SELECT id, user_id, channel, address, kind, operator, browser,
CASE WHEN EXISTS (SELECT 1` + fromLink + `outbox.link) OR EXISTS (SELECT 1 FROM invitations i WHERE i.hash = outbox.link) THEN seed ELSE '' END, link, made, at, count, attempts, language FROM outbox
WHERE sent = 0 AND due <= $1 ORDER BY due, id LIMIT CAST($2 AS BIGINT)`
	countNotices = `SELECT COUNT(*) FROM outbox WHERE sent = 0`
	endNotice    = `UPDATE outbox SET sent = $2 WHERE id = $1 AND count = $3`
	// splitNotice keeps the changes that came while a notice was being sent.
	splitNotice = `UPDATE outbox SET count = count - $3, attempts = 0, made = at, due = $2 WHERE id = $1 AND count > $3`
	delayNotice = `UPDATE outbox SET attempts = attempts + 1, due = $2 WHERE id = $1 AND sent = 0`
	dropNotice  = `DELETE FROM outbox WHERE id = $1 AND sent = 0`
	// An invitation that is replaced or ended is not sent any more.
	dropInvitations     = `DELETE FROM outbox WHERE kind = 'invitation' AND sent = 0`
	dropInvitationTo    = dropInvitations + ` AND address = $1`
	dropInvitationEnded = dropInvitations + ` AND link IN (SELECT hash FROM invitations WHERE id = $1)`
	deleteUserNotices   = `DELETE FROM outbox WHERE user_id = $1`
)

// ChangeCredentials implements account.NoticeStore. It sets u's Epoch. The order is that of a Revoke
// by user, for the same reasons: the user, sessions, then codes and families.
func (s *Store) ChangeCredentials(ctx context.Context, u *account.User,
	c account.CredentialChange) error {
	var epoch int64
	err := s.do(ctx, func(b *batch) (err error) {
		if err := b.holdLink(u.ID, c.Used); err != nil {
			return err
		}
		if err := b.holdSession(u.ID, c.Session); err != nil {
			return err
		}
		if epoch, err = b.updateUser(u); err != nil {
			return err
		}
		if !c.EndTokens {
			b.noteUser(u.ID)
		}
		if err := b.endAfterChange(u, c, &epoch); err != nil {
			return err
		}
		if err := b.changeLinks(u.ID, c); err != nil {
			return err
		}
		if err := b.changeTrust(u.ID, c); err != nil {
			return err
		}
		return b.addNotices(c.Notices)
	})
	if err != nil {
		return fmt.Errorf("change credentials: %w", err)
	}
	u.Version++
	u.Epoch = epoch
	return nil
}

// holdLink returns a refusal if a link of a user is gone; the zero hash is none. It locks the user
// first, so that only one of several transactions uses the link.
func (b *batch) holdLink(userID int64, hash [32]byte) error {
	if hash == [32]byte{} {
		return nil
	}
	if err := b.change(lockUser, userID); err != nil {
		return err
	}
	err := b.conn.one(b.ctx, linkOwner, []any{hash[:]}, new(int64))
	return orRefusal(err, account.ErrNotFound)
}

// holdSession returns a refusal if a session of a user has ended; the zero hash is none. It locks the
// user first: a link that ends the session meanwhile comes before this transaction or after it.
func (b *batch) holdSession(userID int64, hash [32]byte) error {
	if hash == [32]byte{} {
		return nil
	}
	if err := b.change(lockUser, userID); err != nil {
		return err
	}
	err := b.conn.one(b.ctx, sessionOwner, []any{hash[:], userID}, new(int64))
	return orRefusal(err, account.ErrNotFound)
}

// endAfterChange ends the sessions and tokens that lose trust by c.
func (b *batch) endAfterChange(u *account.User, c account.CredentialChange, epoch *int64) error {
	switch {
	case c.EndTokens:
		if _, err := b.dropSessions(otherSessions, new(int64), u.ID, c.Keep[:]); err != nil {
			return err
		}
		if err := b.dropGuesses(u.Email); err != nil {
			return err
		}
		raised, err := b.revokeUser(u.ID)
		*epoch = raised
		return err
	case c.EndSessions:
		_, _, err := b.endSessions(otherSessions, u.ID, c.Keep[:])
		return err
	}
	return nil
}

func (b *batch) changeLinks(userID int64, c account.CredentialChange) error {
	if c.Used != [32]byte{} {
		if _, err := b.conn.exec(b.ctx, deleteLink, c.Used[:]); err != nil {
			return err
		}
		if _, err := b.conn.exec(b.ctx, deleteLaterLinks, userID, millis(c.Undone)); err != nil {
			return err
		}
	}
	if c.EndLinks {
		_, err := b.conn.exec(b.ctx, deleteLaterLinks, userID, 0)
		return err
	}
	return nil
}

// addNotices adds notices to the outbox. One that resembles a notice which waits is counted by that;
// one that resembles a notice which was sent waits.
func (b *batch) addNotices(notices []account.Notice) error {
	for _, n := range notices {
		if err := b.addNotice(n); err != nil {
			return fmt.Errorf("save notices: %w", err)
		}
	}
	return nil
}

func (b *batch) addNotice(n account.Notice) error {
	due := n.Made
	if n.Kind != account.AddressLeft && n.Kind != account.InvitationSent { // each has a link of its own
		var id string
		var sent int64
		err := b.conn.one(b.ctx, similarNotice, []any{n.UserID, string(n.Kind), string(n.Channel),
			n.To, millis(n.Made.Add(-account.NoticeInterval))}, &id, &sent)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case sent != 0:
			due = fromMillis(sent).Add(account.NoticeInterval)
		default:
			merged, err := b.conn.exec(b.ctx, mergeNotice, id, millis(n.Made), n.Browser,
				n.ByOperator, n.Language)
			if err != nil || merged > 0 {
				return err
			}
			due = n.Made.Add(account.NoticeInterval) // another process has sent it since
		}
	}
	_, err := b.conn.exec(b.ctx, insertNotice, trace.Mark(b.trace, uuid.NewString()), n.UserID, string(n.Channel), n.To,
		string(n.Kind), n.ByOperator, n.Browser, n.Seed, linkBytes(n.Link), millis(n.Made),
		millis(due), n.Language)
	if err != nil || n.Seed == "" || n.Kind == account.InvitationSent {
		return err
	}
	restores := ""
	if n.Kind == account.AddressLeft {
		restores = n.To
	}
	_, err = b.conn.exec(b.ctx, insertLink, n.Link[:], n.UserID, millis(n.Made),
		millis(n.Made.Add(account.LinkLifetime)), string(n.Channel), n.To, restores, millis(n.Since))
	return err
}

// linkBytes returns the stored form of the hash of a link: empty for none.
func linkBytes(hash [32]byte) []byte {
	if hash == [32]byte{} {
		return []byte{}
	}
	return hash[:]
}

// Link implements account.NoticeStore.
func (s *Store) Link(ctx context.Context, hash [32]byte) (*account.Link, error) {
	l := &account.Link{Hash: hash}
	err := readOne(ctx, s, account.ErrNotFound, selectLink, []any{hash[:]}, func(r row) error {
		var made, ends, since int64
		err := r.Scan(&l.UserID, &made, &ends, &l.Channel, &l.To, &l.Address, &since)
		l.Made, l.Ends, l.Since = fromMillis(made), fromMillis(ends), fromMillis(since)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read link: %w", err)
	}
	return l, nil
}

// RestoringLinks implements account.NoticeStore.
func (s *Store) RestoringLinks(
	ctx context.Context, userID int64, channel account.Channel, now time.Time,
) (all []account.Link, err error) {
	err = readAll(ctx, s, restoring, []any{userID, string(channel), millis(now)}, func(r row) error {
		l := account.Link{UserID: userID, Channel: channel}
		var made, ends, since int64
		err := r.Scan(&made, &ends, &l.Address, &since)
		l.Made, l.Ends, l.Since = fromMillis(made), fromMillis(ends), fromMillis(since)
		all = append(all, l)
		return err
	})
	return all, wrap("read links", err)
}

// UseLink implements account.NoticeStore.
func (s *Store) UseLink(ctx context.Context, hash [32]byte) error {
	return wrap("use link", s.do(ctx, func(b *batch) error {
		var userID int64
		err := b.conn.one(b.ctx, linkOwner, []any{hash[:]}, &userID)
		if err != nil {
			return orRefusal(err, account.ErrNotFound)
		}
		if err := b.holdLink(userID, hash); err != nil {
			return err
		}
		if _, err := b.raiseEpoch(raiseUserEpoch, userID); err != nil { // before codes and families
			return err
		}
		if _, err := b.dropSessions("user_id = $1", new(int64), userID); err != nil {
			return err
		}
		if _, err := b.revokeUser(userID); err != nil {
			return err
		}
		_, err = b.conn.exec(b.ctx, deleteLink, hash[:])
		return err
	}))
}

// DueNotices implements account.NoticeStore.
func (s *Store) DueNotices(ctx context.Context, now time.Time, limit int) (due []account.Notice,
	waiting int, err error) {
	err = readOne(ctx, s, account.ErrNotFound, countNotices, nil,
		func(r row) error { return r.Scan(&waiting) })
	if err != nil || waiting == 0 {
		return nil, 0, wrap("read notices", err)
	}
	err = readAll(ctx, s, dueNotices, []any{millis(now), limit}, func(r row) error {
		var n account.Notice
		var link []byte
		var made, at int64
		err := r.Scan(&n.ID, &n.UserID, &n.Channel, &n.To, &n.Kind, &n.ByOperator, &n.Browser,
			&n.Seed, &link, &made, &at, &n.Count, &n.Attempts, &n.Language)
		copy(n.Link[:], link)
		n.Made, n.At = fromMillis(made), fromMillis(at)
		due = append(due, n)
		return err
	})
	return due, waiting, wrap("read notices", err)
}

// EndNotice implements account.NoticeStore.
func (s *Store) EndNotice(ctx context.Context, n *account.Notice, now time.Time) error {
	return wrap("end notice", s.do(ctx, func(b *batch) error {
		ended, err := b.conn.exec(b.ctx, endNotice, n.ID, millis(now), n.Count)
		if err != nil || ended > 0 {
			return err
		}
		_, err = b.conn.exec(b.ctx, splitNotice, n.ID, millis(now.Add(account.NoticeInterval)),
			n.Count)
		return err
	}))
}

// DelayNotice implements account.NoticeStore.
func (s *Store) DelayNotice(ctx context.Context, id string, due time.Time) error {
	return wrap("delay notice", s.do(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, delayNotice, id, millis(due))
		return err
	}))
}

// DropNotice implements account.NoticeStore.
func (s *Store) DropNotice(ctx context.Context, id string) error {
	return wrap("drop notice", s.delete(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, dropNotice, id)
		return err
	}))
}
