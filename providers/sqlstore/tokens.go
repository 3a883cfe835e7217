package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"gatehouse/actors/oauth"
)

const selectCode = `SELECT client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge, expires, used_at, family_id,
client_epoch, user_epoch, session, details FROM authorization_codes WHERE hash = $1`

// AuthorizationCode implements oauth.Store.
func (s *Store) AuthorizationCode(ctx context.Context,
	hash oauth.Hash) (*oauth.AuthorizationCode, error) {
	c := oauth.AuthorizationCode{Hash: hash}
	var expires int64
	var used sql.NullInt64
	var session []byte
	var details string
	err := readOne(ctx, s, oauth.ErrNotFound, selectCode, []any{hash[:]}, func(r row) error {
		return r.Scan(&c.ClientID, &c.UserID, &c.RedirectURI, &c.Scopes, &c.DefaultScopes,
			&c.CodeChallenge, &expires, &used, &c.FamilyID,
			&c.Epochs.Client, &c.Epochs.User, &session, &details)
	})
	if err == nil {
		c.Session, c.Details, err = parseDetails(session, details)
	}
	if err != nil {
		return nil, fmt.Errorf("read authorization code: %w", err)
	}
	c.Expires, c.Used = fromMillis(expires), fromMillis(used.Int64)
	return &c, nil
}

const selectRefreshToken = `SELECT r.generation, f.id, f.client_id, f.user_id, f.scopes, f.generation, f.advanced, f.expires, f.ends, f.access_expires, f.revoked, f.repeats,
f.session, f.details, COALESCE(s.expires, 0) FROM refresh_tokens r JOIN families f ON f.id = r.family_id
LEFT JOIN sessions s ON s.hash = f.session WHERE r.hash = $1`

// RefreshToken implements oauth.Store.
func (s *Store) RefreshToken(ctx context.Context, hash oauth.Hash) (*oauth.RefreshToken, error) {
	t := oauth.RefreshToken{Hash: hash}
	f := &t.Family
	var advanced, expires, ends, access, sessionEnds int64
	var session []byte
	var details string
	err := readOne(ctx, s, oauth.ErrNotFound, selectRefreshToken, []any{hash[:]},
		func(r row) error {
			return r.Scan(&t.Generation, &f.ID, &f.ClientID, &f.UserID, &f.Scopes, &f.Generation,
				&advanced, &expires, &ends, &access, &f.Revoked, &f.Repeats, &session, &details,
				&sessionEnds)
		})
	if err == nil {
		f.Session, f.Details, err = parseDetails(session, details)
	}
	if err != nil {
		return nil, fmt.Errorf("read refresh token: %w", err)
	}
	if session != nil {
		expires = min(expires, sessionEnds)
	}
	f.Advanced, f.Expires, f.Ends = fromMillis(advanced), fromMillis(expires), fromMillis(ends)
	f.AccessExpires = fromMillis(access)
	return &t, nil
}

// sessionBytes returns the stored form of a session's hash: NULL for none.
func sessionBytes(hash oauth.Hash) any {
	if hash == (oauth.Hash{}) {
		return nil
	}
	return hash[:]
}

// detailsText returns the stored form of details: "" for none.
func detailsText(d *oauth.GrantDetails) string {
	if d.IsZero() {
		return ""
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // numbers and text can be encoded
	}
	return string(text)
}

// parseDetails is the inverse of sessionBytes and detailsText.
func parseDetails(session []byte, details string) (
	hash oauth.Hash, d oauth.GrantDetails, err error) {
	copy(hash[:], session)
	if details != "" {
		err = json.Unmarshal([]byte(details), &d)
	}
	return hash, d, wrap("parse details", err)
}
