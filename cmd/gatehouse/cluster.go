package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/actors/partition"
	"gatehouse/providers/sqlstore"
)

// clusterCommand is gatehouse cluster.
type clusterCommand struct {
	Status clusterStatus `cmd:"" help:"Show the nodes of a cluster and what they hold."`
	Drain  clusterDrain  `cmd:"" help:"Have a node hand over what it holds, and wait for that."`
}

// Help is shown by gatehouse cluster --help.
func (*clusterCommand) Help() string {
	return "A cluster is several servers with one PostgreSQL database, each with --cluster-listen. " +
		"These commands work on the database itself.\n\n" +
		"Example:\n\n    gatehouse cluster status --database-url postgres://db.example.com/gatehouse\n" +
		"    gatehouse cluster drain host-1:7946"
}

// clusterFlags are the flags of both.
type clusterFlags struct {
	JSON bool `name:"json" help:"Print JSON."`
	databaseSettings
	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, as of gatehouse serve."`
}

// with calls use with the rows of the cluster.
func (f *clusterFlags) with(p *program, use func(*sqlstore.Cluster) error) error {
	c, err := sqlstore.OpenCluster(p.ctx,
		sqlstore.Config{URL: string(f.DatabaseURL), Logger: p.plainLog()})
	if err != nil {
		return p.storeError(err)
	}
	return errors.Join(use(c), c.Close())
}

// wait waits, or returns the error of a program that is asked to stop.
func (p *program) wait(d time.Duration) error {
	select {
	case <-p.ctx.Done():
		return fmt.Errorf("interrupted: %w", p.ctx.Err())
	case <-time.After(d):
		return nil
	}
}

const (
	beatsRead    = 250 * time.Millisecond // between two readings of the beats
	beatsWatched = 3 * time.Second        // how long a living node has time for a beat
)

type clusterStatus struct{ clusterFlags }

// Help is shown by gatehouse cluster status --help.
func (*clusterStatus) Help() string {
	return fmt.Sprintf("Reads the database time and again, until each node's beat has grown, for %v "+
		"at most: a node whose beat stands still is dead, or cannot reach the database. The exit code "+
		"is %d if a beat stands still, a partition has no living holder, or no node is up.\n\n"+
		"Example:\n\n    gatehouse cluster status --database-url postgres://db.example.com/gatehouse",
		beatsWatched, exitFailed)
}

// Run prints the state of a cluster.
func (c *clusterStatus) Run(p *program) error {
	return c.with(p, func(rows *sqlstore.Cluster) error {
		reading, alive, err := watchBeats(p, rows)
		if err != nil {
			return fmt.Errorf("%s: %w", p.resolver.given("database-url"), err)
		}
		state := stateOf(reading, alive)
		if err := c.print(p, state); err != nil {
			return err
		}
		if len(state.Problems) > 0 {
			return fmt.Errorf("the cluster is degraded: %s", strings.Join(state.Problems, "; "))
		}
		return nil
	})
}

// watchBeats returns the rows, and which nodes live: those whose beat has grown meanwhile, and
// those that have joined.
func watchBeats(p *program, rows *sqlstore.Cluster) (r partition.Reading, alive map[string]bool,
	err error) {
	first, err := rows.Read(p.ctx)
	if err != nil {
		return r, nil, err
	}
	before := map[string]int64{}
	for _, n := range first.Nodes {
		before[n.ID] = n.Beat
	}
	for end := time.Now().Add(beatsWatched); ; {
		if err := p.wait(beatsRead); err != nil {
			return r, nil, err
		}
		if r, err = rows.Read(p.ctx); err != nil {
			return r, nil, err
		}
		alive = map[string]bool{}
		for _, n := range r.Nodes {
			beat, known := before[n.ID]
			alive[n.ID] = !known || n.Beat > beat
		}
		dead := slices.ContainsFunc(r.Nodes, func(n partition.Node) bool { return !alive[n.ID] })
		if !dead || time.Now().After(end) {
			return r, alive, nil
		}
	}
}

// clusterState is what gatehouse cluster status prints.
type clusterState struct {
	Degraded   bool        `json:"degraded"`
	Problems   []string    `json:"problems"`
	Nodes      []nodeState `json:"nodes"`
	Partitions struct {
		Total         int      `json:"total"`
		WithoutHolder []string `json:"without_holder"` // names
	} `json:"partitions"`
	Lookups    []lookupState `json:"lookups"`
	LastChange int64         `json:"last_change"`
}

type nodeState struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Address       string          `json:"address"`
	State         partition.State `json:"state"`
	Draining      bool            `json:"draining"`
	Alive         bool            `json:"alive"` // its beat grows
	Version       string          `json:"version"`
	FrameVersion  int             `json:"frame_version"`
	Egress        string          `json:"egress"`
	Partitions    int             `json:"partitions"`
	UnseenChanges *int64          `json:"unseen_changes"` // null = it has applied none yet
}

// lookupState says which node asks the upstream for those with an egress label.
type lookupState struct {
	Egress string  `json:"egress"`
	Holder *string `json:"holder"` // name; null = no living node
}

// stateOf returns the state that rows say. Partitions of lookups count where a node has the label.
func stateOf(r partition.Reading, alive map[string]bool) *clusterState {
	s := &clusterState{Problems: []string{}, Nodes: []nodeState{}, Lookups: []lookupState{},
		LastChange: r.Last}
	s.Partitions.WithoutHolder = []string{}
	names, held, egress := map[string]string{}, map[string]int{}, map[string]string{}
	for _, n := range r.Nodes {
		names[n.ID], egress[partition.LookupsName(n.Egress)] = n.Name, n.Egress
	}
	slices.SortFunc(r.Partitions, func(a, b partition.Row) int { return cmp.Compare(a.Name, b.Name) })
	for _, row := range r.Partitions {
		label, forLookups := egress[row.Name]
		if !forLookups && !isTokens(row.Name) {
			continue
		}
		if !alive[row.Holder] {
			s.Partitions.WithoutHolder = append(s.Partitions.WithoutHolder, row.Name)
		}
		if !forLookups {
			held[row.Holder]++
			s.Partitions.Total++
			continue
		}
		l := lookupState{Egress: label}
		if alive[row.Holder] {
			name := names[row.Holder]
			l.Holder = &name
		}
		s.Lookups = append(s.Lookups, l)
	}
	up := 0
	for _, n := range r.Nodes {
		state := nodeState{ID: n.ID, Name: n.Name, Address: n.Address, State: n.State, Draining: n.Drain,
			Alive: alive[n.ID], Version: n.Version, FrameVersion: n.Speaks, Egress: n.Egress,
			Partitions: held[n.ID]}
		if n.Seen >= 0 {
			unseen := max(0, r.Last-n.Seen)
			state.UnseenChanges = &unseen
		}
		s.Nodes = append(s.Nodes, state)
		if !state.Alive {
			s.Problems = append(s.Problems, fmt.Sprintf("the beat of node %s stands still", printable(n.Name)))
		} else if n.State == partition.Up {
			up++
		}
	}
	slices.SortFunc(s.Nodes, func(a, b nodeState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	slices.Sort(s.Problems)
	if up == 0 {
		s.Problems = append(s.Problems, "no node is up")
	}
	if n := len(s.Partitions.WithoutHolder); n > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("partitions without a living holder: %d", n))
	}
	s.Degraded = len(s.Problems) > 0
	return s
}

// isTokens reports whether a partition is one of access tokens.
func isTokens(name string) bool { return !strings.Contains(name, "/") }

func (c *clusterStatus) print(p *program, s *clusterState) error {
	if c.JSON {
		text, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("print cluster: %w", err)
		}
		return printJSON(p.stdout, text)
	}
	table := newTable(p.stdout)
	fmt.Fprintln(table, "NODE\tADDRESS\tSTATE\tLEASE\tPARTITIONS\tUNSEEN CHANGES\tVERSION\tFRAMES\tEGRESS")
	for _, n := range s.Nodes {
		state, lease, unseen := string(n.State), "renewed", "-"
		if n.Draining {
			state += ", draining"
		}
		if !n.Alive {
			lease = "stands still"
		}
		if n.UnseenChanges != nil {
			unseen = fmt.Sprint(*n.UnseenChanges)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\n", cell(n.Name), cell(n.Address),
			cell(state), lease, n.Partitions, unseen, cell(n.Version), n.FrameVersion, cell(n.Egress))
	}
	fmt.Fprintf(table, "\nPARTITIONS\tWITHOUT HOLDER\n%d\t%s\n", s.Partitions.Total,
		first(ranges(s.Partitions.WithoutHolder), "none"))
	if len(s.Lookups) > 0 {
		fmt.Fprint(table, "\nLOOKUPS FROM\tASKED BY\n")
	}
	for _, l := range s.Lookups {
		holder := "nobody"
		if l.Holder != nil {
			holder = cell(*l.Holder)
		}
		fmt.Fprintf(table, "%s\t%s\n", cell(l.Egress), holder)
	}
	return table.Flush()
}

// ranges returns the names of partitions, those of access tokens that follow each other as in
// 00-1f.
func ranges(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		last := i
		var n, next int
		for last+1 < len(names) && isTokens(names[last+1]) {
			if _, err := fmt.Sscanf(names[last]+" "+names[last+1], "%x %x", &n, &next); err != nil || next != n+1 {
				break
			}
			last++
		}
		part := printable(names[i])
		if last > i {
			part += "-" + names[last]
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ", ")
}

type clusterDrain struct {
	Name string `arg:"" name:"name" placeholder:"NAME" help:"Name of the node, as gatehouse cluster status shows it."`
	clusterFlags
}

// Help is shown by gatehouse cluster drain --help.
func (*clusterDrain) Help() string {
	return "The node hands all partitions over to the others, with their counts, and gets no new ones " +
		"until it is started again. The command ends when the node holds none. Stopping a node in " +
		"order (SIGTERM) does the same.\n\n" +
		"Example:\n\n    gatehouse cluster drain host-1:7946 --database-url postgres://db.example.com/gatehouse"
}

const (
	drainRead = 500 * time.Millisecond // between two readings of what a node holds
	// drainSilence is how long the beat of a node may stand still. Other nodes would have removed it.
	drainSilence = 2 * partition.DeadAfter
)

// Run drains a node.
func (c *clusterDrain) Run(p *program) error {
	return c.with(p, func(rows *sqlstore.Cluster) error {
		if err := c.drain(p, rows); err != nil {
			return err
		}
		if !c.JSON {
			_, err := fmt.Fprintf(p.stdout, "%s holds no partitions.\n", c.Name)
			return err
		}
		text, err := json.Marshal(map[string]any{"name": c.Name, "partitions": 0})
		if err != nil {
			return fmt.Errorf("print drain: %w", err)
		}
		return printJSON(p.stdout, text)
	})
}

// canHandOver reports whether another node can take what the drained one holds: partitions of
// access tokens, or those of the lookups of an egress label.
func (c *clusterDrain) canHandOver(r partition.Reading, label string) bool {
	return slices.ContainsFunc(r.Nodes, func(n partition.Node) bool {
		return n.Name != c.Name && n.State == partition.Up && !n.Drain &&
			(label == "" || n.Egress == label)
	})
}

// drain sets Drain of all nodes of the name: after a crash there may be two for a moment.
func (c *clusterDrain) drain(p *program, rows *sqlstore.Cluster) error {
	failed := func(err error) error {
		return fmt.Errorf("%s: %w", p.resolver.given("database-url"), err)
	}
	r, err := rows.Read(p.ctx)
	if err != nil {
		return failed(err)
	}
	if !c.canHandOver(r, "") && len(r.Nodes) > 0 {
		return fmt.Errorf("no other node is up to take what %s holds: nothing was changed", c.Name)
	}
	beats, names := map[string]int64{}, []string{}
	for _, n := range r.Nodes {
		if names = append(names, printable(n.Name)); n.Name != c.Name {
			continue
		}
		beats[n.ID] = 0
		if err := rows.Drain(p.ctx, n.ID); err != nil {
			return failed(err)
		}
	}
	if len(beats) == 0 {
		slices.Sort(names)
		return usagef("NAME %q: must be the name of a node; there are: %s", c.Name,
			first(strings.Join(slices.Compact(names), ", "), "none"))
	}
	shown, grown := -1, time.Now()
	for {
		if r, err = rows.Read(p.ctx); err != nil {
			return failed(err)
		}
		held := 0
		for _, n := range r.Nodes {
			beat, drained := beats[n.ID]
			if !drained {
				continue
			}
			if n.Beat > beat {
				beats[n.ID], grown = n.Beat, time.Now()
			}
			for _, row := range r.Partitions {
				label, _ := strings.CutPrefix(row.Name, partition.LookupsName(""))
				if label == row.Name {
					label = ""
				}
				if row.Holder == n.ID && c.canHandOver(r, label) {
					held++
				}
			}
		}
		switch {
		case held == 0:
			return nil
		case time.Since(grown) > drainSilence:
			return fmt.Errorf("node %s holds %d partitions, and its beat stands still: "+
				"it hands nothing over", c.Name, held)
		case held != shown:
			fmt.Fprintf(p.stderr, "%s holds %d partitions\n", c.Name, held)
			shown = held
		}
		if err := p.wait(drainRead); err != nil {
			return err
		}
	}
}
