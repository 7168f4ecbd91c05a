package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"

	"sidetone/internal/errs"
	"sidetone/internal/otlp"
	"sidetone/internal/report"
	"sidetone/internal/session"
)

// maxDocumentPart bounds the header and the chat history of a report, in bytes: what is held in memory of an upload.
const maxDocumentPart = 32 << 20

// retryDelay is how long a client is told to wait before it sends something again. A LiveKit SDK tries a report four times
// in all, so this must outlast a short restart of the database without keeping a job process alive for long.
const retryDelay = 5 * time.Second

// stallTimeout is how long an upload may go without a byte.
const stallTimeout = 60 * time.Second

// postRecording takes a session report: multipart parts header, chat_history and audio in any order.
func (s *server) postRecording(w http.ResponseWriter, r *http.Request) {
	var staged session.StagedRecording
	defer func() {
		if staged != nil {
			staged.Abort() // does nothing once committed
		}
	}()
	body := &patientReader{body: http.MaxBytesReader(w, r.Body, s.MaxRecordingBytes), rc: http.NewResponseController(w), now: s.Now}
	up, err := report.Read(r.Header.Get("Content-Type"), body, report.Limits{Body: s.MaxRecordingBytes, Part: maxDocumentPart},
		func(audio io.Reader) error {
			var err error
			if staged, err = s.Sessions.NewRecording(r.Context()); err != nil {
				return err
			}
			_, err = io.CopyBuffer(writerOnly{staged}, audio, make([]byte, 64<<10))
			return err
		})
	if err != nil {
		s.refuseRecording(w, r, up, err)
		return
	}
	rep, err := report.Parse(up)
	if err != nil {
		s.refuseRecording(w, r, up, err)
		return
	}
	id, err := s.Sessions.Ingest(r.Context(), session.Upload{Report: rep, Doc: report.EncodeDoc(up, rep), Audio: staged}, s.Now())
	if err != nil {
		s.refuseRecording(w, r, up, err)
		return
	}
	writeJSON(w, http.StatusOK, struct {
		APIID     string `json:"api_id"`
		Message   string `json:"message"`
		SessionID string `json:"session_id"`
	}{apiID(r.Context()), "session report received", id})
}

// refuseRecording answers an error in the form the client understands: LiveKit SDKs, known by their protobuf header,
// retry only on a protobuf status, and drop the report for ever on anything else (livekit-wire.md 4.6).
func (s *server) refuseRecording(w http.ResponseWriter, r *http.Request, up report.Upload, err error) {
	if errs.Is(err, errs.Unavailable) && up.HeaderProto {
		note(r.Context(), err)
		contentType, body := otlp.ErrorBody(otlp.Protobuf, otlp.CodeUnavailable, "the server cannot store the report right now", retryDelay)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write(body)
		return
	}
	WriteError(w, r, err)
}

// writerOnly hides ReadFrom, which would bring its own buffer.
type writerOnly struct{ io.Writer }

// patientReader gives up on a client that sends nothing for a while, however long the whole upload takes.
type patientReader struct {
	body io.Reader
	rc   *http.ResponseController
	now  func() time.Time
	next time.Time // when the deadline has to be moved again
}

func (p *patientReader) Read(b []byte) (int, error) {
	if now := p.now(); now.After(p.next) {
		p.rc.SetReadDeadline(now.Add(stallTimeout)) // not every writer has one
		p.next = now.Add(stallTimeout / 4)
	}
	n, err := p.body.Read(b)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = errs.New(errs.TooLarge, "the body is larger than %d MB", tooLarge.Limit>>20)
	}
	return n, err
}
