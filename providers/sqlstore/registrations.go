package sqlstore

import (
	"context"
	"fmt"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// endRows limits the clients of one write: the deletion of each reaches into several tables.
const endRows = 50

// dueClients are the clients to look at. The review of one that awaits a consent is its end.
const dueClients = `(SELECT id FROM clients WHERE review > 0 AND review <= $1 ORDER BY review LIMIT CAST($2 AS BIGINT))`

// isInUse is true of a client that stays.
const isInUse = `(awaits = 0 AND (disabled OR EXISTS (SELECT 1 FROM consents k WHERE k.client_id = clients.id
AND (k.used > $3 OR EXISTS (SELECT 1 FROM families f WHERE f.user_id = k.user_id AND f.client_id = k.client_id
AND f.expires > $1 AND NOT f.revoked)))))`

const (
	countAllAwaiting = `SELECT COUNT(*) FROM clients WHERE awaits > 0`
	countAwaiting    = `SELECT COUNT(*), COALESCE(MIN(awaits), 0) FROM clients
WHERE awaits > 0 AND awaits > $1 AND network = $2 AND (CAST($3 AS TEXT) = '' OR caller = $3)`
	awaitingHolders = `SELECT network, COUNT(*) FROM clients WHERE awaits > 0
GROUP BY network ORDER BY COUNT(*) DESC, MIN(awaits) LIMIT CAST($1 AS BIGINT)`
	dropAwaiting = `DELETE FROM clients WHERE id IN (SELECT id FROM clients WHERE awaits > 0 AND network = $1
ORDER BY awaits LIMIT CAST($2 AS BIGINT)) RETURNING id, awaits`
	setRegistrant = `UPDATE clients SET network = $2, caller = $3 WHERE id = $1`
	keepClients   = `UPDATE clients SET review = $4 WHERE id IN ` + dueClients + ` AND ` + isInUse
	endClients    = `DELETE FROM clients WHERE id IN ` + dueClients + ` AND NOT ` + isInUse +
		` RETURNING id, awaits`
	hasConsent = `SELECT COUNT(*) FROM (SELECT 1 FROM consents WHERE client_id = $1 LIMIT 1) found`
	// The other self-registered clients that a user has consented to, unless $2 is not one.
	countSelfRegistered = `SELECT COUNT(*) FROM consents k JOIN clients c ON c.id = k.client_id
WHERE k.user_id = $1 AND k.client_id <> $2 AND c.review > 0
AND EXISTS (SELECT 1 FROM clients o WHERE o.id = $2 AND o.review > 0)`
)

// reviewOf returns when the use of a new or changed client is looked at first, as it is stored.
// There is time for the consent before.
func reviewOf(c *oauth.Client, now time.Time) int64 {
	switch {
	case !c.Awaits.IsZero():
		return millis(c.Awaits)
	case c.Options.SelfRegistered:
		return millis(now.Add(oauth.ConsentWithin))
	}
	return 0
}

// RegisterClient implements oauth.Store.
func (s *Store) RegisterClient(
	ctx context.Context, c *oauth.Client, r oauth.Registrant,
) (ended []oauth.EndedClient, err error) {
	network, caller := networkOf(r.Caller), prefixText(ratelimit.CallerPrefix(r.Caller))
	err = s.createClient(ctx, c, func(b *batch) (err error) {
		ended = nil // of an earlier try
		if r.PerCaller > 0 && network != "" {
			err = b.checkRegistrant(c.Created, network, caller, r.PerCaller)
		}
		if err == nil {
			ended, err = b.dropAwaiting(r.Most)
		}
		return err
	}, func(b *batch) error {
		_, err := b.conn.exec(b.ctx, setRegistrant, c.ID, network, caller)
		return err
	})
	return ended, err
}

// checkRegistrant refuses a registration of a caller or network for which too many clients await a
// consent.
func (b *batch) checkRegistrant(now time.Time, network, caller string, most int) error {
	for _, limit := range []struct {
		caller string
		most   int
	}{{caller, most}, {"", ratelimit.SiteShares * most}} {
		var n, first int64
		err := b.conn.one(b.ctx, countAwaiting, []any{millis(now), network, limit.caller}, &n, &first)
		if err != nil {
			return err
		}
		if n >= int64(limit.most) {
			return refusal{&oauth.CrowdedError{Until: fromMillis(first)}}
		}
	}
	return nil
}

// dropAwaiting makes room for one more client that awaits a consent.
func (b *batch) dropAwaiting(most int) (ended []oauth.EndedClient, err error) {
	err = b.makeRoom("clients", most, countAllAwaiting, awaitingHolders, nil,
		func(network string, n int) error {
			dropped, err := b.endClients(dropAwaiting, "crowded_out", network, n)
			ended = append(ended, dropped...)
			return err
		})
	return ended, err
}

// SettledClients implements oauth.Store.
func (s *Store) SettledClients(
	ctx context.Context, after string, limit int,
) ([]*oauth.Client, error) {
	return s.clientPage(ctx, selectSettled, after, limit)
}

// HasConsent implements oauth.Store.
func (s *Store) HasConsent(ctx context.Context, clientID string) (found bool, err error) {
	var n int
	err = readOne(ctx, s, oauth.ErrNotFound, hasConsent, []any{clientID},
		func(r row) error { return r.Scan(&n) })
	return n > 0, wrap("read consents of a client", err)
}

// EndClients implements oauth.Store.
func (s *Store) EndClients(ctx context.Context, now time.Time) (all []oauth.EndedClient, err error) {
	for {
		var kept int64
		var ended []oauth.EndedClient
		err := s.delete(ctx, func(b *batch) (err error) {
			ended = nil // of an earlier try
			idle := millis(now.Add(-oauth.ClientIdle))
			kept, err = b.conn.exec(b.ctx, keepClients, millis(now), endRows, idle,
				millis(now.Add(oauth.ReviewEvery)))
			if err == nil {
				ended, err = b.endClients(endClients, "unconsented", millis(now), endRows, idle)
			}
			return err
		})
		if err != nil {
			return all, fmt.Errorf("end clients: %w", err)
		}
		all = append(all, ended...)
		if kept == 0 && len(ended) == 0 {
			return all, nil
		}
	}
}

// endClients executes a statement that deletes clients. unconsented is why those end that await a
// consent.
func (b *batch) endClients(
	text, unconsented string, args ...any,
) (ended []oauth.EndedClient, err error) {
	err = b.conn.rows(b.ctx, text, args, func(r row) error {
		var e oauth.EndedClient
		var awaited int64
		if err := r.Scan(&e.ID, &awaited); err != nil {
			return err
		}
		e.Idle = awaited == 0
		ended = append(ended, e)
		return nil
	})
	for _, e := range ended {
		why := unconsented
		if e.Idle {
			why = "idle"
		}
		b.note(clientChange, e.ID)
		b.events = append(b.events, audit.Event{Action: audit.ClientEnded, Target: e.ID,
			Details: []string{why}})
	}
	return ended, err
}

// checkSelfRegistered refuses a user's consent to one self-registered client too many.
func (b *batch) checkSelfRegistered(c *account.Consent) error {
	var others int
	err := b.conn.one(b.ctx, countSelfRegistered, []any{c.UserID, c.ClientID}, &others)
	if err == nil && others >= oauth.MostSelfRegistered {
		err = refusal{account.ErrTooManyClients}
	}
	return err
}
