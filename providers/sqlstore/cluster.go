package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/actors/partition"
)

const (
	deleteNode = `DELETE FROM nodes WHERE id = $1`
	// joinCluster deletes the row of the former node, and inserts the others.
	joinCluster = `WITH former AS (DELETE FROM nodes WHERE id = $12),
lookups AS (INSERT INTO partitions (name, holder, epoch) VALUES ($11, '', 0) ON CONFLICT (name) DO NOTHING)
INSERT INTO nodes (id, name, address, certificates, speaks, version, egress, state, drain, beat, seen)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10)`

	addBeat = `UPDATE nodes SET beat = beat + 1, seen = $3, certificates = $4,
state = CASE WHEN CAST($2 AS TEXT) = 'joining' THEN state ELSE CAST($2 AS TEXT) END
WHERE id = $1 RETURNING beat, drain`
	// selectCluster has rows of three kinds: nodes, partitions (name, holder, epoch), and the number
	// of the last change.
	selectCluster = `SELECT 'node', id, name, address, certificates, speaks, version, egress, state, drain, beat, seen FROM nodes
UNION ALL SELECT 'partition', name, holder, '', '', 0, '', '', '', FALSE, epoch, 0 FROM partitions
UNION ALL SELECT 'change', '', '', '', '', 0, '', '', '', FALSE, value, 0 FROM counters WHERE name = 'change'`
	removeNode = `DELETE FROM nodes WHERE id = $1 AND beat = $2`
	hasNode    = `SELECT COUNT(*) FROM nodes WHERE id = $1`
	drainNode  = `UPDATE nodes SET drain = TRUE WHERE id = $1`
)

// ownedRows returns a statement that gives a node the rows of partitions that a condition is true
// for, and returns those rows. Its parameters are the node, and arrays of names, epochs and holders.
// The condition is on the partition p and what the caller expects of it: a.
//
// Rows are locked in the order of their names, so that two transactions never wait for each other. A
// row that another transaction has changed meanwhile is compared again when its lock is there: its
// epoch has grown then, so it is left out. So the rows that remain are as the statement's snapshot
// has them, and nobody else changes them until the commit.
func ownedRows(condition string) string {
	return `WITH owned AS (SELECT p.name AS owned_name FROM partitions p
JOIN unnest(CAST($2 AS TEXT[]), CAST($3 AS BIGINT[]), CAST($4 AS TEXT[])) AS a (name, epoch, holder)
ON a.name = p.name AND a.epoch = p.epoch AND ` + condition + `
ORDER BY p.name FOR UPDATE OF p)
UPDATE partitions AS p SET holder = $1, epoch = p.epoch + 1 FROM owned WHERE name = owned_name
RETURNING name, holder, epoch`
}

var (
	// claimRows sees a holder's row as the snapshot has it. A row of nodes is inserted before its
	// node holds anything, and an ID is never used again: a holder without a row never gets one.
	claimRows = ownedRows(`NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = p.holder)`)
	handRows  = ownedRows(`p.holder = a.holder`)
)

// coordinate calls use with a connection of a pool of its own, so that a beat waits for no batch and
// no busy reader. use executes statements without a transaction: a process that is frozen between two
// statements would keep its locks, and others would wait for them. It returns ErrClusterSQLite if the
// database is a SQLite file.
func (p pools) coordinate(ctx context.Context, use func(context.Context, *sql.Conn) error) error {
	if p.engine == sqliteEngine {
		return ErrClusterSQLite
	}
	c, err := p.cluster.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	err = use(ctx, c)
	if isReadOnly(err) { // another server may be the one to write to by now
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = c.Close() // returns it to the pool
	return err
}

// JoinCluster implements partition.Store.
func (s *Store) JoinCluster(ctx context.Context, n partition.Node, former string) error {
	node := []any{n.ID, n.Name, n.Address, strings.Join(n.Certificates, " "), n.Speaks, n.Version,
		n.Egress, string(n.State), n.Drain, n.Seen, partition.LookupsName(n.Egress), former}
	return wrap("join cluster", s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, joinCluster, node...)
		return err
	}))
}

// Beat implements partition.Store.
func (s *Store) Beat(ctx context.Context, n partition.Node) (beat int64, drain bool, err error) {
	found := false
	err = s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) error {
		err := c.QueryRowContext(ctx, addBeat, n.ID, string(n.State), n.Seen,
			strings.Join(n.Certificates, " ")).Scan(&beat, &drain)
		if found = err == nil; errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err == nil && !found {
		err = partition.ErrGone
	}
	return beat, drain, wrap("beat", err)
}

// ReadCluster implements partition.Store. One statement has one snapshot.
func (s *Store) ReadCluster(ctx context.Context) (r partition.Reading, err error) {
	err = s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) error {
		r, err = readCluster(ctx, c)
		return err
	})
	return r, wrap("read cluster", err)
}

func readCluster(ctx context.Context, c *sql.Conn) (r partition.Reading, err error) {
	rows, err := c.QueryContext(ctx, selectCluster)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var kind, certificates string
		var n partition.Node
		if err := rows.Scan(&kind, &n.ID, &n.Name, &n.Address, &certificates, &n.Speaks, &n.Version,
			&n.Egress, &n.State, &n.Drain, &n.Beat, &n.Seen); err != nil {
			return r, err
		}
		switch kind {
		case "node":
			n.Certificates = strings.Fields(certificates)
			r.Nodes = append(r.Nodes, n)
		case "partition":
			r.Partitions = append(r.Partitions, partition.Row{Name: n.ID, Holder: n.Name, Epoch: n.Beat})
		default:
			r.Last = n.Beat
		}
	}
	return r, rows.Err()
}

// RemoveNode implements partition.Store. The DELETE waits for a beat that is not committed yet and
// compares its row again: either it deletes the row, so that the beat finds none, or the beat
// counts and the row stays. A row that is gone stays so. Hence the second statement may run later.
func (s *Store) RemoveNode(ctx context.Context, id string, beat int64) (removed bool, err error) {
	err = s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) error {
		result, err := c.ExecContext(ctx, removeNode, id, beat)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if removed = n > 0; removed || err != nil {
			return err
		}
		err = c.QueryRowContext(ctx, hasNode, id).Scan(&n)
		removed = n == 0
		return err
	})
	return removed && err == nil, wrap("remove node", err)
}

// Claim implements partition.Store.
func (s *Store) Claim(ctx context.Context, id string, rows []partition.Row) ([]partition.Row, error) {
	owned, err := s.own(ctx, claimRows, id, rows)
	return owned, wrap("claim partitions", err)
}

// Hand implements partition.Store.
func (s *Store) Hand(ctx context.Context, to string, rows []partition.Row) ([]partition.Row, error) {
	owned, err := s.own(ctx, handRows, to, rows)
	return owned, wrap("hand partitions", err)
}

// own executes a statement that gives partitions to a node, and returns their rows.
func (s *Store) own(ctx context.Context, text, id string, rows []partition.Row) (
	owned []partition.Row, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	names, holders := make([]string, len(rows)), make([]string, len(rows))
	epochs := make([]int64, len(rows))
	for i, row := range rows {
		names[i], epochs[i], holders[i] = row.Name, row.Epoch, row.Holder
	}
	err = s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) (err error) {
		returned, err := c.QueryContext(ctx, text, id, names, epochs, holders)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, returned.Close()) }()
		for returned.Next() {
			var row partition.Row
			if err := returned.Scan(&row.Name, &row.Holder, &row.Epoch); err != nil {
				return err
			}
			owned = append(owned, row)
		}
		return returned.Err()
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(owned, func(a, b partition.Row) int { return strings.Compare(a.Name, b.Name) })
	return owned, nil
}

// Leave implements partition.Store.
func (s *Store) Leave(ctx context.Context, id string) error {
	return wrap("leave cluster", s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, deleteNode, id)
		return err
	}))
}

// DrainNode says in a node's row that an operator wants it to leave. Without the row it has no
// effect.
func (s *Store) DrainNode(ctx context.Context, id string) error {
	return wrap("drain node", s.pools.coordinate(ctx, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, drainNode, id)
		return err
	}))
}

// Cluster reads the rows of a cluster for an operator, and drains its nodes. It needs no key file.
type Cluster struct{ pools pools }

// OpenCluster opens a database whose schema is up to date. It only uses URL, Logger and
// WriteTimeout of config. Its error is one line, and may wrap ErrClusterSQLite, ErrSchema or
// ErrNewer.
func OpenCluster(ctx context.Context, config Config) (*Cluster, error) {
	config.Cluster = true
	config, err := config.complete()
	if err != nil {
		return nil, fmt.Errorf("open cluster: %w", err)
	}
	p, err := openPools(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open cluster: %w", err)
	}
	config.Migrate = false
	if err := settleSchema(ctx, p, config); err != nil {
		return nil, fmt.Errorf("open cluster: %w", errors.Join(err, p.close()))
	}
	return &Cluster{p}, nil
}

// Read returns all rows as they are at one moment.
func (c *Cluster) Read(ctx context.Context) (r partition.Reading, err error) {
	err = c.pools.coordinate(ctx, func(ctx context.Context, conn *sql.Conn) error {
		r, err = readCluster(ctx, conn)
		return err
	})
	return r, wrap("read cluster", err)
}

// Drain is Store.DrainNode.
func (c *Cluster) Drain(ctx context.Context, id string) error {
	return wrap("drain node", c.pools.coordinate(ctx,
		func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, drainNode, id)
			return err
		}))
}

// Close closes the database.
func (c *Cluster) Close() error { return c.pools.close() }
