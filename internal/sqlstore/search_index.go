package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
)

const (
	// indexEvery is how many queued sessions ask for indexing before its time.
	indexEvery = 200
	// indexBatch is how many sessions one transaction indexes.
	indexBatch = 200
)

// indexer moves words from the queue into the search index, many sessions at a time: each transaction of FTS5 writes a
// segment of its own that must be merged with others later. The queue is a table, so nothing is forgotten in a crash, and
// any process may empty it.
type indexer struct {
	queued atomic.Int64 // roughly; other processes queue too
	wanted chan struct{}
	one    sync.Mutex // one pass at a time in this process
}

// added notes a queued session.
func (x *indexer) added() {
	if x.queued.Add(1)%indexEvery == 0 {
		select {
		case x.wanted <- struct{}{}:
		default:
		}
	}
}

// IndexWanted receives when so many sessions are queued that IndexQueued should run now rather than in a while.
func (s *Store) IndexWanted() <-chan struct{} { return s.index.wanted }

// IndexQueued indexes the words of all queued sessions. A search does it first, so that it finds everything that was
// acknowledged; otherwise it wants calling every few seconds. When it fails the words stay queued.
func (s *Store) IndexQueued(ctx context.Context) error {
	if s.d.indexAtOnce {
		return nil
	}
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
