package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/actors/partition"
)

const (
	// heldRow is the row of a partition as a node knows it.
	heldRow = `SELECT name, epoch FROM partitions WHERE name = $1 AND holder = $2 AND epoch = $3`
	// spendBudget locks that row: another node becomes the holder after the commit, or has before, and
	// nothing is found.
	spendBudget = `WITH held AS (` + heldRow + ` FOR SHARE)
INSERT INTO budgets (name, endpoint, epoch, number, rest, ends)
SELECT held.name, CAST($4 AS BIGINT), held.epoch, CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT) + ` +
		databaseNow + ` FROM held
ON CONFLICT (name, endpoint) DO UPDATE
SET epoch = excluded.epoch, number = excluded.number, rest = excluded.rest, ends = excluded.ends
WHERE (budgets.epoch, budgets.number) < (excluded.epoch, excluded.number)`
	selectBudgets = `SELECT endpoint, rest, ends - ` + databaseNow + ` FROM budgets WHERE name = $1`

	// databaseNow is the database's clock in milliseconds since 1970: those of the nodes may differ.
	databaseNow = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)`
)

// SpendBudget implements lookup.Ledger. The row of the partition is its fence: once another node
// holds it, nothing is written any more.
func (s *Store) SpendBudget(ctx context.Context, row partition.Row, e geo.Endpoint, number int64,
	u geo.Usage) (held bool, err error) {
	// Both readings of the clock leave out up to a millisecond: the window never ends earlier.
	lasts := time.Until(u.Ends).Milliseconds() + 2
	err = s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) error {
		result, err := c.ExecContext(ctx, spendBudget, row.Name, row.Holder, row.Epoch, int64(e), number,
			int64(u.Left), lasts)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if held = n > 0; held || err != nil {
			return err
		}
		var found partition.Row // or has a later number been written?
		err = c.QueryRowContext(ctx, heldRow, row.Name, row.Holder, row.Epoch).Scan(&found.Name,
			&found.Epoch)
		held = err == nil
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return held && err == nil, wrap("write budget", err)
}

// Budgets implements lookup.Ledger.
func (s *Store) Budgets(ctx context.Context, name string) (usages [2]geo.Usage, err error) {
	err = s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) (err error) {
		rows, err := c.QueryContext(ctx, selectBudgets, name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var endpoint, left, lasts int64
			if err := rows.Scan(&endpoint, &left, &lasts); err != nil {
				return err
			}
			if endpoint >= 0 && endpoint < int64(len(usages)) {
				usages[endpoint] = geo.Usage{Left: int(left),
					Ends: time.Now().Add(time.Duration(lasts) * time.Millisecond)}
			}
		}
		return rows.Err()
	})
	return usages, wrap("read budgets", err)
}
