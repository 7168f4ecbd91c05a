package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/pgtest"
	"sidetone/internal/session"
	"sidetone/internal/storetest"
)

// databases are empty databases of each engine, by where they are.
var databases = map[string]func(t *testing.T) (path, url string){
	"sqlite":   func(t *testing.T) (string, string) { return filepath.Join(t.TempDir(), "folder", "sessions.db"), "" },
	"postgres": func(t *testing.T) (string, string) { return "", pgtest.URL(t) },
}

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func onBoth(t *testing.T, run func(t *testing.T, open func() *Store)) {
	for engine, database := range databases {
		t.Run(engine, func(t *testing.T) {
			path, url := database(t)
			run(t, func() *Store {
				t.Helper()
				s, err := Open(engine, path, url, Observer{})
				if err != nil {
					t.Fatal(err)
				}
				s.wideRange = 5 // both ways to read a list
				t.Cleanup(func() {
					if s.w.Ping() == nil { // a test may have closed it
						s.Close()
					}
				})
				return s
			})
		})
	}
}

func migrated(t *testing.T, s *Store) *Store {
	t.Helper()
	if _, err := s.Migrate(t.Context(), testNow); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlaceholders is what every query of this package rests on: $n means the n-th argument, reused and in any order.
func TestPlaceholders(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := open()
		for range 2 {
			var got string
			err := s.r.QueryRow(`SELECT CAST($3 AS TEXT) || CAST($1 AS TEXT) || CAST($2 AS TEXT) || CAST($1 AS TEXT) || CAST($3 AS TEXT)`,
				"a", "b", "c").Scan(&got)
			if err != nil || got != "cabac" {
				t.Errorf("%q, %v", got, err)
			}
		}
		var n int
		if err := s.r.QueryRow(`SELECT count(*) FROM (SELECT CAST($2 AS BIGINT) AS x UNION ALL SELECT CAST($1 AS BIGINT)) AS u WHERE x > $1`, 3, 4).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestSessionStore(t *testing.T) {
	for engine, database := range databases {
		t.Run(engine, func(t *testing.T) {
			storetest.RunSessions(t, func(t *testing.T) func() session.Store {
				path, url := database(t)
				return func() session.Store { return openForTest(t, engine, path, url) }
			})
		})
	}
}

func TestMigrations(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		ctx := t.Context()
		s := open()
		if err := s.Ready(ctx); !errs.Is(err, errs.Unavailable) {
			t.Errorf("ready without a schema: %v", err)
		}
		stores := []*Store{s, open(), open(), open()}
		applied := make([][]string, len(stores))
		failed := make([]error, len(stores))
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() { applied[i], failed[i] = s.Migrate(ctx, testNow) })
		}
		wg.Wait()
		names, err := migrationNames(s.d)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Concat(applied...)
		slices.Sort(got)
		if err := errors.Join(failed...); err != nil || !slices.Equal(got, names) {
			t.Errorf("four at once applied %v, %v; want each of %v once", got, err, names)
		}
		if again, err := s.Migrate(ctx, testNow); err != nil || len(again) != 0 {
			t.Errorf("again: %v, %v", again, err)
		}
		if err := s.Ready(ctx); err != nil {
			t.Error(err)
		}
		if _, err := s.w.Exec(`DELETE FROM schema_migrations WHERE name = $1`, names[len(names)-1]); err != nil {
			t.Fatal(err)
		}
		if err := s.Ready(ctx); !errs.Is(err, errs.Unavailable) {
			t.Errorf("ready with one migration missing: %v", err)
		}
	})
	lite, err := migrationNames(&sqliteDialect)
	if err != nil {
		t.Fatal(err)
	}
	post, err := migrationNames(&postgresDialect)
	if err != nil || !slices.Equal(lite, post) {
		t.Errorf("migrations %v on one engine, %v on the other, %v", lite, post, err)
	}
}

// TestSameSchema compares tables and columns of the two engines. Only the full-text index is built differently.
func TestSameSchema(t *testing.T) {
	const (
		lite = `SELECT m.name, c.name, upper(c.type), c."notnull" = 1 OR c.pk > 0 FROM sqlite_master AS m, pragma_table_info(m.name) AS c
			WHERE m.type = 'table' AND m.name NOT LIKE 'session_search%' AND m.name NOT LIKE 'sqlite_%'`
		post = `SELECT c.table_name, c.column_name, upper(c.data_type), c.is_nullable = 'NO' FROM information_schema.columns AS c
			JOIN information_schema.tables AS t USING (table_schema, table_name)
			WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.table_name <> 'session_search'`
		liteIndexes = `SELECT name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%'`
		postIndexes = `SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey' AND indexname NOT LIKE '%_key'
			AND indexname NOT LIKE 'session_search%'`
	)
	classes := strings.NewReplacer("BIGINT", "number", "INTEGER", "number", "DOUBLE PRECISION", "real", "REAL", "real", "BYTEA", "blob", "BLOB", "blob", "TEXT", "text")
	schemas, indexes := map[string][]string{}, map[string][]string{}
	for engine, database := range databases {
		path, url := database(t)
		s := openForTest(t, engine, path, url)
		query, indexQuery := lite, liteIndexes
		if engine == "postgres" {
			query, indexQuery = post, postIndexes
		}
		rows, err := s.r.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		err = each(rows, func(r *sql.Rows) error {
			var table, column, kind string
			var notNull bool
			err := r.Scan(&table, &column, &kind, &notNull)
			if table == "schema_migrations" { // made by the program, not by a migration
				notNull = true
			}
			schemas[engine] = append(schemas[engine], fmt.Sprintf("%s.%s %s notnull=%v", table, column, classes.Replace(kind), notNull))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if rows, err = s.r.Query(indexQuery); err != nil {
			t.Fatal(err)
		}
		err = each(rows, func(r *sql.Rows) error {
			var name string
			err := r.Scan(&name)
			indexes[engine] = append(indexes[engine], name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, got := range map[string]map[string][]string{"columns": schemas, "indexes": indexes} {
		a, b := got["sqlite"], got["postgres"]
		slices.Sort(a)
		slices.Sort(b)
		for _, x := range a {
			if !slices.Contains(b, x) {
				t.Errorf("%s: only SQLite has %s", what, x)
			}
		}
		for _, x := range b {
			if !slices.Contains(a, x) {
				t.Errorf("%s: only PostgreSQL has %s", what, x)
			}
		}
		if len(a) < 5 {
			t.Errorf("%s: only %d found", what, len(a))
		}
	}
}

// TestClosedDatabase: whatever is asked of a store whose database is away, the answer is "try again".
func TestClosedDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := migrated(t, open())
		rec := &session.Record{Docs: map[session.DocKind][]byte{session.DocLog: []byte("d")}}
		change := session.Change{Key: session.Key{Room: "r"}, Fresh: rec, Merge: func(session.Prior) (*session.Record, error) { return rec, nil }}
		if _, err := s.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		asks := map[string]func() error{
			"Apply": func() error { _, err := s.Apply(ctx, change); return err },
			"List":  func() error { _, _, err := s.List(ctx, session.Filter{}, session.Page{Limit: 1}); return err },
			"search": func() error {
				_, _, err := s.List(ctx, session.Filter{Search: session.ParseQuery("x")}, session.Page{Limit: 1})
				return err
			},
			"Get":          func() error { _, err := s.Get(ctx, "r"); return err },
			"AppendChunks": func() error { return s.AppendChunks(ctx, "o", []session.Chunk{{Kind: 1, Data: []byte("[]")}}) },
			"Chunks":       func() error { _, err := s.Chunks(ctx, "r", 1); return err },
			"TraceChunks":  func() error { _, err := s.TraceChunks(ctx, []string{"r"}, 1); return err },
			"Silent":       func() error { _, err := s.Silent(ctx, testNow, 1); return err },
			"Delete":       func() error { _, _, err := s.Delete(ctx, []string{"r"}); return err },
			"IndexWords":   func() error { return s.IndexWords(ctx) },
			"Ready":        func() error { return s.Ready(ctx) },
			"Migrate":      func() error { _, err := s.Migrate(ctx, testNow); return err },
		}
		for name, ask := range asks {
			if err := ask(); !errs.Is(err, errs.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestPostgresAway: a server that is not there yet is no error at start, and the store works once it is.
func TestPostgresAway(t *testing.T) {
	c := pgtest.NewCluster(t)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	s, err := Open("postgres", "", c.URL("postgres"), Observer{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(t.Context(), testNow); !errs.Is(err, errs.Unavailable) {
		t.Errorf("migrate: %v", err)
	}
	rec := &session.Record{Words: "word", Docs: map[session.DocKind][]byte{session.DocLog: []byte("d")}}
	change := session.Change{Key: session.Key{Room: "r"}, Fresh: rec, Merge: func(session.Prior) (*session.Record, error) { return rec, nil }}
	if _, err := s.Apply(t.Context(), change); !errs.Is(err, errs.Unavailable) {
		t.Errorf("apply: %v", err)
	}
	for range 2 {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		migrated(t, s)
		if _, err := s.Apply(t.Context(), change); err != nil {
			t.Error(err)
		}
		if rows, n, err := s.List(t.Context(), session.Filter{Search: session.ParseQuery("word")}, session.Page{Limit: 5}); err != nil || n != 1 || len(rows) != 1 {
			t.Errorf("%d of %d, %v", len(rows), n, err)
		}
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.List(t.Context(), session.Filter{}, session.Page{Limit: 5}); !errs.Is(err, errs.Unavailable) {
			t.Errorf("list: %v", err)
		}
	}
}

// TestOneBadChangeFailsAlone writes one group by hand, so that all of it is in one transaction.
func TestOneBadChangeFailsAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := migrated(t, open())
		rec := &session.Record{Docs: map[session.DocKind][]byte{}}
		good := func(session.Prior) (*session.Record, error) { return rec, nil }
		if _, err := s.Apply(t.Context(), session.Change{Key: session.Key{Room: "bad"}, Fresh: rec, Merge: good}); err != nil {
			t.Fatal(err)
		}
		merges := map[string]func(session.Prior) (*session.Record, error){
			"bad": func(session.Prior) (*session.Record, error) { return nil, errs.New(errs.Invalid, "no") },
		}
		var group []*pending[*sessionWrite]
		for _, room := range []string{"one", "bad", "two", "one", "three"} {
			merge := merges[room]
			if merge == nil {
				merge = good
			}
			fresh, err := s.encodeSession(rec)
			if err != nil {
				t.Fatal(err)
			}
			group = append(group, &pending[*sessionWrite]{item: &sessionWrite{change: session.Change{Key: session.Key{Room: room}, Fresh: rec, Merge: merge}, fresh: fresh}, done: make(chan struct{})})
		}
		s.sessions.write(group)
		for _, p := range group {
			<-p.done
			room := p.item.change.Key.Room
			if bad := room == "bad"; bad != errs.Is(p.err, errs.Invalid) || !bad && (p.err != nil || p.item.applied.ID != room) {
				t.Errorf("%s: %+v, %v", room, p.item.applied, p.err)
			}
		}
		if _, n, err := s.List(t.Context(), session.Filter{}, session.Page{Limit: 5}); err != nil || n != 4 {
			t.Errorf("%d sessions, %v", n, err)
		}
	})
}

// TestWhatAlertsCount checks the columns that only alert rules read.
func TestWhatAlertsCount(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *Store) {
		s := migrated(t, open())
		want := session.TurnFacts{AssistantTurns: 7, InterruptedTurns: 2, Perceived: []float64{800.4, 0, 1234.567}, TTFT: []float64{0.001}, TTFB: nil, STT: []float64{3600000, 12.5}}
		if n := reflect.TypeOf(want).NumField(); n != 6 {
			t.Fatalf("TurnFacts has %d fields: the test knows six", n)
		}
		verdicts := []session.Verdict{{Judge: `j "1"`, Verdict: "pass", At: testNow}, {Judge: "", Verdict: "fail", At: testNow.Add(time.Second)}}
		rec := &session.Record{Facts: want, Verdicts: verdicts, OutcomeAt: testNow.Add(2 * time.Second)}
		apply := func() {
			t.Helper()
			if _, err := s.Apply(context.Background(), session.Change{Key: session.Key{Room: "r"}, Fresh: rec,
				Merge: func(session.Prior) (*session.Record, error) { return rec, nil }}); err != nil {
				t.Fatal(err)
			}
		}
		var last int64
		for range 3 {
			apply()
			var got session.TurnFacts
			var perceived, ttft, ttfb, stt, packed string
			var verdictAt, outcomeAt, change int64
			err := s.r.QueryRow(`SELECT assistant_turns, interrupted_turns, perceived, ttft, ttfb, stt, verdicts, verdict_at, outcome_at, change FROM sessions`).
				Scan(&got.AssistantTurns, &got.InterruptedTurns, &perceived, &ttft, &ttfb, &stt, &packed, &verdictAt, &outcomeAt, &change)
			if err != nil {
				t.Fatal(err)
			}
			for text, list := range map[string]*[]float64{perceived: &got.Perceived, ttft: &got.TTFT, ttfb: &got.TTFB, stt: &got.STT} {
				if *list, err = unpackSamples(text); err != nil {
					t.Error(err)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("facts %+v, want %+v", got, want)
			}
			if packed != fmt.Sprintf(`[["j \"1\"","pass",%d],["","fail",%d]]`, micros(testNow), micros(testNow.Add(time.Second))) {
				t.Errorf("verdicts %s", packed)
			}
			if verdictAt != micros(testNow.Add(time.Second)) || outcomeAt != micros(rec.OutcomeAt) {
				t.Errorf("verdict at %d, outcome at %d", verdictAt, outcomeAt)
			}
			if change <= last {
				t.Errorf("the mark went from %d to %d", last, change)
			}
			last = change
		}
		rec = &session.Record{}
		apply()
		var n int
		if err := s.r.QueryRow(`SELECT count(*) FROM sessions WHERE perceived = '' AND verdicts = '' AND verdict_at = 0 AND outcome_at = 0`).Scan(&n); err != nil || n != 1 {
			t.Errorf("without facts: %d, %v", n, err)
		}
	})
}

func TestPackedSamplesRoundTrip(t *testing.T) {
	for _, c := range []struct {
		ms   []float64
		text string
	}{{nil, ""}, {[]float64{0}, "[0]"}, {[]float64{800.4, 1200, 0.001}, "[800.4,1200,0.001]"}, {[]float64{1.23456}, "[1.235]"}, {[]float64{86400000}, "[86400000]"}} {
		if got := packSamples(c.ms); got != c.text {
			t.Errorf("%v is packed as %q", c.ms, got)
		}
		back, err := unpackSamples(c.text)
		if err != nil || len(back) != len(c.ms) {
			t.Errorf("%q is read as %v, %v", c.text, back, err)
		}
	}
	for _, bad := range []string{"[x]", "[1,]", "[,]"} {
		if got, err := unpackSamples(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

// TestPostgresWordsMigration: words that were indexed with their places before migration 0006 are found after it.
func TestPostgresWordsMigration(t *testing.T) {
	s, err := Open("postgres", "", pgtest.URL(t), Observer{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn, err := s.w.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run := func(query string) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE schema_migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)`)
	names, err := migrationNames(s.d)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name < "0006" {
			if _, err := s.applyMigration(t.Context(), conn, name, testNow); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(`ALTER TABLE session_search DROP CONSTRAINT session_search_num_fkey`)
	run(`INSERT INTO session_search VALUES (1, $$'refund':2,4 'a':1 'or':3$$), (2, '')`)
	migrated(t, s)
	for num, want := range map[int]string{1: "a refund or refund", 2: ""} {
		var got string
		if err := conn.QueryRowContext(t.Context(), `SELECT words FROM session_search WHERE num = $1`, num).Scan(&got); err != nil || got != want {
			t.Errorf("session %d: %q, %v", num, got, err)
		}
	}
	var num int64
	if err := conn.QueryRowContext(t.Context(), `SELECT num FROM session_search WHERE `+
		tsvectorMatch(session.ParseQuery(`"or refund"`).Must, nil, func(v any) string { return "'" + strings.ReplaceAll(v.(string), "'", "''") + "'" })).Scan(&num); err != nil || num != 1 {
		t.Errorf("found %d, %v", num, err)
	}
}

// TestPostgresIndexOfAnother: a server whose user does not own the tables leaves the merging of the index to PostgreSQL.
func TestPostgresIndexOfAnother(t *testing.T) {
	address := pgtest.URL(t)
	owner, err := Open("postgres", "", address, Observer{})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	migrated(t, owner)
	role := "guest_" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "_")
	defer owner.w.Exec(`DROP OWNED BY ` + role + `; DROP ROLE ` + role)
	for _, q := range []string{`CREATE ROLE ` + role + ` LOGIN PASSWORD 'guest'`, `GRANT ALL ON ALL TABLES IN SCHEMA public TO ` + role,
		`GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ` + role} {
		if _, err := owner.w.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "guest")
	guest, err := Open("postgres", "", u.String(), Observer{})
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	for _, s := range []*Store{owner, guest} {
		rec := &session.Record{Words: "a word"}
		if _, err := s.Apply(t.Context(), session.Change{Key: session.Key{Room: "r"}, Fresh: rec,
			Merge: func(session.Prior) (*session.Record, error) { return rec, nil }}); err != nil {
			t.Fatal(err)
		}
		if err := s.IndexWords(t.Context()); err != nil {
			t.Error(err)
		}
		if n := s.index.merged.Load(); n != 1 {
			t.Errorf("merged at %d", n)
		}
	}
}
