package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/recording"
	"sidetone/internal/s3test"
)

func open(t *testing.T, endpoint string, change func(*S3Settings)) *S3 {
	t.Helper()
	set := S3Settings{Bucket: s3test.Bucket, Region: s3test.Region, AccessKeyID: s3test.AccessKey, SecretAccessKey: s3test.SecretKey,
		Endpoint: endpoint, Prefix: "re/cordings", Stall: 500 * time.Millisecond, Now: time.Now}
	if change != nil {
		change(&set)
	}
	s, err := OpenS3(set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := mathrand.NewChaCha8([32]byte{byte(n)})
	r.Read(b)
	return b
}

func TestObjectsAreStoredReadAndDeleted(t *testing.T) {
	server := s3test.Start(t)
	s := open(t, server.Endpoint, nil)
	ctx := t.Context()
	for _, size := range []int{0, 1, 100_000, recording.PartSize, recording.PartSize + 1, 3*recording.PartSize + 12345} {
		key, data := newKey(), noise(size)
		if err := s.Put(ctx, key, bytes.NewReader(data), int64(size)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got := server.Objects()["re/cordings/"+key]; !bytes.Equal(got, data) || got == nil {
			t.Fatalf("%d bytes: the bucket holds %d", size, len(got))
		}
		if n, err := s.Stat(ctx, key); err != nil || n != int64(size) {
			t.Errorf("%d bytes: Stat says %d, %v", size, n, err)
		}
		r, err := s.Open(ctx, key, int64(size))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: read back %d, %v", size, len(got), err)
		}
		for _, from := range []int{0, 1, size / 2, size - 1} {
			if from < 0 || from >= size {
				continue
			}
			if n, err := r.Seek(int64(from-size), io.SeekEnd); n != int64(from) || err != nil {
				t.Errorf("seek to %d: %d, %v", from, n, err)
			}
			some := make([]byte, min(4096, size-from))
			if _, err := io.ReadFull(r, some); err != nil || !bytes.Equal(some, data[from:from+len(some)]) {
				t.Errorf("%d bytes from %d: wrong bytes, %v", size, from, err)
			}
		}
		r.Close()
		if list, err := s.List(ctx, key[:2]); err != nil || len(list) != 1 || list[0].Key != key || list[0].Size != int64(size) {
			t.Errorf("List: %v, %v", list, err)
		}
		for range 2 { // the second time it is gone already
			if err := s.Delete(ctx, key); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Open(ctx, key, int64(size)); !errs.Is(err, errs.NotFound) {
			t.Errorf("a deleted object: %v", err)
		}
	}
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

func TestChecksSayWhatIsWrong(t *testing.T) {
	server := s3test.Start(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, c := range map[string]struct {
		change func(*S3Settings)
		says   string
	}{
		"right":         {nil, ""},
		"no prefix":     {func(s *S3Settings) { s.Prefix = "" }, ""},
		"unknown key":   {func(s *S3Settings) { s.AccessKeyID = "somebody" }, "S3_ACCESS_KEY_ID"},
		"wrong secret":  {func(s *S3Settings) { s.SecretAccessKey = "guess" }, "S3_SECRET_ACCESS_KEY"},
		"no bucket":     {func(s *S3Settings) { s.Bucket = "elsewhere" }, `no bucket "elsewhere"`},
		"nobody there":  {func(s *S3Settings) { s.Endpoint = closed.URL }, "cannot be reached"},
		"other region":  {func(s *S3Settings) { s.Region = "eu-west-1" }, "S3_REGION"},
		"not S3 at all": {func(s *S3Settings) { s.Endpoint = notS3(t) }, "answers 405"},
	} {
		err := open(t, server.Endpoint, c.change).Check(t.Context())
		if c.says == "" && err != nil || c.says != "" && (err == nil || !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("the checks left %v", keys)
	}
}

func notS3(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "what?", http.StatusMethodNotAllowed) }))
	t.Cleanup(s.Close)
	return s.URL
}

// The bucket alone: the keys come from the environment, as the AWS tools take them.
func TestCredentialChain(t *testing.T) {
	server := s3test.Start(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	s := open(t, server.Endpoint, func(s *S3Settings) { s.AccessKeyID, s.SecretAccessKey = "", "" })
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFaultsEndInErrorsAndNothingHalfStored(t *testing.T) {
	server := s3test.Start(t)
	proxy := s3test.NewProxy(t, server.Endpoint)
	s := open(t, proxy.URL, nil)
	data := noise(2*recording.PartSize + 1000)
	for name, f := range map[string]s3test.Fault{
		"500": {Status: 500}, "503": {Status: 503}, "hang": {Hang: true}, "cut in mid-part": {CutAfter: 100_000},
	} {
		key := newKey()
		proxy.Set(f)
		for _, size := range []int64{200_000, int64(len(data))} {
			if err := s.Put(t.Context(), key, bytes.NewReader(data), size); !errs.Is(err, errs.Unavailable) {
				t.Errorf("%s: put of %d: %v", name, size, err)
			}
		}
		if f.CutAfter == 0 {
			if _, err := s.Stat(t.Context(), key); !errs.Is(err, errs.Unavailable) {
				t.Errorf("%s: stat: %v", name, err)
			}
			if err := s.Delete(t.Context(), key); !errs.Is(err, errs.Unavailable) {
				t.Errorf("%s: delete: %v", name, err)
			}
		}
		proxy.Set(s3test.Fault{})
		if keys := server.Keys(); len(keys) != 0 {
			t.Errorf("%s: left %v", name, keys)
		}
		if err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if proxy.Broken() < 16 {
		t.Errorf("only %d requests were broken", proxy.Broken())
	}
}

// A reply that breaks off is continued where it broke, and one that always breaks ends in an error, never in silence.
func TestBrokenRepliesAreContinued(t *testing.T) {
	server := s3test.Start(t)
	proxy := s3test.NewProxy(t, server.Endpoint)
	s := open(t, proxy.URL, nil)
	key, data := newKey(), noise(1_000_000)
	if err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), key, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	proxy.Set(s3test.Fault{CutReplyAfter: 300_000})
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d of %d bytes, %v", len(got), len(data), err)
	}
	if proxy.Broken() == 0 {
		t.Error("nothing broke")
	}
	r.Seek(0, io.SeekStart)
	proxy.Set(s3test.Fault{Hang: true})
	if n, err := io.Copy(io.Discard, r); n != 0 || !errs.Is(err, errs.Unavailable) {
		t.Errorf("a store that hangs: %d bytes, %v", n, err)
	}
}

func TestLinksWorkWithoutCredentials(t *testing.T) {
	server := s3test.Start(t)
	s := open(t, server.Endpoint, nil)
	key, data := newKey(), noise(5000)
	if err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	link, err := s.Link(t.Context(), key, `call "1".ogg`)
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest(http.MethodGet, link, nil)
	req.Header.Set("Range", "bytes=1000-1999")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 206 || !bytes.Equal(got, data[1000:2000]) || resp.Header.Get("Content-Type") != "audio/ogg" ||
		!strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%d, %d bytes, %v", resp.StatusCode, len(got), resp.Header)
	}
	if resp, err := http.Get(link[:len(link)-1] + "x"); err != nil || resp.StatusCode != 403 {
		t.Errorf("a changed link: %v, %v", resp, err)
	}
}

func TestUnfinishedUploadsAreFoundAndGivenUp(t *testing.T) {
	s := open(t, s3test.Start(t).Endpoint, nil)
	ctx, key := context.Background(), newKey()
	p, err := s.Begin(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, recording.PartSize)
	rand.Read(data)
	if err := p.Part(ctx, bytes.NewReader(data), 0, recording.PartSize); err != nil {
		t.Fatal(err)
	}
	list, err := s.Unfinished(ctx)
	if err != nil || len(list) != 1 || list[0].Key != key || time.Since(list[0].Modified) > time.Minute {
		t.Fatalf("%v, %v", list, err)
	}
	if err := s.Discard(ctx, key); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Unfinished(ctx); err != nil || len(list) != 0 {
		t.Errorf("still %v, %v", list, err)
	}
	if err := p.Complete(ctx); err == nil {
		t.Error("a given-up upload completes")
	}
}
