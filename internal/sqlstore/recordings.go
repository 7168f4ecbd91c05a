package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/recording"
	"sidetone/internal/session"
)

const recordingColumns = `key, size, sha256, place, folder, stored_at, dropped, attempts, next_at`

func scanRecording(r *sql.Rows, row *recording.Row, more ...any) error {
	var stored, next int64
	var dropped int
	err := r.Scan(append([]any{&row.Key, &row.Size, &row.SHA256, &row.Place, &row.Folder, &stored, &dropped, &row.Attempts, &next}, more...)...)
	row.StoredAt, row.NextAt, row.Dropped = fromMicros(stored), fromMicros(next), dropped != 0
	return err
}

// addRecordings notes where the recordings are that came with new reports.
func (s *Store) addRecordings(ctx context.Context, tx *sql.Tx, encoded map[string]*encodedSession) error {
	var rows [][]any
	for _, e := range encoded {
		rec := e.record.Session.Recording
		if rec == nil || rec.Taken == nil {
			continue
		}
		place, next := recording.InFolder, 0
		if rec.Taken.Spooled {
			place, next = recording.InSpool, 1
		}
		rows = append(rows, []any{rec.Key, rec.Size, rec.SHA256, string(place), rec.Taken.Folder, micros(rec.Taken.At), 0, 0, next})
	}
	return s.insertRows(ctx, tx, "recordings", []string{"key", "size", "sha256", "place", "folder", "stored_at", "dropped", "attempts", "next_at"},
		"ON CONFLICT (key) DO NOTHING", rows, nil)
}

// dropRecordings makes recordings due for deletion, in the transaction that takes them from their sessions.
func (s *Store) dropRecordings(ctx context.Context, tx *sql.Tx, recs []session.Recording) error {
	for _, rec := range recs {
		if _, err := s.exec(ctx, tx, `UPDATE recordings SET dropped = 1, attempts = 0, next_at = 1 WHERE key = $1`, rec.Key); err != nil {
			return err
		}
	}
	return nil
}

// readRecordings reads rows by a condition.
func (s *Store) readRecordings(ctx context.Context, rest string, args ...any) ([]recording.Row, error) {
	rows, err := s.r.QueryContext(ctx, `SELECT `+recordingColumns+` FROM recordings WHERE `+rest, args...)
	if err != nil {
		return nil, s.fail(err)
	}
	var out []recording.Row
	err = each(rows, func(r *sql.Rows) error {
		var row recording.Row
		err := scanRecording(r, &row)
		out = append(out, row)
		return err
	})
	return out, s.fail(err)
}

// Recording implements recording.Store.
func (s *Store) Recording(ctx context.Context, key string) (recording.Row, error) {
	rows, err := s.readRecordings(ctx, `key = $1`, key)
	if err != nil {
		return recording.Row{}, err
	}
	if len(rows) == 0 {
		return recording.Row{}, errs.New(errs.NotFound, "there is no such recording")
	}
	return rows[0], nil
}

// dueFor is the condition on rows that somebody with the folder $1 can do something about.
func dueFor(objects bool) string {
	if objects {
		return `next_at > 0 AND folder IN ('', $1)`
	}
	return `next_at > 0 AND folder IN ('', $1) AND dropped = 1 AND place <> 's3'`
}

// Due implements recording.Store.
func (s *Store) Due(ctx context.Context, folder string, objects bool, now time.Time, limit int) ([]recording.Row, error) {
	return s.readRecordings(ctx, dueFor(objects)+` AND next_at <= $2 ORDER BY next_at LIMIT $3`, folder, micros(now), limit)
}

// NextDue implements recording.Store.
func (s *Store) NextDue(ctx context.Context, folder string, objects bool) (time.Time, error) {
	rows, err := s.readRecordings(ctx, dueFor(objects)+` ORDER BY next_at LIMIT 1`, folder)
	if err != nil || len(rows) == 0 {
		return time.Time{}, err
	}
	return rows[0].NextAt, nil
}

// Hurry implements recording.Store.
func (s *Store) Hurry(ctx context.Context, folder string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE recordings SET next_at = 1 WHERE next_at > 1 AND folder IN ('', $1)`, folder)
		return err
	})
}

// Switch implements recording.Store.
func (s *Store) Switch(ctx context.Context, old recording.Row, place recording.Place, folder string, next time.Time) (bool, error) {
	var n int64
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		r, err := s.exec(ctx, tx, `UPDATE recordings SET place = $1, folder = $2, attempts = 0, next_at = CASE WHEN dropped = 1 THEN 1 ELSE CAST($3 AS BIGINT) END
			WHERE key = $4 AND place = $5 AND folder = $6`, string(place), folder, micros(next), old.Key, string(old.Place), old.Folder)
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n > 0, err
}

// Postpone implements recording.Store.
func (s *Store) Postpone(ctx context.Context, row recording.Row, attempts int, next time.Time) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := s.exec(ctx, tx, `UPDATE recordings SET attempts = $1, next_at = $2 WHERE key = $3 AND next_at > 0 AND dropped = $4`,
			attempts, micros(next), row.Key, bit(row.Dropped))
		return err
	})
}

// Forget implements recording.Store.
func (s *Store) Forget(ctx context.Context, key string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := s.exec(ctx, tx, `DELETE FROM recordings WHERE key = $1 AND dropped = 1`, key)
		return err
	})
}

// Shard implements recording.Store.
func (s *Store) Shard(ctx context.Context, shard string) ([]recording.Row, error) {
	rows, err := s.r.QueryContext(ctx, `SELECT `+recordingColumns+`, coalesce(
		(SELECT min(id) FROM sessions WHERE recording_key = recordings.key AND recording_key > ''), '')
		FROM recordings WHERE key >= $1 AND key < $2`, shard+"/", shard+"0") // 0 follows / in ASCII
	if err != nil {
		return nil, s.fail(err)
	}
	var out []recording.Row
	err = each(rows, func(r *sql.Rows) error {
		var row recording.Row
		err := scanRecording(r, &row, &row.SessionID)
		out = append(out, row)
		return err
	})
	return out, s.fail(err)
}

// Spool implements recording.Store.
func (s *Store) Spool(ctx context.Context) (recording.Spool, error) {
	rows, err := s.r.QueryContext(ctx, `SELECT count(*), coalesce(sum(size), 0), coalesce(min(stored_at), 0) FROM recordings
		WHERE next_at > 0 AND place = 'spool' AND dropped = 0`)
	if err != nil {
		return recording.Spool{}, s.fail(err)
	}
	var out recording.Spool
	err = each(rows, func(r *sql.Rows) error {
		var oldest int64
		err := r.Scan(&out.Count, &out.Bytes, &oldest)
		out.Oldest = fromMicros(oldest)
		return err
	})
	return out, s.fail(err)
}

// CountPlaces implements recording.Store.
func (s *Store) CountPlaces(ctx context.Context) (map[recording.Place]recording.Total, error) {
	rows, err := s.r.QueryContext(ctx, `SELECT place, count(*), coalesce(sum(size), 0) FROM recordings WHERE dropped = 0 GROUP BY place`)
	if err != nil {
		return nil, s.fail(err)
	}
	out := map[recording.Place]recording.Total{}
	err = each(rows, func(r *sql.Rows) error {
		var place string
		var t recording.Total
		if err := r.Scan(&place, &t.Count, &t.Bytes); err != nil {
			return fmt.Errorf("places of recordings: %w", err)
		}
		out[recording.Place(place)] = t
		return nil
	})
	return out, s.fail(err)
}

var _ recording.Store = (*Store)(nil)
