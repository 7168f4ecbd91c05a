package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"sidetone/internal/errs"
)

const boundary = "b0undary"
const formData = "multipart/form-data; boundary=" + boundary

// part writes one part; head holds its header lines beside Content-Disposition's name.
func part(name, head, body string) string {
	return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"" + head + "\r\n\r\n" + body + "\r\n"
}

const closing = "--" + boundary + "--\r\n"

var roomy = Limits{Body: 1 << 20, Part: 1 << 20}

// noAudio fails a test whose body has no audio.
func noAudio(io.Reader) error { return errors.New("audio was called") }

func TestRead(t *testing.T) {
	header := part("header", "; filename=\"header.json\"\r\nContent-Type: application/json", `{"session_id":"s"}`)
	chat := part("chat_history", "\r\nContent-Type: application/json\r\nContent-Length: 12", `{"items":[]}`)
	audio := part("audio", "; filename=\"recording.ogg\"\r\nContent-Type: audio/ogg", "OggS")
	for _, c := range []struct{ name, body, chat, audio string }{
		{"usual order", header + chat + audio + closing, `{"items":[]}`, "OggS"},
		{"audio first", audio + chat + header + closing, `{"items":[]}`, "OggS"},
		{"header alone", header + closing, "", ""},
		{"empty audio", header + part("audio", "", "") + chat + closing, `{"items":[]}`, ""},
		{"empty audio, then audio", header + part("audio", "", "") + audio + closing, "", "OggS"},
		{"audio of one byte", header + part("audio", "", "x") + closing, "", "x"},
		{"unknown parts", part("junk", "", strings.Repeat("j", 100_000)) + header + part("", "", "x") + audio + closing, "", "OggS"},
		{"part without a name", "--" + boundary + "\r\nContent-Type: text/plain\r\n\r\nx\r\n" + header + closing, "", ""},
		{"a Content-Length that lies", header + part("chat_history", "\r\nContent-Length: 99999999999999", "[]") + closing, "[]", ""},
		{"a negative Content-Length", header + part("chat_history", "\r\nContent-Length: -5", "[]") + closing, "[]", ""},
		{"preamble and epilogue", "hello\r\n" + header + closing + "bye", "", ""},
		{"bare line feeds", strings.ReplaceAll(header+chat+closing, "\r\n", "\n"), `{"items":[]}`, ""},
	} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s slow=%v", c.name, slow), func(t *testing.T) {
				var body io.Reader = strings.NewReader(c.body)
				if slow {
					body = iotest.OneByteReader(body)
				}
				var heard bytes.Buffer
				u, err := Read(formData, body, roomy, func(r io.Reader) error {
					_, err := io.Copy(&heard, r)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				if string(u.Header) != `{"session_id":"s"}` || u.HeaderProto {
					t.Errorf("header %q, proto %v", u.Header, u.HeaderProto)
				}
				if string(u.ChatHistory) != c.chat || u.HasChatHistory != (c.chat != "") {
					t.Errorf("chat history %q, %v; want %q", u.ChatHistory, u.HasChatHistory, c.chat)
				}
				if heard.String() != c.audio || u.HasAudio != (c.audio != "") {
					t.Errorf("audio %q, %v; want %q", heard.String(), u.HasAudio, c.audio)
				}
			})
		}
	}
}

func TestReadErrors(t *testing.T) {
	header := part("header", "", `{"session_id":"s"}`)
	big := strings.Repeat("x", 5000)
	for _, c := range []struct {
		name, contentType, body string
		lim                     Limits
		want                    string
	}{
		{"JSON", "application/json", `{}`, roomy, "unsupported_type: the body must be multipart/form-data with a boundary, with the parts header, chat_history and audio"},
		{"no type", "", `{}`, roomy, "unsupported_type: "},
		{"nonsense type", "multipart/form-data; boundary", `{}`, roomy, "unsupported_type: "},
		{"no boundary", "multipart/form-data", `{}`, roomy, "unsupported_type: "},
		{"empty body", formData, "", roomy, "invalid: the multipart body ended between two parts, without its closing boundary"},
		{"no parts", formData, closing, roomy, "invalid: header: the multipart body has no such part"},
		{"another boundary", formData, strings.ReplaceAll(header+closing, boundary, "other"), roomy, "invalid: the multipart body ended between two parts"},
		{"no header", formData, part("chat_history", "", "[]") + closing, roomy, "invalid: header: the multipart body has no such part"},
		{"header twice", formData, header + header + closing, roomy, "invalid: header: the multipart body has this part twice"},
		{"chat history twice", formData, part("chat_history", "", "[]") + part("chat_history", "", "") + closing, roomy, "invalid: chat_history: the multipart body has this part twice"},
		{"audio twice", formData, part("audio", "", "a") + part("audio", "", "b") + closing, roomy, "invalid: audio: the multipart body has this part twice"},
		{"cut inside the header", formData, header[:len(header)-10], roomy, "invalid: the multipart body ended inside the part header, without its closing boundary"},
		{"cut inside the audio", formData, header + part("audio", "", "OggS")[:60], roomy, "invalid: the multipart body ended"},
		{"cut inside an unknown part", formData, header + part("junk", "", big)[:3000], roomy, "invalid: the multipart body ended inside the part junk"},
		{"cut after a part", formData, header, roomy, "invalid: the multipart body ended inside the part header"},
		{"cut inside header lines", formData, header + "--" + boundary + "\r\nContent-Disp", roomy, "invalid: the multipart body "},
		{"malformed header lines", formData, "--" + boundary + "\r\nno colon here\r\n\r\nx\r\n" + closing, roomy, "invalid: the multipart body is malformed between two parts"},
		{"long header lines", formData, "--" + boundary + "\r\nX-Long: " + strings.Repeat(big, 100), roomy, "invalid: the multipart body has more than 65536 bytes between two parts"},
		{"long preamble", formData, strings.Repeat("a line\n", 100_000) + header + closing, roomy, "invalid: the multipart body has more than 65536 bytes between two parts"},
		{"header over its limit", formData, part("header", "", big) + closing, Limits{1 << 20, 4999}, "too_large: header: the part may have at most 4999 bytes"},
		{"chat history over its limit", formData, header + part("chat_history", "\r\nContent-Length: 5000", big) + closing, Limits{1 << 20, 4999}, "too_large: chat_history: the part may have at most 4999 bytes"},
		{"body over its limit", formData, header + part("chat_history", "", big) + closing, Limits{3000, 1 << 20}, "too_large: the body may have at most 3000 bytes"},
		{"audio over the limit", formData, header + part("audio", "", big) + closing, Limits{3000, 1 << 20}, "too_large: the body may have at most 3000 bytes"},
		{"unknown part over the limit", formData, header + part("junk", "", big) + closing, Limits{3000, 1 << 20}, "too_large: the body may have at most 3000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(c.contentType, strings.NewReader(c.body), c.lim, func(r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			})
			if err == nil || !strings.HasPrefix(describe(err), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestReadAtTheLimit: a body of exactly the allowed sizes passes.
func TestReadAtTheLimit(t *testing.T) {
	body := part("header", "", `{"session_id":"s"}`) + closing
	for _, c := range []struct {
		lim Limits
		ok  bool
	}{
		{Limits{int64(len(body)), 18}, true}, {Limits{int64(len(body)), 17}, false},
		{Limits{int64(len(body)) - 1, 18}, false},
	} {
		u, err := Read(formData, strings.NewReader(body), c.lim, noAudio)
		if (err == nil) != c.ok || err != nil && !errs.Is(err, errs.TooLarge) {
			t.Errorf("%+v: %q, %v; want ok %v", c.lim, u.Header, err, c.ok)
		}
	}
}

// TestReadFailures: whose fault an error is survives the way through the multipart package and the audio callback.
func TestReadFailures(t *testing.T) {
	head := part("header", "", `{"session_id":"s"}`)
	audio := part("audio", "", strings.Repeat("a", 100_000))
	storage := errs.New(errs.Unavailable, "the disk is full")
	copyAll := func(r io.Reader) error {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return fmt.Errorf("storing: %w", err)
		}
		return nil
	}
	after := func(n int, err error) io.Reader {
		return io.MultiReader(strings.NewReader((head + audio)[:n]), iotest.ErrReader(err))
	}
	var tooLarge error = &http.MaxBytesError{Limit: 500}
	for _, c := range []struct {
		name  string
		body  io.Reader
		audio func(io.Reader) error
		want  string
	}{
		{"storage fails at once", strings.NewReader(head + audio + closing), func(io.Reader) error { return storage }, "unavailable: the disk is full"},
		{"storage fails later", strings.NewReader(head + audio + closing), func(r io.Reader) error {
			io.ReadFull(r, make([]byte, 9000))
			return storage
		}, "unavailable: the disk is full"},
		{"storage fails plainly", strings.NewReader(head + audio + closing), func(io.Reader) error { return io.ErrUnexpectedEOF }, "plain: unexpected EOF"},
		{"client goes away in the audio", after(5000, errors.New("reset by peer")), copyAll, "invalid: the multipart body broke off inside the part audio"},
		{"client goes away and storage hides it", after(5000, errors.New("reset by peer")), func(r io.Reader) error {
			io.Copy(io.Discard, r)
			return storage
		}, "invalid: the multipart body broke off inside the part audio"},
		{"client goes away and storage ignores it", after(5000, errors.New("reset by peer")), func(r io.Reader) error {
			io.Copy(io.Discard, r)
			return nil
		}, "invalid: the multipart body broke off inside the part audio"},
		{"client goes away in the header", after(70, errors.New("reset by peer")), copyAll, "invalid: the multipart body broke off inside the part header"},
		{"client goes away early", after(0, io.ErrUnexpectedEOF), copyAll, "invalid: the multipart body broke off between two parts"},
		{"MaxBytesError in the audio", after(5000, tooLarge), copyAll, "too_large: the body may have at most 500 bytes"},
		{"MaxBytesError in the header", after(70, tooLarge), copyAll, "too_large: the body may have at most 500 bytes"},
		{"MaxBytesError between", after(0, fmt.Errorf("wrapped: %w", tooLarge)), copyAll, "too_large: the body may have at most 500 bytes"},
		{"the caller's TooLarge", after(5000, errs.New(errs.TooLarge, "more than 1 MB")), copyAll, "too_large: more than 1 MB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(formData, c.body, roomy, c.audio)
			if err == nil || describe(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := Read(formData, strings.NewReader(head+audio+closing), roomy, func(io.Reader) error { return storage }); err != error(storage) {
		t.Errorf("the callback's error came back as another one: %v", err)
	}
}

// TestReadPartOfAudio: what audio leaves unread is skipped.
func TestReadPartOfAudio(t *testing.T) {
	u, err := Read(formData, strings.NewReader(part("audio", "", strings.Repeat("a", 50_000))+part("header", "", "{}")+closing), roomy,
		func(r io.Reader) error {
			_, err := io.ReadFull(r, make([]byte, 10))
			return err
		})
	if err != nil || string(u.Header) != "{}" || !u.HasAudio {
		t.Errorf("got %q, %v, %v", u.Header, u.HasAudio, err)
	}
}

// TestReadThroughServer: net/http's own limit reader is understood.
func TestReadThroughServer(t *testing.T) {
	body := part("header", "", "{}") + part("audio", "", strings.Repeat("a", 5000)) + closing
	req := httptest.NewRequest("POST", "/", strings.NewReader(body))
	_, err := Read(formData, http.MaxBytesReader(httptest.NewRecorder(), req.Body, 1000), roomy, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
	if describe(err) != "too_large: the body may have at most 1000 bytes" {
		t.Errorf("got %v", err)
	}
}

func TestHeaderKind(t *testing.T) {
	proto, jsonText := "\x0a\x04RM_1", " \r\n{\"room_id\":\"RM_1\"}"
	for _, c := range []struct {
		head, body string
		proto      bool
	}{
		{"; filename=\"header.binpb\"\r\nContent-Type: application/protobuf", proto, true},
		{"\r\nContent-Type: application/x-protobuf", proto, true},
		{"\r\nContent-Type: application/protobuf", jsonText, true},
		{"; filename=\"header.binpb\"", proto, true},
		{"; filename=\"HEADER.PB\"\r\nContent-Type: application/octet-stream", proto, true},
		{"; filename=\"header.json\"\r\nContent-Type: application/octet-stream", jsonText, false},
		{"\r\nContent-Type: application/json; charset=utf-8", jsonText, false},
		{"; filename=\"blob\"\r\nContent-Type: application/octet-stream", jsonText, false},
		{"; filename=\"blob\"\r\nContent-Type: application/octet-stream", proto, true},
		{"", jsonText, false},
		{"", "\xef\xbb\xbf" + jsonText, false},
		{"", proto, true},
		{"", "", false},
	} {
		u, err := Read(formData, strings.NewReader(part("header", c.head, c.body)+closing), roomy, noAudio)
		if err != nil || u.HeaderProto != c.proto {
			t.Errorf("header %q %q: proto %v, %v; want %v", c.head, c.body, u.HeaderProto, err, c.proto)
		}
	}
	// A header that is too large, and whatever fails later, must not hide which kind of answer the client understands.
	huge := part("header", "\r\nContent-Type: application/protobuf", proto) + part("chat_history", "", strings.Repeat("x", 5000)) + closing
	if u, err := Read(formData, strings.NewReader(huge), Limits{1 << 20, 1000}, noAudio); !errs.Is(err, errs.TooLarge) || !u.HeaderProto {
		t.Errorf("proto %v, %v", u.HeaderProto, err)
	}
}

// zeros is an endless audio file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestAudioIsStreamed: 64 MB of audio go through with little memory, in pieces as large as the reader asks for.
func TestAudioIsStreamed(t *testing.T) {
	const size = 64 << 20
	before, after := part("header", "", "{}"), part("audio", "", "|")
	head, tail, _ := strings.Cut(after, "|")
	pr, pw := io.Pipe()
	go func() {
		_, err := io.Copy(pw, io.MultiReader(strings.NewReader(before+head), io.LimitReader(zeros{}, size), strings.NewReader(tail+closing)))
		pw.CloseWithError(err)
	}()
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	var got int64
	short := 0
	buf := make([]byte, 32<<10)
	_, err := Read(formData, pr, Limits{Body: size + 4096, Part: 1 << 20}, func(r io.Reader) error {
		for {
			n, err := r.Read(buf)
			if got += int64(n); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if n < len(buf) {
				short++
			}
		}
	})
	runtime.ReadMemStats(&end)
	if err != nil || got != size {
		t.Fatalf("%d bytes of audio, %v; want %d", got, err, size)
	}
	if short > 1 {
		t.Errorf("%d pieces were smaller than asked for", short)
	}
	if used := end.TotalAlloc - start.TotalAlloc; used > 1<<20 {
		t.Errorf("reading 64 MB of audio allocated %d bytes", used)
	}
}
