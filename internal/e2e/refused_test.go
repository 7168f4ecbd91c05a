package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"sidetone/internal/apptest"
	"sidetone/internal/demo"
)

// part writes one part of a multipart body with the boundary of these tests.
func part(name, contentType, content string) string {
	return fmt.Sprintf("--%s\r\nContent-Disposition: form-data; name=%q; filename=\"x\"\r\nContent-Type: %s\r\n\r\n%s\r\n",
		audioBoundary, name, contentType, content)
}

const (
	lastBoundary = "--" + audioBoundary + "--\r\n"
	goodHeader   = `{"session_id":"refused","start_time":1795238400}`
	goodChat     = `{"items":[]}`
)

// TestRefusedReports posts what cannot be stored. Each has a recording as its first part, so that a file is on its way
// when the report turns out to be bad; none may be left.
func TestRefusedReports(t *testing.T) {
	t.Parallel()
	audio := part("audio", "audio/ogg", strings.Repeat("audio ", 5000))
	header := part("header", "application/json", goodHeader)
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database, "MAX_RECORDING_MB=1")
		for _, c := range []struct {
			name, contentType, body string
			status                  int
			code, says              string
		}{
			{"no multipart", "application/json", goodHeader, 415, "unsupported_media_type", "multipart"},
			{"no type", "", goodHeader, 415, "unsupported_media_type", "multipart"},
			{"a form", "application/x-www-form-urlencoded", "header=x", 415, "unsupported_media_type", "multipart"},
			{"no boundary", "multipart/form-data", audio + header + lastBoundary, 415, "unsupported_media_type", "boundary"},
			{"another boundary", "multipart/form-data; boundary=other", audio + header + lastBoundary, 400, "invalid_payload", ""},
			{"an empty body", audioContentType, "", 400, "invalid_payload", ""},
			{"no parts", audioContentType, lastBoundary, 400, "invalid_payload", "header"},
			{"no header part", audioContentType, audio + part("chat_history", "application/json", goodChat) + lastBoundary, 400, "invalid_payload", "header"},
			{"no ids", audioContentType, audio + part("header", "application/json", `{"start_time":1}`) + lastBoundary, 400, "invalid_payload", "session_id"},
			{"no room in a protobuf header", audioContentType, audio + part("header", "application/protobuf", "\x42\x02AJ") + lastBoundary, 400, "invalid_payload", "room_id"},
			{"a broken JSON header", audioContentType, audio + part("header", "application/json", `{"session_id":`) + lastBoundary, 400, "", "header"},
			{"a broken protobuf header", audioContentType, audio + part("header", "application/protobuf", "\x0a\x7fshort") + lastBoundary, 400, "invalid_payload", "header"},
			{"a broken chat history", audioContentType, audio + header + part("chat_history", "application/json", `{"items":[}`) + lastBoundary, 400, "", "chat_history"},
			{"a chat history that is text", audioContentType, audio + header + part("chat_history", "application/json", `hello`) + lastBoundary, 400, "", "chat_history"},
			{"no last boundary", audioContentType, audio + header, 400, "invalid_payload", "boundary"},
			{"two headers", audioContentType, audio + header + header + lastBoundary, 400, "invalid_payload", "header"},
			{"over the cap", audioContentType, part("audio", "audio/ogg", strings.Repeat("a", 1<<20)) + header + lastBoundary, 413, "payload_too_large", "1"},
		} {
			r := s.do("POST", ingestPath, map[string]string{"Content-Type": c.contentType}, strings.NewReader(c.body))
			doc := decode(t, r.body)
			code, _ := at(doc, "error.code").(string)
			if c.code == "" { // unparsable JSON may be called by its name
				c.code = code
				if code != "invalid_json" && code != "invalid_payload" {
					t.Errorf("%s: code %q", c.name, code)
				}
			}
			wantError(t, c.name, r, c.status, c.code)
			if !strings.Contains(string(r.body), c.says) {
				t.Errorf("%s: the answer does not name %q: %s", c.name, c.says, r.body)
			}
			s.wantNothingStored(c.name)
		}
		// The same pieces put together well are accepted, in this order and without a chat history too.
		s.mustPost(audioContentType, []byte(audio+header+lastBoundary))
		want(t, s.json("/api/sessions/refused"), map[string]any{"turn_count": 0, "record_url": "/api/sessions/refused/recording"})
		s.mustPost(audioContentType, []byte(part("header", "application/json", `{"session_id":"no-audio"}`)+part("audio", "audio/ogg", "")+lastBoundary))
		want(t, s.json("/api/sessions/no-audio"), map[string]any{"record_url": nil})
	})
}

// TestBodyOverTheCap sends too much, with and without saying so beforehand.
func TestBodyOverTheCap(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t), "MAX_RECORDING_MB=1")
	tooMuch := part("header", "application/json", goodHeader) + part("audio", "audio/ogg", strings.Repeat("a", 1<<20+100)) + lastBoundary

	// A body of unknown length: the client library sends it chunked.
	r := s.do("POST", ingestPath, map[string]string{"Content-Type": audioContentType}, io.MultiReader(strings.NewReader(tooMuch)))
	wantError(t, "chunked", r, 413, "payload_too_large")
	s.wantNothingStored("chunked")

	r = s.post(audioContentType, []byte(tooMuch))
	wantError(t, "with its length", r, 413, "payload_too_large")
	s.wantNothingStored("with its length")

	// A client that sends far more than allowed and reads only when it is done, or cannot go on, finds its answer.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: sidetone\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		ingestPath, audioContentType, 30<<20, part("header", "application/json", goodHeader))
	go io.Copy(conn, io.LimitReader(neverEnding{}, 30<<20)) // fails once the server hangs up
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("a client that sends 30 MB gets no answer: %v", err)
	}
	defer res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("30 MB: %d", res.StatusCode)
	}
	s.wantNothingStored("30 MB")

	// Just under the cap is fine.
	frame := len(part("header", "application/json", goodHeader)) + len(part("audio", "audio/ogg", "")) + len(lastBoundary)
	s.mustPost(audioContentType, []byte(part("header", "application/json", goodHeader)+
		part("audio", "audio/ogg", strings.Repeat("a", 1<<20-frame))+lastBoundary))
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

// TestAbortedUploadLeavesNothing cuts connections in the middle of the recording.
func TestAbortedUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t))
	var halves []halfUpload
	for i := range 4 {
		halves = append(halves, beginUpload(t, s, fmt.Sprintf("cut-%d", i)))
	}
	receiving(t, s, 4)
	for i, h := range halves {
		if i%2 == 0 {
			if err := h.conn.(*net.TCPConn).SetLinger(0); err != nil { // a reset instead of an orderly end
				t.Fatal(err)
			}
		}
		h.conn.Close()
	}
	apptest.Eventually(t, patience, "the staged files are gone", func() bool { return len(s.files()) == 0 })
	s.wantNothingStored("cut connections")
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("/ready: %d", r.status)
	}
}

// TestDiskForRecordingsFull lets writing fail in the middle of a recording.
func TestDiskForRecordingsFull(t *testing.T) {
	t.Parallel()
	audio := bytes.Repeat([]byte("0123456789"), 200_000)
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		viaProto, viaJSON, small := numbered(1), numbered(2), numbered(4)
		viaProto.audio, viaJSON.audio = audio, audio
		s.LimitFileSize(1 << 20)
		retryStatus(t, s.post(viaProto.multipart()))
		wantError(t, "a JSON client", s.post(viaJSON.multipart()), 503, "unavailable")
		s.wantNothingStored("a full disk")
		s.mustPost(small.multipart()) // what needs no space for a recording goes on
		s.LimitFileSize(-1)
		for _, r := range []report{viaProto, viaJSON} {
			s.mustPost(r.multipart())
		}
		checkAll(t, s, []report{viaProto, viaJSON, small})
	})
}

// TestRecordingsFolderUnusable takes the folder for uploads away and brings it back.
func TestRecordingsFolderUnusable(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t))
	restore := breakFolder(t, s.recordings+"/tmp")
	viaProto, viaJSON, small := numbered(3), numbered(6), numbered(4)
	retryStatus(t, s.post(viaProto.multipart()))
	wantError(t, "a JSON client", s.post(viaJSON.multipart()), 503, "unavailable")
	wantError(t, "/ready", s.get("/ready"), 503, "unavailable")
	if n := s.total(); n != 0 {
		t.Errorf("%d sessions are stored without their recordings", n)
	}
	s.mustPost(small.multipart())
	restore()
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("/ready: %d %s", r.status, r.body)
	}
	for _, r := range []report{viaProto, viaJSON} {
		s.mustPost(r.multipart())
	}
	checkAll(t, s, []report{viaProto, viaJSON, small})
}

// TestLostRecordingIsNotFound removes a file behind the server's back.
func TestLostRecordingIsNotFound(t *testing.T) {
	t.Parallel()
	s := start(t, sqliteURL(t))
	r := numbered(3)
	s.mustPost(r.multipart())
	for _, f := range s.files() {
		removeFile(t, s.recordings+"/"+f)
	}
	wantError(t, "a lost recording", s.get("/api/sessions/"+r.id+"/recording"), 404, "not_found")
	want(t, s.json("/api/sessions/"+r.id), map[string]any{"turn_count": r.turns()})
	s.mustPost(r.multipart()) // and sending it again repairs it
	if err := r.check(s); err != nil {
		t.Error(err)
	}
}

// TestHostileIDs uses ids that are paths, markup and more.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		s := start(t, database)
		for _, id := range []string{"../../etc/passwd", "a/b", "a?b#c", "50%", "%2e%2e", `q"uote`, "<script>", "ünïcode ☎", ".", "..", "tab\tid", "spaces in it"} {
			call := demo.Call{Header: fmt.Appendf(nil, `{"session_id":%s}`, jsonText(t, id)), Body: []byte(goodChat)}
			r := s.post(call.Multipart([]byte("audio of " + id)))
			if r.status != 200 {
				if r.status != 400 {
					t.Errorf("%q: %d %s", id, r.status, r.body)
				}
				continue
			}
			stored, _ := at(decode(t, r.body), "session_id").(string)
			list := s.json("/api/sessions?limit=1")
			url, _ := at(list, "objects.0.record_url").(string)
			if got := s.get(url); got.status != 200 || string(got.body) != "audio of "+id {
				t.Errorf("%q, stored as %q: the recording at %s is answered %d %q", id, stored, url, got.status, got.body)
			}
			if got := s.get(strings.TrimSuffix(url, "/recording")); got.status != 200 {
				t.Errorf("%q, stored as %q: %d %s", id, stored, got.status, got.body)
			}
		}
		for _, f := range s.files() {
			if strings.Contains(f, "passwd") {
				t.Errorf("a path was made from an id: %s", f)
			}
		}
	})
}
