package blob

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"sidetone/internal/errs"
	"sidetone/internal/recording"
)

// S3Settings say which bucket to use and how.
type S3Settings struct {
	Bucket, Region               string
	AccessKeyID, SecretAccessKey string // both empty: environment, shared credentials file, then the machine's role
	Endpoint                     string // http(s)://host[:port]; "" is AWS itself
	Prefix                       string // of every object key, without slashes around it
	// Stall is how long the store may take to accept some bytes, to begin its answer or to send some more of it.
	Stall time.Duration
	Now   func() time.Time
}

// S3 keeps recordings as objects of a bucket.
type S3 struct {
	core   minio.Core
	creds  *credentials.Credentials
	http   *http.Transport
	bucket string
	prefix string // "" or with a slash at the end
	stall  time.Duration
	now    func() time.Time
}

const (
	contentType = "audio/ogg"
	// linkLife is how long a presigned address works: long enough to begin to play, and for a player to seek a while.
	linkLife = 15 * time.Minute
	// beginTimeout bounds the beginning of an upload in parts.
	beginTimeout = 10 * time.Second
	// abortTimeout bounds giving up an upload in parts; what stays is found by `recordings check`.
	abortTimeout = 10 * time.Second
	// requestTries is how often one request is tried before the caller hears of it.
	requestTries = 2
	// probeKey is where Check writes. It has not the form of a recording's key.
	probeKey = "sidetone-check"
)

// OpenS3 prepares the use of a bucket. It sends nothing: Check does.
func OpenS3(set S3Settings) (*S3, error) {
	host, secure, lookup := "s3.amazonaws.com", true, minio.BucketLookupAuto
	if set.Endpoint != "" {
		u, err := url.Parse(set.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("S3_ENDPOINT: %w", err)
		}
		host, secure, lookup = u.Host, u.Scheme == "https", minio.BucketLookupPath
	}
	s := &S3{bucket: set.Bucket, stall: set.Stall, now: set.Now}
	if set.Prefix != "" {
		s.prefix = set.Prefix + "/"
	}
	s.http = &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: s.dial, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: set.Stall, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16, DisableCompression: true}
	if set.AccessKeyID != "" {
		s.creds = credentials.NewStaticV4(set.AccessKeyID, set.SecretAccessKey, "")
	} else {
		s.creds = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
	}
	client, err := minio.New(host, &minio.Options{Creds: s.creds, Secure: secure, Region: set.Region, BucketLookup: lookup,
		Transport: s.http, MaxRetries: requestTries})
	if err != nil {
		return nil, fmt.Errorf("object storage: %w", err)
	}
	s.core = minio.Core{Client: client}
	return s, nil
}

// dial makes connections whose writes do not wait for ever.
func (s *S3) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: min(s.stall, 10*time.Second)}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &patientConn{Conn: c, s: s}, nil
}

type patientConn struct {
	net.Conn
	s *S3
}

func (c *patientConn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(c.s.now().Add(c.s.stall))
	return c.Conn.Write(p)
}

func (s *S3) name(key string) string { return s.prefix + key }

// Check tries what recordings need: writing, reading and deleting an object. The error says what to change.
func (s *S3) Check(ctx context.Context) error {
	v, err := s.creds.GetWithContext(&credentials.CredContext{Client: &http.Client{Transport: s.http, Timeout: 5 * time.Second}})
	if err != nil || v.AccessKeyID == "" {
		return errs.Wrap(errs.Unavailable, err, "no credentials for the object store: set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY, or one of the ways of the AWS credential chain")
	}
	body := "written by sidetone to see that it may\n"
	_, err = s.core.PutObject(ctx, s.bucket, s.name(probeKey), strings.NewReader(body), int64(len(body)), "", "", minio.PutObjectOptions{ContentType: "text/plain"})
	if err != nil {
		return s.explain(err, "write to")
	}
	r, _, _, err := s.core.GetObject(ctx, s.bucket, s.name(probeKey), minio.GetObjectOptions{})
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(r, 1024))
		r.Close()
	}
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey { // another server checks at the same moment
		return s.explain(err, "read from")
	}
	if err := s.core.RemoveObject(ctx, s.bucket, s.name(probeKey), minio.RemoveObjectOptions{}); err != nil {
		return s.explain(err, "delete from")
	}
	return nil
}

// Put implements recording.Objects.
func (s *S3) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if size <= recording.PartSize {
		sum, err := md5Of(r, 0, size)
		if err != nil {
			return err
		}
		_, err = s.core.PutObject(ctx, s.bucket, s.name(key), io.NewSectionReader(r, 0, size), size, sum, "",
			minio.PutObjectOptions{ContentType: contentType})
		return s.explain(err, "write to")
	}
	parts, err := s.Begin(ctx, key)
	if err != nil {
		return err
	}
	for off := int64(0); off < size; off += recording.PartSize {
		if err := parts.Part(ctx, r, off, min(recording.PartSize, size-off)); err != nil {
			parts.Abort()
			return err
		}
	}
	if err := parts.Complete(ctx); err != nil {
		parts.Abort()
		return err
	}
	return nil
}

// md5Of is what S3 compares a body with before it stores it.
func md5Of(r io.ReaderAt, off, size int64) (string, error) {
	h := md5.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, off, size)); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// parts is an object being stored in parts.
type parts struct {
	s        *S3
	key, id  string
	complete []minio.CompletePart
}

// Begin implements recording.Objects. It cannot be cancelled half-way: the store may have begun an upload whose id nobody
// would learn, so that nobody could give it up. The first part is where a cancelled upload ends.
func (s *S3) Begin(ctx context.Context, key string) (recording.Parts, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.explain(err, "write to")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTimeout)
	defer cancel()
	id, err := s.core.NewMultipartUpload(ctx, s.bucket, s.name(key), minio.PutObjectOptions{ContentType: contentType})
	if err != nil {
		return nil, s.explain(err, "write to")
	}
	return &parts{s: s, key: key, id: id}, nil
}

func (p *parts) Part(ctx context.Context, r io.ReaderAt, offset, size int64) error {
	sum, err := md5Of(r, offset, size)
	if err != nil {
		return err
	}
	done, err := p.s.core.PutObjectPart(ctx, p.s.bucket, p.s.name(p.key), p.id, len(p.complete)+1, io.NewSectionReader(r, offset, size), size,
		minio.PutObjectPartOptions{Md5Base64: sum})
	if err != nil {
		return p.s.explain(err, "write to")
	}
	p.complete = append(p.complete, minio.CompletePart{PartNumber: done.PartNumber, ETag: done.ETag})
	return nil
}

func (p *parts) Complete(ctx context.Context) error {
	_, err := p.s.core.CompleteMultipartUpload(ctx, p.s.bucket, p.s.name(p.key), p.id, p.complete, minio.PutObjectOptions{ContentType: contentType})
	return p.s.explain(err, "write to")
}

// Abort gives the parts back even when what they belonged to was cancelled.
func (p *parts) Abort() {
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	p.s.core.AbortMultipartUpload(ctx, p.s.bucket, p.s.name(p.key), p.id)
}

// Stat implements recording.Objects.
func (s *S3) Stat(ctx context.Context, key string) (int64, error) {
	info, err := s.core.StatObject(ctx, s.bucket, s.name(key), minio.StatObjectOptions{})
	return info.Size, s.explain(err, "read from")
}

// Delete implements recording.Objects.
func (s *S3) Delete(ctx context.Context, key string) error {
	err := s.explain(s.core.RemoveObject(ctx, s.bucket, s.name(key), minio.RemoveObjectOptions{}), "delete from")
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// List implements recording.Objects.
func (s *S3) List(ctx context.Context, shard string) ([]recording.Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing when this returns early
	var out []recording.Object
	for o := range s.core.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.name(shard + "/"), Recursive: true}) {
		if o.Err != nil {
			return nil, s.explain(o.Err, "list")
		}
		if key := strings.TrimPrefix(o.Key, s.prefix); keyForm.MatchString(key) {
			out = append(out, recording.Object{Key: key, Size: o.Size, Modified: o.LastModified})
		}
	}
	return out, ctx.Err()
}

// Unfinished implements recording.Objects.
func (s *S3) Unfinished(ctx context.Context) ([]recording.Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out []recording.Object
	for u := range s.core.ListIncompleteUploads(ctx, s.bucket, s.prefix, true) {
		if u.Err != nil {
			return nil, s.explain(u.Err, "list")
		}
		if key := strings.TrimPrefix(u.Key, s.prefix); keyForm.MatchString(key) {
			out = append(out, recording.Object{Key: key, Size: u.Size, Modified: u.Initiated})
		}
	}
	return out, ctx.Err()
}

// Discard implements recording.Objects.
func (s *S3) Discard(ctx context.Context, key string) error {
	return s.explain(s.core.RemoveIncompleteUpload(ctx, s.bucket, s.name(key)), "delete from")
}

// Link implements recording.Objects.
func (s *S3) Link(ctx context.Context, key, name string) (string, error) {
	q := url.Values{"response-content-type": {contentType}}
	if name != "" {
		q.Set("response-content-disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	u, err := s.core.PresignedGetObject(ctx, s.bucket, s.name(key), linkLife, q)
	if err != nil {
		return "", s.explain(err, "read from")
	}
	return u.String(), nil
}

// explain turns an error of the store into one whose message says what to look at. Everything but a missing object may
// pass, so it is worth trying again.
func (s *S3) explain(err error, doing string) error {
	var known *errs.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := minio.ToErrorResponse(err)
	say := func(format string, args ...any) error { return errs.Wrap(errs.Unavailable, err, format, args...) }
	switch e.Code {
	case minio.NoSuchKey, "NotFound":
		return errs.Wrap(errs.NotFound, err, "the object store has no such recording")
	case minio.NoSuchBucket:
		return say("the object store has no bucket %q: check S3_BUCKET, S3_REGION and S3_ENDPOINT", s.bucket)
	case "InvalidAccessKeyId":
		return say("the object store does not know the access key: check S3_ACCESS_KEY_ID")
	case "SignatureDoesNotMatch":
		return say("the object store refuses the signature: check S3_SECRET_ACCESS_KEY")
	case minio.AccessDenied, "Forbidden", "AllAccessDisabled":
		return say("the credentials may not %s the bucket %q: check its policy", doing, s.bucket)
	case "ExpiredToken", "InvalidToken":
		return say("the credentials for the object store have expired")
	case "RequestTimeTooSkewed":
		return say("the clock of this machine differs from that of the object store")
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "InvalidRegion", "IllegalLocationConstraintException":
		return say("the bucket %q is not in the region that S3_REGION names", s.bucket)
	}
	var ne net.Error
	switch {
	case strings.Contains(strings.ToLower(e.Message), "access key"): // stores that have a code of their own for it
		return say("the object store does not know the access key: check S3_ACCESS_KEY_ID")
	case e.StatusCode >= 300:
		return say("the object store answers %d", e.StatusCode)
	case errors.As(err, &ne) && ne.Timeout():
		return say("the object store does not answer")
	}
	return say("the object store cannot be reached")
}

var _ recording.Objects = (*S3)(nil)
