package nodes

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// holders returns the name of the node that holds each partition, by the partition's name: two
// hexadecimal digits, or geo/ and an egress label. A partition whose holder is gone is missing.
func (c *Cluster) holders(ctx context.Context) (_ map[string]string, err error) {
	db, err := sql.Open("pgx", c.database)
	if err != nil {
		return nil, fmt.Errorf("read the holders: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx,
		"SELECT p.name, n.name FROM partitions p JOIN nodes n ON n.id = p.holder")
	if err != nil {
		return nil, fmt.Errorf("read the holders: %w", err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var partition, node string
		if err := rows.Scan(&partition, &node); err != nil {
			return nil, fmt.Errorf("read the holders: %w", err)
		}
		all[partition] = node
	}
	return all, rows.Err()
}

// partitionName returns the name of a partition of tokens.
func partitionName(n int) string { return fmt.Sprintf("%02x", n) }

// node returns the node of that name; nil = there is none.
func (c *Cluster) node(name string) *Node {
	for _, n := range c.Nodes() {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// partitions is the number of partitions of tokens.
const partitions = 256

// awaitHolders waits until the nodes together decide about all partitions, as their metrics say. It
// returns how long that took.
func awaitHolders(ctx context.Context, nodes []*Node) (time.Duration, error) {
	began := time.Now()
	for {
		held := 0.0
		for _, n := range nodes {
			all, err := n.metrics(ctx)
			if err != nil {
				return 0, err
			}
			held += all["gatehouse_cluster_partitions_held"]
		}
		switch took := time.Since(began); {
		case held >= partitions:
			return took, nil
		case took > time.Minute:
			return took, fmt.Errorf("%.0f of %d partitions have a holder after %v", held, partitions, took)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// settledTime is how long no partition has moved once the nodes are settled.
const settledTime = 3 * time.Second

// awaitSettled waits until each partition of tokens has a holder and none moves any more.
func (c *Cluster) awaitSettled(ctx context.Context) error {
	var last map[string]string
	began := time.Now()
	for since := began; len(last) < partitions || time.Since(since) < settledTime; {
		if time.Since(began) > time.Minute || ctx.Err() != nil {
			return fmt.Errorf("the partitions still move after %v", time.Since(began))
		}
		now, err := c.holders(ctx)
		if err != nil {
			return err
		}
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		pause(ctx, 200*time.Millisecond)
	}
	return nil
}

// metrics returns the metrics of a node, by name and labels.
func (n *Node) metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	defer response.Body.Close()
	all := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && name != "#" {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				all[name] = v
			}
		}
	}
	return all, lines.Err()
}
