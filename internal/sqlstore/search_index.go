package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// indexEvery is how many queued sessions wake the indexer before its time.
	indexEvery = 400
	// indexPause is how long queued words wait for company. A search does not wait: it indexes what is queued first.
	indexPause = 2 * time.Second
	// indexBatch is how many sessions one transaction indexes.
	indexBatch = 500
)

// indexer moves words from the queue into the search index, many sessions at a time: each transaction of FTS5 writes a
// segment of its own that must be merged with others later. The queue is a table, so nothing is forgotten in a crash, and
// any process may empty it.
type indexer struct {
	s       *Store
	queued  atomic.Int64
	wake    chan struct{}
	stop    context.CancelFunc
	stopped chan struct{}
	one     sync.Mutex // one pass at a time in this process
}

func startIndexer(s *Store) *indexer {
	ctx, stop := context.WithCancel(context.Background())
	x := &indexer{s: s, wake: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{})}
	x.queued.Store(1) // what a process before this one left behind
	go x.run(ctx)
	return x
}

// added notes a queued session.
func (x *indexer) added() {
	if x.queued.Add(1)%indexEvery == 0 {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

func (x *indexer) run(ctx context.Context) {
	defer close(x.stopped)
	t := time.NewTicker(indexPause)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-x.wake:
		}
		if x.queued.Load() > 0 {
			x.drain(ctx) // when it fails the words stay queued for the next time
		}
	}
}

// drain indexes everything that is queued.
func (x *indexer) drain(ctx context.Context) error {
	x.one.Lock()
	defer x.one.Unlock()
	for {
		before := x.queued.Load()
		n, err := x.s.indexBatch(ctx)
		if err != nil {
			return err
		}
		if n < indexBatch {
			x.queued.CompareAndSwap(before, 0)
			return nil
		}
	}
}

func (x *indexer) close() {
	x.stop()
	<-x.stopped
}

// indexBatch indexes some queued sessions and returns how many.
func (s *Store) indexBatch(ctx context.Context) (int, error) {
	n := 0
	err := s.inTx(ctx, func(tx *sql.Tx) error {
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
		return s.insertRows(ctx, tx, "session_search", []string{s.d.searchKey, "words"},
			map[string]string{"words": s.d.wordsParam}, "", words, nil)
	})
	return n, err
}

// searchable makes everything acknowledged so far findable.
func (s *Store) searchable(ctx context.Context) error {
	var waiting int
	if err := s.r.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM search_queue LIMIT 1) AS some`).Scan(&waiting); err != nil || waiting == 0 {
		return err
	}
	return s.indexer.drain(ctx)
}
