package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

// A Revoke by user or client raises the epoch, then revokes codes, then families, all in one
// transaction. On PostgreSQL, another process may be redeeming a code or rotating a family
// meanwhile. Its statement locks that row, and reads the epochs in its own snapshot:
//
//   - If it has the lock first, the statement here waits for its commit. So the new epoch was not
//     committed when it read the epochs, and its access token has the former epoch and is refused.
//     A redemption inserts its family before the statement for families begins, which sees it.
//   - If the statement here has the lock first, the other waits for the commit here. It then finds
//     the code deleted or the family revoked and issues nothing.
//   - A code that is saved after the statement for codes is refused if the epochs were read before
//     the commit here: they are saved with the code, and a redemption compares them. Else it is a
//     new one, and its family lives.
//
// Codes come before families for the first reason, and the user or client before both, as in
// UpdateUser and ChangeCredentials: all lock in one order.
const (
	revokeFamily = `UPDATE families SET revoked = TRUE WHERE id = $1 AND NOT revoked
RETURNING id, access_expires, user_id, client_id`

	dropAccess = `UPDATE families SET access_expires = 0 WHERE id = $1`

	raiseUserEpoch     = `UPDATE users SET epoch = CASE WHEN epoch >= $2 THEN epoch + 1 ELSE $2 END WHERE id = $1 RETURNING epoch`
	revokeUserCodes    = `DELETE FROM authorization_codes WHERE used_at IS NULL AND user_id = $1`
	revokeUserFamilies = `UPDATE families SET revoked = TRUE WHERE user_id = $1 AND NOT revoked`

	raiseClientEpoch     = `UPDATE clients SET epoch = CASE WHEN epoch >= $2 THEN epoch + 1 ELSE $2 END WHERE id = $1 RETURNING epoch`
	revokeClientCodes    = `DELETE FROM authorization_codes WHERE used_at IS NULL AND client_id = $1`
	revokeClientFamilies = `UPDATE families SET revoked = TRUE WHERE client_id = $1 AND NOT revoked`

	revokeGrantCodes    = `DELETE FROM authorization_codes WHERE used_at IS NULL AND user_id = $1 AND client_id = $2`
	revokeGrantFamilies = `UPDATE families SET revoked = TRUE WHERE user_id = $1 AND client_id = $2 AND NOT revoked
RETURNING id, access_expires, user_id, client_id`
	revokeConsent = `DELETE FROM consents WHERE user_id = $1 AND client_id = $2`
)

func (b *batch) revoke(op *oauth.Revoke) (err error) {
	if err := b.settle(); err != nil {
		return err
	}
	if n := selectors(op); n != 1 {
		return fmt.Errorf("got %d fields that select tokens, want 1", n)
	}
	var changed bool
	switch {
	case op.Token != nil:
		op.Ended, err = b.endToken(op.Token, op.ByEpoch)
	case op.FamilyID != uuid.Nil:
		op.Ended, err = b.revokeFamily(op.FamilyID)
	case op.UserID != 0:
		var epoch int64
		epoch, err = b.revokeUser(op.UserID)
		changed = epoch != 0
	case op.ClientID != "":
		changed, err = b.revokeClient(op.ClientID)
	default:
		op.Ended, changed, err = b.revokeGrant(*op.Consent)
	}
	if err == nil && (changed || len(op.Ended) > 0) {
		b.record(op.Context)
	}
	return err
}

// selectors counts the fields of op that select tokens.
func selectors(op *oauth.Revoke) (n int) {
	for _, given := range []bool{op.Token != nil, op.FamilyID != uuid.Nil, op.UserID != 0,
		op.ClientID != "", op.Consent != nil} {
		if given {
			n++
		}
	}
	return n
}

// endToken ends an access token, unless it has ended or expired before. With byEpoch, it raises the
// epoch of the token's user.
func (b *batch) endToken(t *oauth.TokenEnd, byEpoch bool) ([]oauth.End, error) {
	if !t.Expires.After(time.Now()) {
		return nil, nil
	}
	if ended, err := b.hasEnded(t.ID); err != nil || ended {
		return nil, err
	}
	grant := oauth.Grant{UserID: t.UserID, ClientID: t.ClientID}
	if byEpoch {
		return b.endByEpoch(grant)
	}
	return b.keepEnds(grant,
		[]oauth.End{{Token: t.ID, ClientID: t.ClientID, Expires: t.Expires}})
}

// keepEnds notes the ends of a user's tokens at a client and returns them. It raises the user's
// epoch in place of them if they would be too many: each is kept in the memory of all processes.
func (b *batch) keepEnds(g oauth.Grant, ends []oauth.End) ([]oauth.End, error) {
	if g.UserID != 0 && len(ends) > 0 {
		kept, err := b.countEnds(g.UserID)
		if err != nil {
			return nil, err
		}
		if kept+len(ends) > oauth.MaxUserEnds {
			return b.endByEpoch(g, ends...)
		}
	}
	for _, end := range ends {
		b.noteEnd(end, g)
	}
	return ends, nil
}

// endByEpoch ends all access tokens of a user in place of some ends. The user's other families live
// on. A family that ends so has no access token whose end somebody would have to keep.
func (b *batch) endByEpoch(g oauth.Grant, ends ...oauth.End) ([]oauth.End, error) {
	for _, end := range ends {
		if end.FamilyID == uuid.Nil {
			continue
		}
		if _, err := b.conn.exec(b.ctx, dropAccess, end.FamilyID.String()); err != nil {
			return nil, err
		}
	}
	epoch, err := b.raiseEpoch(raiseUserEpoch, g.UserID)
	if err != nil || epoch == 0 {
		return nil, err
	}
	b.noteUser(g.UserID)
	return []oauth.End{{UserID: g.UserID}}, nil
}

func (b *batch) revokeFamily(id uuid.UUID) ([]oauth.End, error) {
	if err := b.settle(); err != nil {
		return nil, err
	}
	return b.endFamilies(revokeFamily, id.String())
}

// endFamilies executes a statement that returns the families that it revoked, all of one user and
// client.
func (b *batch) endFamilies(text string, args ...any) (ends []oauth.End, err error) {
	var grant oauth.Grant
	err = b.conn.rows(b.ctx, text, args, func(r row) error {
		var end oauth.End
		var expires int64
		err := r.Scan(&end.FamilyID, &expires, &grant.UserID, &grant.ClientID)
		end.Expires = fromMillis(expires)
		ends = append(ends, end)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.keepEnds(grant, ends)
}

// revokeUser returns the user's new epoch, or 0 if there is no such user.
func (b *batch) revokeUser(id int64) (epoch int64, err error) {
	epoch, err = b.raiseEpoch(raiseUserEpoch, id)
	if err != nil {
		return 0, err
	}
	if epoch != 0 {
		b.noteUser(id)
	}
	return epoch, b.run(id, revokeUserCodes, revokeUserFamilies)
}

// revokeClient reports whether there is such a client.
func (b *batch) revokeClient(id string) (bool, error) {
	epoch, err := b.raiseEpoch(raiseClientEpoch, id)
	if err != nil {
		return false, err
	}
	if epoch != 0 {
		b.note(clientChange, id)
	}
	return epoch != 0, b.run(id, revokeClientCodes, revokeClientFamilies)
}

// raiseEpoch sets the next epoch of a user or client and returns it: the time in microseconds, or
// one above the former epoch if the clock is behind that. It returns 0 if there is no such row.
func (b *batch) raiseEpoch(text string, id any) (epoch int64, err error) {
	err = b.conn.one(b.ctx, text, []any{id, time.Now().UnixMicro()}, &epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return epoch, err
}

// revokeGrant returns the families that it ended, and whether there was a consent or an unused
// code.
func (b *batch) revokeGrant(g oauth.Grant) (ends []oauth.End, changed bool, err error) {
	codes, err := b.conn.exec(b.ctx, revokeGrantCodes, g.UserID, g.ClientID)
	if err != nil {
		return nil, false, err
	}
	ends, err = b.endFamilies(revokeGrantFamilies, g.UserID, g.ClientID)
	if err != nil {
		return nil, false, err
	}
	consents, err := b.conn.exec(b.ctx, revokeConsent, g.UserID, g.ClientID)
	return ends, codes+consents > 0, err
}

// run executes statements about the user or client with that ID, in order.
func (b *batch) run(id any, texts ...string) error {
	for _, text := range texts {
		if _, err := b.conn.exec(b.ctx, text, id); err != nil {
			return err
		}
	}
	return nil
}
