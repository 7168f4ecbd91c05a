package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"time"

	"sidetone/internal/stamp"
)

// Migrate brings the database to this program's schema, forward only, under a lock, and returns the names of the
// migrations it applied. Several processes may call it at once.
func (s *Store) Migrate(ctx context.Context, now time.Time) ([]string, error) {
	conn, err := s.w.Conn(ctx)
	if err != nil {
		return nil, s.fail(err)
	}
	defer conn.Close()
	if s.d.lockMigrations != "" {
		if _, err := conn.ExecContext(ctx, s.d.lockMigrations); err != nil {
			return nil, s.fail(err)
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), s.d.unlockMigrations)
	}
	if _, err := conn.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)`); err != nil {
		return nil, s.fail(err)
	}
	names, err := migrationNames(s.d)
	if err != nil {
		return nil, err
	}
	var applied []string
	for _, name := range names {
		did, err := s.applyMigration(ctx, conn, name, now)
		if err != nil {
			return applied, fmt.Errorf("migration %s: %w", name, s.fail(err))
		}
		if did {
			applied = append(applied, name)
		}
	}
	return applied, s.settle()
}

// applyMigration runs one migration unless it has been applied, in one transaction with its own record.
func (s *Store) applyMigration(ctx context.Context, conn *sql.Conn, name string, now time.Time) (bool, error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM schema_migrations WHERE name = $1`, name).Scan(&n); err != nil || n > 0 {
		return false, err
	}
	text, err := migrationFiles.ReadFile(s.d.migrations + "/" + name + ".sql")
	if err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO schema_migrations (name, applied_at) VALUES ($1, $2)`, name, stamp.Micros(now)); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

func (s *Store) missingMigrations(ctx context.Context) ([]string, error) {
	names, err := migrationNames(s.d)
	if err != nil {
		return nil, err
	}
	var n int
	if err := s.r.QueryRowContext(ctx, `SELECT count(*) FROM schema_migrations`).Scan(&n); err != nil {
		if s.d.transient(err) {
			return nil, err
		}
		return names, nil // no such table: nothing was ever applied
	}
	return names[min(n, len(names)):], nil
}

func migrationNames(d *dialect) ([]string, error) {
	entries, err := fs.ReadDir(migrationFiles, d.migrations)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".sql"))
	}
	sort.Strings(names)
	return names, nil
}
