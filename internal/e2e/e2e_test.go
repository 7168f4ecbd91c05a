// Package e2e tests the whole program from outside: a real process on a real database, spoken to over HTTP.
package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sidetone/internal/apptest"
	"sidetone/internal/pgtest"
)

const (
	ingestPath = "/observability/recordings/v0"
	// patience is how long anything that should happen soon may take on a loaded machine.
	patience = 30 * time.Second
)

func TestMain(m *testing.M) { apptest.Main(m) }

// eachEngine runs a test on SQLite and on PostgreSQL.
func eachEngine(t *testing.T, test func(t *testing.T, database string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, sqliteURL(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.URL(t))
	})
}

func sqliteURL(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }

// server is a running sidetone with what is needed to start it again.
type server struct {
	*apptest.Process
	t          *testing.T
	settings   []string
	recordings string
	client     *http.Client
}

// start runs a server on a database with a recordings folder of its own. Alerting is not what these tests are about.
func start(t *testing.T, database string, settings ...string) *server {
	t.Helper()
	s := &server{t: t, recordings: filepath.Join(t.TempDir(), "recordings"),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
	t.Cleanup(s.client.CloseIdleConnections)
	s.settings = append([]string{"DATABASE_URL=" + database, "RECORDINGS_DIR=" + s.recordings, "ALERT_SWEEPER=off"}, settings...)
	s.again()
	return s
}

// again starts the program with the same settings, on another port.
func (s *server) again() {
	s.t.Helper()
	s.client.CloseIdleConnections()
	s.Process = apptest.Start(s.t, s.settings...)
}

// reply is a whole HTTP reply.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request; it fails the test only when no reply came. It is for the goroutine of the test.
func (s *server) do(method, path string, header map[string]string, body io.Reader) reply {
	s.t.Helper()
	r, err := s.try(method, path, header, body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (s *server) try(method, path string, header map[string]string, body io.Reader) (reply, error) {
	req, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		return reply{}, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, b}, err
}

func (s *server) get(path string) reply {
	s.t.Helper()
	return s.do("GET", path, nil, nil)
}

// tryPost sends a report; the error is that of the connection.
func (s *server) tryPost(contentType string, body []byte) (reply, error) {
	return s.try("POST", ingestPath, map[string]string{"Content-Type": contentType}, bytes.NewReader(body))
}

func (s *server) post(contentType string, body []byte) reply {
	s.t.Helper()
	r, err := s.tryPost(contentType, body)
	if err != nil {
		s.t.Fatalf("posting a report: %v", err)
	}
	return r
}

// mustPost sends a report that has to be accepted.
func (s *server) mustPost(contentType string, body []byte) {
	s.t.Helper()
	if r := s.post(contentType, body); r.status != 200 {
		s.t.Fatalf("the report was answered %d %s", r.status, r.body)
	}
}

// json gets a document that has to be there.
func (s *server) json(path string) any {
	s.t.Helper()
	r := s.get(path)
	if r.status != 200 {
		s.t.Fatalf("GET %s: %d %s", path, r.status, r.body)
	}
	return decode(s.t, r.body)
}

// total is how many sessions are stored.
func (s *server) total() int {
	s.t.Helper()
	n, ok := at(s.json("/api/sessions?limit=1"), "meta.total_count").(float64)
	if !ok {
		s.t.Fatal("the list has no meta.total_count")
	}
	return int(n)
}

// files are the recordings on disk, finished or not, relative to their folder. The folder's own mark is none.
func (s *server) files() []string {
	s.t.Helper()
	var found []string
	err := filepath.WalkDir(s.recordings, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // an upload ended while we looked
			return nil
		}
		if err == nil && d.Type().IsRegular() && d.Name() != ".folder-id" {
			found = append(found, strings.TrimPrefix(path, s.recordings+"/"))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// wantNothingStored checks that neither a row nor a file is left.
func (s *server) wantNothingStored(after string) {
	s.t.Helper()
	if n := s.total(); n != 0 {
		s.t.Errorf("%s: %d sessions are stored", after, n)
	}
	if f := s.files(); len(f) > 0 {
		s.t.Errorf("%s: files are left behind: %v", after, f)
	}
}

// decode reads a JSON document.
func decode(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, b)
	}
	return v
}

// at follows a path such as "objects.0.id" into a document and gives nil where it leads nowhere.
func at(doc any, path string) any {
	for _, step := range strings.Split(path, ".") {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			doc = v[i]
		default:
			return nil
		}
	}
	return doc
}

// length of the array at a path, -1 when there is none.
func length(doc any, path string) int {
	if a, ok := at(doc, path).([]any); ok {
		return len(a)
	}
	return -1
}

// want compares what is at paths of a document. Numbers are compared as JSON writes them.
func want(t *testing.T, doc any, values map[string]any) {
	t.Helper()
	for path, v := range values {
		if got := at(doc, path); fmt.Sprint(got) != fmt.Sprint(v) {
			t.Errorf("%s is %v, want %v", path, got, v)
		}
	}
}

// wantError checks the one error shape of the API.
func wantError(t *testing.T, what string, r reply, status int, code string) {
	t.Helper()
	doc := decode(t, r.body)
	if r.status != status || at(doc, "error.code") != code {
		t.Errorf("%s: %d %s, want %d %s", what, r.status, r.body, status, code)
		return
	}
	if m, _ := at(doc, "error.message").(string); m == "" {
		t.Errorf("%s: the error has no message: %s", what, r.body)
	}
	if id, _ := at(doc, "api_id").(string); id == "" || id != r.header.Get("X-Request-Id") {
		t.Errorf("%s: api_id %q, x-request-id %q", what, id, r.header.Get("X-Request-Id"))
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// breakFolder puts a file in the place of a folder and returns what undoes it.
func breakFolder(t *testing.T, path string) (restore func()) {
	t.Helper()
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "in the way")
	return func() {
		t.Helper()
		removeFile(t, path)
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
}

func jsonText(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
