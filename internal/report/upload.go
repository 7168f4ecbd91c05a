// Package report turns an uploaded session report, as the SDKs and agent-transport send it, into a session.Report.
//
// Read takes the multipart body apart while it streams, Parse makes the report, EncodeDoc and ParseDoc store it and
// read it again. Clients differ in key style, in time units and in how they nest the chat history (livekit-wire.md
// section 4); everything is accepted that can be understood, because a refused report is lost for ever.
package report

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"sidetone/internal/errs"
)

// Upload is a multipart body taken apart. Parse and EncodeDoc keep slices of its bytes: they must not change later.
type Upload struct {
	Header         []byte // nil when there was no such part
	HeaderProto    bool   // Header is protobuf, else JSON: so must a 503 be
	ChatHistory    []byte
	HasChatHistory bool
	HasAudio       bool // a non-empty audio part was there

	// chatRoom is free space right before ChatHistory in memory, for EncodeDoc.
	chatRoom []byte
}

// docRoom is how much space Read leaves before the chat history, in bytes: enough for what EncodeDoc puts there, of
// nearly every report.
const docRoom = 1 << 10

// Limits bound an upload, in bytes.
type Limits struct {
	Body int64 // the whole body
	Part int64 // the header and the chat history, each
}

// maxPartHeader bounds in bytes what may stand between two parts: the header lines of a part, a preamble.
const maxPartHeader = 64 << 10

// Read takes a multipart body apart, its parts in any order, unknown ones skipped. The bytes of a non-empty audio part
// go to the reader passed to audio, which is called at most once; they are never in memory whole.
//
// Errors: UnsupportedType when contentType is not multipart; TooLarge when a limit is passed, Limits or the caller's
// (*http.MaxBytesError); Invalid when there is no header part, when a part comes twice or when the body breaks off. An
// error of audio itself comes back as it is, so that the caller can tell its storage from the client. The Upload is
// then what had been read so far.
func Read(contentType string, body io.Reader, lim Limits, audio func(io.Reader) error) (Upload, error) {
	var u Upload
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.HasPrefix(mediaType, "multipart/") || params["boundary"] == "" {
		return u, errs.New(errs.UnsupportedType, "the body must be multipart/form-data with a boundary, with the parts header, chat_history and audio")
	}
	// The multipart package reads 4 KB at a time: without larger reads below, that would be as many system calls.
	buffered := buffers.Get().(*bufio.Reader)
	buffered.Reset(io.LimitReader(body, lim.Body+1)) // one more tells a body that ends at the limit from one that goes on
	defer func() {
		buffered.Reset(nil)
		buffers.Put(buffered)
	}()
	src := &source{r: buffered, left: lim.Body, limit: lim.Body}
	parts := multipart.NewReader(src, params["boundary"])
	for {
		src.between, src.budget = true, maxPartHeader
		part, err := parts.NextRawPart()
		src.between = false
		if err == io.EOF {
			break
		}
		if err != nil {
			return u, src.explain(err, "between two parts")
		}
		if err := u.take(part, src, lim.Part, audio); err != nil {
			return u, err
		}
	}
	if u.Header == nil {
		return u, errNoHeader()
	}
	return u, nil
}

var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// take reads one part to its end.
func (u *Upload) take(part *multipart.Part, src *source, limit int64, audio func(io.Reader) error) (err error) {
	name := part.FormName()
	twice := func(seen bool) error {
		if seen {
			return invalidPart(errs.Invalid, name, "the multipart body has this part twice")
		}
		return nil
	}
	switch name {
	case partHeader:
		if err = twice(u.Header != nil); err == nil {
			u.Header, err = readPart(part, src, name, 0, 1<<10, limit)
			u.HeaderProto = isProto(part, u.Header)
		}
	case partChat:
		if err = twice(u.HasChatHistory); err == nil {
			u.ChatHistory, err = readPart(part, src, name, docRoom, 48<<10, limit)
			if err == nil {
				u.ChatHistory, u.chatRoom = u.ChatHistory[docRoom:], u.ChatHistory[:docRoom]
			}
			u.HasChatHistory = err == nil
		}
	case partAudio:
		if err = twice(u.HasAudio); err == nil {
			err = u.takeAudio(&partReader{part: part, src: src, name: name}, audio)
		}
	}
	if err == nil {
		_, err = io.Copy(io.Discard, &partReader{part: part, src: src, name: name})
	}
	return err
}

// takeAudio hands the part to audio unless it is empty. When reading the client's body failed, that is the error,
// whatever audio made of it.
func (u *Upload) takeAudio(r *partReader, audio func(io.Reader) error) error {
	n, err := r.Read(r.head[:])
	if n == 0 {
		if err == io.EOF {
			return nil
		}
		return err
	}
	r.headLeft = true
	u.HasAudio = true
	err = audio(r)
	if r.err != nil && r.err != io.EOF {
		return r.err
	}
	return err
}

// readPart reads a part of at most limit bytes into memory, behind room free bytes. It makes space for the part's
// Content-Length, which is trusted up to a point, else for usual bytes.
func readPart(part *multipart.Part, src *source, name string, room, usual, limit int64) ([]byte, error) {
	const trusted = 256 << 10
	if n, err := strconv.ParseInt(part.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		usual = min(n, trusted) + 1 // with a byte to spare the end is seen without growing
	}
	limit += room
	buf := make([]byte, room, min(room+usual, limit+1))
	r := partReader{part: part, src: src, name: name}
	for {
		if int64(len(buf)) > limit {
			return nil, invalidPart(errs.TooLarge, name, "the part may have at most %d bytes", limit-room)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):min(int64(cap(buf)), limit+1)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// isProto tells the kind of a header part: by its content type, else by its file name, else by its content.
func isProto(part *multipart.Part, data []byte) bool {
	mediaType, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
	switch {
	case strings.Contains(mediaType, "protobuf"):
		return true
	case strings.HasSuffix(mediaType, "json"):
		return false
	}
	switch strings.ToLower(path.Ext(part.FileName())) {
	case ".binpb", ".pb":
		return true
	case ".json":
		return false
	}
	s := scanner{b: bytes.TrimPrefix(data, bom)}
	return len(data) > 0 && s.peek() != '{'
}

// partReader reads a part and names it in errors. It fills the buffer as far as it can: the multipart package gives at
// most 4 KB at a time, and a recording should not be written in pieces that small.
type partReader struct {
	part *multipart.Part
	src  *source
	name string
	err  error // sticks

	head     [1]byte // the byte that told the part is not empty
	headLeft bool
}

func (r *partReader) Read(p []byte) (n int, err error) {
	if r.headLeft && len(p) > 0 {
		p[0], r.headLeft = r.head[0], false
		n = 1
	}
	for n < len(p) && r.err == nil {
		var m int
		m, err = r.part.Read(p[n:])
		n += m
		if err == io.EOF {
			r.err = io.EOF
		} else if err != nil {
			r.err = r.src.explain(err, "inside the part "+r.name)
		}
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

// source is the client's body with its limits. It remembers why reading stopped, because the multipart package hides
// that in messages of its own.
type source struct {
	r           io.Reader
	left, limit int64
	between     bool // reading what stands between two parts
	budget      int  // how much of that is still allowed
	err         error
}

var errPartHeader = errs.New(errs.Invalid, "the multipart body has more than %d bytes between two parts", maxPartHeader)

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.between && s.budget <= 0 {
		s.err = errPartHeader
		return 0, s.err
	}
	// One byte more than allowed is asked for, to tell a body that ends at the limit from one that goes on.
	if int64(len(p)) > s.left+1 {
		p = p[:s.left+1]
	}
	n, err := s.r.Read(p)
	if s.left -= int64(n); s.left < 0 {
		n, err = 0, errs.New(errs.TooLarge, "the body may have at most %d bytes", s.limit)
	}
	s.budget -= n
	if err != nil {
		s.err = err
	}
	return n, err
}

// explain turns an error of the multipart package, met at the named place, into one for the client.
func (s *source) explain(err error, where string) error {
	var tooLarge *http.MaxBytesError
	switch {
	case s.err == errPartHeader, errs.Is(s.err, errs.TooLarge):
		return s.err
	case errors.As(s.err, &tooLarge):
		return errs.Wrap(errs.TooLarge, s.err, "the body may have at most %d bytes", tooLarge.Limit)
	case s.err != nil && s.err != io.EOF:
		return errs.Wrap(errs.Invalid, s.err, "the multipart body broke off %s", where)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errs.Wrap(errs.Invalid, err, "the multipart body ended %s, without its closing boundary", where)
	}
	return errs.Wrap(errs.Invalid, err, "the multipart body is malformed %s", where)
}
