package httpapi

import (
	"io"
	"net/http"
	"strconv"

	"sidetone/internal/errs"
	"sidetone/internal/otlp"
	"sidetone/internal/session"
)

// maxTelemetryBytes bounds one export after decompression. Collectors send up to 4 MiB by default, SDKs 512 records.
const maxTelemetryBytes = 20 << 20

func (s *server) postLogs(w http.ResponseWriter, r *http.Request) {
	logs, enc, err := otlp.DecodeLogs(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), s.exportBody(w, r), maxTelemetryBytes)
	if err != nil {
		s.refuseExport(w, r, enc, err)
		return
	}
	batch := make([]session.Telemetry, 0, len(logs.Groups))
	for i := range logs.Groups {
		g := &logs.Groups[i]
		t := telemetryOf(g.Origin)
		t.Logs, t.Signals = g.Records, &g.Signals
		batch = append(batch, t)
	}
	s.storeExport(w, r, otlp.KindLogs, enc, batch, logs.Dropped)
}

func (s *server) postTraces(w http.ResponseWriter, r *http.Request) {
	traces, enc, err := otlp.DecodeTraces(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), s.exportBody(w, r), maxTelemetryBytes)
	if err != nil {
		s.refuseExport(w, r, enc, err)
		return
	}
	batch := make([]session.Telemetry, 0, len(traces.Groups))
	for i := range traces.Groups {
		g := &traces.Groups[i]
		t := telemetryOf(g.Origin)
		t.Spans, t.Trace = g.Spans, &g.Summary
		batch = append(batch, t)
	}
	s.storeExport(w, r, otlp.KindTraces, enc, batch, traces.Dropped)
}

func (s *server) postMetrics(w http.ResponseWriter, r *http.Request) {
	metrics, enc, err := otlp.DecodeMetrics(r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), s.exportBody(w, r), maxTelemetryBytes)
	if err != nil {
		s.refuseExport(w, r, enc, err)
		return
	}
	batch := make([]session.Telemetry, 0, len(metrics.Groups))
	for i := range metrics.Groups {
		g := &metrics.Groups[i]
		t := telemetryOf(g.Origin)
		t.Points = g.Points
		batch = append(batch, t)
	}
	s.storeExport(w, r, otlp.KindMetrics, enc, batch, metrics.Dropped)
}

// exportBody reads what the client sends, at most what decoding takes even uncompressed, and not for ever.
func (s *server) exportBody(w http.ResponseWriter, r *http.Request) io.Reader {
	return &patientReader{body: http.MaxBytesReader(w, r.Body, maxTelemetryBytes), rc: http.NewResponseController(w), now: s.Now}
}

func telemetryOf(o otlp.Origin) session.Telemetry {
	key := o.Key
	if key.Room == "" {
		key.Room = key.Job // a job without a room is a session of its own
	}
	return session.Telemetry{Key: key, TraceID: o.TraceID, Service: o.Service, RoomName: o.RoomName, AgentName: o.AgentName}
}

// storeExport stores a batch and answers in the encoding it came in. Records that cannot be kept anywhere are told as a
// partial success, which no client sends again.
func (s *server) storeExport(w http.ResponseWriter, r *http.Request, kind otlp.Kind, enc otlp.Encoding, batch []session.Telemetry, dropped int) {
	store := func() error { return s.Sessions.IngestTelemetry(r.Context(), batch, s.Now()) }
	var err error
	if kind == otlp.KindLogs && s.Patiently != nil {
		// The Node SDK posts its log records first and gives up on the recording as well when that fails once
		// (livekit-wire.md 5.1), so a database that is away for a moment would cost the whole report.
		err = s.Patiently(r.Context(), store)
	} else {
		err = store()
	}
	if err != nil {
		s.refuseExport(w, r, enc, err)
		return
	}
	why := ""
	if dropped > 0 {
		s.DroppedTelemetry(dropped)
		why = "records that name no session, trace or service cannot be kept"
	}
	contentType, body := otlp.Response(kind, enc, dropped, why)
	w.Header().Set("Content-Type", contentType)
	w.Write(body)
}

// refuseExport answers an error with a google.rpc.Status. Exporters retry on 503 only: livekit-wire.md section 8.
func (s *server) refuseExport(w http.ResponseWriter, r *http.Request, enc otlp.Encoding, err error) {
	e := mapError(r.Context(), err)
	code := otlp.CodeInvalidArgument
	h := w.Header()
	var contentType string
	var body []byte
	switch {
	case errs.Is(err, errs.Unavailable):
		h.Set("Retry-After", strconv.Itoa(int(retryDelay.Seconds())))
		contentType, body = otlp.ErrorBody(enc, otlp.CodeUnavailable, e.Err.Message, retryDelay)
	case e.status >= 500:
		contentType, body = otlp.ErrorBody(enc, otlp.CodeInternal, e.Err.Message, 0)
	default:
		message := e.Err.Message
		for _, f := range e.Err.Details {
			message += "; " + f.Field + ": " + f.Message
		}
		contentType, body = otlp.ErrorBody(enc, code, message, 0)
	}
	h.Set("Content-Type", contentType)
	w.WriteHeader(e.status)
	w.Write(body)
}
