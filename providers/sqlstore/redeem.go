package sqlstore

import (
	"database/sql"
	"errors"

	"gatehouse/actors/oauth"
)

const takeCode = `UPDATE authorization_codes SET used_at = $1, family_id = $2
WHERE hash = $3 AND used_at IS NULL AND expires > $1 AND client_id = $4 AND user_id = $5
AND EXISTS (SELECT 1 FROM users WHERE users.id = authorization_codes.user_id AND NOT users.disabled)`

const usedCode = `SELECT family_id FROM authorization_codes
WHERE hash = $1 AND used_at IS NOT NULL AND client_id = $2`

// redeem takes the code, or finds out that it was taken before, which ends the family that grew from it.
func (b *batch) redeem(op *oauth.Redeem) error {
	if err := b.settleCodes(); err != nil {
		return err
	}
	taken, err := b.conn.exec(b.ctx, takeCode,
		millis(op.Now), op.Family.ID, op.Code[:], op.Family.ClientID, op.Family.UserID)
	if err != nil {
		return err
	}
	if taken == 1 {
		b.keepFamily(op)
		op.Outcome = oauth.OutcomeDone
		return nil
	}
	var family string
	err = b.conn.one(b.ctx, usedCode, []any{op.Code[:], op.Family.ClientID}, &family)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		op.Outcome = oauth.OutcomeGone
		return nil
	case err != nil:
		return err
	}
	op.Revoked, err = b.endFamily(family)
	op.Outcome = oauth.OutcomeReused
	return err
}

func (b *batch) keepFamily(op *oauth.Redeem) {
	access := op.Access
	access.FamilyID = op.Family.ID
	b.families = append(b.families, op.Family)
	b.access = append(b.access, access)
	if op.Refresh != nil {
		b.keepRefresh(*op.Refresh, op.Family.ID, op.Family.Generation)
	}
}

func (b *batch) keepRefresh(hash oauth.Hash, family string, generation int64) {
	b.refresh = append(b.refresh, oauth.RefreshToken{Hash: hash, Generation: generation, Family: oauth.Family{ID: family}})
}
