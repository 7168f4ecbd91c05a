package httpapi

import "net/http"

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
