package sqlstore

import (
	"fmt"

	"gatehouse/actors/oauth"
)

// Each form of Revoke revokes codes, then families, then access tokens. On PostgreSQL the statement
// for codes waits for another process that is redeeming one, and the statement for families waits
// for one that is rotating one. So the next statement sees the tokens that they issued.
const (
	revokeAccessToken = `DELETE FROM access_tokens WHERE hash = $1 RETURNING hash`

	revokeFamily       = `UPDATE families SET revoked = TRUE WHERE id = $1 AND NOT revoked`
	revokeFamilyTokens = `DELETE FROM access_tokens WHERE family_id = $1 AND family_id <> '' RETURNING hash`

	revokeUserCodes        = `DELETE FROM authorization_codes WHERE used_at IS NULL AND user_id = $1`
	revokeUserFamilies     = `UPDATE families SET revoked = TRUE WHERE user_id = $1 AND id <> $2 AND NOT revoked`
	revokeUserFamilyTokens = `DELETE FROM access_tokens
WHERE family_id <> '' AND family_id IN (SELECT id FROM families WHERE user_id = $1 AND id <> $2) RETURNING hash`
	revokeUserTokens = `DELETE FROM access_tokens WHERE user_id <> 0 AND family_id = '' AND user_id = $1 RETURNING hash`

	revokeClientCodes    = `DELETE FROM authorization_codes WHERE used_at IS NULL AND client_id = $1`
	revokeClientFamilies = `UPDATE families SET revoked = TRUE WHERE client_id = $1 AND NOT revoked`
	revokeClientTokens   = `DELETE FROM access_tokens WHERE client_id = $1 RETURNING hash`

	revokeGrantCodes        = `DELETE FROM authorization_codes WHERE used_at IS NULL AND user_id = $1 AND client_id = $2`
	revokeGrantFamilies     = `UPDATE families SET revoked = TRUE WHERE user_id = $1 AND client_id = $2 AND NOT revoked`
	revokeGrantFamilyTokens = `DELETE FROM access_tokens
WHERE family_id <> '' AND family_id IN (SELECT id FROM families WHERE user_id = $1 AND client_id = $2) RETURNING hash`
	revokeGrantTokens = `DELETE FROM access_tokens
WHERE user_id <> 0 AND family_id = '' AND user_id = $1 AND client_id = $2 RETURNING hash`
	revokeConsent = `DELETE FROM consents WHERE user_id = $1 AND client_id = $2`
)

func (b *batch) revoke(op *oauth.Revoke) (err error) {
	if err := b.settle(); err != nil {
		return err
	}
	if n := selectors(op); n != 1 {
		return fmt.Errorf("got %d fields that select tokens, want 1", n)
	}
	switch {
	case op.Access != nil:
		op.Revoked, err = b.conn.hashes(b.ctx, revokeAccessToken, op.Access[:])
	case op.FamilyID != "":
		op.Revoked, err = b.revokeFamily(op.FamilyID)
	case op.UserID != 0:
		op.Revoked, err = b.revokeUser(op.UserID, op.KeepFamily)
	case op.ClientID != "":
		op.Revoked, err = b.revokeClient(op.ClientID)
	default:
		op.Revoked, err = b.revokeGrant(*op.Consent)
	}
	return err
}

// selectors counts the fields of op that select tokens.
func selectors(op *oauth.Revoke) (n int) {
	for _, given := range []bool{op.Access != nil, op.FamilyID != "", op.UserID != 0,
		op.ClientID != "", op.Consent != nil} {
		if given {
			n++
		}
	}
	return n
}

func (b *batch) revokeFamily(id string) ([]oauth.Hash, error) {
	if err := b.settle(); err != nil {
		return nil, err
	}
	return b.run(steps{{revokeFamily, []any{id}}}, steps{{revokeFamilyTokens, []any{id}}})
}

func (b *batch) revokeUser(id int64, keepFamily string) ([]oauth.Hash, error) {
	return b.run(
		steps{{revokeUserCodes, []any{id}}, {revokeUserFamilies, []any{id, keepFamily}}},
		steps{{revokeUserFamilyTokens, []any{id, keepFamily}}, {revokeUserTokens, []any{id}}})
}

func (b *batch) revokeClient(id string) ([]oauth.Hash, error) {
	return b.run(
		steps{{revokeClientCodes, []any{id}}, {revokeClientFamilies, []any{id}}},
		steps{{revokeClientTokens, []any{id}}})
}

func (b *batch) revokeGrant(g oauth.Grant) ([]oauth.Hash, error) {
	args := []any{g.UserID, g.ClientID}
	return b.run(
		steps{{revokeGrantCodes, args}, {revokeGrantFamilies, args}, {revokeConsent, args}},
		steps{{revokeGrantFamilyTokens, args}, {revokeGrantTokens, args}})
}

// steps are statements with their values, in order.
type steps []struct {
	text string
	args []any
}

// run executes first, and then tokens, whose statements return the hashes of revoked access tokens.
func (b *batch) run(first, tokens steps) ([]oauth.Hash, error) {
	for _, s := range first {
		if _, err := b.conn.exec(b.ctx, s.text, s.args...); err != nil {
			return nil, err
		}
	}
	var revoked []oauth.Hash
	for _, s := range tokens {
		hashes, err := b.conn.hashes(b.ctx, s.text, s.args...)
		if err != nil {
			return nil, err
		}
		revoked = append(revoked, hashes...)
	}
	return revoked, nil
}
