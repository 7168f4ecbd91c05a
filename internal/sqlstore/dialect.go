package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"sidetone/internal/session"
)

//go:embed migrations
var migrationFiles embed.FS

// dialect is everything in which the two engines differ. Nothing outside this file asks which engine it runs on.
type dialect struct {
	name       string
	migrations string // folder of its migrations

	// lockMigrations is run on the migrating connection before it reads what is applied; unlockMigrations after.
	lockMigrations, unlockMigrations string

	// lockKeys takes locks on $1, an array of int64 in ascending order, until the transaction ends. Empty where a
	// transaction has the whole database to itself.
	lockKeys string

	// What follows a SELECT to keep the rows as they are until the transaction ends: against any change, against deletion,
	// and against any change but leaving out those that another transaction has locked. Empty as above.
	lockRows, keepRows, takeRows string

	// writers is how many transactions of one group commit run at a time: on PostgreSQL one gathers while the other waits
	// for the disk.
	writers int

	// rowsPerInsert is how many rows one INSERT carries: round trips cost on PostgreSQL, binding costs on SQLite.
	rowsPerInsert int

	// keepStatements is set where the driver would compile the same text again for every use.
	keepStatements bool

	// changeMark is the mark that this transaction puts on the rows it changes. changeHorizon, read before rows, is the
	// mark from which a later reader must read again to see every change it has not seen: on PostgreSQL transactions
	// commit out of order, so that is the oldest one still running.
	// changeLimit is beyond the mark of every change that is visible: later marks came from elsewhere, with a dump.
	changeMark, changeHorizon, changeLimit string

	// version is a text that stays the same only while nothing at all was committed. It must be asked on the
	// connection that counts.
	version string

	searchKey    string // the column of session_search that is a session's num
	searchDelete string // deletes the entry of session $1
	// Words go through search_queue into the index where takeQueued is set, which removes up to $1 sessions from there and
	// returns num and words. Where the engine gathers additions itself, mergeIndex takes in what it has gathered: else an
	// insert does once the list is long, and a report waits for it.
	takeQueued, mergeIndex string
	indexEvery             int64 // how many new sessions ask for that before its time
	// searchMatch gives the condition on session_search that all of must and none of not are there, where must is not
	// empty, or that any of not is there; arg adds an argument and returns its placeholder.
	searchMatch func(must, not []session.Phrase, arg func(any) string) string

	forbidden func(error) bool // the database's user may not do this
	transient func(error) bool // the database is away, overloaded or refused for now
	conflict  func(error) bool // two transactions met: trying again helps
}

// sqliteNextMark is one more than every mark there is.
const sqliteNextMark = `SELECT max(coalesce((SELECT max(change) FROM sessions), 0),
	coalesce((SELECT max(change) FROM session_deletions), 0), coalesce((SELECT max(change) FROM eval_cases), 0),
	coalesce((SELECT max(change) FROM eval_deletions), 0)) + 1`

var sqliteDialect = dialect{
	name:          "sqlite",
	migrations:    "migrations/sqlite",
	writers:       1,
	rowsPerInsert: 1,

	keepStatements: true,
	changeMark:     sqliteNextMark,
	changeHorizon:  sqliteNextMark,
	changeLimit:    sqliteNextMark,
	version:        `SELECT data_version FROM pragma_data_version`,
	searchKey:      "rowid",
	searchDelete:   `DELETE FROM session_search WHERE rowid = $1`,
	takeQueued:     `DELETE FROM search_queue WHERE num IN (SELECT num FROM search_queue ORDER BY num LIMIT $1) RETURNING num, words`,
	indexEvery:     200,
	searchMatch:    fts5Match,
	forbidden:      func(error) bool { return false },
	transient:      sqliteTransient,
	conflict:       func(error) bool { return false },
}

var postgresDialect = dialect{
	name:             "postgres",
	migrations:       "migrations/postgres",
	lockMigrations:   `SELECT pg_advisory_lock(7236452901)`,
	unlockMigrations: `SELECT pg_advisory_unlock(7236452901)`,
	lockKeys:         `SELECT count(*) FROM (SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) WITH ORDINALITY AS u (k, n) ORDER BY n) AS locked`,
	lockRows:         " FOR NO KEY UPDATE",
	keepRows:         " FOR KEY SHARE",
	takeRows:         " FOR NO KEY UPDATE SKIP LOCKED",
	writers:          2,
	rowsPerInsert:    64,
	changeMark:       `SELECT pg_current_xact_id()::text::bigint`,
	changeHorizon:    `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`,
	changeLimit:      `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`,
	version:          `SELECT pg_current_snapshot()::text`,
	searchKey:        "num",
	searchDelete:     `DELETE FROM session_search WHERE num = $1`,
	mergeIndex:       `SELECT gin_clean_pending_list('session_search_words')`,
	indexEvery:       800, // some 6 MB
	searchMatch:      tsvectorMatch,
	forbidden: func(err error) bool {
		var pg *pgconn.PgError
		return errors.As(err, &pg) && pg.Code == "42501"
	},
	transient: postgresTransient,
	conflict: func(err error) bool {
		var pg *pgconn.PgError
		return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
	},
}

func sqliteTransient(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return commonTransient(err)
	}
	switch e.Code() & 0xff { // the low byte is the primary result code
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED, sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_FULL,
		sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_NOMEM, sqlitelib.SQLITE_INTERRUPT:
		return true
	case sqlitelib.SQLITE_ERROR: // a table or a column that a migration will bring: reports wait for it
		return strings.Contains(e.Error(), "no such table") || strings.Contains(e.Error(), "has no column") ||
			strings.Contains(e.Error(), "no such column")
	}
	return false
}

func postgresTransient(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "53", "57", "58", "40", "25", "28": // connection, resources, operator, system, rollback, read-only, login
			return true
		}
		switch pg.Code {
		case "55P03", "3D000": // a lock that another holds, a database that is not there
			return true
		case "42P01", "42703": // a table or a column that a migration will bring: reports wait for it
			return true
		}
		return false
	}
	var ce *pgconn.ConnectError
	return errors.As(err, &ce) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) || commonTransient(err)
}

func commonTransient(err error) bool {
	var ne net.Error
	return errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "database is closed") || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &ne) ||
		strings.Contains(err.Error(), "bad connection") || strings.Contains(err.Error(), "conn closed")
}
