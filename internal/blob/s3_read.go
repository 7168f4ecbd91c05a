package blob

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"sidetone/internal/errs"
)

// readTries is how often a reply that breaks off is continued from where it broke before the reader hears of it.
const readTries = 3

// Open implements recording.Objects. It asks for the object at once, so that a failure is known before any of it is
// promised to a client.
func (s *S3) Open(ctx context.Context, key string, size int64) (io.ReadSeekCloser, error) {
	got, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if got != size {
		return nil, errs.New(errs.Internal, "the object has %d bytes instead of %d", got, size)
	}
	return &object{s: s, ctx: ctx, key: key, size: size}, nil
}

// object reads an object from where it was told to. Seeking costs nothing: the next Read asks for a range.
type object struct {
	s    *S3
	ctx  context.Context
	key  string
	size int64
	off  int64

	body  io.ReadCloser // at off; nil before the first Read and after Seek
	stop  context.CancelFunc
	timer *time.Timer // ends a body that stalls
}

func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.off
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of a recording")
	}
	if offset != o.off {
		o.drop()
		o.off = offset
	}
	return offset, nil
}

func (o *object) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for try := 1; ; try++ {
		if o.off >= o.size {
			return 0, io.EOF
		}
		err := o.request()
		if err == nil {
			var n int
			o.timer.Reset(o.s.stall)
			n, err = o.body.Read(p)
			o.timer.Stop()
			o.off += int64(n)
			if n > 0 {
				return n, nil
			}
			if err == nil {
				continue
			}
		}
		o.drop()
		if try == readTries || o.ctx.Err() != nil || errs.Is(err, errs.NotFound) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, o.s.explain(err, "read from")
		}
	}
}

// request asks for everything from off on, unless that is on its way already.
func (o *object) request() error {
	if o.body != nil {
		return nil
	}
	var opts minio.GetObjectOptions
	if o.off > 0 {
		if err := opts.SetRange(o.off, o.size-1); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(o.ctx)
	body, _, _, err := o.s.core.GetObject(ctx, o.s.bucket, o.s.name(o.key), opts)
	if err != nil {
		stop()
		return o.s.explain(err, "read from")
	}
	o.body, o.stop = body, stop
	o.timer = time.AfterFunc(o.s.stall, stop)
	return nil
}

func (o *object) drop() {
	if o.body == nil {
		return
	}
	o.timer.Stop()
	o.stop() // before Close, which would read the rest
	o.body.Close()
	o.body = nil
}

func (o *object) Close() error {
	o.drop()
	return nil
}
