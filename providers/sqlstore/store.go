// Package sqlstore stores clients, users, codes, refresh tokens, what has ended, and wrapped keys
// in SQLite or PostgreSQL, the audit trail, and the rows of a cluster. It implements oauth.Store,
// account.Store, audit.Store and partition.Store.
//
// One goroutine, the writer, executes all writes. It serves those who ask for them in turn, and the
// writes of each in the order of submission. It takes the queued writes up to a limit, executes
// them in one transaction, and ends them after the commit. So it waits for the disk once for each
// batch, not once for each write. Decisions (is this code unused, is this refresh token current)
// are conditions of an UPDATE, so that they are atomic across processes too.
//
// A limit that is a parameter is cast: SQLite depends on its value otherwise, and parses a prepared
// statement again at each execution.
//
// Times are stored in milliseconds and returned in UTC; a zero time stays zero. Text must be UTF-8
// without NUL.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/partition"
)

var (
	_ oauth.Store     = (*Store)(nil)
	_ account.Store   = (*Store)(nil)
	_ audit.Store     = (*Store)(nil)
	_ partition.Store = (*Store)(nil)
)

// Store is an open database. Its methods may be called by many goroutines. Close it after use.
type Store struct {
	config   Config
	pools    pools
	keyFiles keyFiles
	lock     *os.File    // on SQLite; nil = none
	mark     *serverMark // on PostgreSQL; nil = none
	queue    *queue
	conn     *conn // used by the writer only
	metrics  *storeMetrics
	pageSize int64         // of SQLite, in bytes
	logGrew  chan struct{} // wakes the checkpointer after a commit
	turn     sync.Mutex    // held by the writer's transactions, and to empty the log
	emptyLog atomic.Bool   // the next checkpoint must empty SQLite's log, which has deleted data
	// truncateFrom is when the checkpointer may block the writer again. The checkpointer alone uses
	// it.
	truncateFrom time.Time
	full         bool // new data is refused; used by the writer only
	health       health
	probe        string // name of the row that probes of health write
	reads        statements

	stop       context.CancelFunc // stops the sweeper and the checkpointer
	background sync.WaitGroup
	written    chan struct{} // closed when the writer has ended

	closing sync.Once
	closed  error
}

// Open opens a database and starts its writer and sweeper. It creates a SQLite file that does not
// exist, and the first keys. Its error is one line without the URL's password, and may wrap
// ErrInUse, ErrLinked, ErrSchema, ErrNewer, ErrKeyFile,
// ErrClusterSQLite or ErrPooler.
func Open(ctx context.Context, config Config) (*Store, error) {
	config, err := config.complete()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, err := lockExclusive(config)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(ctx, config)
	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.lock = lock
	return s, nil
}

func lockExclusive(config Config) (*os.File, error) {
	e, path, err := locate(config.URL)
	if err != nil || e != sqliteEngine || !config.Exclusive {
		return nil, err
	}
	if err := checkName(path); err != nil { // before a lock file is created for a wrong name
		return nil, err
	}
	return lockFile(path)
}

func open(ctx context.Context, config Config) (*Store, error) {
	p, err := openPools(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := p.checkWritable(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if config.Cluster {
		if err := p.checkSession(ctx); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	if err := settleSchema(ctx, p, config); err != nil {
		return nil, errors.Join(err, p.close())
	}
	files, err := firstKeys(ctx, p, config)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.engine == sqliteEngine {
		if err := warm(ctx, p.read); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	s := &Store{
		config: config, pools: p, keyFiles: files, queue: newQueue(config.QueueLength), conn: newConn(p),
		reads: statements{db: p.read}, written: make(chan struct{}), logGrew: make(chan struct{},
			1), probe: newProbe(),
	}
	s.conn.addresses = config.AuditAddresses
	if s.metrics, err = newStoreMetrics(s); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.engine == sqliteEngine {
		if err := p.write.QueryRowContext(ctx, "PRAGMA page_size").Scan(&s.pageSize); err != nil {
			s.metrics.unregister()
			return nil, errors.Join(fmt.Errorf("open database: %w", err), p.close())
		}
	}
	if p.engine == postgresEngine && config.Exclusive {
		s.mark = &serverMark{db: p.read, cluster: config.Cluster, timeout: config.WriteTimeout,
			log: config.Logger}
		if err := s.mark.take(ctx); err != nil {
			s.metrics.unregister()
			return nil, errors.Join(err, p.close())
		}
	}
	s.start()
	return s, nil
}

func (s *Store) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.write()
	s.background.Go(func() { s.sweepUntil(ctx) })
	if s.pools.checkpoint != nil {
		s.wakeCheckpointer() // the process before may have left a log
		s.background.Go(func() { s.checkpointUntil(ctx) })
	}
	if s.mark != nil {
		s.background.Go(func() { s.mark.keep(ctx) })
	}
}

// Close rejects new writes, waits until the queued ones are durable, and closes the database. It
// may be called again.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.stop()
		s.queue.close()
		<-s.written
		s.background.Wait()
		s.metrics.unregister()
		errs := []error{s.conn.close(), s.reads.close()}
		if s.mark != nil {
			errs = append(errs, s.mark.release())
		}
		if s.config.Exclusive {
			errs = append(errs, s.truncateWAL())
		}
		errs = append(errs, s.pools.close())
		if s.lock != nil {
			errs = append(errs, s.lock.Close())
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

// pools holds the connections to a database. checkpoint is nil on PostgreSQL, cluster on SQLite.
type pools struct {
	engine                           engine
	path                             string
	write, read, checkpoint, cluster *sql.DB
}

func openPools(ctx context.Context, config Config) (p pools, err error) {
	if p.engine, p.path, err = locate(config.URL); err != nil {
		return p, err
	}
	if p.engine == postgresEngine {
		if p.write, p.read, p.cluster, err = openPostgres(config); err != nil {
			return p, err
		}
		if err = checkPostgres(ctx, p.read); err != nil {
			return p, errors.Join(err, p.close())
		}
		return p, nil
	}
	if p.write, p.read, p.checkpoint, err = openSQLite(p.path, config); err != nil {
		return p, err
	}
	if err = p.write.PingContext(ctx); err != nil {
		return p, errors.Join(fmt.Errorf("open database: %w", err), p.close())
	}
	return p, nil
}

// checkWritable returns an error if the database cannot be written: a read-only file, or a standby
// server.
func (p pools) checkWritable(ctx context.Context) error {
	if p.engine == sqliteEngine {
		if _, err := p.write.ExecContext(ctx,
			"BEGIN IMMEDIATE; PRAGMA user_version = 1; ROLLBACK"); err != nil {
			return fmt.Errorf("write to database: %w", err)
		}
		return nil
	}
	var readOnly string
	if err := p.read.QueryRowContext(ctx,
		"SELECT current_setting('transaction_read_only')").Scan(&readOnly); err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	if readOnly == "on" {
		return errors.New("the database server is read-only")
	}
	return nil
}

func (p pools) close() error {
	if p.engine == postgresEngine {
		return errors.Join(p.cluster.Close(), p.read.Close(), p.write.Close())
	}
	return errors.Join(p.read.Close(), p.checkpoint.Close(), p.write.Close())
}

// millis returns the stored form of a time: milliseconds since 1970, or 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fromMillis is the inverse of millis.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
