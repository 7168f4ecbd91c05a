package otlp

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"sidetone/internal/errs"
)

// encodingOf reads a Content-Type. An error comes with the encoding that a reply about it should have.
func encodingOf(contentType string) (Encoding, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && media == "" {
		media = contentType
	}
	switch media {
	case "application/x-protobuf", "application/protobuf":
		return Protobuf, nil
	case "application/json":
		return JSON, nil
	}
	enc := Protobuf
	if strings.Contains(contentType, "json") {
		enc = JSON
	}
	return enc, errs.New(errs.UnsupportedType, "Content-Type %q is not supported; use application/x-protobuf or application/json", clip(contentType))
}

// pooledBuffer is a body in memory that goes back to a pool.
type pooledBuffer struct{ bytes.Buffer }

var buffers = sync.Pool{New: func() any { return new(pooledBuffer) }}

// keepBuffer is the largest buffer that the pool keeps; the SDKs' batches are far smaller.
const keepBuffer = 1 << 20

func (b *pooledBuffer) release() {
	if b.Cap() <= keepBuffer {
		b.Reset()
		buffers.Put(b)
	}
}

var inflaters = sync.Pool{New: func() any { return new(gzip.Reader) }}

// readBody reads a whole body, decompressed, into memory: never more than maxBytes, and never more than maxBytes of
// compressed input either, which could otherwise be endless without giving any output.
func readBody(contentEncoding string, body io.Reader, maxBytes int64) (*pooledBuffer, error) {
	input := &io.LimitedReader{R: body, N: maxBytes + 1}
	src := io.Reader(input)
	switch strings.ToLower(strings.TrimSpace(contentEncoding)) {
	case "", "identity":
	case "gzip", "x-gzip":
		z := inflaters.Get().(*gzip.Reader)
		defer inflaters.Put(z)
		if err := z.Reset(input); err != nil {
			return nil, readError(err, input)
		}
		src = z
	default:
		return nil, errs.New(errs.UnsupportedType, "Content-Encoding %q is not supported; use gzip or identity", clip(contentEncoding))
	}
	buf := buffers.Get().(*pooledBuffer)
	_, err := buf.ReadFrom(io.LimitReader(src, maxBytes+1))
	switch {
	case int64(buf.Len()) > maxBytes || input.N == 0:
		err = errs.New(errs.TooLarge, "the body is larger than %d bytes after decompression; send smaller batches", maxBytes)
	case err != nil:
		err = readError(err, input)
	default:
		return buf, nil
	}
	buf.release()
	return nil, err
}

// readError passes on errors that already have a kind, as a reader of ours may give them, and takes everything else as
// the client's: a body that breaks off or is not gzip.
func readError(err error, input *io.LimitedReader) error {
	var known *errs.Error
	switch {
	case errors.As(err, &known):
		return err
	case input.N == 0:
		return errs.New(errs.TooLarge, "the compressed body is too large; send smaller batches")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return errs.Wrap(errs.Invalid, err, "the body is not gzip as Content-Encoding says")
	}
	return errs.Wrap(errs.Invalid, err, "the body breaks off or cannot be decompressed")
}

// clip shortens what a client sent for an error message.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
