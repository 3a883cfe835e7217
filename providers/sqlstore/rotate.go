package sqlstore

import (
	"database/sql"
	"errors"

	"gatehouse/actors/oauth"
)

// userLives requires that the user of the family exists and is not disabled.
const userLives = `EXISTS (SELECT 1 FROM users WHERE users.id = families.user_id AND NOT users.disabled)`

// sessionLives requires that the session that the family ends with has not ended.
const sessionLives = `(session IS NULL OR EXISTS (SELECT 1 FROM sessions WHERE sessions.hash = families.session AND sessions.expires > $1))`

// raiseAccess moves the expiry of the family's last access token, never back.
const raiseAccess = `access_expires = CASE WHEN access_expires > $3 THEN access_expires ELSE $3 END`

// familyEpochs returns the epochs for the access token.
const familyEpochs = ` RETURNING COALESCE((SELECT epoch FROM clients WHERE clients.id = families.client_id), 0),
COALESCE((SELECT epoch FROM users WHERE users.id = families.user_id), 0)`

const advanceFamily = `UPDATE families SET generation = generation + 1, repeats = 0, advanced = $1, expires = $2, ` + raiseAccess + `
WHERE id = $4 AND generation = $5 AND NOT revoked AND expires > $1 AND ends > $1 AND ` + userLives + ` AND ` + sessionLives + familyEpochs

const repeatAdvance = `UPDATE families SET repeats = repeats + 1, expires = $2, ` + raiseAccess + `
WHERE id = $4 AND generation = $5 AND advanced > $6 AND repeats < $7 AND NOT revoked AND expires > $1 AND ends > $1 AND ` + userLives +
	` AND ` + sessionLives + familyEpochs

const liveFamily = `SELECT generation, advanced, repeats, user_id, ` + userLives + ` FROM families
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
	args := []any{now, millis(op.Expires), millis(op.AccessExpires), op.FamilyID.String(),
		op.Generation}
	err := b.conn.one(b.ctx, advanceFamily, args, &op.Epochs.Client, &op.Epochs.User)
	if errors.Is(err, sql.ErrNoRows) && op.Grace > 0 {
		args[4] = op.Generation + 1
		err = b.conn.one(b.ctx, repeatAdvance, append(args, graceStart, oauth.MaxRepeats), &op.Epochs.Client,
			&op.Epochs.User)
	}
	switch {
	case err == nil:
		b.keepRefresh(op.Refresh, op.FamilyID, op.Generation+1)
		op.Outcome = oauth.OutcomeDone
		b.record(op.Context)
		return nil
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	return b.refuseRotation(op, now, graceStart)
}

// refuseRotation sets the outcome of a rotation that did not advance the family. If the family is
// live and the token is not an accepted one, it was reused: refuseRotation revokes the family.
// Otherwise the token was repeated too often, the family has ended, or its user is disabled.
func (b *batch) refuseRotation(op *oauth.Rotate, now, graceStart int64) error {
	var generation, advanced, repeats, userID int64
	var userLives bool
	err := b.conn.one(b.ctx, liveFamily, []any{op.FamilyID.String(), now}, &generation, &advanced,
		&repeats, &userID, &userLives)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	previous := generation == op.Generation+1 && op.Grace > 0 && advanced > graceStart
	switch {
	case err == nil && previous && userLives && repeats >= oauth.MaxRepeats:
		op.Outcome = oauth.OutcomeRepeated
		return nil
	case err != nil, previous, generation == op.Generation:
		op.Outcome = oauth.OutcomeGone
		return nil
	}
	op.Ended, err = b.revokeFamily(op.FamilyID)
	op.Outcome = oauth.OutcomeReused
	if len(op.Ended) > 0 {
		b.recordReuse(&op.Write, userID, op.FamilyID)
	}
	return err
}
