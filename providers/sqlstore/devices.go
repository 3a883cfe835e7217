package sqlstore

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"gatehouse/actors/fair"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

const (
	insertDevice = `INSERT INTO device_codes
(hash, user_code, client_id, scopes, default_scopes, place, created, expires, decision, network)
SELECT $1, $2, c.id, $4, $5, $6, $7, $8, $9, $10 FROM clients c WHERE c.id = $3 ON CONFLICT DO NOTHING`
	hasClient    = `SELECT 1 FROM clients WHERE id = $1`
	deviceFields = `SELECT hash, user_code, client_id, scopes, default_scopes, place, created, expires, decision
FROM device_codes WHERE `
	selectDevice    = deviceFields + `hash = $1`
	selectDeviceFor = deviceFields + `user_code = $1`
	decideDevice    = `UPDATE device_codes SET decision = $2 WHERE hash = $1 AND decision = 0 AND expires > $3`
	countDevices    = `SELECT COUNT(*) FROM device_codes WHERE client_id = $1 AND decision = 0 AND created > $2`
	deviceHolders   = `SELECT network, COUNT(*) FROM device_codes WHERE client_id = $1 AND decision = 0 AND created > $2
GROUP BY network ORDER BY COUNT(*) DESC, MIN(created) LIMIT CAST($3 AS BIGINT)`
	dropDevices = `UPDATE device_codes SET decision = $5, expires = $6 WHERE hash IN (SELECT hash FROM device_codes
WHERE client_id = $1 AND decision = 0 AND created > $2 AND network = $3 ORDER BY created LIMIT CAST($4 AS BIGINT))`
	hasDevice = `SELECT 1 FROM device_codes WHERE hash = $1`
	// It adds to the consent, or makes one that is for devices alone.
	grantDevice = `INSERT INTO consents (user_id, client_id, scopes, granted, used, devices)
SELECT u.id, c.id, 0, $3, $3, $4 FROM users u CROSS JOIN clients c WHERE u.id = $1 AND c.id = $2
ON CONFLICT (user_id, client_id) DO UPDATE SET devices = consents.devices | excluded.devices,
used = CASE WHEN consents.used > excluded.used THEN consents.used ELSE excluded.used END`
)

// SaveDeviceCode implements oauth.Store.
func (s *Store) SaveDeviceCode(ctx context.Context, c *oauth.DeviceCode) error {
	return wrap("save device code", s.do(ctx, func(b *batch) error {
		if !isText(c.Place) || !isText(c.ClientID) {
			return refusal{errText}
		}
		if err := b.dropDevices(c); err != nil {
			return err
		}
		n, err := b.conn.exec(b.ctx, insertDevice, c.Hash[:], c.UserCode[:], c.ClientID,
			int64(c.Scopes), c.DefaultScopes, c.Place, millis(c.Created), millis(c.Expires),
			int64(c.Decision), networkOf(c.Caller))
		if err != nil || n > 0 {
			return err
		}
		switch found, err := b.conn.has(b.ctx, hasClient, c.ClientID); {
		case err != nil:
			return err
		case found:
			return refusal{oauth.ErrConflict}
		}
		return refusal{oauth.ErrNotFound}
	}))
}

// dropDevices makes room for a new device code of a client.
func (b *batch) dropDevices(c *oauth.DeviceCode) error {
	since := millis(c.Created.Add(-oauth.DeviceCodeLifetime))
	return b.makeRoom("devices of "+c.ClientID, oauth.MostDevices, countDevices, deviceHolders,
		[]any{c.ClientID, since}, func(network string, n int) error {
			_, err := b.conn.exec(b.ctx, dropDevices, c.ClientID, since, network, n,
				int64(oauth.Dropped), millis(c.Created))
			return err
		})
}

// makeRoom calls drop for networks that give up places, if most rows wait in a room of that name.
// The statement count counts them, and holders those of the networks that have most, with a limit
// after args. Both take time in a full room, so a hundredth of it is taken or given up at a time.
func (b *batch) makeRoom(
	room string, most int, count, holders string, args []any, drop func(network string, n int) error,
) error {
	if b.conn.rooms[room] > 0 {
		b.conn.rooms[room]--
		return nil
	}
	places := max(1, most/100)
	var waiting int
	if err := b.conn.one(b.ctx, count, args, &waiting); err != nil {
		return err
	}
	if waiting < most {
		b.conn.rooms[room] = min(places, (most-waiting)/2) // the other half is for other processes
		return nil
	}
	delete(b.conn.rooms, room)
	var networks []string
	var held []int
	err := b.conn.rows(b.ctx, holders, append(slices.Clone(args), places), func(r row) error {
		var network string
		var n int
		err := r.Scan(&network, &n)
		networks, held = append(networks, network), append(held, n)
		return err
	})
	for i, n := range fair.Shed(held, places) {
		if n > 0 && err == nil {
			err = drop(networks[i], n)
		}
	}
	return err
}

// networkOf returns the network of a caller as it is stored: "" = not known.
func networkOf(caller netip.Addr) string { return prefixText(ratelimit.SitePrefix(caller)) }

func prefixText(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

// DeviceCode implements oauth.Store.
func (s *Store) DeviceCode(ctx context.Context, hash oauth.Hash) (*oauth.DeviceCode, error) {
	return s.readDevice(ctx, selectDevice, hash)
}

// DeviceCodeFor implements oauth.Store.
func (s *Store) DeviceCodeFor(ctx context.Context, userCode oauth.Hash) (*oauth.DeviceCode, error) {
	return s.readDevice(ctx, selectDeviceFor, userCode)
}

func (s *Store) readDevice(ctx context.Context, text string, key oauth.Hash) (
	*oauth.DeviceCode, error) {
	var c oauth.DeviceCode
	err := readOne(ctx, s, oauth.ErrNotFound, text, []any{key[:]}, func(r row) error {
		var hash, userCode []byte
		var created, expires int64
		err := r.Scan(&hash, &userCode, &c.ClientID, &c.Scopes, &c.DefaultScopes, &c.Place,
			&created, &expires, &c.Decision)
		copy(c.Hash[:], hash)
		copy(c.UserCode[:], userCode)
		c.Created, c.Expires = fromMillis(created), fromMillis(expires)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read device code: %w", err)
	}
	return &c, nil
}

// DecideDeviceCode implements oauth.Store. One conditional UPDATE decides.
func (s *Store) DecideDeviceCode(ctx context.Context, hash oauth.Hash,
	grant *oauth.AuthorizationCode, now time.Time) error {
	decision := oauth.Denied
	if grant != nil {
		decision = oauth.Allowed
	}
	return wrap("decide about device code", s.do(ctx, func(b *batch) error {
		if grant != nil {
			found, err := b.conn.has(b.ctx, hasGrantParties, grant.UserID, grant.ClientID)
			if err != nil {
				return err
			}
			if !found {
				return refusal{oauth.ErrNotFound}
			}
		}
		n, err := b.conn.exec(b.ctx, decideDevice, hash[:], int64(decision), millis(now))
		if err != nil {
			return err
		}
		if n == 0 {
			return b.undecided(hash)
		}
		if grant == nil {
			return nil
		}
		b.codes = append(b.codes, *grant)
		_, err = b.conn.exec(b.ctx, grantDevice, grant.UserID, grant.ClientID, millis(now),
			int64(grant.Scopes))
		return err
	}))
}

// undecided returns why a device code could not be decided about.
func (b *batch) undecided(hash oauth.Hash) error {
	switch found, err := b.conn.has(b.ctx, hasDevice, hash[:]); {
	case err != nil:
		return err
	case found:
		return refusal{oauth.ErrConflict}
	}
	return refusal{oauth.ErrNotFound}
}
