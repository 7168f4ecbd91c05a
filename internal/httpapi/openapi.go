package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// describeStreams adds the routes that do not go through huma: they stream, or answer other things than our JSON.
func (s *server) describeStreams(doc *huma.OpenAPI) {
	text := func(t string) *huma.Schema { return &huma.Schema{Type: "string", Description: t} }
	reply := func(desc string, types ...string) map[string]*huma.Response {
		content := map[string]*huma.MediaType{}
		for _, t := range types {
			content[t] = &huma.MediaType{}
		}
		return map[string]*huma.Response{"200": {Description: desc, Content: content}}
	}
	doc.AddOperation(&huma.Operation{OperationID: "post-recording", Method: http.MethodPost, Path: "/observability/recordings/v0",
		Tags: []string{"Ingest"}, Summary: "Receive a session report",
		Description: "Answers 200 only when the report and its recording are durable. Sending the same report again replaces the first.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: &huma.Schema{
			Type: "object", Required: []string{"header"}, Properties: map[string]*huma.Schema{
				"header":       text("JSON, or a binary livekit.MetricsRecordingHeader"),
				"chat_history": text("JSON: {\"items\":[...]} or a whole session report"),
				"audio":        {Type: "string", Format: "binary", Description: "OGG with Opus, left channel caller, right channel agent"},
			}}}}},
		Responses: reply("{\"api_id\",\"message\",\"session_id\"}", "application/json")})
	for _, signal := range []string{"logs", "traces", "metrics"} {
		for id, path := range map[string]string{"": "/observability/" + signal + "/otlp/v0", "-standard": "/v1/" + signal} {
			doc.AddOperation(&huma.Operation{OperationID: "post-" + signal + id, Method: http.MethodPost, Path: path, Tags: []string{"Ingest"},
				Summary:     "Receive OTLP " + signal,
				Description: "An Export" + strings.ToUpper(signal[:1]) + signal[1:] + "ServiceRequest, protobuf or JSON, gzip or not, at most 20 MB unpacked. The reply is in the encoding of the request.",
				RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/x-protobuf": {}, "application/json": {}}},
				Responses:   reply("The Export*ServiceResponse", "application/x-protobuf", "application/json")})
		}
	}
	doc.AddOperation(&huma.Operation{OperationID: "get-recording", Method: http.MethodGet, Path: "/api/sessions/{id}/recording",
		Tags: []string{"Sessions"}, Summary: "The recording, with ranges", Parameters: []*huma.Param{
			{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}},
			{Name: "download", In: "query", Description: "1: as a file to keep", Schema: &huma.Schema{Type: "string"}},
			{Name: "stream", In: "query", Description: "1: from this server, even where S3_REDIRECT sends players to the object store", Schema: &huma.Schema{Type: "string"}}},
		Responses: reply("The audio", "audio/ogg")})
	for path, what := range map[string]string{"/health": "The process runs", "/ready": "Reports can be stored", "/metrics": "Prometheus metrics"} {
		doc.AddOperation(&huma.Operation{OperationID: "get-" + path[1:], Method: http.MethodGet, Path: path, Tags: []string{"Operations"},
			Summary: what, Responses: reply(what)})
	}
}

// renderSpec makes openapi.json once, when all routes are registered.
func (s *server) renderSpec(doc *huma.OpenAPI) error {
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				delete(op.Responses, "422") // huma's status for what is a 400 here: humaError
			}
		}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", " "); err != nil {
		return err
	}
	s.spec = out.Bytes()
	return nil
}

func (s *server) getOpenAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Write(s.spec)
}
