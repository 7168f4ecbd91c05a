package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
)

// indexBatch is how many sessions one transaction indexes.
const indexBatch = 200

// indexer extends the index of words by many sessions at a time. On SQLite it moves words from the queue: each transaction
// of FTS5 writes a segment of its own that must be merged with others later. The queue is a table, so nothing is forgotten
// in a crash, and any process may empty it. On PostgreSQL the words are in the index at once, in GIN's own list of
// additions, which is merged.
type indexer struct {
	queued atomic.Int64 // by this process, ever
	merged atomic.Int64 // the same at the last merge
	wanted chan struct{}
	one    sync.Mutex // one pass at a time in this process
}

// added notes a new session; each so many ask for the indexing.
func (x *indexer) added(every int64) {
	if x.queued.Add(1)%every == 0 {
		select {
		case x.wanted <- struct{}{}:
		default:
		}
	}
}

// IndexWanted receives when so many sessions are queued that IndexWords should run now rather than in a while.
func (s *Store) IndexWanted() <-chan struct{} { return s.index.wanted }

// IndexWords brings the index of words up to date. It wants calling every few seconds and when IndexWanted says so; when
// it fails, the next call does its work.
func (s *Store) IndexWords(ctx context.Context) error {
	if s.d.takeQueued != "" {
		return s.indexQueued(ctx)
	}
	added := s.index.queued.Load()
	if added == s.index.merged.Load() {
		return nil
	}
	_, err := s.w.ExecContext(ctx, s.d.mergeIndex)
	if err != nil && !s.d.forbidden(err) { // only the owner of an index may; then PostgreSQL does it by itself
		return s.fail(err)
	}
	s.index.merged.Store(added)
	return nil
}

// indexQueued indexes the words of all queued sessions. A search does it first, so that it finds everything that was
// acknowledged.
func (s *Store) indexQueued(ctx context.Context) error {
	s.index.one.Lock()
	defer s.index.one.Unlock()
	var waiting int
	err := s.r.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM search_queue LIMIT 1) AS waiting`).Scan(&waiting)
	if err != nil || waiting == 0 {
		return s.fail(err)
	}
	for {
		n, err := s.indexBatch(ctx)
		if err != nil || n < indexBatch {
			return err
		}
	}
}

// indexBatch indexes some queued sessions and returns how many.
func (s *Store) indexBatch(ctx context.Context) (int, error) {
	n := 0
	err := s.commit(ctx, func(tx *sql.Tx) error { // lost in a power cut, it leaves the queue as it was
		var nums []int64
		var words [][]any
		rows, err := s.query(ctx, tx, s.d.takeQueued, indexBatch)
		if err != nil {
			return err
		}
		err = each(rows, func(r *sql.Rows) error {
			var num int64
			var text string
			err := r.Scan(&num, &text)
			nums = append(nums, num)
			if text != "" {
				words = append(words, []any{num, text})
			}
			return err
		})
		if n = len(nums); err != nil || n == 0 {
			return err
		}
		for _, num := range nums {
			if _, err := s.exec(ctx, tx, s.d.searchDelete, num); err != nil {
				return err
			}
		}
		return s.insertRows(ctx, tx, "session_search", []string{s.d.searchKey, "words"}, "", words, nil)
	})
	return n, err
}
