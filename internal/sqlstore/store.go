// Package sqlstore keeps every domain's records in SQLite or PostgreSQL. Queries are written once; what differs
// between the engines is named in dialect.go. Exported methods own their transaction; unexported ones take it.
package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the driver

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// writeTimeout bounds one transaction of the group commit. A client that waits longer gets a 503 and tries again.
const writeTimeout = 15 * time.Second

// Store is all stores of the program on one database.
type Store struct {
	d    *dialect
	w    *sql.DB // writes; one connection on SQLite
	r    *sql.DB // reads; the same pool as w on PostgreSQL
	path string  // of the SQLite file, "" on PostgreSQL

	sessions *batcher[*sessionWrite]
	evals    *batcher[*evalWrite]
	bigEvals *batcher[*evalWrite] // posts that go alone

	maxRunCases int // cases of one eval run
	wideRange   int // matches of a list: see the constant

	chunks *batcher[*chunkWrite]
	log    *walSync // SQLite only
	index  indexer
	counts countCache

	mu         sync.Mutex
	stmts      map[string]*sql.Stmt // prepared on w, by text; nil while still wanted
	unprepared []string

	inserts sync.Map // texts of INSERT by insertKey
}

// maxKeptStatements bounds the statements kept prepared: the hot paths have a few dozen texts.
const maxKeptStatements = 200

// Observer is told what the store does; nil functions are not called.
type Observer struct {
	Batch func(kind string, size int) // items in one transaction of the group commit
}

// Open connects to a database. SQLite: path is the file, created with its folder when missing. PostgreSQL: url. A
// PostgreSQL server that is away is not an error here: every later call answers Unavailable until it is back.
func Open(engine, path, pgURL string, obs Observer) (*Store, error) {
	s := &Store{stmts: map[string]*sql.Stmt{}, maxRunCases: maxRunCases, wideRange: wideRange}
	var err error
	switch engine {
	case "sqlite":
		s.d, s.path = &sqliteDialect, path
		err = s.openSQLite(path)
	case "postgres":
		s.d = &postgresDialect
		err = s.openPostgres(pgURL)
	default:
		err = fmt.Errorf("unknown engine %q", engine)
	}
	if err != nil {
		return nil, err
	}
	observe := func(kind string) func(int) {
		return func(n int) {
			if obs.Batch != nil {
				obs.Batch(kind, n)
			}
		}
	}
	w := s.d.writers
	s.sessions = newBatcher(w, maxSessionBatch, writeTimeout, s.flushSessions, s.settle, observe("sessions"))
	s.evals = newBatcher(w, maxEvalBatch, writeTimeout, s.flushEvals, s.settle, observe("evals"))
	s.bigEvals = newBatcher(w, 1, bigEvalTimeout, s.flushEvals, s.settle, observe("evals"))
	s.chunks = newBatcher(1, maxChunkBatch, writeTimeout, s.flushChunks, s.settle, observe("telemetry"))
	s.index.wanted = make(chan struct{}, 1)
	return s, nil
}

func (s *Store) openSQLite(path string) error {
	if dir := filepath.Dir(path); dir != "." {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create the folder of the SQLite file: %w", err)
		}
	}
	dsn := func(extra ...string) string {
		pragmas := append([]string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)",
			"temp_store(MEMORY)"}, extra...)
		q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
		return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
	}
	s.log = &walSync{path: path + "-wal"}
	var err error
	if s.w, err = sql.Open("sqlite", dsn("cache_size(-16000)", "wal_autocheckpoint(2000)")); err != nil {
		return err
	}
	s.w.SetMaxOpenConns(1)
	if err := s.w.Ping(); err != nil { // creates the file in WAL mode before readers come
		s.w.Close()
		return fmt.Errorf("open the SQLite file: %w", err)
	}
	if s.r, err = sql.Open("sqlite", dsn("cache_size(-8000)", "query_only(1)")+"&mode=ro"); err != nil {
		s.w.Close()
		return err
	}
	readers := max(2, runtime.NumCPU())
	s.r.SetMaxOpenConns(readers + 1) // and the one that counts
	s.r.SetMaxIdleConns(readers + 1)
	return nil
}

func (s *Store) openPostgres(pgURL string) error {
	cfg, err := pgx.ParseConfig(pgURL)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}
	s.w = stdlib.OpenDB(*cfg)
	n := max(10, 4*runtime.NumCPU())
	s.w.SetMaxOpenConns(n)
	s.w.SetMaxIdleConns(n)
	s.w.SetConnMaxIdleTime(5 * time.Minute)
	s.r = s.w
	return nil
}

// Close finishes the transactions that run and closes the database.
func (s *Store) Close() error {
	s.sessions.close()
	s.evals.close()
	s.bigEvals.close()
	s.chunks.close()
	s.counts.close()
	if s.log != nil {
		s.log.close()
	}
	if s.r != s.w {
		s.r.Close()
	}
	return s.w.Close()
}

// Ready answers nil when the database answers and holds this program's schema.
func (s *Store) Ready(ctx context.Context) error {
	missing, err := s.missingMigrations(ctx)
	if err != nil {
		return s.fail(err)
	}
	if len(missing) > 0 {
		return errs.New(errs.Unavailable, "the database lacks %d migrations: run sidetone migrate", len(missing))
	}
	if s.log != nil {
		return s.log.state()
	}
	return nil
}

// Pool is the state of one connection pool.
type Pool struct {
	Name        string
	Open, InUse int
	Waits       int64
	Waited      time.Duration
}

// Pools are the connection pools as they are now.
func (s *Store) Pools() []Pool {
	of := func(name string, db *sql.DB) Pool {
		st := db.Stats()
		return Pool{Name: name, Open: st.OpenConnections, InUse: st.InUse, Waits: st.WaitCount, Waited: st.WaitDuration}
	}
	if s.r == s.w {
		return []Pool{of("main", s.w)}
	}
	return []Pool{of("write", s.w), of("read", s.r)}
}

// inTx runs f in a write transaction and returns when it is durable.
func (s *Store) inTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	if err := s.commit(ctx, f); err != nil {
		return err
	}
	return s.settle()
}

// settle returns when everything that was committed is durable. PostgreSQL sees to that in its COMMIT.
func (s *Store) settle() error {
	if s.log == nil {
		return nil
	}
	return s.log.wait()
}

// commit runs f in a write transaction, which settle makes durable. Conflicts between transactions are tried again a few
// times.
func (s *Store) commit(ctx context.Context, f func(tx *sql.Tx) error) error {
	var err error
	for range 5 {
		if err = s.tryTx(ctx, f); err == nil || !s.d.conflict(err) {
			break
		}
	}
	return s.fail(err)
}

func (s *Store) tryTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	if err := s.prepareWanted(ctx); err != nil {
		return err
	}
	tx, err := s.w.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// fail gives a database error its kind. Errors that have one already keep it.
func (s *Store) fail(err error) error {
	if err == nil || errs.KindOf(err) != errs.Internal {
		return err
	}
	if s.d.transient(err) {
		return errs.Wrap(errs.Unavailable, err, "the database is not available")
	}
	return errs.Wrap(errs.Internal, err, "a database query failed")
}

// exec and query run a statement of a hot path. Where the engine's driver does not keep prepared statements itself, the
// text is remembered and the next transaction finds it prepared.
func (s *Store) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (sql.Result, error) {
	if st := s.statement(query); st != nil {
		return tx.StmtContext(ctx, st).ExecContext(ctx, args...)
	}
	return tx.ExecContext(ctx, query, args...)
}

func (s *Store) query(ctx context.Context, tx *sql.Tx, query string, args ...any) (*sql.Rows, error) {
	if st := s.statement(query); st != nil {
		return tx.StmtContext(ctx, st).QueryContext(ctx, args...)
	}
	return tx.QueryContext(ctx, query, args...)
}

func (s *Store) statement(query string) *sql.Stmt {
	if !s.d.keepStatements {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, known := s.stmts[query]
	if !known && len(s.stmts) < maxKeptStatements {
		s.stmts[query] = nil // to be prepared outside this transaction, which holds the only connection
		s.unprepared = append(s.unprepared, query)
	}
	return st
}

func (s *Store) prepareWanted(ctx context.Context) error {
	s.mu.Lock()
	wanted := s.unprepared
	s.unprepared = nil
	s.mu.Unlock()
	for _, q := range wanted {
		st, err := s.w.PrepareContext(ctx, q)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.stmts[q] = st
		s.mu.Unlock()
	}
	return nil
}

// insertRows writes rows of equal length with as few statements as the engine likes. conflict is the ON CONFLICT
// clause or ""; returning, when not nil, is called for each row the RETURNING clause in conflict yields.
func (s *Store) insertRows(ctx context.Context, tx *sql.Tx, table string, columns []string,
	conflict string, rows [][]any, returning func(*sql.Rows) error) error {
	for len(rows) > 0 {
		n := min(len(rows), s.d.rowsPerInsert)
		query := s.insertText(table, columns, conflict, n)
		args := make([]any, 0, n*len(columns))
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		rows = rows[n:]
		if returning == nil {
			if _, err := s.exec(ctx, tx, query, args...); err != nil {
				return err
			}
			continue
		}
		got, err := s.query(ctx, tx, query, args...)
		if err != nil {
			return err
		}
		if err := each(got, returning); err != nil {
			return err
		}
	}
	return nil
}

// insertKey is what the text of an INSERT depends on: a table is always written with the same columns.
type insertKey struct {
	table, conflict string
	columns, rows   int
}

func (s *Store) insertText(table string, columns []string, conflict string, rows int) string {
	key := insertKey{table, conflict, len(columns), rows}
	if text, ok := s.inserts.Load(key); ok {
		return text.(string)
	}
	b := make([]byte, 0, 256+len(conflict)+6*rows*len(columns))
	b = fmt.Appendf(b, "INSERT INTO %s (%s) VALUES ", table, strings.Join(columns, ", "))
	n := int64(0)
	for i := range rows {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '(')
		for j := range columns {
			if j > 0 {
				b = append(b, ", "...)
			}
			n++
			b = strconv.AppendInt(append(b, '$'), n, 10)
		}
		b = append(b, ')')
	}
	text := string(append(append(b, ' '), conflict...))
	s.inserts.Store(key, text)
	return text
}

// each calls f for every row and closes rows.
func each(rows *sql.Rows, f func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// placeholders writes n parameters from $first on: "$3, $4, $5".
func placeholders(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", first+i)
	}
	return b.String()
}

var _ session.Store = (*Store)(nil)
