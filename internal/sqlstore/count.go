package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// maxCounts bounds the remembered counts; a list has few filters in use at a time.
const maxCounts = 512

// countCache remembers how many rows a filter matches for as long as nothing at all was committed to the database, by
// any process. Counting walks every match, which is most of the cost of a list; people page through a list, and
// dashboards poll it, far more often than it changes. It has a connection of its own, because SQLite tells changes per
// connection.
type countCache struct {
	mu      sync.Mutex
	conn    *sql.Conn
	version string
	counts  map[string]int
}

// count runs a counting query or answers from memory when the database is unchanged.
func (s *Store) count(ctx context.Context, query string, args []any) (int, error) {
	c := &s.counts
	key := query + fmt.Sprintf("%#v", args) // %q would write all times alike
	c.mu.Lock()
	version, err := c.currentVersion(ctx, s)
	if err != nil {
		c.mu.Unlock()
		return 0, err
	}
	if version != c.version || len(c.counts) >= maxCounts {
		c.version, c.counts = version, make(map[string]int)
	}
	n, known := c.counts[key]
	c.mu.Unlock()
	if known {
		return n, nil
	}
	// The version was read first: rows committed since make the count newer than its version, never older.
	if err := s.r.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return 0, err
	}
	c.mu.Lock()
	if c.version == version {
		c.counts[key] = n
	}
	c.mu.Unlock()
	return n, nil
}

// currentVersion asks the cache's own connection, and takes a new one when that is broken. Versions of two connections
// cannot be compared, so a new connection forgets all counts.
func (c *countCache) currentVersion(ctx context.Context, s *Store) (string, error) {
	var v string
	if c.conn != nil {
		if err := c.conn.QueryRowContext(ctx, s.d.version).Scan(&v); err == nil {
			return v, nil
		}
		c.conn.Close()
		c.conn = nil
	}
	conn, err := s.r.Conn(ctx)
	if err != nil {
		return "", err
	}
	if err := conn.QueryRowContext(ctx, s.d.version).Scan(&v); err != nil {
		conn.Close()
		return "", err
	}
	c.conn, c.counts = conn, make(map[string]int)
	return v, nil
}

func (c *countCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
