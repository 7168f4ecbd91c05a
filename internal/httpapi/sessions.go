package httpapi

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"sidetone/internal/errs"
	"sidetone/internal/session"
)

// maxSessionPage is how many rows a page has at most: spec.md "Limits".
const maxSessionPage = 20

func (s *server) registerSessions(api huma.API) {
	register(api, huma.Operation{OperationID: "list-sessions", Method: http.MethodGet, Path: "/api/sessions", Tags: []string{"Sessions"},
		Summary:     "List sessions",
		Description: "Newest end first; sessions still active come before all. All filters are combined with AND."}, s.listSessions)
	register(api, huma.Operation{OperationID: "get-session", Method: http.MethodGet, Path: "/api/sessions/{id}", Tags: []string{"Sessions"},
		Summary: "Everything about one session"}, s.getSession)
	register(api, huma.Operation{OperationID: "delete-sessions", Method: http.MethodDelete, Path: "/api/sessions", Tags: []string{"Sessions"},
		Summary: "Delete sessions with their recordings and telemetry"}, s.deleteSessions)
}

// RequestURL gives a handler the URL it was asked under, for the links of a list.
type RequestURL struct{ url url.URL }

func (r *RequestURL) Resolve(ctx huma.Context) []error {
	r.url = ctx.URL()
	return nil
}

type listSessionsInput struct {
	RequestURL
	PageParams
	AccountID     string `query:"account_id" doc:"Exact; several separated by commas mean any of them"`
	AgentID       string `query:"agent_id" doc:"Exact; several separated by commas mean any of them"`
	AgentName     string `query:"agent_name" doc:"Exact; several separated by commas mean any of them"`
	Transport     string `query:"transport" doc:"Exact; several separated by commas mean any of them"`
	StartedFrom   string `query:"started_from" doc:"RFC 3339 or YYYY-MM-DD, inclusive"`
	StartedTo     string `query:"started_to" doc:"RFC 3339 or YYYY-MM-DD, inclusive"`
	State         string `query:"state" doc:"active or ended"`
	Outcome       string `query:"outcome" doc:"Exact; several separated by commas mean any of them"`
	HasRecording  string `query:"has_recording" doc:"true or false"`
	HasFailedEval string `query:"has_failed_eval" doc:"true: some judge said fail"`
	MinDurationMS string `query:"min_duration_ms"`
	MaxDurationMS string `query:"max_duration_ms"`
	Q             string `query:"q" maxLength:"1000" doc:"Search in the transcript: words, \"quoted phrases\", -excluded"`
}

func (in *listSessionsInput) filter() (session.Filter, error) {
	var q queryReader
	f := session.Filter{
		AccountIDs: q.list("account_id", in.AccountID), AgentIDs: q.list("agent_id", in.AgentID),
		AgentNames: q.list("agent_name", in.AgentName), Transports: q.list("transport", in.Transport),
		Outcomes:    q.list("outcome", strings.ToLower(in.Outcome)),
		StartedFrom: q.time("started_from", in.StartedFrom, false), StartedTo: q.time("started_to", in.StartedTo, true),
		State:        q.oneOf("state", in.State, session.StateActive, session.StateEnded),
		HasRecording: q.bool("has_recording", in.HasRecording), HasFailedEval: q.bool("has_failed_eval", in.HasFailedEval),
		MinDurationMS: q.int("min_duration_ms", in.MinDurationMS), MaxDurationMS: q.int("max_duration_ms", in.MaxDurationMS),
		Search: session.ParseQuery(in.Q),
	}
	return f, q.err()
}

func (s *server) listSessions(ctx context.Context, in *listSessionsInput) (*listOutput[SessionRow], error) {
	limit, offset, err := in.page(maxSessionPage)
	if err != nil {
		return nil, err
	}
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	rows, total, err := s.Sessions.List(ctx, f, session.Page{Limit: limit, Offset: offset})
	if err != nil {
		return nil, err
	}
	views := make([]SessionRow, len(rows))
	for i := range rows {
		views[i] = viewRow(&rows[i].Session)
		views[i].MatchSnippet = orNull(rows[i].MatchSnippet)
	}
	return newList(ctx, in.url, limit, offset, total, views), nil
}

type SessionPath struct {
	ID string `path:"id" doc:"The session's id" example:"demo-call-44712"`
}

type sessionOutput struct{ Body sessionDetail }

func (s *server) getSession(ctx context.Context, in *SessionPath) (*sessionOutput, error) {
	d, err := s.Sessions.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := viewDetail(d)
	out.Envelope = envelopeOf(ctx)
	return &sessionOutput{Body: out}, nil
}

type deleteSessionsInput struct {
	Body struct {
		SessionIDs []string `json:"session_ids" minItems:"1" maxItems:"200" doc:"Ids of the sessions to delete"`
	}
}

type deletedOutput struct {
	Body struct {
		Envelope
		Deleted int `json:"deleted" doc:"How many of them there were"`
	}
}

func (s *server) deleteSessions(ctx context.Context, in *deleteSessionsInput) (*deletedOutput, error) {
	if len(in.Body.SessionIDs) == 0 { // null passes for a list
		return nil, errs.InvalidField("session_ids", "must be a list of 1 to 200 ids")
	}
	n, err := s.Sessions.Delete(ctx, in.Body.SessionIDs)
	if err != nil {
		return nil, err
	}
	out := &deletedOutput{}
	out.Body.Envelope, out.Body.Deleted = envelopeOf(ctx), n
	return out, nil
}

// getRecording streams a recording with ranges, HEAD, ETag and, with ?download=1, as a file to keep. ?stream=1 is for pages
// whose policy forbids what another host sends, such as the dashboard.
func (s *server) getRecording(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	download := query.Get("download") == "1"
	// An address is signed for one method.
	if s.RedirectRecordings && r.Method == http.MethodGet && query.Get("stream") != "1" {
		name := ""
		if download {
			name = fileName(r.PathValue("id")) + ".ogg"
		}
		link, err := s.Sessions.RecordingLink(r.Context(), r.PathValue("id"), name)
		if err != nil {
			WriteError(w, r, err)
			return
		}
		if link != "" {
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, link, http.StatusFound)
			return
		}
	}
	ss, f, err := s.Sessions.Recording(r.Context(), r.PathValue("id"))
	if err != nil {
		WriteError(w, r, err)
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", "audio/ogg")
	h.Set("ETag", fmt.Sprintf("%q", ss.Recording.SHA256))
	h.Set("Cache-Control", "private, no-cache") // revalidated by ETag: a report sent again may bring another recording
	h.Set("X-Content-Type-Options", "nosniff")
	if download {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(ss.ID) + ".ogg"}))
	}
	http.ServeContent(w, r, "", ss.CreatedAt, f)
}

// fileName keeps of an id what every file system takes.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x20 || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, id)
	return strings.TrimLeft(name[:min(len(name), 120)], ".")
}
