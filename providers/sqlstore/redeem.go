package sqlstore

import (
	"database/sql"
	"errors"

	"github.com/google/uuid"

	"gatehouse/actors/oauth"
)

const usedCode = `SELECT family_id FROM authorization_codes
WHERE hash = $1 AND used_at IS NOT NULL AND client_id = $2`

// takeCodes marks codes as used, one code a row, and returns those that it marked: codes that were
// unused and not expired, whose user exists and is not disabled, whose session has not ended, and
// whose user and client have no later epoch than the code. So the epochs of the code are those for
// the access token.
var takeCodes = newRowsText("UPDATE authorization_codes SET used_at = v.column1, family_id = v.column2 FROM (", `) AS v
WHERE hash = v.column3 AND used_at IS NULL AND expires > v.column1 AND client_id = v.column4 AND user_id = v.column5
AND EXISTS (SELECT 1 FROM users WHERE users.id = authorization_codes.user_id AND NOT users.disabled
AND users.epoch <= authorization_codes.user_epoch)
AND (session IS NULL OR EXISTS (SELECT 1 FROM sessions WHERE sessions.hash = authorization_codes.session))
AND NOT EXISTS (SELECT 1 FROM clients WHERE clients.id = authorization_codes.client_id
AND clients.epoch > authorization_codes.client_epoch) RETURNING hash, client_epoch, user_epoch`,
	"bigint", "text", "bytea", "text", "bigint")

// redeem adds op to the collected redemptions. It first settles them if one has the same code: the
// second has to see the effect of the first.
func (b *batch) redeem(op *oauth.Redeem) error {
	if _, collected := b.redeemed[op.Code]; collected {
		if err := b.settleRedeems(); err != nil {
			return err
		}
	}
	if b.redeemed == nil {
		b.redeemed = make(map[oauth.Hash]*oauth.Epochs)
	}
	if a := op.Assertion; a != nil {
		n, err := b.conn.exec(b.ctx, useAssertion, a.Replay[:], millis(a.Expires))
		if err != nil || n == 0 {
			op.Outcome = oauth.OutcomeUsed
			return err
		}
		b.codes = append(b.codes, a.Code)
	}
	b.redeems, b.redeemed[op.Code] = append(b.redeems, op), nil
	return nil
}

// settleRedeems decides the collected redemptions: it takes their codes in few statements, and then
// sets the outcomes in order.
func (b *batch) settleRedeems() error {
	if len(b.redeems) == 0 {
		return nil
	}
	if err := b.settleCodes(); err != nil {
		return err
	}
	redeems := b.redeems
	b.redeems = nil // refuseRedeem may call settle
	err := inRows(b, takeCodes, redeems, func(args []any, op **oauth.Redeem) []any {
		f := &(*op).Family
		return append(args, millis((*op).Now), f.ID.String(), (*op).Code[:], f.ClientID, f.UserID)
	}, func(text string, args []any) error {
		return b.conn.rows(b.ctx, text, args, func(r row) error {
			var hash []byte
			var epochs oauth.Epochs
			if err := r.Scan(&hash, &epochs.Client, &epochs.User); err != nil {
				return err
			}
			b.redeemed[oauth.Hash(hash)] = &epochs
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, op := range redeems {
		if epochs := b.redeemed[op.Code]; epochs != nil {
			b.keepFamily(op)
			op.Outcome, op.Epochs = oauth.OutcomeDone, *epochs
			b.record(op.Context)
		} else if err := b.refuseRedeem(op); err != nil {
			return err
		}
	}
	clear(b.redeemed)
	b.redeems = redeems[:0]
	return nil
}

// refuseRedeem sets the outcome of a redemption whose code was not taken. If the code was used
// before, it revokes the family of its tokens.
func (b *batch) refuseRedeem(op *oauth.Redeem) error {
	var family uuid.UUID
	err := b.conn.one(b.ctx, usedCode, []any{op.Code[:], op.Family.ClientID}, &family)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		op.Outcome = oauth.OutcomeGone
		return nil
	case err != nil:
		return err
	}
	op.Ended, err = b.revokeFamily(family)
	op.Outcome = oauth.OutcomeReused
	if len(op.Ended) > 0 {
		b.recordReuse(&op.Write, op.Family.UserID, family)
	}
	return err
}

func (b *batch) keepFamily(op *oauth.Redeem) {
	b.families = append(b.families, op.Family)
	if op.Refresh != nil {
		b.keepRefresh(*op.Refresh, op.Family.ID, op.Family.Generation)
	}
}

func (b *batch) keepRefresh(hash oauth.Hash, family uuid.UUID, generation int64) {
	b.refresh = append(b.refresh, oauth.RefreshToken{Hash: hash, Generation: generation,
		Family: oauth.Family{ID: family}})
}
