package sqlstore_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
	"gatehouse/providers/sqlstore"
	"gatehouse/providers/sqlstore/pgtest"
)

// clusterNode returns a node that joins.
func clusterNode(id string) partition.Node {
	return partition.Node{ID: id, Name: id, Address: "10.0.0.1:7946", Certificates: []string{"ab"},
		Egress: "default", State: partition.Joining}
}

// TestBusyStoreDelaysNoBeat blocks the writer and all readers.
func TestBusyStoreDelaysNoBeat(t *testing.T) {
	database := pgtest.Migrated(t)
	s := open(t, sqlstore.Config{URL: database, WriteTimeout: time.Minute})
	if err := s.JoinCluster(t.Context(), clusterNode("a"), ""); err != nil {
		t.Fatal(err)
	}
	block, err := connect(t, database).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := block.Exec("LOCK TABLE users, authorization_codes"); err != nil {
		t.Fatal(err)
	}
	reading, stop := context.WithCancel(t.Context())
	const readers = 40
	ended := make(chan error, readers+1)
	for range readers {
		go func() {
			_, err := s.User(reading, 1)
			ended <- err
		}()
	}
	op := save()
	op.OnDone(func(err error) { ended <- err })
	s.Submit(op)
	waitForLocks(t, block, 13) // 12 readers and the writer
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if beat, _, err := s.Beat(ctx, clusterNode("a")); beat != 2 || err != nil {
		t.Errorf("beat: got %d, error %v, want 2", beat, err)
	}
	if r, err := s.ReadCluster(ctx); len(r.Nodes) != 1 || err != nil {
		t.Errorf("read: got %d nodes, error %v, want 1", len(r.Nodes), err)
	}
	if rows, err := s.Claim(ctx, "a", []partition.Row{{Name: "00"}}); len(rows) != 1 || err != nil {
		t.Errorf("claim: got %d rows, error %v, want 1", len(rows), err)
	}
	if rows, err := s.Hand(ctx, "b", []partition.Row{{Name: "00", Holder: "a", Epoch: 1}}); len(rows) != 1 ||
		err != nil {
		t.Errorf("hand: got %d rows, error %v, want 1", len(rows), err)
	}
	if removed, err := s.RemoveNode(ctx, "a", 2); !removed || err != nil {
		t.Errorf("remove: got %t, error %v, want true", removed, err)
	}
	if err := s.Leave(ctx, "a"); err != nil {
		t.Errorf("leave: got %v, want none", err)
	}
	stop()
	if err := block.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range readers + 1 {
		<-ended
	}
}

// TestLockedRowsAreComparedAgain has another transaction change a row while a statement waits for
// it.
func TestLockedRowsAreComparedAgain(t *testing.T) {
	for _, test := range []struct {
		what, change string
		try          func(context.Context, *sqlstore.Store) (ok bool, err error)
	}{
		{"removal after a beat", `UPDATE nodes SET beat = beat + 1 WHERE id = 'a'`,
			func(ctx context.Context, s *sqlstore.Store) (bool, error) {
				removed, err := s.RemoveNode(ctx, "a", 1)
				return !removed, err
			}},
		{"beat after the removal", `DELETE FROM nodes WHERE id = 'a'`,
			func(ctx context.Context, s *sqlstore.Store) (bool, error) {
				_, _, err := s.Beat(ctx, clusterNode("a"))
				return errors.Is(err, partition.ErrGone), nil
			}},
		{"second removal", `DELETE FROM nodes WHERE id = 'a'`,
			func(ctx context.Context, s *sqlstore.Store) (bool, error) {
				return s.RemoveNode(ctx, "a", 1)
			}},
		{"claim after a claim", `UPDATE partitions SET holder = 'b', epoch = epoch + 1 WHERE name = '00'`,
			func(ctx context.Context, s *sqlstore.Store) (bool, error) {
				rows, err := s.Claim(ctx, "a", []partition.Row{{Name: "00"}, {Name: "01"}})
				return len(rows) == 1 && rows[0].Name == "01", err
			}},
		{"hand after a claim", `UPDATE partitions SET holder = 'b', epoch = epoch + 1 WHERE name = '00'`,
			func(ctx context.Context, s *sqlstore.Store) (bool, error) {
				rows, err := s.Hand(ctx, "a", []partition.Row{{Name: "00"}, {Name: "01"}})
				return len(rows) == 1 && rows[0].Name == "01", err
			}},
	} {
		t.Run(test.what, func(t *testing.T) {
			database := pgtest.Migrated(t)
			s := open(t, sqlstore.Config{URL: database})
			if err := s.JoinCluster(t.Context(), clusterNode("a"), ""); err != nil {
				t.Fatal(err)
			}
			tx, err := connect(t, database).Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(test.change); err != nil {
				t.Fatal(err)
			}
			var ok bool
			ended := make(chan error, 1)
			go func() {
				var err error
				ok, err = test.try(t.Context(), s)
				ended <- err
			}()
			waitForLock(t, tx)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil || !ok {
				t.Errorf("got right %t, error %v, want true, none", ok, err)
			}
		})
	}
}

// TestFrozenProcessLocksNoRow checks that no transaction waits for a COMMIT of the client. A process
// that is frozen at any time has no lock then, for which others would wait.
func TestFrozenProcessLocksNoRow(t *testing.T) {
	database := pgtest.Migrated(t)
	s := open(t, sqlstore.Config{URL: database})
	db := connect(t, database)
	// A deferred trigger runs at the commit, and current_query() is what the client has sent last.
	if _, err := db.Exec(`CREATE FUNCTION check_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF current_query() ILIKE 'commit%' THEN RAISE 'it is a statement of its own: %', current_query(); END IF;
	RETURN NULL; END $$`); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"nodes", "partitions"} {
		if _, err := db.Exec("CREATE CONSTRAINT TRIGGER check_commit AFTER INSERT OR UPDATE OR DELETE ON " +
			table + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_commit()"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, a := t.Context(), clusterNode("a")
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"join", func() error { return s.JoinCluster(ctx, a, "b") }},
		{"beat", func() error { _, _, err := s.Beat(ctx, a); return err }},
		{"drain", func() error { return s.DrainNode(ctx, "a") }},
		{"claim", func() error { _, err := s.Claim(ctx, "a", []partition.Row{{Name: "00"}}); return err }},
		{"hand", func() error {
			_, err := s.Hand(ctx, "b", []partition.Row{{Name: "00", Holder: "a", Epoch: 1}})
			return err
		}},
		{"leave", func() error { return s.Leave(ctx, "a") }},
		{"second join", func() error { return s.JoinCluster(ctx, a, "") }},
		{"remove", func() error { _, err := s.RemoveNode(ctx, "a", 1); return err }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: got %v, want none", step.what, err)
		}
	}
}

// TestClusterGoesToTheWritableServer makes a server read-only, as a failover does: the connections
// to it are not used again.
func TestClusterGoesToTheWritableServer(t *testing.T) {
	first, err := url.Parse(pgtest.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(first.Path, "/")
	other := pgtest.StartDurable(t)
	second, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, other).Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	copied := *second
	copied.Path = first.Path
	t.Cleanup(func() {
		if _, err := connect(t, other).Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	if _, err := sqlstore.Migrate(t.Context(), sqlstore.Config{URL: copied.String(),
		Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	both := *first
	both.Host += "," + second.Host
	s := open(t, sqlstore.Config{URL: both.String()})
	if err := s.JoinCluster(t.Context(), clusterNode("a"), ""); err != nil {
		t.Fatal(err)
	}
	db := connect(t, first.String())
	set := func(change string) {
		t.Helper()
		for _, statement := range []string{change, "SELECT pg_reload_conf()"} {
			if _, err := db.Exec(statement); err != nil {
				t.Error(err)
			}
		}
	}
	db.SetMaxOpenConns(1) // for SET
	defer func() {        // the server is that of all tests
		set("SET default_transaction_read_only = off")
		set("ALTER SYSTEM RESET default_transaction_read_only")
	}()
	set("ALTER SYSTEM SET default_transaction_read_only = on")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		_, _, err = s.Beat(t.Context(), clusterNode("a"))
		if errors.Is(err, partition.ErrGone) {
			return // the second server has no such row
		}
	}
	t.Errorf("got %v for a minute, want %v from the second server", err, partition.ErrGone)
}

// TestPoolerIsRefused opens a database of a cluster through pgbouncer.
func TestPoolerIsRefused(t *testing.T) {
	database := pgtest.Migrated(t)
	config := sqlstore.Config{URL: database, Cluster: true, Exclusive: true}
	if err := open(t, config).Close(); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[string]bool{"session": false, "transaction": true, "statement": true} {
		t.Run(mode, func(t *testing.T) {
			config := config
			config.URL, config.KeyFiles = pgtest.StartPooler(t, database, mode), []string{pgtest.KeyFile(t)}
			config.Logger = slog.New(slog.DiscardHandler)
			s, err := sqlstore.Open(t.Context(), config)
			if errors.Is(err, sqlstore.ErrPooler) != refused || !refused && err != nil {
				t.Errorf("got %v, want a refusal: %t", err, refused)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line", err)
			}
			if err == nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestClusterNeedsPostgres opens a file.
func TestClusterNeedsPostgres(t *testing.T) {
	url, _ := sqlite(t)
	config := sqlstore.Config{URL: url, Migrate: true, Cluster: true,
		Logger: slog.New(slog.DiscardHandler)}
	_, err := sqlstore.Open(t.Context(), config)
	if !errors.Is(err, sqlstore.ErrClusterSQLite) {
		t.Errorf("open: got %v, want %v", err, sqlstore.ErrClusterSQLite)
	}
	if _, err := sqlstore.OpenCluster(t.Context(), config); !errors.Is(err, sqlstore.ErrClusterSQLite) {
		t.Errorf("open cluster: got %v, want %v", err, sqlstore.ErrClusterSQLite)
	}
	config.Cluster = false
	if _, err := open(t, config).ReadCluster(t.Context()); !errors.Is(err, sqlstore.ErrClusterSQLite) {
		t.Errorf("read cluster: got %v, want %v", err, sqlstore.ErrClusterSQLite)
	}
}

// TestServersOfAClusterLogNoWarning opens two servers of a cluster, one beside it, and a third.
func TestServersOfAClusterLogNoWarning(t *testing.T) {
	database := pgtest.Migrated(t)
	var log strings.Builder
	start := func(cluster bool, want string) *sqlstore.Store {
		t.Helper()
		log.Reset()
		s := open(t, sqlstore.Config{URL: database, Exclusive: true, Cluster: cluster,
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if got := log.String(); strings.Contains(got, "uses this database") != (want != "") ||
			!strings.Contains(got, want) {
			t.Errorf("got log %q, want %q in it", got, want)
		}
		return s
	}
	first, second := start(true, ""), start(true, "")
	start(false, "another server uses")
	db := connect(t, database)
	held := locks(t, db)
	for _, s := range []*sqlstore.Store{first, second} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	awaitLock(t, db, held) // of the server beside the cluster
	start(true, "a server without --cluster-listen uses")
}

// TestOperatorReadsAndDrains reads the rows without a key file.
func TestOperatorReadsAndDrains(t *testing.T) {
	database := pgtest.Start(t)
	config := sqlstore.Config{URL: database, Logger: slog.New(slog.DiscardHandler)}
	if _, err := sqlstore.OpenCluster(t.Context(), config); !errors.Is(err, sqlstore.ErrSchema) {
		t.Errorf("empty database: got %v, want %v", err, sqlstore.ErrSchema)
	}
	s := open(t, sqlstore.Config{URL: database})
	if err := s.JoinCluster(t.Context(), clusterNode("a"), ""); err != nil {
		t.Fatal(err)
	}
	c, err := sqlstore.OpenCluster(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []bool{false, true} {
		r, err := c.Read(t.Context())
		if err != nil || len(r.Nodes) != 1 || r.Nodes[0].Drain != want || len(r.Partitions) != partition.Count {
			t.Errorf("got %d partitions, nodes %+v, error %v, want drain %t", len(r.Partitions), r.Nodes,
				err, want)
		}
		if err := c.Drain(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOldDatabaseGetsMissingKeys opens a database from before clusters and id_tokens, which has other
// keys. Servers that run already are told.
func TestOldDatabaseGetsMissingKeys(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.make(t)}
			s := open(t, config)
			if err := sqlstore.Execute(t.Context(), s, "DELETE FROM keys WHERE purpose IN ('cluster', 'factors', 'rs256', 'es256')"); err != nil {
				t.Fatal(err)
			}
			before := allKeys(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, config)
			after := allKeys(t, s)
			if _, told, err := s.Changes(t.Context(), 0, 100); err != nil || len(told) != 4 ||
				told[0].Keys == "" {
				t.Errorf("got changes %+v, error %v, want one of each missing key", told, err)
			}
			if len(after) != len(oauth.Purposes) || len(before) != len(after)-4 ||
				after[3].Secret == [32]byte{} || after[4].Secret == [32]byte{} ||
				after[5].Private == "" || after[6].Private == "" {
				t.Fatalf("got keys %v, want the missing ones, of which two sign, beside %v", after,
					before)
			}
			for i := range before {
				if after[i] != before[i] {
					t.Errorf("got %v, want %v as before", after[i], before[i])
				}
			}
		})
	}
}
