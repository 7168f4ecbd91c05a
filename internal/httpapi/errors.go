package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"sidetone/internal/errs"
)

// apiError is the one error shape of the API: {"api_id","error":{"code","message","details"}}.
type apiError struct {
	APIID string `json:"api_id" doc:"Id of this reply; also the x-request-id header and in the server's log"`
	Err   struct {
		Code    string       `json:"code" enum:"invalid_json,invalid_payload,invalid_query,unauthorized,not_found,payload_too_large,unsupported_media_type,too_many,unavailable,internal"`
		Message string       `json:"message"`
		Details []errs.Field `json:"details,omitempty" doc:"Every violated rule, for validation errors"`
	} `json:"error"`
	status int
}

func (e *apiError) Error() string  { return e.Err.Message }
func (e *apiError) GetStatus() int { return e.status }

// kinds maps each kind of error to its status and code: the only place where that is decided.
var kinds = map[errs.Kind]struct {
	status int
	code   string
}{
	errs.Invalid:         {http.StatusBadRequest, "invalid_payload"},
	errs.InvalidJSON:     {http.StatusBadRequest, "invalid_json"},
	errs.InvalidQuery:    {http.StatusBadRequest, "invalid_query"},
	errs.TooMany:         {http.StatusBadRequest, "too_many"},
	errs.Unauthorized:    {http.StatusUnauthorized, "unauthorized"},
	errs.NotFound:        {http.StatusNotFound, "not_found"},
	errs.TooLarge:        {http.StatusRequestEntityTooLarge, "payload_too_large"},
	errs.UnsupportedType: {http.StatusUnsupportedMediaType, "unsupported_media_type"},
	errs.Unavailable:     {http.StatusServiceUnavailable, "unavailable"},
	errs.Internal:        {http.StatusInternalServerError, "internal"},
}

// mapError turns any error into what a client may see and notes the whole of it for the request's log line.
func mapError(ctx context.Context, err error) *apiError {
	note(ctx, err)
	out := &apiError{APIID: apiID(ctx)}
	var e *errs.Error
	if !errors.As(err, &e) {
		e = &errs.Error{Kind: errs.Internal}
	}
	k := kinds[e.Kind]
	out.status, out.Err.Code, out.Err.Message, out.Err.Details = k.status, k.code, e.Message, e.Fields
	if e.Kind == errs.Internal {
		out.Err.Message = "something went wrong on the server; its log has the details under this api_id"
		out.Err.Details = nil
	}
	return out
}

// WriteError answers any error in the API's one shape.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	e := mapError(r.Context(), err)
	if e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	writeJSON(w, e.status, e)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.Encode(v) // a client that went away is not an error worth telling
}

// missingProperty is what huma says of a required field that is not there.
var missingProperty = regexp.MustCompile(`^expected required property (\S+) to be present$`)

// humaError gives huma's own refusals (wrong types, unknown fields, a broken body) the error shape and 400s.
func humaError(ctx huma.Context, status int, msg string, causes ...error) huma.StatusError {
	kind := errs.Internal
	var fields []errs.Field
	for _, c := range causes {
		if c == nil {
			continue
		}
		d, ok := c.(huma.ErrorDetailer)
		if !ok {
			continue
		}
		detail := d.ErrorDetail()
		field := strings.TrimPrefix(strings.TrimPrefix(detail.Location, "body."), "query.")
		if m := missingProperty.FindStringSubmatch(detail.Message); m != nil { // huma names the object that lacks it
			field = strings.TrimPrefix(strings.TrimPrefix(field+"."+m[1], "body."), "query.")
		}
		fields = append(fields, errs.Field{Field: field, Message: detail.Message})
		if strings.HasPrefix(detail.Location, "query.") {
			kind = errs.InvalidQuery
		}
	}
	switch {
	case kind == errs.InvalidQuery:
	case status == http.StatusBadRequest && len(fields) == 0:
		kind = errs.InvalidJSON
	case status == http.StatusBadRequest && len(fields) == 1 && fields[0].Field == "body": // no rule of ours comes with a 400
		kind, msg = errs.InvalidJSON, "the body is not valid JSON: "+fields[0].Message
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		kind = errs.Invalid
	case status == http.StatusNotFound:
		kind = errs.NotFound
	case status == http.StatusRequestEntityTooLarge:
		kind = errs.TooLarge
	case status == http.StatusUnsupportedMediaType, status == http.StatusNotAcceptable:
		kind = errs.UnsupportedType
	case status == http.StatusRequestTimeout:
		kind = errs.Invalid
	}
	cause := errors.Join(causes...)
	return mapError(ctx.Context(), &errs.Error{Kind: kind, Message: msg, Fields: fields, Cause: cause})
}

func init() {
	// huma has one error constructor for the whole process; this program has one API.
	huma.NewErrorWithContext = humaError
	// Our lists are empty when there is nothing, never null.
	huma.DefaultArrayNullable = false
	// From what this returns the OpenAPI document takes the shape of errors.
	huma.NewError = func(status int, msg string, causes ...error) huma.StatusError {
		e := &apiError{status: status}
		e.Err.Message = msg
		return e
	}
}
