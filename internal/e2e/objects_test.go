package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sidetone/internal/apptest"
	"sidetone/internal/s3test"
)

// sound is the recording of the n-th call: mostly small, every seventh so large that it goes up in parts.
func sound(n int) []byte {
	size := 1000 + n*777%60_000
	if n%7 == 0 {
		size = 17<<20 + n
	}
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(b)
	return b
}

func soundID(n int) string { return fmt.Sprintf("sound-%04d", n) }

// withSound sends the n-th call.
func withSound(s *server, n int) error {
	b := sound(n)
	return streamUpload(s, soundID(n), bytes.NewReader(b), int64(len(b)))
}

// plays checks that the n-th call reads back byte for byte.
func plays(t *testing.T, s *server, n int) {
	t.Helper()
	if r := s.get("/api/sessions/" + soundID(n) + "/recording"); r.status != 200 || !bytes.Equal(r.body, sound(n)) {
		t.Errorf("%s: %d, %d bytes, want %d", soundID(n), r.status, len(r.body), len(sound(n)))
	}
}

// uploaded waits until nothing waits for the object store.
func uploaded(t *testing.T, s *server) {
	t.Helper()
	apptest.Eventually(t, 2*time.Minute, "everything is in the object store", func() bool {
		r := s.get("/ready")
		return r.status == 200 && at(decode(t, r.body), "recordings_spool.count") == 0.0 && len(s.files()) == 0
	})
}

func metric(t *testing.T, s *server, name string) string {
	t.Helper()
	for line := range strings.Lines(string(s.get("/metrics").body)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Errorf("/metrics has no %s", name)
	return ""
}

// TestObjectStoreFaultsAndKills breaks the object store in every way while clients upload and the server is killed.
// No report is refused, every acknowledged recording reads back, and none is stored twice.
func TestObjectStoreFaultsAndKills(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		store := s3test.Start(t)
		proxy := s3test.NewProxy(t, store.Endpoint)
		s := start(t, database, s3test.Settings(proxy.URL)...)
		var next atomic.Int64
		var acknowledged []int
		for name, fault := range map[string]s3test.Fault{"stopped": {}, "500": {Status: 500}, "503": {Status: 503}, "hang": {Hang: true},
			"cut": {CutAfter: 3 << 20}, "nothing": {}} {
			acknowledged = append(acknowledged, soundUntilKilled(t, s, &next, 4, func() {})...) // it works, then it breaks
			s.again()
			if name == "stopped" {
				store.Stop()
			}
			proxy.Set(fault)
			accepted := soundUntilKilled(t, s, &next, 12, func() {})
			s.again()
			if len(accepted) < 12 {
				t.Errorf("%s: only %d reports were accepted", name, len(accepted))
			}
			if name != "nothing" {
				for _, n := range accepted[:3] {
					plays(t, s, n) // from the folder, at once
				}
			}
			acknowledged = append(acknowledged, accepted...)
			if name == "stopped" {
				store.Start()
			}
			proxy.Set(s3test.Fault{})
		}
		s.Kill()
		s.again() // what is left behind by those who died is taken up
		apptest.Eventually(t, 2*time.Minute, "everything is in the object store", func() bool {
			return metric(t, s, "sidetone_recordings_spool") == "0"
		})
		for _, n := range acknowledged {
			plays(t, s, n)
		}
		if got, rows := len(store.Keys()), s.total(); got != rows {
			t.Errorf("%d objects for %d sessions", got, rows)
		}
		code, out := apptest.Run(t, []string{"recordings", "check"}, s.settings...)
		if code != 0 || !strings.Contains(out, " 0 findings") {
			t.Errorf("recordings check: %d\n%s", code, out)
		}
		t.Logf("%d acknowledged", len(acknowledged))
	})
}

// soundUntilKilled lets four clients send calls, kills the server after so many acknowledgements and returns the calls
// that were acknowledged. An answer that is no acknowledgement fails the test.
func soundUntilKilled(t *testing.T, s *server, next *atomic.Int64, after int, then func()) []int {
	t.Helper()
	var mu sync.Mutex
	var accepted []int
	enough := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				n := int(next.Add(1))
				began := time.Now()
				err := withSound(s, n)
				var refused answered
				if errors.As(err, &refused) {
					t.Errorf("%s was refused: %v", soundID(n), err)
				}
				if err != nil {
					return // killed
				}
				if took := time.Since(began); took > patience {
					t.Errorf("%s waited %s", soundID(n), took)
				}
				mu.Lock()
				accepted = append(accepted, n)
				if len(accepted) == after {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	gone := make(chan struct{})
	go func() { clients.Wait(); close(gone) }()
	select {
	case <-enough:
	case <-gone:
		t.Fatalf("the server ended by itself\n%s", s.Log())
	}
	then()
	s.Kill()
	<-gone
	return accepted
}

// TestHugeRecordingThroughTheObjectStore uploads 200 MB and plays it from the object store within 100 MB of memory.
func TestHugeRecordingThroughTheObjectStore(t *testing.T) {
	t.Parallel()
	const size, most = 200 << 20, 100 << 20
	store := s3test.Start(t)
	s := start(t, sqliteURL(t), append(s3test.Settings(store.Endpoint), "MAX_RECORDING_MB=300")...)
	audio := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), size) }
	began := time.Now()
	if err := streamUpload(s, "huge", audio(), size); err != nil {
		t.Fatal(err)
	}
	received := time.Since(began)
	uploaded(t, s)
	t.Logf("acknowledged after %s, in the object store after %s", received.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	res, err := s.client.Get(s.URL + "/api/sessions/huge/recording")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	sent, played := sha256.New(), sha256.New()
	io.Copy(sent, audio())
	if n, err := io.Copy(played, res.Body); n != size || err != nil || !bytes.Equal(sent.Sum(nil), played.Sum(nil)) {
		t.Errorf("%d bytes, %v, want the %d that were sent", n, err, size)
	}
	if peak := s.PeakMemory(); peak >= most {
		t.Errorf("%d MB of memory, want less than %d", peak>>20, most>>20)
	} else {
		t.Logf("at most %d MB of memory", peak>>20)
	}
	if n := len(store.Keys()); n != 1 {
		t.Errorf("%d objects", n)
	}
}

// TestPlaybackFromTheObjectStore reads ranges through the server and by redirect, and deletes.
func TestPlaybackFromTheObjectStore(t *testing.T) {
	t.Parallel()
	store := s3test.Start(t)
	for _, redirect := range []string{"false", "true"} {
		s := start(t, sqliteURL(t), append(s3test.Settings(store.Endpoint), "S3_REDIRECT="+redirect, "S3_PREFIX=p/"+redirect)...)
		path := "/api/sessions/" + soundID(3) + "/recording"
		if err := withSound(s, 3); err != nil {
			t.Fatal(err)
		}
		uploaded(t, s)
		plays(t, s, 3)
		r := s.do("GET", path, map[string]string{"Range": "bytes=100-299"}, nil)
		if r.status != 206 || !bytes.Equal(r.body, sound(3)[100:300]) || r.header.Get("Content-Type") != "audio/ogg" {
			t.Errorf("redirect %s: %d, %d bytes, %v", redirect, r.status, len(r.body), r.header)
		}
		head := s.do("HEAD", path, nil, nil)
		etag := head.header.Get("ETag")
		if head.status != 200 || head.header.Get("Content-Length") != fmt.Sprint(len(sound(3))) || etag == "" || head.header.Get("Accept-Ranges") != "bytes" {
			t.Errorf("redirect %s: HEAD %d %v", redirect, head.status, head.header)
		}
		plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := plain.Get(s.URL + path + "?download=1")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if redirect == "true" {
			to := res.Header.Get("Location")
			if res.StatusCode != 302 || !strings.HasPrefix(to, store.Endpoint) || !strings.Contains(to, "X-Amz-Signature") || res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("redirect: %d %v", res.StatusCode, res.Header)
			}
			if res, err = plain.Get(s.URL + path + "?stream=1"); err != nil || res.StatusCode != 200 { // as the dashboard plays it
				t.Errorf("without redirect: %v %v", res, err)
			} else {
				res.Body.Close()
			}
			if got, _ := at(s.json("/api/sessions/"+soundID(3)), "record_url").(string); got != path {
				t.Errorf("the stored address is %q: only %q never expires", got, path)
			}
		} else {
			if res.StatusCode != 200 || res.Header.Get("Content-Disposition") == "" {
				t.Errorf("download: %d %v", res.StatusCode, res.Header)
			}
			if r := s.do("GET", path, map[string]string{"If-None-Match": etag}, nil); r.status != 304 {
				t.Errorf("unchanged: %d", r.status)
			}
		}
		body := fmt.Sprintf(`{"session_ids":[%q]}`, soundID(3))
		if r := s.do("DELETE", "/api/sessions", map[string]string{"Content-Type": "application/json"}, strings.NewReader(body)); r.status != 200 {
			t.Errorf("delete: %d %s", r.status, r.body)
		}
		apptest.Eventually(t, patience, "the object is gone", func() bool { return len(store.Keys()) == 0 })
	}
}

// TestWrongObjectStoreSettings starts with settings that cannot work: the log says which, and reports are taken.
func TestWrongObjectStoreSettings(t *testing.T) {
	t.Parallel()
	store := s3test.Start(t)
	for says, wrong := range map[string]string{"S3_SECRET_ACCESS_KEY": "S3_SECRET_ACCESS_KEY=guess", "S3_ACCESS_KEY_ID": "S3_ACCESS_KEY_ID=somebody",
		"S3_BUCKET": "S3_BUCKET=elsewhere", "cannot be reached": "S3_ENDPOINT=http://127.0.0.1:1"} {
		database := sqliteURL(t)
		s := start(t, database, append(s3test.Settings(store.Endpoint), wrong)...)
		s.WaitLog(says, patience)
		if err := withSound(s, 5); err != nil {
			t.Errorf("%s: %v", wrong, err)
		}
		plays(t, s, 5)
		ready := s.get("/ready")
		want(t, decode(t, ready.body), map[string]any{"object_store": "failing", "recordings_spool.count": 1, "recordings_spool.bytes": len(sound(5))})
		if ready.status != 200 {
			t.Errorf("/ready: %d", ready.status)
		}
		want := map[string]string{"sidetone_recordings_spool": "1", "sidetone_recordings_spool_bytes": fmt.Sprint(len(sound(5))), "sidetone_object_store_failing": "1"}
		for name, v := range want {
			if got := metric(t, s, name); got != v {
				t.Errorf("%s is %s, want %s", name, got, v)
			}
		}
		if code, out := apptest.Run(t, []string{"recordings", "check"}, s.settings...); code != 1 || !strings.Contains(out, says) {
			t.Errorf("recordings check: %d\n%s", code, out)
		}
		s.Stop()
		s.settings = append(s.settings, s3test.Settings(store.Endpoint)...) // put right
		s.again()
		uploaded(t, s)
		plays(t, s, 5)
	}
	if n := len(store.Keys()); n != 4 {
		t.Errorf("%d objects, want 4", n)
	}
}

// TestDiskFullWithObjectStorage fills the disk in the middle of a recording whose first parts are uploaded already.
func TestDiskFullWithObjectStorage(t *testing.T) {
	t.Parallel()
	store := s3test.Start(t)
	s := start(t, sqliteURL(t), s3test.Settings(store.Endpoint)...)
	s.WaitLog("recordings go to the object store", patience)
	big := numbered(1)
	big.audio = sound(7)
	s.LimitFileSize(10 << 20)
	retryStatus(t, s.post(big.multipart()))
	s.wantNothingStored("a full disk")
	s.LimitFileSize(-1)
	s.mustPost(big.multipart())
	uploaded(t, s)
	if err := big.check(s); err != nil {
		t.Error(err)
	}
	if n := len(store.Keys()); n != 1 {
		t.Errorf("%d objects, want 1", n)
	}
}

// TestRecordingsCommands moves recordings to the object store and back with the program's own commands.
func TestRecordingsCommands(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		store := s3test.Start(t)
		s := start(t, database)
		plain := s.settings
		for n := 1; n <= 8; n++ {
			if err := withSound(s, n); err != nil {
				t.Fatal(err)
			}
		}
		run := func(code int, says string, args ...string) {
			t.Helper()
			if got, out := apptest.Run(t, append([]string{"recordings"}, args...), s.settings...); got != code || !strings.Contains(out, says) {
				t.Errorf("recordings %v: %d\n%s\nwant %d with %q", args, got, out, code, says)
			}
		}
		all := func(files, objects int) {
			t.Helper()
			for n := 1; n <= 8; n++ {
				plays(t, s, n)
			}
			if f, o := len(s.files()), len(store.Keys()); f != files || o != objects {
				t.Errorf("%d files and %d objects, want %d and %d", f, o, files, objects)
			}
		}
		run(2, "usage")
		run(2, "allowed: s3 or dir", "move", "--to", "tape")
		run(0, "usage", "-h")
		run(0, "8 recordings", "check")
		run(1, "S3_BUCKET", "move", "--to", "s3")
		s.Stop()
		s.settings = append(plain[:len(plain):len(plain)], s3test.Settings(store.Endpoint)...)
		s.again()
		run(0, "8 recordings moved", "move", "--to", "s3") // beside the server
		all(0, 8)
		run(0, "0 recordings moved", "move", "--to", "s3")
		run(0, " 0 findings", "check")
		orphan := filepath.Join(s.recordings, "00", strings.Repeat("0", 30)+".ogg")
		os.MkdirAll(filepath.Dir(orphan), 0o750)
		writeFile(t, orphan, "x")
		old := time.Now().Add(-7 * time.Hour)
		if err := os.Chtimes(orphan, old, old); err != nil {
			t.Fatal(err)
		}
		run(1, "1 findings, 1 left", "check")
		run(0, "1 findings, 0 left", "check", "--fix")
		run(0, "8 recordings moved", "move", "--to", "dir")
		s.Stop()
		s.settings = plain
		s.again()
		all(8, 0)
	})
}
