package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"sidetone/internal/demo"
)

// TestLargeRecordingsStayOutOfMemory uploads 16 recordings of 20 MB at once and plays them at once.
func TestLargeRecordingsStayOutOfMemory(t *testing.T) {
	t.Parallel()
	const (
		uploads = 16
		size    = 20 << 20
		most    = 150 << 20
	)
	s := start(t, sqliteURL(t))
	recording := func(i int) io.Reader {
		return io.LimitReader(rand.NewChaCha8([32]byte{byte(i)}), size)
	}
	var wg sync.WaitGroup
	for i := range uploads {
		wg.Go(func() {
			id := fmt.Sprintf("large-%02d", i)
			if err := streamUpload(s, id, recording(i), size); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	wg.Wait()
	if peak := s.PeakMemory(); peak >= most {
		t.Errorf("receiving: %d MB of memory, want less than %d", peak>>20, most>>20)
	}
	for i := range uploads {
		wg.Go(func() {
			sent, played := sha256.New(), sha256.New()
			io.Copy(sent, recording(i))
			res, err := s.client.Get(fmt.Sprintf("%s/api/sessions/large-%02d/recording", s.URL, i))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if _, err := io.Copy(played, res.Body); err != nil || !bytes.Equal(sent.Sum(nil), played.Sum(nil)) {
				t.Errorf("large-%02d plays something else (%v)", i, err)
			}
		})
	}
	wg.Wait()
	peak := s.PeakMemory()
	if peak >= most {
		t.Errorf("playing: %d MB of memory, want less than %d", peak>>20, most>>20)
	}
	t.Logf("%d uploads of %d MB at once: at most %d MB of memory", uploads, size>>20, peak>>20)
}

// streamUpload posts a report whose recording is never in memory, neither here nor there.
func streamUpload(s *server, id string, audio io.Reader, size int64) error {
	before, after := aroundAudio(id)
	body := io.MultiReader(bytes.NewReader(before), audio, bytes.NewReader(after))
	req, err := http.NewRequest("POST", s.URL+ingestPath, body)
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(before)) + size + int64(len(after))
	req.Header.Set("Content-Type", audioContentType)
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 {
		return answered{fmt.Sprintf("%d %s %v", res.StatusCode, b, err)}
	}
	return nil
}

// answered is an answer of the server that is no acknowledgement.
type answered struct{ what string }

func (a answered) Error() string { return a.what }

const (
	audioBoundary    = "sidetone-e2e-boundary"
	audioContentType = "multipart/form-data; boundary=" + audioBoundary
)

// aroundAudio is a report up to the first byte of its recording, and what follows the last.
func aroundAudio(id string) (before, after []byte) {
	const mark = "THE-AUDIO"
	contentType, body := demo.Call{
		Header: fmt.Appendf(nil, `{"session_id":%q,"start_time":1795238400}`, id),
		Body:   []byte(`{"items":[{"id":"a","type":"message","role":"assistant","content":["hello"],"created_at":1795238401}]}`),
	}.Multipart([]byte(mark))
	_, theirs, _ := bytes.Cut([]byte(contentType), []byte("boundary="))
	body = bytes.ReplaceAll(body, theirs, []byte(audioBoundary))
	before, after, _ = bytes.Cut(body, []byte(mark))
	return before, after
}
