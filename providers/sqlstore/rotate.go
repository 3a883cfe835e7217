package sqlstore

import (
	"database/sql"
	"errors"

	"gatehouse/actors/oauth"
)

// userLives requires that the user of the family exists and is not disabled.
const userLives = `EXISTS (SELECT 1 FROM users WHERE users.id = families.user_id AND NOT users.disabled)`

const advanceFamily = `UPDATE families SET generation = generation + 1, advanced = $1, expires = $2
WHERE id = $3 AND generation = $4 AND NOT revoked AND expires > $1 AND ends > $1 AND ` + userLives

const repeatAdvance = `UPDATE families SET expires = $2
WHERE id = $3 AND generation = $4 AND advanced > $5 AND NOT revoked AND expires > $1 AND ends > $1 AND ` + userLives

const liveFamily = `SELECT generation, advanced FROM families
WHERE id = $1 AND NOT revoked AND expires > $2 AND ends > $2`

// rotate advances the family, or repeats its last advance within the grace period.
func (b *batch) rotate(op *oauth.Rotate) error {
	if err := b.settleRedeems(); err != nil {
		return err
	}
	if err := b.settleFamilies(); err != nil {
		return err
	}
	now, graceStart := millis(op.Now), millis(op.Now.Add(-op.Grace))
	advanced, err := b.conn.exec(b.ctx, advanceFamily, now, millis(op.Expires),
		op.FamilyID, op.Generation)
	if err == nil && advanced == 0 && op.Grace > 0 {
		advanced, err = b.conn.exec(b.ctx, repeatAdvance, now, millis(op.Expires), op.FamilyID,
			op.Generation+1, graceStart)
	}
	if err != nil {
		return err
	}
	if advanced == 1 {
		access := op.Access
		access.FamilyID = op.FamilyID
		b.access = append(b.access, access)
		b.keepRefresh(op.Refresh, op.FamilyID, op.Generation+1)
		op.Outcome = oauth.OutcomeDone
		return nil
	}
	return b.refuseRotation(op, now, graceStart)
}

// refuseRotation sets the outcome of a rotation that did not advance the family. If the family is
// live and the token is not an accepted one, it was reused: refuseRotation revokes the family.
// Otherwise the family has ended, or its user is disabled.
func (b *batch) refuseRotation(op *oauth.Rotate, now, graceStart int64) error {
	var generation, advanced int64
	err := b.conn.one(b.ctx, liveFamily, []any{op.FamilyID, now}, &generation, &advanced)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	accepted := generation == op.Generation || generation == op.Generation+1 && op.Grace > 0 &&
		advanced > graceStart
	if err != nil || accepted {
		op.Outcome = oauth.OutcomeGone
		return nil
	}
	op.Revoked, err = b.revokeFamily(op.FamilyID)
	op.Outcome = oauth.OutcomeReused
	return err
}
