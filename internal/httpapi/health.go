package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
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
	writeJSON(w, http.StatusOK, struct {
		APIID  string `json:"api_id"`
		Status string `json:"status"`
	}{apiID(r.Context()), "ready"})
}

type statusOutput struct {
	Body struct {
		envelope
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
		out.Body.envelope, out.Body.Version = envelopeOf(ctx), s.Version
		out.Body.Auth.Basic, out.Body.Auth.LiveKit = s.BasicAuth, s.LiveKitAuth
		return out, nil
	})
}
