package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/trace"
)

const (
	selectClientSession = `SELECT sid FROM session_clients WHERE session = $1 AND client_id = $2 AND NOT told`
	findClientSession   = `SELECT 1 FROM sessions s JOIN session_clients sc ON sc.session = s.hash
WHERE s.user_id = $1 AND sc.client_id = $2 AND sc.sid = $3 AND NOT sc.told AND s.expires > $4`
	addClientSession = `INSERT INTO session_clients (session, client_id, sid, told)
SELECT s.hash, c.id, $3, FALSE FROM sessions s CROSS JOIN clients c WHERE s.hash = $1 AND c.id = $2
ON CONFLICT (session, client_id) DO UPDATE SET told = FALSE RETURNING sid`

	// selectEnding returns the clients of sessions, and whether they want to be told of an end. A
	// quotation mark inside of a JSON string would be escaped.
	selectEnding = `SELECT s.hash, s.user_id, sc.client_id, sc.sid, NOT sc.told AND c.options LIKE '%"backchannel_logout_uri":%'
FROM sessions s JOIN session_clients sc ON sc.session = s.hash JOIN clients c ON c.id = sc.client_id
WHERE s.hash IN (SELECT hash FROM sessions WHERE `
	deleteWhich = `DELETE FROM sessions WHERE `
	tellClients = `UPDATE session_clients SET told = TRUE WHERE session IN (SELECT hash FROM sessions WHERE user_id = $1)`

	// The order is that of a Revoke by user, for the same reasons.
	revokeSessionCodes    = `DELETE FROM authorization_codes WHERE used_at IS NULL AND session IS NOT NULL AND session = $1`
	revokeSessionFamilies = `UPDATE families SET revoked = TRUE WHERE session IS NOT NULL AND session = $1 AND NOT revoked
RETURNING id, access_expires, user_id, client_id`

	countLogouts = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN user_id = $2 THEN 1 ELSE 0 END), 0) FROM logouts WHERE client_id = $1`
	logoutQueues = `SELECT client_id, COUNT(*), MIN(due) FROM logouts GROUP BY client_id ORDER BY MIN(due)`
	dueLogouts   = `SELECT id, client_id, user_id, sid, created, attempts FROM logouts
WHERE client_id = $1 AND due <= $2 ORDER BY due, id LIMIT CAST($3 AS BIGINT)`
	delayLogout = `UPDATE logouts SET attempts = attempts + 1, due = $2 WHERE id = $1`
	endLogout   = `DELETE FROM logouts WHERE id = $1`
)

var logoutsTable = newRowsText("INSERT INTO logouts (id, client_id, user_id, sid, created, attempts, due) ", "",
	"text", "text", "bigint", "text", "bigint", "bigint", "bigint")

// ClientSession implements account.Store.
func (s *Store) ClientSession(ctx context.Context, hash [32]byte, clientID string) (sid string,
	err error) {
	if !isText(clientID) {
		return "", fmt.Errorf("read session of a client: %w", account.ErrNotFound)
	}
	err = readOne(ctx, s, account.ErrNotFound, selectClientSession, []any{hash[:], clientID},
		func(r row) error { return r.Scan(&sid) })
	return sid, wrap("read session of a client", err)
}

// AddClientSession implements account.Store.
func (s *Store) AddClientSession(ctx context.Context, hash [32]byte, clientID, sid string) (
	known string, err error) {
	err = s.do(ctx, func(b *batch) error {
		if !isText(clientID) || !isText(sid) {
			return refusal{errText}
		}
		err := b.conn.one(b.ctx, addClientSession, []any{hash[:], clientID, sid}, &known)
		return orRefusal(err, account.ErrNotFound)
	})
	return known, wrap("add a client to a session", err)
}

// FindClientSession implements account.Store.
func (s *Store) FindClientSession(
	ctx context.Context, userID int64, clientID, sid string, now time.Time,
) error {
	var one int
	err := fmt.Errorf("sid: %w", account.ErrNotFound)
	if isText(clientID) && isText(sid) {
		err = readOne(ctx, s, account.ErrNotFound, findClientSession,
			[]any{userID, clientID, sid, millis(now)}, func(r row) error { return r.Scan(&one) })
	}
	return wrap("find session of a client", err)
}

// ending is a client of a session that ends.
type ending struct {
	session  oauth.Hash
	userID   int64
	clientID string
	sid      string
	told     bool // it gets a Logout
}

// endSessions ends the sessions that a condition selects, with their codes and families, and notes
// whom to tell. It returns how many there were, and whether a family has ended. A session without
// clients has no code and no family that ends with it.
func (b *batch) endSessions(which string, args ...any) (n int64, tokens bool, err error) {
	all, err := b.dropSessions(which, &n, args...)
	if err != nil {
		return 0, false, err
	}
	done := map[oauth.Hash]bool{}
	for _, e := range all {
		if done[e.session] {
			continue
		}
		done[e.session] = true
		ended, err := b.endTokensOf(e.session)
		if err != nil {
			return 0, false, err
		}
		tokens = tokens || ended
	}
	return n, tokens, nil
}

// dropSessions is endSessions without the codes and families. It returns the clients.
func (b *batch) dropSessions(which string, n *int64, args ...any) (all []ending, err error) {
	if all, err = b.endings(which, args...); err != nil {
		return nil, err
	}
	if *n, err = b.conn.exec(b.ctx, deleteWhich+which, args...); err != nil {
		return nil, err
	}
	return all, b.addLogouts(all)
}

// tellOfDisabled notes whom to tell that a user's sessions have ended, although they come back when
// the user is enabled.
func (b *batch) tellOfDisabled(userID int64) error {
	all, err := b.endings("user_id = $1", userID)
	if err != nil || len(all) == 0 {
		return err
	}
	if _, err := b.conn.exec(b.ctx, tellClients, userID); err != nil {
		return err
	}
	return b.addLogouts(all)
}

func (b *batch) endings(which string, args ...any) (all []ending, err error) {
	err = b.conn.rows(b.ctx, selectEnding+which+")", args, func(r row) error {
		var e ending
		var hash []byte
		err := r.Scan(&hash, &e.userID, &e.clientID, &e.sid, &e.told)
		copy(e.session[:], hash)
		all = append(all, e)
		return err
	})
	return all, err
}

// endTokensOf deletes the codes of a session that were not used, and revokes its families. It
// reports whether a family has ended.
func (b *batch) endTokensOf(session oauth.Hash) (ended bool, err error) {
	if _, err := b.conn.exec(b.ctx, revokeSessionCodes, session[:]); err != nil {
		return false, err
	}
	ends := map[oauth.Grant][]oauth.End{}
	err = b.conn.rows(b.ctx, revokeSessionFamilies, []any{session[:]}, func(r row) error {
		var end oauth.End
		var grant oauth.Grant
		var expires int64
		err := r.Scan(&end.FamilyID, &expires, &grant.UserID, &grant.ClientID)
		end.Expires = fromMillis(expires)
		ends[grant] = append(ends[grant], end)
		return err
	})
	if err != nil {
		return false, err
	}
	for grant, all := range ends {
		if _, err := b.keepEnds(grant, all); err != nil {
			return false, err
		}
	}
	return len(ends) > 0, nil
}

// addLogouts adds the logouts of clients that want one, as far as there is room.
func (b *batch) addLogouts(all []ending) error {
	now := time.Now().UnixMilli()
	var wanted []ending
	for i := range all {
		if !all[i].told {
			continue
		}
		var waiting, ofUser int
		err := b.conn.one(b.ctx, countLogouts, []any{all[i].clientID, all[i].userID}, &waiting, &ofUser)
		if err != nil {
			return err
		}
		for _, e := range wanted {
			if e.clientID == all[i].clientID {
				waiting, ofUser = waiting+1, ofUser+1 // all are of one user
			}
		}
		if waiting < account.MaxLogouts && ofUser < account.MaxLogoutsOfUser {
			wanted = append(wanted, all[i])
		}
	}
	return wrap("save logouts", insertAll(b, logoutsTable, wanted, func(args []any, e *ending) []any {
		return append(args, trace.Mark(b.trace, uuid.NewString()), e.clientID, e.userID, e.sid, now, int64(0), now)
	}))
}

// LogoutQueues implements account.LogoutStore.
func (s *Store) LogoutQueues(ctx context.Context) (all []account.LogoutQueue, err error) {
	err = readAll(ctx, s, logoutQueues, nil, func(r row) error {
		var q account.LogoutQueue
		var due int64
		err := r.Scan(&q.ClientID, &q.Waiting, &due)
		q.Due = fromMillis(due)
		all = append(all, q)
		return err
	})
	return all, wrap("read queues of logouts", err)
}

// Logouts implements account.LogoutStore.
func (s *Store) Logouts(ctx context.Context, clientID string, now time.Time, limit int) (
	all []account.Logout, err error) {
	err = readAll(ctx, s, dueLogouts, []any{clientID, millis(now), limit}, func(r row) error {
		var l account.Logout
		var created int64
		err := r.Scan(&l.ID, &l.ClientID, &l.UserID, &l.SID, &created, &l.Attempts)
		l.Created = fromMillis(created)
		all = append(all, l)
		return err
	})
	return all, wrap("read logouts", err)
}

// DelayLogout implements account.LogoutStore. It returns ErrNotFound if there is no such logout.
func (s *Store) DelayLogout(ctx context.Context, id string, due time.Time) error {
	return wrap("delay logout", s.do(ctx, func(b *batch) error {
		return b.change(delayLogout, id, millis(due))
	}))
}

// EndLogout implements account.LogoutStore.
func (s *Store) EndLogout(ctx context.Context, id string) error {
	return wrap("end logout", s.delete(ctx, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, endLogout, id)
		return err
	}))
}

// orRefusal returns a refusal in place of an error about no row.
func orRefusal(err, expected error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return refusal{expected}
	}
	return err
}
