package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"strconv"
	"time"

	"sidetone/internal/session"
)

// storedChunk is a chunk in the form of its columns.
type storedChunk struct {
	kind session.ChunkKind
	hash []byte // 16 bytes
	data []byte
}

// chunkWrite is chunks of one owner on their way through the group commit.
type chunkWrite struct {
	owner  string
	chunks []storedChunk
}

// maxChunkBatch is how many writes of chunks one transaction carries at most.
const maxChunkBatch = 64

func encodeChunks(chunks []session.Chunk) []storedChunk {
	out := make([]storedChunk, len(chunks))
	for i, c := range chunks {
		sum := sha256.Sum256(c.Data)
		out[i] = storedChunk{c.Kind, sum[:16], compress(c.Data)}
	}
	return out
}

// sessionOwner is the owner of a session's chunks.
func sessionOwner(num int64) string { return strconv.FormatInt(num, 10) }

// AppendChunks implements session.Store.
func (s *Store) AppendChunks(ctx context.Context, owner string, chunks []session.Chunk) error {
	if len(chunks) == 0 {
		return nil
	}
	return s.chunks.do(ctx, &chunkWrite{owner, encodeChunks(chunks)})
}

func (s *Store) flushChunks(ctx context.Context, group []*chunkWrite) error {
	return s.commit(ctx, func(tx *sql.Tx) error {
		var rows [][]any
		for _, w := range group {
			rows = appendChunkRows(rows, w.owner, w.chunks)
		}
		return s.insertChunks(ctx, tx, rows)
	})
}

func appendChunkRows(rows [][]any, owner string, chunks []storedChunk) [][]any {
	for _, c := range chunks {
		rows = append(rows, []any{owner, int(c.kind), c.hash, c.data})
	}
	return rows
}

func (s *Store) insertChunks(ctx context.Context, tx *sql.Tx, rows [][]any) error {
	return s.insertRows(ctx, tx, "telemetry_chunks", []string{"owner", "kind", "hash", "data"}, "ON CONFLICT DO NOTHING", rows, nil)
}

// Chunks implements session.Store.
func (s *Store) Chunks(ctx context.Context, id string, kind session.ChunkKind) ([][]byte, error) {
	if !storable(id) {
		return nil, errNoSession
	}
	rows, err := s.r.QueryContext(ctx, `SELECT num FROM sessions WHERE id = $1`, id)
	if err != nil {
		return nil, s.fail(err)
	}
	var num int64
	if err := each(rows, func(r *sql.Rows) error { return r.Scan(&num) }); err != nil {
		return nil, s.fail(err)
	}
	if num == 0 {
		return nil, errNoSession
	}
	return s.chunksOf(ctx, []string{sessionOwner(num)}, kind)
}

// TraceChunks implements session.Store.
func (s *Store) TraceChunks(ctx context.Context, traceIDs []string, kind session.ChunkKind) ([][]byte, error) {
	if len(traceIDs) == 0 {
		return nil, nil
	}
	owners := make([]string, len(traceIDs))
	for i, id := range traceIDs {
		owners[i] = session.TraceOwner(id)
	}
	return s.chunksOf(ctx, owners, kind)
}

func (s *Store) chunksOf(ctx context.Context, owners []string, kind session.ChunkKind) ([][]byte, error) {
	w := &where{}
	w.anyOf("owner", owners)
	w.add("kind = %s", int(kind))
	rows, err := s.r.QueryContext(ctx, `SELECT data FROM telemetry_chunks`+w.String(), w.args...)
	if err != nil {
		return nil, s.fail(err)
	}
	var out [][]byte
	err = each(rows, func(r *sql.Rows) error {
		var data []byte
		if err := r.Scan(&data); err != nil {
			return err
		}
		doc, err := decompress(data)
		out = append(out, doc)
		return err
	})
	return out, s.fail(err)
}

// Silent implements session.Store.
func (s *Store) Silent(ctx context.Context, notAfter time.Time, limit int) ([]session.Key, error) {
	rows, err := s.r.QueryContext(ctx, `SELECT id FROM sessions WHERE list_at >= $1 AND last_signal_at <= $2 ORDER BY list_at LIMIT $3`,
		activeListAt, micros(notAfter), limit)
	if err != nil {
		return nil, s.fail(err)
	}
	var keys []session.Key
	err = each(rows, func(r *sql.Rows) error {
		k := session.Key{Exact: true}
		err := r.Scan(&k.Room)
		keys = append(keys, k)
		return err
	})
	return keys, s.fail(err)
}
