package report

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/tools/txtar"

	"sidetone/internal/errs"
)

// section gives the bytes of one section of every case, as seeds.
func section(f *testing.F, name string) (seeds [][]byte) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range ar.Files {
			if s.Name == name {
				seeds = append(seeds, s.Data)
			}
		}
	}
	return seeds
}

// mustBeClients fails when an error would tell a client that the fault is ours.
func mustBeClients(t *testing.T, err error) {
	t.Helper()
	switch errs.KindOf(err) {
	case errs.Invalid, errs.InvalidJSON, errs.TooLarge, errs.UnsupportedType:
	default:
		t.Fatalf("an input made an error that is not the client's: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	header, chat := part("header", "; filename=\"header.json\"", `{"session_id":"s"}`), part("chat_history", "\r\nContent-Length: 2", "[]")
	for _, body := range []string{
		header + chat + part("audio", "", "OggS") + closing, part("audio", "", "") + header + closing, header + header + closing, header,
		"--" + boundary + "\r\n\r\n\r\n" + closing, closing, "", part("header", "\r\nContent-Type: application/protobuf", "\x0a\x01a") + closing,
		part("audio", "\r\nContent-Transfer-Encoding: quoted-printable", "=41=") + header + closing, strings.Repeat("x", 70_000),
		part("header", "\r\nX: "+strings.Repeat("y", 5000), strings.Repeat("z", 5000)) + closing,
	} {
		f.Add(formData, []byte(body))
	}
	f.Add("multipart/form-data; boundary=--------------------------51417e9365e720b32e670197", read(f, "livekit-node-1.9.0/02_recordings.bin"))
	f.Add("multipart/mixed; boundary=\"a b\"", []byte("--a b\r\n\r\n--a b--"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		lim := Limits{Body: 60_000, Part: 2000}
		calls, heard := 0, 0
		src := &counted{r: bytes.NewReader(body)}
		u, err := Read(contentType, src, lim, func(r io.Reader) error {
			calls++
			b, err := io.ReadAll(r)
			heard += len(b)
			return err
		})
		if calls > 1 || u.HasAudio != (calls == 1) || int64(len(u.Header)) > lim.Part || int64(len(u.ChatHistory)) > lim.Part {
			t.Fatalf("audio called %d times, %+v", calls, u)
		}
		if int64(src.n) > lim.Body+1 {
			t.Fatalf("%d bytes were read of at most %d", src.n, lim.Body)
		}
		if err != nil {
			mustBeClients(t, err)
			return
		}
		if u.Header == nil || u.HasAudio && heard == 0 || u.HasChatHistory != (u.ChatHistory != nil) {
			t.Fatalf("%d bytes of audio, %+v", heard, u)
		}
	})
}

type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func FuzzHeader(f *testing.F) {
	for _, b := range section(f, "header") {
		f.Add(b, false)
	}
	f.Add(read(f, "demo-call/header.json"), false)
	f.Add([]byte("\x0a\x04RM_1\x22\x0b\x08\x80\xde\x84\xd8\x06\x10\x80\xad\xe2\x04\x2a\x12\x0a\x0aaccount_id\x12\x04acme\x42\x04AJ_1\x48\x01\x50\x01"), true)
	f.Add([]byte("\x0a\x0bRM_capture1\x22\x00\x42\x0eAJ_RM_capture1"), true)
	f.Add([]byte("\x22\x02\x08\x01\x7b\x7c"), true)
	f.Fuzz(func(t *testing.T, data []byte, proto bool) {
		u := Upload{Header: data, HeaderProto: proto}
		if data == nil {
			u.Header = []byte{}
		}
		r, err := Parse(u)
		if err != nil {
			mustBeClients(t, err)
			return
		}
		for _, s := range []string{r.SessionID, r.RoomID, r.JobID, r.RoomName, r.AccountID, r.AgentID, r.AgentName, r.Transport} {
			if !utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > maxID {
				t.Fatalf("%q cannot be stored", s)
			}
		}
		if again, err := ParseDoc(EncodeDoc(u, r)); err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("stored and read again: %+v, %v, want %+v", again, err, r)
		}
	})
}

func FuzzChatHistory(f *testing.F) {
	for _, b := range section(f, "chat_history") {
		f.Add(b)
	}
	f.Add(read(f, "demo-call/chat_history.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		u := Upload{Header: []byte(`{"session_id":"s"}`), ChatHistory: data, HasChatHistory: true}
		r, err := Parse(u)
		checkGrammar(t, clean(data), err)
		if err != nil {
			mustBeClients(t, err)
			return
		}
		doc := EncodeDoc(u, r)
		if again, err := ParseDoc(doc); err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("stored and read again: %+v, %v, want %+v", again, err, r)
		}
		if raw := RawOf(doc); !json.Valid(raw) {
			t.Fatalf("raw_report %q is not JSON", raw)
		}
		for _, it := range r.Items {
			for _, s := range []string{it.ID, it.Type, it.Role, it.Text, it.CallID, it.Name, it.Arguments, it.Output} {
				if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
					t.Fatalf("%q cannot be stored", s)
				}
			}
			shown := NormalizeItem(it.Raw)
			if !json.Valid(shown) || shown[0] != '{' {
				t.Fatalf("%s is shown as %s", it.Raw, shown)
			}
			if again := NormalizeItem(shown); !bytes.Equal(shown, again) {
				t.Fatalf("%s is shown as %s, and that as %s", it.Raw, shown, again)
			}
			one, err := ParseItem(it.Raw)
			if err != nil || !reflect.DeepEqual(one, it) {
				t.Fatalf("alone the item is %+v, %v, in the list %+v", one, err, it)
			}
		}
		for _, raw := range [][]byte{r.Events, r.Options} {
			if raw != nil && !json.Valid(raw) {
				t.Fatalf("kept %q, which is not JSON", raw)
			}
		}
		for _, u := range r.Usage {
			if !json.Valid(u.Raw) {
				t.Fatalf("usage %q is not JSON", u.Raw)
			}
		}
	})
}

// checkGrammar compares the verdict with that of another JSON reader, which knows nothing of our own limits.
func checkGrammar(t *testing.T, body []byte, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "nested deeper") {
		return
	}
	valid := jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if broken := errs.Is(err, errs.InvalidJSON); broken == valid {
		t.Fatalf("%q: valid is %v, but the error is %v", body, valid, err)
	}
}
