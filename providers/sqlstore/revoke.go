package sqlstore

import (
	"fmt"

	"gatehouse/actors/oauth"
)

// Each form of Revoke ends codes, then families, then access tokens. On PostgreSQL the statement about codes waits for another
// process that is redeeming one, and the statement about families for one that is rotating there; the next
// statement then sees what they left.
const (
	endAccessToken = `DELETE FROM access_tokens WHERE hash = $1 RETURNING hash`

	endFamily       = `UPDATE families SET revoked = TRUE WHERE id = $1 AND NOT revoked`
	endFamilyTokens = `DELETE FROM access_tokens WHERE family_id = $1 AND family_id <> '' RETURNING hash`

	endUserCodes        = `DELETE FROM authorization_codes WHERE used_at IS NULL AND user_id = $1`
	endUserFamilies     = `UPDATE families SET revoked = TRUE WHERE user_id = $1 AND id <> $2 AND NOT revoked`
	endUserFamilyTokens = `DELETE FROM access_tokens
WHERE family_id <> '' AND family_id IN (SELECT id FROM families WHERE user_id = $1 AND id <> $2) RETURNING hash`
	endUserTokens = `DELETE FROM access_tokens WHERE user_id <> 0 AND family_id = '' AND user_id = $1 RETURNING hash`

	endClientCodes    = `DELETE FROM authorization_codes WHERE used_at IS NULL AND client_id = $1`
	endClientFamilies = `UPDATE families SET revoked = TRUE WHERE client_id = $1 AND NOT revoked`
	endClientTokens   = `DELETE FROM access_tokens WHERE client_id = $1 RETURNING hash`

	endGrantCodes        = `DELETE FROM authorization_codes WHERE used_at IS NULL AND user_id = $1 AND client_id = $2`
	endGrantFamilies     = `UPDATE families SET revoked = TRUE WHERE user_id = $1 AND client_id = $2 AND NOT revoked`
	endGrantFamilyTokens = `DELETE FROM access_tokens
WHERE family_id <> '' AND family_id IN (SELECT id FROM families WHERE user_id = $1 AND client_id = $2) RETURNING hash`
	endGrantTokens = `DELETE FROM access_tokens
WHERE user_id <> 0 AND family_id = '' AND user_id = $1 AND client_id = $2 RETURNING hash`
	endConsent = `DELETE FROM consents WHERE user_id = $1 AND client_id = $2`
)

func (b *batch) revoke(op *oauth.Revoke) (err error) {
	if err := b.settle(); err != nil {
		return err
	}
	if n := forms(op); n != 1 {
		return fmt.Errorf("%d ways are given, not one", n)
	}
	switch {
	case op.Access != nil:
		op.Revoked, err = b.conn.hashes(b.ctx, endAccessToken, op.Access[:])
	case op.FamilyID != "":
		op.Revoked, err = b.endFamily(op.FamilyID)
	case op.UserID != 0:
		op.Revoked, err = b.endUser(op.UserID, op.KeepFamily)
	case op.ClientID != "":
		op.Revoked, err = b.endClient(op.ClientID)
	default:
		op.Revoked, err = b.endGrant(*op.Consent)
	}
	return err
}

// forms counts the ways in which op says what ends.
func forms(op *oauth.Revoke) (n int) {
	for _, given := range []bool{op.Access != nil, op.FamilyID != "", op.UserID != 0, op.ClientID != "", op.Consent != nil} {
		if given {
			n++
		}
	}
	return n
}

func (b *batch) endFamily(id string) ([]oauth.Hash, error) {
	if err := b.settle(); err != nil {
		return nil, err
	}
	return b.end(steps{{endFamily, []any{id}}}, steps{{endFamilyTokens, []any{id}}})
}

func (b *batch) endUser(id int64, keepFamily string) ([]oauth.Hash, error) {
	return b.end(
		steps{{endUserCodes, []any{id}}, {endUserFamilies, []any{id, keepFamily}}},
		steps{{endUserFamilyTokens, []any{id, keepFamily}}, {endUserTokens, []any{id}}})
}

func (b *batch) endClient(id string) ([]oauth.Hash, error) {
	return b.end(
		steps{{endClientCodes, []any{id}}, {endClientFamilies, []any{id}}},
		steps{{endClientTokens, []any{id}}})
}

func (b *batch) endGrant(g oauth.Grant) ([]oauth.Hash, error) {
	args := []any{g.UserID, g.ClientID}
	return b.end(
		steps{{endGrantCodes, args}, {endGrantFamilies, args}, {endConsent, args}},
		steps{{endGrantFamilyTokens, args}, {endGrantTokens, args}})
}

// steps are statements with their values, in order.
type steps []struct {
	text string
	args []any
}

// end executes the steps of quiet, then those of telling, which return the hashes of what ended.
func (b *batch) end(quiet, telling steps) ([]oauth.Hash, error) {
	for _, s := range quiet {
		if _, err := b.conn.exec(b.ctx, s.text, s.args...); err != nil {
			return nil, err
		}
	}
	var ended []oauth.Hash
	for _, s := range telling {
		hashes, err := b.conn.hashes(b.ctx, s.text, s.args...)
		if err != nil {
			return nil, err
		}
		ended = append(ended, hashes...)
	}
	return ended, nil
}
