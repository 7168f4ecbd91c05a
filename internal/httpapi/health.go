package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"sidetone/internal/recording"
)

// getHealth says that the process runs. It touches nothing, so that a missing database does not restart the server.
func (s *server) getHealth(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		APIID   string `json:"api_id"`
		Status  string `json:"status"`
		Version string `json:"version"`
	}{apiID(r.Context()), "ok", s.Version})
}

// getReady says whether reports can be stored: the database answers and is migrated, recordings can be written.
func (s *server) getReady(w http.ResponseWriter, r *http.Request) {
	if err := s.Ready(r.Context()); err != nil {
		WriteError(w, r, err)
		return
	}
	state, err := s.Recordings(r.Context())
	if err != nil {
		WriteError(w, r, err)
		return
	}
	var age float64
	if !state.Spool.Oldest.IsZero() {
		age = s.Now().Sub(state.Spool.Oldest).Seconds()
	}
	writeJSON(w, http.StatusOK, struct {
		APIID       string    `json:"api_id"`
		Status      string    `json:"status"`
		ObjectStore string    `json:"object_store"` // off, ok or failing
		Spool       spoolView `json:"recordings_spool"`
	}{apiID(r.Context()), "ready", state.ObjectStore, spoolView{state.Spool.Count, state.Spool.Bytes, age}})
}

// RecordingsState is what /ready tells about recordings. None of it makes a server unready: what waits is safe in the
// folder, and reports are taken.
type RecordingsState struct {
	Spool       recording.Spool
	ObjectStore string // off, ok or failing
}

type spoolView struct {
	Count      int     `json:"count"`
	Bytes      int64   `json:"bytes"`
	AgeSeconds float64 `json:"age_seconds"`
}

type statusOutput struct {
	Body struct {
		Envelope
		Version string `json:"version"`
		Auth    struct {
			Basic   bool `json:"basic" doc:"Reading needs a password"`
			LiveKit bool `json:"livekit" doc:"Sending needs a LiveKit token"`
		} `json:"auth"`
	}
}

// registerStatus adds what the dashboard says about the server itself.
func (s *server) registerStatus(api huma.API) {
	register(api, huma.Operation{OperationID: "get-status", Method: http.MethodGet, Path: "/api/status", Tags: []string{"Operations"},
		Summary: "Version, and who may read and send"}, func(ctx context.Context, _ *struct{}) (*statusOutput, error) {
		out := &statusOutput{}
		out.Body.Envelope, out.Body.Version = envelopeOf(ctx), s.Version
		out.Body.Auth.Basic, out.Body.Auth.LiveKit = s.BasicAuth, s.LiveKitAuth
		return out, nil
	})
}
