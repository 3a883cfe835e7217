package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

const sweepRows = 200 // limit for one operation, so that other writes never wait long

// deviceKept is how long a device code stays after it has expired, so that its client is told so.
const deviceKept = oauth.DeviceCodeLifetime

// assertionKept is how long a used assertion stays after it has expired, since clocks differ.
const assertionKept = time.Minute

// challengeKept is how long a used challenge stays after it has ended, since clocks differ.
const challengeKept = time.Minute

// sweepStep deletes rows that have expired, or have a given age.
type sweepStep struct {
	text string
	age  time.Duration
}

// familyIsOver is true when a family and all its access tokens have expired long enough.
var familyIsOver = fmt.Sprintf(`(CASE WHEN f.expires > f.access_expires THEN f.expires ELSE f.access_expires END)
<= CAST($1 AS BIGINT) - %d`, oauth.EndKept.Milliseconds())

// sweepSteps delete expired rows, in this order. Used codes and refresh tokens are deleted with
// their family. A family is deleted after its access tokens have expired: the replay of a code, and
// revoking a consent, end them through it. SQLite joins the tables of a CROSS JOIN in the written
// order.
var sweepSteps = []sweepStep{
	{text: `DELETE FROM changes WHERE number IN
(SELECT number FROM changes WHERE expires <= $1 ORDER BY expires LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM keys WHERE (purpose, number) IN
(SELECT purpose, number FROM keys WHERE expires > 0 AND expires <= $1 AND purpose <> '` + string(oauth.FactorKeys) + `' LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM authorization_codes WHERE hash IN
(SELECT hash FROM authorization_codes WHERE used_at IS NULL AND expires <= $1 ORDER BY expires LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM device_codes WHERE hash IN
(SELECT hash FROM device_codes WHERE expires <= $1 ORDER BY expires LIMIT CAST($2 AS BIGINT))`, age: deviceKept},
	{text: `DELETE FROM client_assertions WHERE hash IN
(SELECT hash FROM client_assertions WHERE expires <= $1 ORDER BY expires LIMIT CAST($2 AS BIGINT))`, age: assertionKept},
	{text: `DELETE FROM sessions WHERE hash IN
(SELECT hash FROM sessions WHERE expires <= $1 ORDER BY expires LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM challenges WHERE hash IN
(SELECT hash FROM challenges WHERE ends <= $1 ORDER BY ends LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM used_challenges WHERE hash IN
(SELECT hash FROM used_challenges WHERE ends <= $1 ORDER BY ends LIMIT CAST($2 AS BIGINT))`, age: challengeKept},
	{text: `DELETE FROM pending_sign_ins WHERE hash IN
(SELECT hash FROM pending_sign_ins WHERE ends <= $1 ORDER BY ends LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM trusted_browsers WHERE hash IN
(SELECT hash FROM trusted_browsers WHERE ends <= $1 ORDER BY ends LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM factor_guesses WHERE (user_id, id) IN
(SELECT user_id, id FROM factor_guesses WHERE at <= $1 ORDER BY at LIMIT CAST($2 AS BIGINT))`, age: account.FactorWindow},
	{text: `DELETE FROM provider_attempts WHERE hash IN
(SELECT hash FROM provider_attempts WHERE ends <= $1 ORDER BY ends LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM links WHERE hash IN
(SELECT hash FROM links WHERE ends <= $1 ORDER BY ends LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM invitations WHERE id IN
(SELECT id FROM invitations WHERE ends <= $1 ORDER BY ends LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM outbox WHERE id IN
(SELECT id FROM outbox WHERE sent > 0 AND sent <= $1 ORDER BY sent LIMIT CAST($2 AS BIGINT))`, age: account.NoticeInterval},
	{text: `DELETE FROM code_sends WHERE (recipient, number) IN
(SELECT recipient, number FROM code_sends WHERE expires <= $1 ORDER BY expires LIMIT CAST($2 AS BIGINT))`},
	{text: fmt.Sprintf(`DELETE FROM guesses WHERE (account, known) IN
(SELECT account, known FROM guesses WHERE paid <= $1 AND told <= CAST($1 AS BIGINT) - %d ORDER BY paid LIMIT CAST($2 AS BIGINT))`,
		account.GuessesTold.Milliseconds())},
	{text: `DELETE FROM refresh_tokens WHERE hash IN
(SELECT r.hash FROM families f CROSS JOIN refresh_tokens r WHERE r.family_id = f.id AND ` + familyIsOver + ` LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM authorization_codes WHERE hash IN
(SELECT c.hash FROM families f CROSS JOIN authorization_codes c
WHERE c.family_id = f.id AND c.family_id <> '' AND ` + familyIsOver + ` LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM families WHERE id IN
(SELECT f.id FROM families f WHERE ` + familyIsOver + `
AND NOT EXISTS (SELECT 1 FROM refresh_tokens r WHERE r.family_id = f.id)
AND NOT EXISTS (SELECT 1 FROM authorization_codes c WHERE c.family_id = f.id AND c.family_id <> '') LIMIT CAST($2 AS BIGINT))`},
	{text: `DELETE FROM audit_counts WHERE (hour, subject, action, outcome) IN
(SELECT hour, subject, action, outcome FROM audit_counts WHERE hour <= $1 ORDER BY hour LIMIT CAST($2 AS BIGINT))`, age: countsKept},
	{text: `DELETE FROM leases WHERE name IN
(SELECT name FROM leases WHERE until <= $1 ORDER BY until LIMIT CAST($2 AS BIGINT))`, age: leaseKept},
	{text: `DELETE FROM user_imports WHERE id IN
(SELECT id FROM user_imports WHERE updated <= $1 ORDER BY updated LIMIT CAST($2 AS BIGINT))`, age: account.ImportKept},
}

// sweepAudit deletes events from the audit trail, but not those that a sender has still to send.
const sweepAudit = `DELETE FROM audit WHERE number IN
(SELECT number FROM audit WHERE time <= $1 AND number <= COALESCE((SELECT MIN(c.number) FROM audit_cursors c
JOIN leases l ON l.name = c.name), 9223372036854775807) ORDER BY time LIMIT CAST($2 AS BIGINT))`

// Sweep deletes the rows that have expired at now and returns their number. It works in small steps
// between other writes. An open Store calls it every Config.SweepInterval.
func (s *Store) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	steps := sweepSteps
	if s.config.AuditKeep > 0 {
		steps = append(slices.Clip(steps), sweepStep{sweepAudit, s.config.AuditKeep})
	}
	for _, step := range steps {
		for n := int64(sweepRows); n == sweepRows; removed += int(n) {
			err := s.delete(ctx, func(b *batch) (err error) {
				n, err = b.conn.exec(b.ctx, step.text, millis(now.Add(-step.age)), sweepRows)
				return err
			})
			if err != nil {
				return removed, fmt.Errorf("sweep: %w", err)
			}
			s.metrics.swept.Add(float64(n))
		}
	}
	return removed, nil
}

func (s *Store) sweepUntil(ctx context.Context) {
	ticker := time.NewTicker(s.config.SweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, err := s.Sweep(ctx, time.Now())
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
			s.config.Logger.Warn("expired rows could not be deleted", "error", err)
		}
	}
}
